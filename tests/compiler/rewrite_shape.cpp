// Each rule of shapes, repetition, reductions and moves: structure as text, values.
#include "croton/indexing.h"
#include "tests/compiler/rewrite_cases.h"

using namespace croton;
using namespace croton::test;

namespace {

constexpr std::int64_t kOpen = kAnyDim;

Variable floats(const char* name, const Shape& shape) {
  return symbol(name, DType::float32, shape);
}

}  // namespace

TEST_CASE("chains of dimshuffles become one", "[rewrite]") {
  const Variable x = floats("x", {kOpen, kOpen});
  const Variable same =
      apply("dimshuffle", {x}, {{"order", std::vector<std::int64_t>{0, 1}}}, Loc::current());
  check_rule("dimshuffle_same", same, "x");
  check_no_match("dimshuffle_same", x.T());
  check_rule("dimshuffle_dimshuffle", x.T().T(), "x");
  check_rule("dimshuffle_dimshuffle", x.dimshuffle({1, -1, 0}).dimshuffle({2, 0, -1, 1}),
             "dimshuffle[order=[0, 1, -1, -1]](x)");
  const Variable row = floats("r", {1, 5});
  check_rule("dimshuffle_dimshuffle", row.dimshuffle({1}).dimshuffle({-1, 0}),
             "dimshuffle[order=[-1, 1]](r)");
}

TEST_CASE("reshapes that say nothing new vanish", "[rewrite]") {
  const Variable x = floats("x", {4, 6});
  const Variable same =
      apply("reshape", {x}, {{"sizes", std::vector<std::int64_t>{4, 6}}}, Loc::current());
  check_rule("reshape_same", same, "x");
  const Variable open = floats("x", {kOpen, kOpen});
  check_rule("reshape_same", reshape(open, {open.shape(0), open.shape(1)}), "x");
  check_rule("reshape_same", reshape(exp(open), {open.shape(0), open.shape(1)}), "exp(x)");
  check_no_match("reshape_same", reshape(open, {open.shape(1), open.shape(0)}));
  check_rule("reshape_reshape", reshape(reshape(x, {24}), {8, 3}), "reshape[sizes=[8, 3]](x)");
  check_rule("reshape_reshape", reshape(reshape(x, {-1}), {8, 3}), "reshape[sizes=[8, 3]](x)");
  const Variable n = symbol("n", DType::int64, {});
  check_no_match("reshape_reshape", reshape(reshape(open, {24}), {-1}));  // 24 must be checked
  check_rule("reshape_ones", reshape(x, {4, 1, 6, 1}), "dimshuffle[order=[0, -1, 1, -1]](x)");
  check_rule("reshape_ones", reshape(floats("r", {1, 5}), {5}), "dimshuffle[order=[1]](r)");
  check_rule("reshape_ones", reshape(floats("c", {kOpen, 1}), {-1}), "dimshuffle[order=[0]](c)");
  check_rule("reshape_ones", reshape(open, {open.shape(0), 1, open.shape(1)}),
             "dimshuffle[order=[0, -1, 1]](x)");
  check_rule("reshape_ones", reshape(floats("s", {1, 1}), {}), "dimshuffle[order=[]](s)");
  check_no_match("reshape_ones", reshape(x, {6, 4}));
  check_no_match("reshape_ones", reshape(floats("c", {kOpen, 1}), {n}));
  check_rule("specify_same", specify_shape(x, {4, kOpen}), "x");
  check_no_match("specify_same", specify_shape(open, {4, kOpen}));
}

TEST_CASE("repetition goes where it is free", "[rewrite]") {
  const Variable x = floats("x", {kOpen, 5});
  const Variable v = floats("v", {5});
  const Variable k = floats("k", {});
  check_rule("broadcast_same", broadcast_to(x, {x.shape(0), 5}), "x");
  check_no_match("broadcast_same", broadcast_to(v, {2, 5}));
  check_rule("broadcast_broadcast", broadcast_to(broadcast_to(v, {3, 5}), {2, 3, 5}),
             "broadcast[sizes=[2, 3, 5]](v)");
  check_rule("broadcast_operand", x * broadcast_like(k, x, Loc::current()), "mul(x, k)");
  check_rule("broadcast_operand", broadcast_like(v, x, Loc::current()) - x, "sub(v, x)");
  // The quotient has the sizes of both, or the call fails.
  const Variable y = floats("y", {kOpen, 5});
  check_rule("broadcast_operand", broadcast_like(k, y, Loc::current()) * (y / x),
             "mul(k, true_divide(y, x))");
  check_no_match("broadcast_operand", v + broadcast_to(k, {2, 5}));
  check_no_match("broadcast_operand",
                 x + broadcast_like(k, floats("y", {kOpen, 5}), Loc::current()));
  check_rule("broadcast_result", exp(broadcast_to(k, {3})), "broadcast[sizes=[3]](exp(k))");
  check_rule("broadcast_result", 2 * broadcast_to(k, {3}), "broadcast[sizes=[3]](mul(2.0, k))");
  check_rule("broadcast_result", broadcast_to(k, {3}).astype(DType::int32),
             "broadcast[sizes=[3]](cast[dtype=3](k))");
  check_no_match("broadcast_result", exp(broadcast_to(v, {3, 5})));
  check_rule("scalar_operand", x * k.dimshuffle({-1, -1}), "mul(x, k)");
  check_rule("scalar_operand", make_constant(Array{{2.f}}, Loc::current()) + x, "add(2.0, x)");
  check_no_match("scalar_operand", v * k.dimshuffle({-1, -1}));
  check_rule("broadcast_scalar", broadcast_to(k.dimshuffle({-1}), {3}), "broadcast[sizes=[3]](k)");
  check_rule("broadcast_scalar", broadcast_to(make_constant(Array{{2.f}}, Loc::current()), {3, 4}),
             "broadcast[sizes=[3, 4]](2.0)");
  check_rule("dimshuffle_broadcast", broadcast_like(k, x, Loc::current()).T(),
             "broadcast[sizes=[5, -2]](k, size_of[axis=0](x))");
  check_rule("reshape_broadcast", reshape(broadcast_to(k, {2, 6}), {4, 3}),
             "broadcast[sizes=[4, 3]](k)");
}

TEST_CASE("reductions over nothing and of reductions", "[rewrite]") {
  const Variable x = floats("x", {kOpen, 1, kOpen});
  check_rule("reduce_ones", sum(x, 1), "dimshuffle[order=[0, 2]](x)");
  check_rule("reduce_ones", max(x, 1, {.keepdims = true}), "x");
  const Variable none =
      apply("prod", {x}, {{"axes", std::vector<std::int64_t>{}}, {"keepdims", 0}}, Loc::current());
  check_rule("reduce_ones", none, "x");
  check_no_match("reduce_ones", sum(x, {0, 1}));
  const Variable y = floats("y", {2, 3, 4});
  check_rule("reduce_reduce", sum(sum(y, 1), 1), "sum[axes=[1, 2], keepdims=0](y)", false);
  check_rule("reduce_reduce", sum(sum(y, 0)), "sum[axes=[0, 1, 2], keepdims=0](y)", false);
  check_rule("reduce_reduce", max(max(y, 2, {.keepdims = true}), {1, 2}),
             "max[axes=[1, 2], keepdims=0](y)");
  check_rule("reduce_reduce", min(min(y, 2, {.keepdims = true}), 0, {.keepdims = true}),
             "min[axes=[0, 2], keepdims=1](y)");
  check_no_match("reduce_reduce", sum(max(y, 2), 0));
  check_no_match("reduce_reduce", sum(sum(y, 2, {.keepdims = true}), 0));
  check_rule("dimshuffle_reduce", sum(y, 1, {.keepdims = true}).dimshuffle({2, 0}),
             "dimshuffle[order=[1, 0]](sum[axes=[1], keepdims=0](y))", false);
  check_rule("dimshuffle_reduce", squeeze(sum(y, 1, {.keepdims = true}), 1),
             "sum[axes=[1], keepdims=0](y)", false);
  check_rule("dimshuffle_reduce", expand_dims(sum(y, {0, 2}), {0, 2}),
             "sum[axes=[0, 2], keepdims=1](y)", false);
  check_rule("dimshuffle_reduce", argmax(y, 1, true).dimshuffle({0, 2}),
             "argmax[axes=[1], keepdims=0](y)");
  check_no_match("dimshuffle_reduce", sum(y, 1).T());
  check_rule("sum_neg", sum(-y, 1), "neg(sum[axes=[1], keepdims=0](y))", false);
}

TEST_CASE("sums of what was repeated are products", "[rewrite]") {
  const Variable v = floats("v", {5});
  const Variable k = floats("k", {});
  const Variable x = floats("x", {kOpen, 5});
  check_rule("sum_broadcast", sum(broadcast_to(k, {3, 4})), "mul(k, 12.0)", false);
  check_rule("sum_broadcast", sum(broadcast_to(v, {3, 5}), 0), "mul(v, 3.0)", false);
  check_rule("sum_broadcast", sum(broadcast_to(v, {3, 5}), 0, {.keepdims = true}),
             "mul(dimshuffle[order=[-1, 0]](v), 3.0)", false);
  check_rule("sum_broadcast", sum(broadcast_like(v, x, Loc::current()), 0),
             "mul(v, mul(cast[dtype=11](size_of[axis=0](x)), 1.0))", false);
  check_rule("sum_broadcast", sum(broadcast_to(symbol("n", DType::int64, {}), {3})), "mul(n, 3)");
  check_no_match("sum_broadcast", sum(broadcast_to(v, {3, 5}), 1));
  check_rule("sum_broadcast", sum(broadcast_to(k, {3, 5}), 1),
             "broadcast[sizes=[3]](mul(dimshuffle[order=[-1]](k), 5.0))", false);
}

TEST_CASE("sizes come from where they are known", "[rewrite]") {
  const Variable x = floats("x", {kOpen, 5});
  const Variable y = floats("y", {kOpen, 5});
  const auto size = [](const Variable& v, int axis) { return v.shape(axis); };
  const std::string rows = "size_of[axis=0](x)";
  check_rule("size_of_source", size(exp(x) * y, 0), rows);
  check_rule("size_of_source", size((x + 1).T(), 1), rows);
  check_rule("size_of_source", size(sum(x, 1), 0), rows);
  check_rule("size_of_source", size(softmax(x, 1), 0), rows);
  check_rule("size_of_source", size(dot(x, floats("w", {5, kOpen})), 0), rows);
  check_rule("size_of_source", size(dot(x, floats("w", {5, kOpen})), 1), "size_of[axis=1](w)");
  check_rule("size_of_source", size(broadcast_like(floats("k", {}), x, Loc::current()), 0), rows);
  check_rule("size_of_source", size(zeros({symbol("n", DType::int64, {}), 3}), 0), "n");
  check_rule("size_of_source", size(arange(symbol("n", DType::int64, {})), 0), "maximum(n, 0)");
  check_no_match("size_of_source", size(x, 0));
  check_rule("size_of_positive", maximum(size(x, 0), 0), rows);
  const Variable known = apply("size_of", {x}, {{"axis", 1}}, Loc::current());
  check_rule("size_of_source", known, "5");
  const Variable shape = apply("shape_of", {floats("z", {2, 3})}, {}, Loc::current());
  check_rule("shape_of_known", shape, "constant (2,)");
  check_no_match("shape_of_known", x.shape());
  check_rule("entry_of_shape", x.shape()(0),
             "dimshuffle[order=[]](dimshuffle[order=[-1]](" + rows + "))");
  const Variable last = make_constant(Array(-1), Loc::current());
  check_rule("entry_of_shape", floats("z", {5, kOpen}).shape()(last), "size_of[axis=1](z)");
}

TEST_CASE("slices, joins and moves that change nothing vanish", "[rewrite]") {
  const Variable x = floats("x", {kOpen, 5});
  const auto sliced = [&](std::int64_t start, std::int64_t stop, std::int64_t step) {
    return x(Slice(), Slice(start, stop, step));
  };
  check_rule("slice_all", sliced(0, 5, 1), "x");
  check_rule("slice_all", sliced(0, 9, 1), "x");
  check_no_match("slice_all", sliced(0, 4, 1));
  check_no_match("slice_all", sliced(1, 5, 1));
  check_no_match("slice_all", sliced(0, 5, 2));
  check_no_match("slice_all", x(Slice(none, none, -1)));
  check_no_match("slice_all", x(Slice(0, 7)));
  const Variable one = apply("concatenate", {x}, {{"axis", 0}}, Loc::current());
  check_rule("concatenate_one", one, "x");
  check_rule("transfer_transfer", x.transfer("a").transfer("b"), "transfer[context=\"b\"](x)");
  Variable there = exp(x);
  const_cast<Node*>(there.node())->context = intern("a");
  const Variable again = apply("transfer", {there}, {{"context", "a"}}, Loc::current());
  check_rule("transfer_same", again, "exp(x)");
  check_no_match("transfer_same", x.transfer("a"));
}
