// Stable forms, of values and of their gradients: structure, values where the old form was good,
// and the right values where it was not.
#include <cmath>

#include "croton/grad.h"
#include "croton/indexing.h"
#include "tests/compiler/rewrite_cases.h"

using namespace croton;
using namespace croton::test;
using Catch::Matchers::Contains;

namespace {

constexpr std::int64_t kOpen = kAnyDim;

Variable floats(const char* name, const Shape& shape = {kAnyDim}) {
  return symbol(name, DType::float32, shape);
}

/// What the passes up to stabilize make.
Variable stable(const Variable& v) {
  Graph graph = graph_of({v});
  const CompileContext context = context_of(Config());
  for (const auto& pass : {merge, canonicalize, merge, stabilize, merge}) {
    graph = pass(graph, context);
  }
  return graph.outputs[0];
}

std::string stable_text(const Variable& v) { return expression_text(stable(v)); }

std::vector<double> values_of(const Variable& v, const VariableMap<Array>& known) {
  const Variable outputs[] = {v};
  return evaluate(outputs, known)[0].astype(DType::float64).to_vector<double>();
}

/// Checks the values after the passes of a graph of one matrix x, on one row.
void check_stable(const Variable& v, const Variable& x, std::vector<double> at,
                  const std::vector<double>& wanted) {
  INFO(stable_text(v));
  const Array row = Array::from<double>(at).reshape({1, -1}).astype(x.dtype());
  const std::vector<double> values = values_of(stable(v), {{x, row}});
  REQUIRE(values.size() == wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    CHECK(values[i] == Approx(wanted[i]).epsilon(1e-5).margin(1e-6));
  }
}

Variable gradient(const Variable& cost, const Variable& x) { return grad(cost, {x})[0]; }

Variable matrix_x() { return floats("x", {kOpen, kOpen}); }

}  // namespace

TEST_CASE("logarithms of softmax", "[rewrite]") {
  const Variable x = floats("x", {kOpen, 5});
  const Variable y = symbol("y", DType::int64, {kOpen});
  check_rule("log_softmax", log(softmax(x, 1)), "log_softmax[axis=1](x)", false);
  check_rule("log_softmax", log(softmax(x, 0)), "log_softmax[axis=0](x)", false);
  check_rule("log_of_part", log(softmax(x, 1).T()),
             "dimshuffle[order=[1, 0]](log_softmax[axis=1](x))", false);
  check_rule("log_of_part", log(reshape(softmax(x, 1).T(), {-1})),
             "reshape[sizes=[-1]](dimshuffle[order=[1, 0]](log_softmax[axis=1](x)))", false);
  CHECK_THAT(stable_text(log(softmax(x, 1)(arange(y.shape(0)), y))),
             Contains("take[axes=[0, 1]](log_softmax"));
  check_no_match("log_of_part", log(exp(softmax(x, 1))));
  check_rule("shifted_softmax", softmax(x - max(x, 1, {.keepdims = true}), 1), "softmax[axis=1](x)",
             false);
  check_rule("shifted_softmax", log_softmax(x - max(x, 1, {.keepdims = true}), 1),
             "log_softmax[axis=1](x)", false);
  check_no_match("shifted_softmax", softmax(x - max(x, 0, {.keepdims = true}), 1));
  check_rule("exp_over_sum", exp(x) / sum(exp(x), 1, {.keepdims = true}), "softmax[axis=1](x)",
             false);
  check_no_match("exp_over_sum", exp(x) / sum(exp(x + 1), 1, {.keepdims = true}));
  check_rule("exp_log_softmax", exp(log_softmax(x, 1)), "softmax[axis=1](x)", false);
  check_rule("log_sum_exp", log(sum(exp(x), 1)), "logsumexp[axis=1, keepdims=0](x)", false);
  check_rule("log_sum_exp", log(sum(exp(x), 0, {.keepdims = true})),
             "logsumexp[axis=0, keepdims=1](x)", false);
  check_rule("log_sum_exp", log(sum(exp(floats("m", {2, 3})))),
             "logsumexp[axis=0, keepdims=0](reshape[sizes=[6]](m))", false);
  check_rule("log_sum_exp", log(sum(exp(floats("m", {2, 3})), none, {.keepdims = true})),
             "dimshuffle[order=[0, -1]](logsumexp[axis=0, keepdims=1](reshape[sizes=[6]](m)))",
             false);
  check_no_match("log_sum_exp", log(sum(exp(floats("m", {2, 3, 4})), {0, 2})));
}

TEST_CASE("logarithms of softmax do not become infinite", "[rewrite]") {
  const Variable x = matrix_x();
  check_stable(log(softmax(x, 1)), x, {0, 500, -1000}, {-500, 0, -1500});
  check_stable(log(softmax(x, 1))(0), x, {0, 500, -1000}, {-500, 0, -1500});
  check_stable(log(sum(exp(x), 1)), x, {800, 800}, {800 + std::log(2)});
  check_stable(log(sum(exp(x), 1)), x, {-800, -800}, {-800 + std::log(2)});
  check_stable(exp(x) / sum(exp(x), 1, {.keepdims = true}), x, {900, 900}, {0.5, 0.5});
  const Variable shifted = exp(x - max(x, 1, {.keepdims = true}));
  check_stable(shifted / sum(shifted, 1, {.keepdims = true}), x, {900, 900}, {0.5, 0.5});
  check_stable(log(exp(x)), x, {1000, -1000}, {1000, -1000});
}

TEST_CASE("cross-entropy of softmax", "[rewrite]") {
  const Variable x = floats("x", {kOpen, 5});
  const Variable y = symbol("y", DType::int64, {kOpen});
  const Rewritten result = apply_rule("log_picked", log(pick(softmax(x, 1), y)));
  CHECK(expression_text(result.value) == "sub(pick(x, y), logsumexp[axis=1, keepdims=0](x))");
  check_no_match("log_picked", log(pick(softmax(x, 0), y)));
  const VariableMap<Array> known{
      {x, Array{{1, 2, 3, 4, 5}, {0, 200, 0, 0, 0}}.astype(DType::float32)}, {y, Array{3, 2}}};
  const std::vector<double> values = values_of(stable(-log(pick(softmax(x, 1), y))), known);
  CHECK(values[0] == Approx(1.4519144));
  CHECK(values[1] == Approx(200));
  const std::vector<double> g =
      values_of(stable(gradient(-sum(log(pick(softmax(x, 1), y))), x)), known);
  CHECK(g[3] == Approx(0.2341217 - 1));
  CHECK(g[4] == Approx(0.6364087));
  CHECK(g[5 + 1] == Approx(1));
  CHECK(g[5 + 2] == Approx(-1));
}

TEST_CASE("logarithms beside 1 and of exponentials", "[rewrite]") {
  for (const DType dtype : {DType::float32, DType::float64}) {
    const Variable x = symbol("x", dtype, {kOpen});
    const Variable y = symbol("y", dtype, {kOpen});
    check_rule("log_one_plus", log(1 + x), "log1p(x)");
    check_rule("log_one_plus", log(x + 1), "log1p(x)");
    check_rule("log_one_minus", log(1 - x), "log1p(neg(x))");
    check_no_match("log_one_minus", log(x - 1));
    check_no_match("log_one_plus", log(2 + x));
    check_rule("exp_minus_one", exp(x) - 1, "expm1(x)");
    check_rule("exp_minus_one", -1 + exp(x), "expm1(x)");
    check_no_match("exp_minus_one", 1 - exp(x));
    check_rule("log_exp", log(exp(x)), "x");
    check_rule("log1p_exp", log1p(exp(x)), "softplus(x)");
    check_rule("log_add_exp", log(exp(x) + exp(y)),
               "add(maximum(x, y), log1p(exp(neg(where(eq(x, y), 0.0, abs(sub(x, y)))))))");
    check_rule("one_minus_erf", 1 - erf(x), "erfc(x)");
    check_rule("one_minus_erf", 1 - erfc(x), "erf(x)");
  }
  const Variable x = matrix_x();
  check_stable(log(1 + x), x, {1e-10, -1e-10}, {0, 0});
  CHECK(values_of(stable(log(1 + x)), {{x, Array{{1e-10}}.astype(DType::float32)}})[0] ==
        Approx(1e-10));
  CHECK(values_of(stable(exp(x) - 1), {{x, Array{{1e-10}}.astype(DType::float32)}})[0] ==
        Approx(1e-10));
  CHECK(values_of(stable(1 - erf(x)), {{x, Array{{6.0}}.astype(DType::float32)}})[0] ==
        Approx(2.1519737e-17));
  check_stable(log(1 + exp(x)), x, {1000, -1000, 0}, {1000, 0, std::log(2)});
  check_stable(log(exp(x) + exp(2 * x)), x, {500, -500, 0}, {1000, -500, std::log(2)});
}

TEST_CASE("sigmoids", "[rewrite]") {
  for (const DType dtype : {DType::float32, DType::float64}) {
    const Variable x = symbol("x", dtype, {kOpen});
    const Variable a = symbol("a", dtype, {kOpen});
    check_rule("inverse_one_plus_exp", reciprocal(1 + exp(-x)), "sigmoid(neg(neg(x)))");
    check_rule("inverse_one_plus_exp", reciprocal(1 + exp(x)), "sigmoid(neg(x))");
    check_rule("over_one_plus_exp", a / (1 + exp(x)), "mul(a, sigmoid(neg(x)))");
    const Variable e = exp(x);
    check_rule("over_one_plus_exp", e / (1 + e), "sigmoid(x)");
    check_rule("one_minus_sigmoid", 1 - sigmoid(x), "sigmoid(neg(x))");
    check_rule("log_sigmoid", log(sigmoid(x)), "neg(softplus(neg(x)))");
    check_rule("log_one_minus_sigmoid", log(1 - sigmoid(x)), "neg(softplus(x))");
    check_rule("log1p_neg_sigmoid", log1p(-sigmoid(x)), "neg(softplus(x))");
  }
  const Variable x = matrix_x();
  // Two sigmoids would cost more than one.
  const Variable s = sigmoid(x);
  check_no_match("one_minus_sigmoid", s * (1 - s));
  CHECK(stable_text(1 / (1 + exp(-x))) == "sigmoid(x)");
  CHECK(stable_text(log(1 - s) * s) == "mul(neg(softplus(x)), sigmoid(x))");
  check_stable(log(s), x, {-1000, 1000}, {-1000, 0});
  check_stable(log(1 - s), x, {-1000, 1000}, {0, -1000});
  check_stable(exp(x) / (1 + exp(x)), x, {1000, -1000, 0}, {1, 0, 0.5});
  check_stable(1 / (1 + exp(-x)), x, {1000, -1000, 0}, {1, 0, 0.5});
  const Variable loss = -(0.25 * log(s) + 0.75 * log(1 - s));
  check_stable(loss, x, {200, -200, 0}, {150, 50, std::log(2)});
}

TEST_CASE("gradients through logarithms are stable", "[rewrite]") {
  const Variable x = matrix_x();
  const Variable s = sigmoid(x);
  check_stable(gradient(sum(log(s)), x), x, {-1000, 1000, 0}, {1, 0, 0.5});
  check_stable(gradient(sum(log(1 - s)), x), x, {-1000, 1000, 0}, {0, -1, -0.5});
  check_stable(gradient(-sum(0.25 * log(s) + 0.75 * log(1 - s)), x), x, {-1000, 1000, 0},
               {-0.25, 0.75, 0.25});
  check_stable(gradient(sum(log(1 + exp(x))), x), x, {-1000, 1000, 0}, {0, 1, 0.5});
  check_stable(gradient(sum(log1p(exp(x))), x), x, {-1000, 1000, 0}, {0, 1, 0.5});
  check_stable(gradient(sum(1 / (1 + exp(-x))), x), x, {-1000, 1000, 0}, {0, 0, 0.25});
  check_stable(gradient(sum(log(sum(exp(x), 1))), x), x, {1000, 1000}, {0.5, 0.5});
  check_stable(gradient(sum(log(sum(exp(x), 1, {.keepdims = true}))), x), x, {1000, 1000},
               {0.5, 0.5});
  const Variable p = softmax(x, 1);
  check_stable(gradient(sum(log(p)(Slice(), Slice(0, 1))), x), x, {-500, 500}, {1, -1});
  check_stable(gradient(mean(log(p)), x), x, {-500, 500}, {0.5, -0.5});
  // Targets 1, 0.
  const Variable t = make_constant(Array{{1.f, 0.f}}, Loc::current());
  check_stable(gradient(-sum(t * log(p)), x), x, {-500, 500}, {-1, 1});
  check_stable(gradient(-sum(log(p)(arange(x.shape(0)), 0 * arange(x.shape(0)))), x), x,
               {-500, 500}, {-1, 1});
  check_stable(gradient(-sum(log(p(arange(x.shape(0)), 0 * arange(x.shape(0))))), x), x,
               {-500, 500}, {-1, 1});
  const Variable q = exp(x) / sum(exp(x), 1, {.keepdims = true});
  check_stable(gradient(sum(q(Slice(), Slice(0, 1))), x), x, {900, 900}, {0.25, -0.25});
}

TEST_CASE("rules of stable gradients one by one", "[rewrite]") {
  const Variable x = floats("x", {7, 5});
  const Variable a = floats("a", {7, 5});
  const Variable s = sigmoid(x);
  const Variable rest = 1 - s;
  const Variable b = floats("b", {7, 5});
  check_rule("cancel_probability", (a / s) * (s * b), "mul(a, b)", false);
  check_rule("cancel_probability", (b * s) * -(a / s), "neg(mul(a, b))", false);
  check_rule("cancel_probability", reciprocal(rest) * (s * rest), "sigmoid(x)", false);
  check_rule("cancel_probability", (a / s - b / rest) * (s * rest),
             "sub(mul(a, sub(1.0, sigmoid(x))), mul(b, sigmoid(x)))", false);
  check_rule("cancel_probability", (a + b / rest) * (s * rest),
             "add(mul(a, mul(sigmoid(x), sub(1.0, sigmoid(x)))), mul(b, sigmoid(x)))", false);
  check_no_match("cancel_probability", (a / x) * (x * b));
  const Variable e = exp(x);
  check_rule("gradient_of_softplus", (a / (1 + e)) * e, "mul(a, sigmoid(x))", false);
  check_rule("gradient_of_softplus", e * reciprocal(1 + e), "sigmoid(x)", false);
  check_no_match("gradient_of_softplus", (a / (2 + e)) * e);
  check_rule("sigmoid_times_exp", (a * sigmoid(-x)) * e, "mul(a, sigmoid(x))", false);
  check_rule("sigmoid_times_exp", exp(-x) * -sigmoid(x), "neg(sigmoid(neg(x)))", false);
  check_no_match("sigmoid_times_exp", e * sigmoid(x));
  const Variable total = sum(e, 1, {.keepdims = true});
  check_rule("gradient_of_logsumexp", (a / total) * e, "mul(a, softmax[axis=1](x))", false);
  check_rule("gradient_of_logsumexp", e * reciprocal(total), "softmax[axis=1](x)", false);
  const Variable flat = sum(e, 1);
  const Variable k = floats("k", {});
  check_rule("gradient_of_logsumexp", (k / flat).dimshuffle({0, -1}) * e,
             "mul(k, softmax[axis=1](x))", false);
  check_no_match("gradient_of_logsumexp", (k / sum(e, 0)).dimshuffle({-1, 0}) * exp(a));
  check_rule("sum_of_quotients", sum((x * x) / total, 1, {.keepdims = true}),
             "true_divide(sum[axes=[1], keepdims=1](mul(x, x)), sum[axes=[1], keepdims=1](exp(x)))",
             false);
  // Sizes that only the call knows might clash.
  const Variable open = floats("o", {kOpen, 5});
  check_no_match(
      "sum_of_quotients",
      sum(open / sum(exp(floats("y", {kOpen, 5})), 1, {.keepdims = true}), 1, {.keepdims = true}));
  const Variable p = softmax(x, 1);
  const Variable g = a / p;
  check_rule("gradient_of_log_softmax", (g - sum(g * p, 1, {.keepdims = true})) * p,
             "sub(a, mul(softmax[axis=1](x), sum[axes=[1], keepdims=1](a)))", false);
  const Variable h = b + g;
  check_rule("gradient_of_log_softmax", (h - sum(h * p, 1, {.keepdims = true})) * p,
             "sub(add(mul(b, softmax[axis=1](x)), a), mul(softmax[axis=1](x), sum[axes=[1], "
             "keepdims=1](add(mul(b, softmax[axis=1](x)), a))))",
             false);
  check_no_match("gradient_of_log_softmax", (a - sum(a * p, 1, {.keepdims = true})) * p);
  check_no_match("gradient_of_log_softmax", (g - sum(g * p, 0, {.keepdims = true})) * p);
  const Variable labels = make_constant(Array{1, 4, 0}, Loc::current());
  const Variable r = floats("r", {3});
  const Variable scattered =
      apply("pick_grad", {r, labels}, {{"sizes", std::vector<std::int64_t>{5}}}, Loc::current());
  check_rule("sum_of_picked", sum(scattered, 1), "r");
  check_rule("sum_of_picked", sum(scattered, 1, {.keepdims = true}),
             "dimshuffle[order=[0, -1]](r)");
}
