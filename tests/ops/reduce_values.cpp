// Reductions: results as NumPy gives them, dtypes, masks, and what is refused.
#include <cmath>
#include <limits>

#include "croton/error.h"
#include "croton/math.h"
#include "croton/reduce.h"
#include "croton/statistics.h"
#include "ops/build.h"
#include "tests/ops/graph_values.h"

using namespace croton;
using namespace croton::test;
using Catch::Matchers::Contains;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

// np.arange(24).reshape(2, 3, 4)
Array cube() { return counting({2, 3, 4}); }

Array evaluated(Variable (*f)(const Operand&, const Axis&, const ReduceOptions&), const Array& x,
                const Axis& axis, const ReduceOptions& options = {}) {
  const Variable symbol = input(x.dtype(), x.shape());
  return value(f(symbol, axis, options), {{symbol, x}});
}

}  // namespace

TEST_CASE("sums over axes", "[ops][reduce]") {
  CHECK(evaluated(sum, cube(), none).item<double>() == 276);
  CHECK(array_equal(evaluated(sum, cube(), 0),
                    Array{{12., 14., 16., 18.}, {20., 22., 24., 26.}, {28., 30., 32., 34.}}.astype(
                        DType::float64)));
  CHECK(array_equal(evaluated(sum, cube(), {0, -1}), Array{60., 92., 124.}.astype(DType::float64)));
  const Array kept = evaluated(sum, cube(), {1}, {.keepdims = true});
  CHECK(kept.shape() == Shape{2, 1, 4});
  CHECK(kept.at<double>({1, 0, 2}) == 54);
  CHECK(evaluated(sum, cube(), none, {.keepdims = true}).shape() == Shape{1, 1, 1});
}

TEST_CASE("an empty list of axes reduces over nothing", "[ops][reduce]") {
  const Variable x = floats({2, 3});
  CHECK(sum(x, {}).same(x));
  CHECK(max(x, {}).same(x));
  const Variable n = input(DType::int8, {3});
  CHECK(sum(n, {}).dtype() == DType::int64);
  CHECK(sum(n, {}).static_shape() == Shape{3});
}

TEST_CASE("products, extremes and logic", "[ops][reduce]") {
  const Array x = Array{{1.5, -2., 3.}, {0.5, 4., -1.}}.astype(DType::float64);
  CHECK(array_equal(evaluated(prod, x, 1), Array{-9., -2.}.astype(DType::float64)));
  CHECK(array_equal(evaluated(max, x, 0), Array{1.5, 4., 3.}.astype(DType::float64)));
  CHECK(array_equal(evaluated(min, x, 1), Array{-2., -1.}.astype(DType::float64)));
  CHECK(array_equal(evaluated(any, Array{{0, 0}, {0, 3}}, 1), Array{false, true}));
  CHECK(array_equal(evaluated(all, Array{{1, 2}, {0, 3}}, 0), Array{false, true}));
  CHECK(std::isnan(evaluated(max, Array{1., kNan, 3.}, 0).astype(DType::float64).item<double>()));
  CHECK(std::isnan(evaluated(min, Array{kNan, 2., 3.}, 0).astype(DType::float64).item<double>()));
}

TEST_CASE("reductions of nothing", "[ops][reduce]") {
  const Array nothing = Array::zeros({0, 2}, DType::float64);
  CHECK(array_equal(evaluated(sum, nothing, 0), Array{0., 0.}.astype(DType::float64)));
  CHECK(array_equal(evaluated(prod, nothing, 0), Array{1., 1.}.astype(DType::float64)));
  CHECK(std::isnan(evaluated(mean, nothing, 0).at<double>({0})));
  CHECK_THROWS_WITH(max(floats({0, 2}), 0), Contains("[max]") && Contains("axis 0 has length 0"));
  CHECK_NOTHROW(max(floats({0, 2}), 1));
}

TEST_CASE("dtypes of reductions", "[ops][reduce]") {
  const auto result = [](Variable (*f)(const Operand&, const Axis&, const ReduceOptions&),
                         DType dtype, const ReduceOptions& options = {}) {
    return f(input(dtype, {3}), none, options).dtype();
  };
  CHECK(result(sum, DType::boolean) == DType::int64);
  CHECK(result(sum, DType::int8) == DType::int64);
  CHECK(result(sum, DType::uint8) == DType::uint64);
  CHECK(result(sum, DType::float16) == DType::float16);
  CHECK(result(prod, DType::uint32) == DType::uint64);
  CHECK(result(sum, DType::int8, {.dtype = DType::int32}) == DType::int32);
  CHECK(result(sum, DType::float32, {.dtype = DType::float64}) == DType::float64);
  CHECK(result(mean, DType::int32) == DType::float32);
  CHECK(result(mean, DType::float16) == DType::float16);
  CHECK(result(mean, DType::int32, {.dtype = DType::float64}) == DType::float64);
  CHECK(result(max, DType::int8) == DType::int8);
  CHECK(result(max, DType::boolean) == DType::boolean);
  CHECK(result(max, DType::bfloat16) == DType::bfloat16);
  CHECK(result(any, DType::float32) == DType::boolean);
  CHECK(argmax(input(DType::float16, {3})).dtype() == DType::int64);
  CHECK(var(input(DType::int16, {3})).dtype() == DType::float32);
}

TEST_CASE("narrow floats are summed in float32", "[ops][reduce]") {
  // In float16 2048 + 1 is 2048: the sum would stay there.
  std::vector<float16> values(4096, float16(1));
  const Array x = Array::from<float16>(values, {4096});
  CHECK(static_cast<float>(evaluated(sum, x, none).item<float16>()) == 4096);
  CHECK(static_cast<float>(evaluated(mean, x, none).item<float16>()) == 1);
}

TEST_CASE("integers sum in 64 bits", "[ops][reduce]") {
  const Array x = Array{100, 100, 100}.astype(DType::int8);
  CHECK(evaluated(sum, x, none).item<std::int64_t>() == 300);
  CHECK(evaluated(prod, x, none).item<std::int64_t>() == 1000000);
  const Array y = Array::full({2}, ~std::uint64_t{0}, DType::uint64);
  CHECK(evaluated(max, y, none).item<std::uint64_t>() == ~std::uint64_t{0});
}

TEST_CASE("masked elements do not count", "[ops][reduce]") {
  const Variable x = floats({2, 3});
  const Variable mask = input(DType::boolean, {3}, "mask");
  const Values values{{x, Array{{1., kNan, 3.}, {4., kNan, 8.}}.astype(DType::float64)},
                      {mask, Array{true, false, true}}};
  const auto check = [&](const Variable& y, const Array& expected) {
    CHECK(array_equal(value(y, values), expected.astype(DType::float64)));
  };
  check(sum(x, 1, {.where = mask}), Array{4., 12.});
  check(prod(x, 1, {.where = mask}), Array{3., 32.});
  check(max(x, 1, {.where = mask}), Array{3., 8.});
  check(min(x, 1, {.where = mask}), Array{1., 4.});
  check(mean(x, 1, {.where = mask}), Array{2., 6.});
  check(var(x, 1, {.where = mask}), Array{1., 4.});
  const Variable none_true = input(DType::boolean, {1}, "none");
  const Values all_masked{{x, cube()[0].slice(1, 0, 3).slice(0, 0, 2).contiguous()},
                          {none_true, Array{false}}};
  CHECK(value(max(x, none, {.where = none_true}), all_masked).item<double>() == -kInf);
  CHECK_THROWS_WITH(sum(x, 1, {.where = x}), Contains("must be bool") && Contains("float64"));
  CHECK_THROWS_WITH(sum(floats({1, 3}), 1, {.where = input(DType::boolean, {2, 3})}),
                    Contains("(2, 3) does not broadcast to the operand's (1, 3)"));
}

TEST_CASE("argmax and argmin", "[ops][reduce]") {
  const Variable x = floats({2, 3});
  const Values values{{x, Array{{1., 5., 5.}, {2., kNan, 7.}}.astype(DType::float64)}};
  CHECK(array_equal(value(argmax(x, 1), values), Array{1, 1}));
  CHECK(array_equal(value(argmin(x, 1), values), Array{0, 1}));
  CHECK(value(argmax(x), values).item<std::int64_t>() == 4);
  CHECK(value(argmin(x, none, true), values).shape() == Shape{1, 1});
  CHECK(array_equal(value(argmax(x, 0, true), values), Array{{1, 1, 1}}));
  CHECK_THROWS_WITH(argmax(x, {0, 1}), Contains("one axis expected"));
  const Variable b = input(DType::boolean, {3});
  CHECK(value(argmax(b), {{b, Array{false, true, true}}}).item<std::int64_t>() == 1);
}

TEST_CASE("mean and variance", "[ops][reduce]") {
  const Variable x = floats({2, 3, 4});
  const Values values{{x, cube()}};
  CHECK(value(mean(x), values).item<double>() == 11.5);
  CHECK(array_equal(value(mean(x, {1, 2}), values), Array{5.5, 17.5}.astype(DType::float64)));
  // np.var(x, axis=(0, 2), ddof=1)
  CHECK(allclose(
      value(var(x, {0, 2}, {.ddof = 1}), values),
      Array{42.57142857142857, 42.57142857142857, 42.57142857142857}.astype(DType::float64), 1e-7));
  CHECK(value(var(x), values).item<double>() == Approx(47.916666666666664));
  CHECK(value(croton::std(x), values).item<double>() == Approx(6.922186552431729));
  CHECK(value(var(x, 0, {.keepdims = true}), values).shape() == Shape{1, 3, 4});
  const Variable n = input(DType::int64, {2});
  CHECK(value(mean(n), {{n, Array{1, 2}}}).item<float>() == 1.5f);
  CHECK_THROWS_WITH(mean(x, 0, {.dtype = DType::int32}), Contains("must be a float"));
}

TEST_CASE("the length that a mean divides by may be known in the call only", "[ops][reduce]") {
  const Variable x = floats({kAnyDim, 2});
  CHECK(array_equal(value(mean(x, 0), {{x, counting({3, 2})}}),
                    Array{2., 3.}.astype(DType::float64)));
  CHECK(mean(x, 1).static_shape() == Shape{kAnyDim});
  CHECK(sum(x, 0, {.keepdims = true}).static_shape() == Shape{1, 2});
}

TEST_CASE("wrong axes name the op and the line", "[ops][reduce]") {
  const Variable x = floats({2, 3});
  CHECK_THROWS_WITH(sum(x, 2), Contains("[sum]") && Contains("axis 2 is out of range") &&
                                   Contains("-2 to 1") && Contains("reduce_values.cpp"));
  CHECK_THROWS_WITH(prod(x, {0, -2}), Contains("[prod]") && Contains("axis 0 is given twice"));
  CHECK_THROWS_WITH(mean(floats({}), 0), Contains("scalar"));
  CHECK_THROWS_AS(any(x, -3), GraphError);
}

TEST_CASE("the gradient of a product knows zeros", "[ops][reduce][grad]") {
  const Variable x = floats({3, 3});
  const Variable g = floats({3}, "g");
  const Variable y = prod(x, 1);
  const Variable grads[] = {g};
  const Variable slope = y.node()->op->grad({*y.node(), grads, {}})[0];
  const Values values{{x, Array{{2., 3., 4.}, {2., 0., 4.}, {0., 0., 4.}}.astype(DType::float64)},
                      {y, Array{24., 0., 0.}.astype(DType::float64)},
                      {g, Array{1., 10., 1.}.astype(DType::float64)}};
  CHECK(array_equal(value(slope, values),
                    Array{{12., 8., 6.}, {0., 80., 0.}, {0., 0., 0.}}.astype(DType::float64)));
}

TEST_CASE("every largest element receives the gradient", "[ops][reduce][grad]") {
  const Variable x = floats({2, 3});
  const Variable g = floats({1, 3}, "g");
  const Variable y = max(x, 0, {.keepdims = true});
  const Variable grads[] = {g};
  const Variable slope = y.node()->op->grad({*y.node(), grads, {}})[0];
  const Values values{{x, Array{{1., 5., 2.}, {3., 5., 0.}}.astype(DType::float64)},
                      {g, Array{{1., 2., 3.}}.astype(DType::float64)}};
  CHECK(
      array_equal(value(slope, values), Array{{0., 2., 3.}, {1., 2., 0.}}.astype(DType::float64)));
}

TEST_CASE("covariances say what they take", "[ops][reduce]") {
  const Variable x = floats({3, 5}), weights = floats({5});
  CHECK_THROWS_WITH(cov(floats({2, 3, 4})), Contains("[cov] at most two axes are expected: got 3"));
  CHECK_THROWS_WITH(corrcoef(floats({2, 3, 4})), Contains("[corrcoef]"));
  CHECK_THROWS_WITH(cov(x, {.fweights = weights}),
                    Contains("[cov] fweights are expected to be a vector of integers"));
  CHECK_THROWS_WITH(cov(x, {.aweights = x}),
                    Contains("[cov] aweights are expected to be a vector"));
  CHECK_THROWS_WITH(cov(x, {.dtype = DType::int32}), Contains("[cov] a float dtype is expected"));
}
