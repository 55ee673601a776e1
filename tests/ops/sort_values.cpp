// Sorting, searching, counting and quantiles: sizes at which kernels change, dtypes, gradients,
// sizes known in the call, and what is refused. Values are in sort_fixtures.cpp.
#include <cmath>
#include <cstring>
#include <limits>

#include "croton/error.h"
#include "croton/indexing.h"
#include "croton/sort.h"
#include "croton/vectorize.h"
#include "tests/ops/sized_trials.h"

using namespace croton;
using namespace croton::test;
using Catch::Matchers::Contains;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Array doubles(const std::vector<double>& values) { return Array::from<double>(values); }

/// Whether two arrays of float64 have the same bits: signs of zeros, kinds of NaN.
bool same_bits(const Array& a, const Array& b) {
  const std::vector<double> x = a.to_vector<double>(), y = b.to_vector<double>();
  return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(double)) == 0;
}

}  // namespace

TEST_CASE("sorting of all sizes", "[ops][sort][sizes]") {
  std::vector<Trial> trials;
  const Shape shapes[] = {{0},      {1},       {32},      {33},        {200},     {9000},  {35000},
                          {40, 70}, {3, 1500}, {1100, 3}, {2, 300, 3}, {3, 0, 2}, {70, 33}};
  for (const Shape& shape : shapes) {
    const Array x = whole_numbers(shape, DType::float32, 200);
    add_trials(
        trials, [](const Variable& v) { return argsort(v, 0); }, x);
    add_trials(
        trials, [](const Variable& v) { return argsort(v, -1, {.descending = true}); }, x);
    add_trials(
        trials, [](const Variable& v) { return croton::sort(v, none); }, x);
    add_trials(
        trials, [](const Variable& v) { return croton::sort(v, 0, {.descending = true}); },
        x.astype(DType::float64));
  }
  check_exactly(trials);
}

TEST_CASE("sorting in every dtype", "[ops][sort]") {
  std::vector<Trial> trials;
  for (const DType dtype : {DType::boolean, DType::int8, DType::int16, DType::int32, DType::int64,
                            DType::uint8, DType::uint16, DType::uint32, DType::uint64,
                            DType::float16, DType::bfloat16, DType::float32, DType::float64}) {
    Array x = whole_numbers({3, 90}, DType::int64, 100);
    if (!is_unsigned(dtype) && !is_bool(dtype)) {
      std::vector<std::int64_t> values = x.to_vector<std::int64_t>();
      for (std::int64_t& v : values) v -= 50;
      x = Array::from<std::int64_t>(values, x.shape());
    }
    x = x.astype(dtype);
    add_trials(
        trials, [](const Variable& v) { return argsort(v); }, x);
    add_trials(
        trials, [](const Variable& v) { return argsort(v, 0, {.descending = true}); }, x);
    add_trials(
        trials, [](const Variable& v) { return croton::sort(v); }, x);
    add_trials(
        trials, [](const Variable& v) { return croton::sort(v, 0, {.descending = true}); }, x);
  }
  check_exactly(trials);
}

TEST_CASE("equal elements stay in their order, bit by bit", "[ops][sort]") {
  const double other = -kNan;
  const std::vector<double> mixed{0., -0., kNan, 1, -0., other, 0., -1, kNan, -0.};
  std::vector<double> many;
  for (int k = 0; k < 50; ++k) many.insert(many.end(), mixed.begin(), mixed.end());
  for (const std::vector<double>& values : {mixed, many}) {
    const Array at = doubles(values);
    const Variable x = input(DType::float64, at.shape());
    for (const bool down : {false, true}) {
      const SortOptions options{.descending = down};
      const Outputs got = function({x}, {croton::sort(x, -1, options),
                                         take_along_axis(x, argsort(x, -1, options), 0)})
                              .call({at});
      INFO("descending " << down << ", got " << got[0] << "\nand " << got[1]);
      CHECK(same_bits(got[0], got[1]));
    }
  }
}

TEST_CASE("gradients of sorting go where elements come from", "[ops][sort][grad]") {
  check_slope([](const Variable& v) { return croton::sort(v); }, {5, 1, 3, 1}, {4, 1, 3, 2});
  check_slope([](const Variable& v) { return croton::sort(v, -1, {.descending = true}); },
              {5, 1, 3, 1}, {1, 3, 2, 4});
  check_slope([](const Variable& v) { return topk(v, 2).first; }, {5, 1, 3, 1}, {1, 0, 2, 0});
  check_slope([](const Variable& v) { return topk(v, 2, 0, {.largest = false}).first; },
              {5, 1, 3, 1}, {0, 1, 0, 2});
  check_slope([](const Variable& v) { return median(v); }, {5, 1, 3, 1}, {0, 0, 0.5, 0.5});
  check_slope([](const Variable& v) { return quantile(v, 0.25); }, {1, 2, 9}, {0.5, 0.5, 0});
  check_slope([](const Variable& v) { return nanmedian(v); }, {1, kNan, 3}, {0.5, 0, 0.5});
  check_slope([](const Variable& v) { return median(v); }, {1, kInf, kInf, kInf}, {0, 0, 1, 0});
  check_slope([](const Variable& v) { return median(v); }, {2, 2}, {0.5, 0.5});
  const Variable x = floats({3});
  const Variable w = floats({3});
  // sum(w sort(x)^2): slopes 2 w x at places of sort, and those of their sum 2 w.
  const Variable slopes = grad(sum(w * square(croton::sort(x))), x);
  const Variable second = grad(sum(slopes), x);
  CHECK(allclose(function({x, w}, second).call({doubles({7, 2, 4}), doubles({1, 2, 3})})[0],
                 doubles({6, 2, 4})));
}

TEST_CASE("weights of bincount have gradients", "[ops][sort][grad]") {
  const Variable w = floats({4});
  const Variable counts = bincount(Array{2, 0, 2, 1}, {.weights = w});
  CHECK(counts.static_shape() == Shape{3});
  const Variable slopes = grad(sum(counts * Array{1., 10., 100.}.astype(DType::float64)), w);
  CHECK(allclose(
      function({w}, slopes, {.on_unused = OnUnused::ignore}).call({doubles({1, 1, 1, 1})})[0],
      doubles({100, 1, 100, 10})));
}

TEST_CASE("quantiles of a batch", "[ops][sort][vectorize]") {
  const Variable x = floats({3, 5});
  const Variable y =
      vmap([](const std::vector<Variable>& row) { return std::vector{median(row[0])}; }, {x})[0];
  const Array at = whole_numbers({3, 5}, DType::float64, 20);
  const Outputs got = function({x}, {y, median(x, 1)}).call({at});
  CHECK(array_equal(got[0], got[1]));
}

TEST_CASE("numbers of elements known in the call", "[ops][sort][call]") {
  const Variable x = input(DType::float64, {kAnyDim}, "x");
  const Variable k = input(DType::int64, {}, "k");
  const Array v = doubles({3, 9, 1});
  const Function some = function({x, k}, topk(x, k).first);
  CHECK(array_equal(some.call({v, Array(2)})[0], doubles({9, 3})));
  CHECK_THAT(message_of<CallError>([&] { some.call({v, Array(4)}); }), Contains("[topk]"));
  const Function fixed = function({x}, topk(x, 4).first);
  CHECK(array_equal(fixed.call({doubles({1, 5, 3, 2, 4})})[0], doubles({5, 4, 3, 2})));
  CHECK_THAT(message_of<CallError>([&] { fixed.call({v}); }), Contains("[topk]"));
  const Variable i = input(DType::int64, {kAnyDim}, "i");
  const Function counts = function({i, k}, bincount(i, {.length = k, .minlength = 3}));
  CHECK(array_equal(counts.call({Array{1, 3, 1}, Array(5)})[0], Array{0, 2, 0, 1, 0}));
  CHECK(array_equal(counts.call({Array{1, 1}, Array(0)})[0], Array{0, 2, 0}));
  CHECK_THAT(message_of<CallError>([&] {
               counts.call({Array{1, 5}, Array(5)});
             }),
             Contains("[bincount] index 5 is out of bounds"));
  CHECK_THAT(message_of<CallError>([&] {
               counts.call({Array{-1}, Array(5)});
             }),
             Contains("[bincount]") && Contains("out of bounds"));
}

TEST_CASE("bincount is as long as the elements say", "[ops][sort][call]") {
  const Variable i = input(DType::int32, {kAnyDim}, "i");
  const Function counts = function({i}, {bincount(i), bincount(i, {.minlength = 3})});
  const auto call = [&](const Array& x) { return counts.call({x.astype(DType::int32)}); };
  CHECK(array_equal(call({1, 4, 1})[0], Array{0, 2, 0, 0, 1}));
  CHECK(array_equal(call({1, 4, 1})[1], Array{0, 2, 0, 0, 1}));
  CHECK(array_equal(call({0})[0], Array{1}));
  CHECK(array_equal(call({0})[1], Array{1, 0, 0}));
  CHECK(call(Array::zeros({0}))[0].shape() == Shape{0});
  CHECK_THAT(message_of<CallError>([&] {
               call({3, -1});
             }),
             Contains("[bincount]") && Contains("out of bounds"));
}

TEST_CASE("what sorting refuses", "[ops][sort]") {
  const Variable x = floats({2, 3});
  const Variable i = input(DType::int64, {4});
  CHECK_THROWS_WITH(croton::sort(x, {0, 1}),
                    Contains("[sort] one axis expected") && Contains("sort_values.cpp"));
  CHECK_THROWS_WITH(croton::sort(x, 2), Contains("[sort] axis 2 is out of range"));
  CHECK_THROWS_WITH(argsort(x, -3), Contains("[argsort] axis -3 is out of range"));
  CHECK_THROWS_WITH(topk(x, 4), Contains("[topk] k must be between 0 and the length of axis 1, 3"));
  CHECK_THROWS_WITH(topk(floats({kAnyDim}), -1), Contains("[topk] k must not be negative: got -1"));
  CHECK_THROWS_WITH(searchsorted(x, 1), Contains("[searchsorted] the sorted operand must be"));
  CHECK_THROWS_WITH(searchsorted(x(0), 1, Side::left, x(0)),
                    Contains("[searchsorted] the sorter must be integers: got float64"));
  CHECK_THROWS_WITH(searchsorted(x, 1, Side::left, i), Contains("must be vectors: got 2 and 1"));
  CHECK_THROWS_WITH(bincount(x, {.length = 3}),
                    Contains("[bincount] integers expected: got float64"));
  CHECK_THROWS_WITH(bincount(i, {.length = -1}), Contains("length must not be negative: got -1"));
  CHECK_THROWS_WITH(bincount(i, {.length = 1, .minlength = -2}),
                    Contains("minlength must not be negative: got -2"));
  CHECK_THROWS_WITH(bincount(i, {.length = 3, .weights = x}),
                    Contains("one weight an element expected: got 1 axes and 2"));
  CHECK_THROWS_WITH(quantile(x, 1.5), Contains("[quantile] q must be between 0 and 1: got 1.5"));
  CHECK_THROWS_WITH(quantile(x, x), Contains("[quantile] q must be a scalar or a vector: got 2"));
  CHECK_THROWS_WITH(percentile(x, 101), Contains("between 0 and 100"));
  CHECK_THROWS_WITH(median(x, 5), Contains("[median] axis 5 is out of range"));
  CHECK_THROWS_WITH(median(floats({0, 3}), 0), Contains("[median]") && Contains("length 0"));
}
