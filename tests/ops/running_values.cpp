// Running folds: sizes at which kernels change, dtypes, gradients, and what is refused. Values are
// in running_fixtures.cpp.
#include <cmath>
#include <limits>

#include "croton/cumulative.h"
#include "croton/error.h"
#include "tests/ops/sized_trials.h"

using namespace croton;
using namespace croton::test;
using Catch::Matchers::Contains;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

Array doubles(const std::vector<double>& values) { return Array::from<double>(values); }

}  // namespace

TEST_CASE("running folds of all sizes along all axes", "[ops][running][sizes]") {
  std::vector<Trial> trials;
  const Shape shapes[] = {{0},       {1},       {31},      {33},         {257},     {5000},
                          {3, 0},    {0, 3},    {40, 32},  {300, 5},     {3, 2500}, {2500, 3},
                          {2, 2100}, {70, 300}, {1, 9000}, {2, 3000, 4}, {300, 1},  {3, 5, 600}};
  for (const Shape& shape : shapes) {
    const Array x = whole_numbers(shape, DType::float32, 9);
    add_trials(
        trials, [](const Variable& v) { return cumsum(v, 0); }, x);
    add_trials(
        trials, [](const Variable& v) { return cumsum(v, -1, {.reverse = true}); }, x);
    add_trials(
        trials, [](const Variable& v) { return cummax(v, -1); }, x);
    if (shape.size() < 2) continue;
    add_trials(
        trials, [](const Variable& v) { return cumsum(v, 1); }, x);
    add_trials(
        trials, [](const Variable& v) { return cummin(v, 0, {.reverse = true}); }, x);
    add_trials(
        trials, [](const Variable& v) { return cumsum(v, 1, {.exclusive = true}); }, x);
  }
  check_exactly(trials);
}

TEST_CASE("running folds in every dtype", "[ops][running]") {
  std::vector<Trial> trials;
  for (const DType dtype :
       {DType::boolean, DType::int8, DType::int16, DType::int32, DType::int64, DType::uint8,
        DType::uint16, DType::uint32, DType::uint64, DType::float16, DType::float32}) {
    INFO(name_of(dtype));
    const Array x = whole_numbers({5, 70}, dtype, 3);
    add_trials(
        trials, [](const Variable& v) { return cumsum(v, 1); }, x);
    add_trials(
        trials, [](const Variable& v) { return cumprod(v, 0); }, x);
    add_trials(
        trials, [](const Variable& v) { return cummax(v, 0); }, x);
    add_trials(
        trials, [](const Variable& v) { return cummin(v, 1); }, x);
  }
  check_exactly(trials);
  CHECK(cumsum(input(DType::int8, {3})).dtype() == DType::int64);
  CHECK(cumprod(input(DType::uint8, {3})).dtype() == DType::uint64);
  CHECK(cumsum(input(DType::boolean, {3})).dtype() == DType::int64);
  CHECK(cumsum(input(DType::float16, {3})).dtype() == DType::float16);
  CHECK(cumsum(input(DType::float16, {3}), 0, {.dtype = DType::float64}).dtype() == DType::float64);
  CHECK(logcumsumexp(input(DType::int32, {3})).dtype() == DType::float32);
}

TEST_CASE("gradients of running folds", "[ops][running][grad]") {
  const auto product = [](const Variable& x) { return cumprod(x, 0); };
  check_slope([](const Variable& x) { return cumsum(x, 0); }, {5, 6, 7}, {6, 5, 3});
  check_slope([](const Variable& x) { return cumsum(x, 0, {.reverse = true}); }, {5, 6, 7},
              {1, 3, 6});
  check_slope([](const Variable& x) { return cumsum(x, 0, {.exclusive = true}); }, {5, 6, 7},
              {5, 3, 0});
  // y = (a, ab, abc): the slope of a is 1 + 2 b + 3 bc.
  check_slope(product, {2, 3, 4}, {43, 28, 18});
  check_slope(product, {2, 0, 4}, {1, 28, 0});
  check_slope(product, {0, 3, 0}, {7, 0, 0});
  check_slope([](const Variable& x) { return cummax(x, 0); }, {1, 5, 2, 5, 7}, {1, 5, 0, 4, 5});
  check_slope([](const Variable& x) { return cummin(x, 0, {.reverse = true}); }, {1, 0, 2},
              {0, 3, 3});
  const double e = std::exp(1.0);
  check_slope([](const Variable& x) { return logcumsumexp(x, 0); }, {0, 1},
              {1 + 2 / (1 + e), 2 * e / (1 + e)});
  check_slope([](const Variable& x) { return logcumsumexp(x, 0); }, {-kInf, 1000, -kInf},
              {0, 5, 0});
  check_slope([](const Variable& x) { return diff(x, 1); }, {5, 6, 9}, {-1, -1, 2});
}

TEST_CASE("second derivatives of running folds", "[ops][running][grad]") {
  const Variable x = floats({2});
  const Variable first = grad(sum(cumprod(x, 0)), x);
  // a + ab: (1 + b, a), and the sum of those has the slopes (1, 1).
  const Array second = function({x}, grad(sum(first), x)).call({doubles({2, 3})})[0];
  CHECK(allclose(second, doubles({1, 1})));
  const Variable curve = grad(sum(grad(logcumsumexp(x, 0)(1), x)(0)), x);
  // The slope of log(e^a + e^b) by a is s = sigmoid(a - b); its slopes are s (1 - s) and the
  // opposite.
  CHECK(allclose(function({x}, curve).call({doubles({1, 1})})[0], doubles({0.25, -0.25})));
}

TEST_CASE("recurrences of all sizes along all axes", "[ops][running][sizes]") {
  std::vector<Trial> trials;
  for (const Shape& shape : {Shape{0},
                             {1},
                             {32},
                             {33},
                             {700},
                             {40, 32},
                             {300, 5},
                             {3, 300},
                             {300, 3},
                             {2, 20, 300},
                             {0, 40},
                             {40, 0}}) {
    // Factors of -1, 0 and 1.
    const Array x = whole_numbers(shape, DType::float64, 2);
    add_trials(
        trials,
        [](const Variable& v) {
          return apply("recurrence", {v, v - 1.0}, {{"axis", 0}, {"reverse", 0}}, Loc::current());
        },
        x);
    add_trials(
        trials,
        [](const Variable& v) {
          return apply("recurrence", {v, v - 1.0}, {{"axis", v.ndim() - 1}, {"reverse", 1}},
                       Loc::current());
        },
        x);
  }
  check_exactly(trials);
}

TEST_CASE("gradients of running products know zeros to any order", "[ops][running][grad]") {
  // y = (a, ab, abc), so that the slopes of all products of three with weights 1 are polynomials.
  const Variable x = floats({3});
  const Variable v = floats({3});
  const Variable first = grad(sum(cumprod(x, 0)), x);
  const Variable second = grad(sum(first * v), x);
  for (const std::vector<double>& at :
       {std::vector<double>{2, 3, 4}, {2, 0, 4}, {0, 0, 5}, {0, 0, 0}, {-1, 2, 0}}) {
    const double a = at[0], b = at[1], c = at[2];
    const Function f = function({x, v}, {first, second}, {.on_unused = OnUnused::ignore});
    const Outputs got = f.call({doubles(at), doubles({1, 10, 100})});
    CHECK(allclose(got[0], doubles({1 + b + b * c, a + a * c, a * b})));
    CHECK(allclose(got[1], doubles({10 * (1 + c) + 100 * b, 1 + c + 100 * a, b + 10 * a})));
  }
}

TEST_CASE("slopes of long running products", "[ops][running][grad]") {
  std::vector<double> factors;
  for (int k = 0; k < 3000; ++k) factors.push_back(k % 2 == 0 ? 1e5 : 1e-5);
  const Variable x = floats({kAnyDim});
  const Array slope = function({x}, grad(sum(cumprod(x, 0)), x)).call({doubles(factors)})[0];
  // Products are 1e5 and 1 by turns; each one that follows counts.
  const std::vector<double> got = slope.to_vector<double>();
  CHECK(got[2999] == Approx(1e5));
  CHECK(got[2998] == Approx(1 + 1e-5));
  CHECK(got[0] == Approx(1500 + 1500 * 1e-5));
}

TEST_CASE("slopes of logcumsumexp beside infinities", "[ops][running][grad]") {
  const auto run = [](const Variable& x) { return logcumsumexp(x, 0); };
  check_slope(run, {-kInf, -kInf}, {0, 0});
  check_slope(run, {0, kInf, 5}, {1, 5, 0});
  check_slope(run, {1000, -1000, 1000}, {1 + 2 + 1.5, 0, 1.5});
  const Variable x = floats({3});
  const Variable slope = grad(sum(grad(sum(logcumsumexp(x, 0)), x)), x);
  for (const double v :
       function({x}, slope).call({doubles({-kInf, 3, 900})})[0].to_vector<double>())
    CHECK(std::isfinite(v));
}

TEST_CASE("what running folds refuse", "[ops][running]") {
  const Variable x = floats({2, 3});
  CHECK_THROWS_WITH(cumsum(x, 2),
                    Contains("[cumsum] axis 2 is out of range") && Contains("running_values.cpp"));
  CHECK_THROWS_WITH(cumprod(x, {0, 1}), Contains("[cumprod] one axis expected"));
  CHECK_THROWS_WITH(cumsum(x, 0, {.dtype = DType::boolean}), Contains("cannot accumulate in bool"));
  CHECK_THROWS_WITH(cummax(x, 0, {.exclusive = true}), Contains("[cummax]"));
  CHECK_THROWS_WITH(logcumsumexp(x, 0, {.dtype = DType::int32}), Contains("must be a float"));
  CHECK_THROWS_WITH(diff(x, -1), Contains("[diff] n must not be negative: got -1"));
  CHECK_THROWS_WITH(diff(floats({}), 1), Contains("[diff]"));
}
