// Messages name the op that the user called and its line, whatever it was made of.
#include <croton/croton.h>

#include <cmath>
#include <functional>
#include <source_location>

#include "tests/frontend/error_text.h"

using namespace croton;
using namespace croton::test;

namespace {

/// The error of calling a function of x, y (matrices), v (a vector) and i (indices).
struct Calls {
  Variable x = matrix("x"), y = matrix("y"), v = vector("v"), i = vector("i", DType::int64);
  Array a = Array::ones({2, 3}), b = Array::ones({4, 5}), five = Array::ones({5}), at = {0, 9};

  std::string operator()(const Variable& result) const {
    return error_text<CallError>([&] {
      function({x, y, v, i}, result, {.on_unused = OnUnused::ignore})(a, b, five, at);
    });
  }
  std::string of_size(const Variable& result, const Array& first) const {
    return error_text<CallError>([&] { function({x}, result)(first); });
  }
};

std::string built(const std::function<void()>& build) { return error_text<GraphError>(build); }

std::string at_line(std::uint_least32_t line) { return "at op_names.cpp:" + std::to_string(line); }

}  // namespace

#define HERE at_line(std::source_location::current().line())

TEST_CASE("graph errors name the op that the user called", "[messages]") {
  Variable a = tensor("a", DType::float32, {2, 3}), small = tensor("b", DType::int8, {4});
  Variable eight = tensor("t", DType::float32, {1, 1, 1, 1, 1, 1, 1, 1});
  CHECK_THAT(built([&] { a(5); }), HasAll({"[index] index 5 is out of bounds for axis 0", HERE}));
  CHECK_THAT(built([&] { a({7}); }), HasAll({"[index] index 7 is out of bounds", HERE}));
  CHECK_THAT(built([&] { eight(newaxis); }), HasAll({"[index]", "9 axes", HERE}));
  CHECK_THAT(built([&] { expand_dims(eight, 0); }), HasAll({"[expand_dims]", "9 axes", HERE}));
  CHECK_THAT(built([&] { stack({eight, eight}); }), HasAll({"[stack]", "9 axes", HERE}));
  CHECK_THAT(built([&] { stack({a, a(0)}); }), HasAll({"[stack] operands have 2 and 1", HERE}));
  CHECK_THAT(built([&] { one_hot(eight.astype(DType::int64), 3); }), HasAll({"[one_hot]", HERE}));
  CHECK_THAT(built([&] { zeros({-3}); }), HasAll({"[zeros]", "-3", HERE}));
  CHECK_THAT(built([&] { eye(-1); }), HasAll({"[eye]", "-1", HERE}));
  CHECK_THAT(built([&] { full({2}, 300, DType::int8); }), HasAll({"[full]", "300", "int8", HERE}));
  CHECK_THAT(built([&] { set_subtensor(small(0), 300); }),
             HasAll({"[set_subtensor] the number 300 does not fit int8", HERE}));
  CHECK_THAT(built([&] { inc_subtensor(a(0), Array::ones({5})); }),
             HasAll({"[inc_subtensor] axis 0 cannot be stretched from size 5 to 3", HERE}));
  CHECK_THAT(built([&] { a.std(5); }), HasAll({"[std] axis 5", HERE}));
  CHECK_THAT(built([&] { a.var(5); }), HasAll({"[var] axis 5", HERE}));
  CHECK_THAT(built([&] { sum(a, 0, {.where = tensor("m", DType::boolean, {5})}); }),
             HasAll({"[sum]", "5", HERE}));
  CHECK_THAT(built([&] { RandomStream(1).uniform({-3}); }), HasAll({"[uniform]", "-3", HERE}));
  CHECK_THAT(built([&] { tensor("u", DType::uint8, {}) + 18446744073709551615u; }),
             HasAll({"[add]", "18446744073709551615", HERE}));
}

TEST_CASE("rows without elements are refused in the name of the row op", "[messages]") {
  Variable e = tensor("e", DType::float32, {3, 0});
  CHECK_THAT(built([&] { function({e}, softmax(e)); }),
             HasAll({"[softmax] nothing to choose from: axis 1 has length 0", HERE}));
  CHECK_THAT(built([&] { argmax(e); }), HasAll({"[argmax] nothing to choose from", HERE}));
  const Calls call;
  CHECK_THAT(call.of_size(log_softmax(call.x, 0), Array::ones({0, 3})),
             HasAll({"[log_softmax] nothing to choose from: axis 0 has length 0", HERE}));
  CHECK_THAT(call.of_size(max(call.x, 1), Array::ones({3, 0})),
             HasAll({"[max] nothing to choose from: axis 1 has length 0;", HERE}));
}

TEST_CASE("sizes that clash in a call name the op that the user called", "[messages]") {
  const Calls call;
  const Variable &x = call.x, &y = call.y, &v = call.v;
  CHECK_THAT(call(dot(x, y)),
             HasAll({"[dot] the inner sizes clash: 3 and 4", HERE,
                     "axis 1 of argument 0 (\"x\") is 3", "axis 0 of argument 1 (\"y\") is 4"}));
  CHECK_THAT(call(matmul(x, y)), HasAll({"[matmul]", HERE}));
  CHECK_THAT(call(tensordot(x, y, 1)), HasAll({"[tensordot]", HERE}));
  // The product takes up the sum, the maximum and the transpose; each answers for itself.
  const Variable product = dot(x, y.T());
  const std::string line = at_line(std::source_location::current().line() - 1);
  CHECK_THAT(call(relu(product + v)), HasAll({"[dot]", line}));
  CHECK_THAT(call(relu(dot(x.T(), x) + v)),
             HasAll({"[add]", "3 and 5", "argument 2 (\"v\") is 5", HERE}));
  CHECK_THAT(call(stack({x, y})), HasAll({"[stack]", "differ along axis 1: 2 and 4", HERE}));
  CHECK_THAT(call(x(5)), HasAll({"[index] index 5 is out of bounds for axis 0 of size 2", HERE}));
  CHECK_THAT(call(set_subtensor(x(0), v)), HasAll({"[set_subtensor]", "from size 5 to 3", HERE}));
  CHECK_THAT(call(layer_norm(x, v, 0)), HasAll({"[layer_norm]", "3 and 5", HERE}));
  CHECK_THAT(call(binary_crossentropy(sigmoid(x), y)), HasAll({"[binary_crossentropy]", HERE}));
  CHECK_THAT(call(mean(x, 0, {.where = gt(y, 0)})), HasAll({"[mean]", "4 to 2", HERE}));
}

TEST_CASE("what must fit does so whatever the compiler drops", "[messages]") {
  const Calls call;
  const Variable &x = call.x, &y = call.y;
  CHECK_THAT(call((x + y) * 0 + x), HasAll({"[add]", "2 and 4", HERE}));
  CHECK_THAT(call(shape(x + y)), HasAll({"[add]", HERE}));
  for (const char* mode : {"FAST_RUN", "FAST_COMPILE", "DEBUG"}) {
    const Config config = current_config().with("mode", mode);
    CHECK_THROWS_AS(function({x, y}, x + y - y, {.config = config})(call.a, call.b), CallError);
  }
}

TEST_CASE("a size that turns out to be 1 is named, with what would make it broadcast",
          "[messages]") {
  const Calls call;
  const Variable &x = call.x, &y = call.y;
  const auto with_one = [&](const Variable& result, const Array& a, const Array& b) {
    return error_text<CallError>([&] { function({x, y}, result)(a, b); });
  };
  const Array wide = Array::ones({2, 3}), row = Array::ones({1, 3});
  CHECK_THAT(with_one(x * y, wide, row),
             HasAll({"[mul]", "2 and 1", "axis 0 of argument 1 (\"y\") is 1", "known to be 1",
                     "tensor(\"y\", DType::float32, {1, kAnyDim})", HERE}));
  CHECK_THAT(with_one(x * y, row, wide),
             HasAll({"argument 0 (\"x\") is 1", "tensor(\"x\", DType::float32, {1, kAnyDim})"}));
  CHECK_THAT(with_one(broadcast_to(y, {2, 3}) + x, wide, row),
             HasAll({"[broadcast_to]", "from size 1 to 2", "tensor(\"y\""}));
  // The fix works.
  Variable known = tensor("y", DType::float32, {1, kAnyDim});
  CHECK(function({x, known}, x * known)(wide, row)[0].shape() == Shape{2, 3});
  // No advice where no size is 1, and other advice where the size is not an argument's.
  CHECK(with_one(x * y, wide, Array::ones({4, 3})).find("known to be 1") == std::string::npos);
  CHECK_THAT(with_one(x * concatenate({y, y}), Array::ones({4, 3}), Array::ones({0, 3})),
             HasAll({"[mul]", "4 and 0"}));
  Shared free = shared(Array::ones({1, 3}), {.name = "free", .resizable = true});
  CHECK_THAT(error_text<CallError>([&] { function({x}, x + free)(wide); }),
             HasAll({"axis 0 of free is 1", ".resizable"}));
}

TEST_CASE("an index out of bounds names the op, the index and the line", "[messages]") {
  const Calls call;
  const Variable &x = call.x, &i = call.i;
  CHECK_THAT(call(x(i)), HasAll({"[index] index 9 is out of bounds for axis 0 of size 2", HERE}));
  CHECK_THAT(call(take(x, i, 1)), HasAll({"[take] index 9", "axis 1 of size 3", HERE}));
  CHECK_THAT(call(take_along_axis(x, expand_dims(i, 1), 1)), HasAll({"[take_along_axis]", HERE}));
  CHECK_THAT(call(set_subtensor(x(i), 1)), HasAll({"[set_subtensor] index 9", HERE}));
  CHECK_THAT(call(inc_subtensor(x(i), 1)), HasAll({"[inc_subtensor] index 9", HERE}));
  CHECK_THAT(call(inc_subtensor(x(i, i), 1)), HasAll({"[inc_subtensor] index 9", HERE}));
  CHECK_THAT(call(pick(x, i)), HasAll({"[pick] label 9 is out of range", HERE}));
  CHECK_THAT(call(cross_entropy_from_logits(x, i)),
             HasAll({"[cross_entropy_from_logits] label 9", HERE}));
  CHECK_THAT(call(categorical_crossentropy(softmax(x), i)),
             HasAll({"[categorical_crossentropy] label 9", HERE}));
  // Rewrites move it; gradients read and write at the same places.
  CHECK_THAT(call(log(pick(softmax(x), i))), HasAll({"[pick] label 9", HERE}));
  CHECK_THAT(call(exp(x(i)).T()), HasAll({"[index] index 9", HERE}));
  CHECK_THAT(call(grad(sum(x(i)), x)), HasAll({"[index] index 9", HERE}));
  // Two of them in one kernel, which other functions share.
  const Variable both = take(x, clip(i, 0, 1), 0) + x(i);
  CHECK_THAT(call(both),
             HasAll({"[index] index 9", at_line(std::source_location::current().line() - 1)}));
}

TEST_CASE("a place is said once", "[messages]") {
  const auto count = [](const std::string& text, const std::string& part) {
    int n = 0;
    for (std::size_t p = text.find(part); p != text.npos; p = text.find(part, p + 1)) ++n;
    return n;
  };
  Variable x = matrix("x");
  CHECK(count(built([&] { grad(x + 1, x); }), "op_names.cpp") == 1);
  CHECK(count(built([&] { set_subtensor(x.astype(DType::int8)(0), 300); }), "op_names.cpp") == 1);
}

TEST_CASE("up to eight indices, and std as a method", "[messages]") {
  Variable t = tensor("t", DType::float32, {1, 2, 1, 2, 1, 2, 1, 2});
  const Array values = Array::arange(16).astype(DType::float32).reshape({1, 2, 1, 2, 1, 2, 1, 2});
  CHECK(function({t}, t(0, 1, 0, 1, 0, 1, 0, 1))(values)[0].item<float>() == 15.0f);
  CHECK(function({t}, t(0, 1, 0, 0, 0, 1, 0))(values)[0].shape() == Shape{2});
  Variable v = vector("v");
  const Array two = {1.0, 3.0};
  CHECK(function({v}, v.std())(two)[0].item<float>() == 1.0f);
  CHECK(function({v}, v.std(0, {.ddof = 1}))(two)[0].item<float>() == Approx(std::sqrt(2.0)));
  CHECK(function({v}, v.var(0))(two)[0].item<float>() == 1.0f);
}
