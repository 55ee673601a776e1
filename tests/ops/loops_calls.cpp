// Loops ops compiled and called where sizes, bounds and indices are known in the call only.
#include <cmath>
#include <limits>

#include "croton/error.h"
#include "croton/function.h"
#include "croton/grad.h"
#include "croton/indexing.h"
#include "croton/linalg.h"
#include "croton/math.h"
#include "croton/random.h"
#include "croton/random_arrays.h"
#include "croton/reduce.h"
#include "croton/tensor.h"
#include "tests/ops/graph_values.h"

using namespace croton;
using namespace croton::test;
using Catch::Matchers::Contains;

namespace {

Array called(const std::vector<Variable>& inputs, const Variable& y,
             const std::vector<Array>& arguments) {
  return function(inputs, y, {.on_unused = OnUnused::ignore}).call(arguments)[0];
}

std::string call_error(const std::vector<Variable>& inputs, const Variable& y,
                       const std::vector<Array>& arguments) {
  const Function f = function(inputs, y, {.on_unused = OnUnused::ignore});
  return message_of<CallError>([&] { f.call(arguments); });
}

}  // namespace

TEST_CASE("slices with bounds known in the call", "[ops][call]") {
  const Variable x = input(DType::int64, {kAnyDim, 2}, "x");
  const Variable i = input(DType::int64, {}, "i");
  const Variable j = input(DType::int32, {}, "j");
  const Array v = counting({5, 2}, DType::int64);
  for (const std::int64_t step : {-2, -1, 1, 3}) {
    const Function f = function({x, i, j}, x(Slice(i, j, step)));
    const Function g = function({x, i, j}, set_subtensor(x(Slice(i, j, step)), -1));
    for (const std::int64_t start : {-7, -2, 0, 2, 4, 8}) {
      for (const std::int64_t stop : {-6, -1, 0, 3, 5, 9}) {
        const Array last = Array(stop).astype(DType::int32);
        INFO(start << ":" << stop << ":" << step);
        REQUIRE(array_equal(f(v, start, last)[0], v.slice(0, start, stop, step).contiguous()));
        std::vector<std::int64_t> expected = v.to_vector<std::int64_t>();
        for (const std::int64_t e : v.slice(0, start, stop, step).to_vector<std::int64_t>()) {
          expected[static_cast<std::size_t>(e)] = -1;
        }
        REQUIRE(g(v, start, last)[0].to_vector<std::int64_t>() == expected);
      }
    }
  }
}

TEST_CASE("sizes computed from sizes", "[ops][call]") {
  const Variable x = input(DType::float32, {kAnyDim, kAnyDim}, "x");
  const Variable n = x.shape(0);
  const Array v = counting({4, 6}, DType::float32);
  CHECK(array_equal(called({x}, reshape(x, {n * 2, floor_divide(x.shape(1), 2)}), {v}),
                    v.reshape({8, 3})));
  CHECK(array_equal(called({x}, x(Slice(floor_divide(n, 2), none)), {v}),
                    v.slice(0, 2, {}).contiguous()));
  CHECK(array_equal(called({x}, arange(n), {v}), Array{0, 1, 2, 3}));
  CHECK(called({x}, zeros({n + 1, Size(2)}), {v}).shape() == Shape{5, 2});
  // The compiler writes some of these in other words: maximum(m, 0) as relu(m), 0 - m as -m.
  const Variable m = input(DType::int64, {}, "m");
  CHECK(array_equal(called({m}, arange(m), {Array(3)}), Array{0, 1, 2}));
  CHECK(called({m}, arange(m), {Array(-3)}).shape() == Shape{0});
  CHECK(called({m}, zeros({-m}), {Array(-3)}).shape() == Shape{3});
  CHECK(called({m}, zeros({0 - m + 1}), {Array(-3)}).shape() == Shape{4});
  CHECK(called({m}, zeros({abs(m)}), {Array(-3)}).shape() == Shape{3});
  CHECK(called({m}, zeros({m * m}), {Array(-3)}).shape() == Shape{9});
  CHECK(called({m}, zeros({minimum(maximum(m, 2), 5)}), {Array(9)}).shape() == Shape{5});
  CHECK(array_equal(called({x}, x.shape(), {v}), Array{4, 6}));
  CHECK(called({x}, x.size() * 2, {v}).item<std::int64_t>() == 48);
  CHECK(array_equal(called({x}, x.sum(0) / n, {v}), Array{9., 10., 11., 12., 13., 14.}));
  CHECK(array_equal(called({x}, concatenate({x, x(Slice(0, 1))}), {v}).slice(0, 4, 5).contiguous(),
                    v.slice(0, 0, 1).contiguous()));
  CHECK(array_equal(called({x}, tile(x, 2, 1), {v}).slice(1, 6, 12).contiguous(), v));
}

TEST_CASE("shapes that clash in the call", "[ops][call]") {
  const Variable x = input(DType::float32, {kAnyDim, kAnyDim}, "x");
  const Array v = counting({4, 6}, DType::float32);
  CHECK_THAT(call_error({x}, reshape(x, {5, -1}), {v}),
             Contains("[reshape]") && Contains("does not fit"));
  CHECK_THAT(call_error({x}, reshape(x, {5, 5}), {v}),
             Contains("[reshape]") && Contains("24") && Contains("25"));
  CHECK_THAT(call_error({x}, specify_shape(x, {3, kAnyDim}), {v}),
             Contains("[specify_shape]") && Contains("loops_calls.cpp"));
  CHECK_THAT(call_error({x}, dot(x, x), {v}), Contains("inner sizes clash"));
  CHECK_THAT(call_error({x}, x(4), {v}), Contains("index 4 is out of bounds for axis 0"));
  CHECK_THAT(call_error({x}, x(0, -7), {v}), Contains("index -7 is out of bounds for axis 1"));
  CHECK_THAT(call_error({x}, max(x, 0), {Array::zeros({0, 3}, DType::float32)}),
             Contains("[max]") && Contains("nothing to choose from"));
  CHECK(called({x}, max(x, 1), {Array::zeros({0, 3}, DType::float32)}).shape() == Shape{0});
  CHECK_THAT(call_error({x}, concatenate({x, zeros({2, 3})}), {v}), Contains("[concatenate]"));
}

TEST_CASE("indices out of bounds in the call", "[ops][call]") {
  const Variable x = input(DType::float32, {kAnyDim, 2}, "x");
  const Variable i = input(DType::int64, {kAnyDim}, "i");
  const Variable k = input(DType::int64, {}, "k");
  const Array v = counting({3, 2}, DType::float32);
  const std::string bounds = "is out of bounds for axis 0 of size 3";
  CHECK_THAT(call_error({x, i}, x(i), {v, Array{0, 3}}), Contains("index 3 " + bounds));
  CHECK_THAT(call_error({x, i}, x(i), {v, Array{-4}}), Contains("index -4 " + bounds));
  CHECK_THAT(call_error({x, k}, x(k), {v, Array(5)}), Contains("index 5 " + bounds));
  CHECK_THAT(call_error({x, i}, inc_subtensor(x(i), 1), {v, Array{1, 7}}),
             Contains("[inc_subtensor] index 7 " + bounds));
  CHECK_THAT(call_error({x, i}, take_along_axis(x, i(Slice(), newaxis), 1), {v, Array{0, 1, 2}}),
             Contains("index 2 is out of bounds for axis 1 of size 2"));
  CHECK_THAT(call_error({x, i}, inc_subtensor(x(i, i), 1), {v, Array{0, 2}}),
             Contains("index 2 is out of bounds"));
  // The function stays usable.
  const Function f = function({x, i}, x(i));
  CHECK_THROWS_AS(f(v, Array{9}), CallError);
  CHECK(array_equal(f(v, Array{2, -3})[0], Array{{4., 5.}, {0., 1.}}));
  CHECK(f(v, Array::zeros({0}, DType::int64))[0].shape() == Shape{0, 2});
}

TEST_CASE("duplicates add up in order on large tables", "[ops][call]") {
  const Variable x = input(DType::float32, {kAnyDim, kAnyDim}, "x");
  const Variable i = input(DType::int64, {kAnyDim}, "i");
  const std::int64_t rows = 300;
  const std::int64_t columns = 37;
  const std::int64_t count = 5000;
  std::vector<std::int64_t> index;
  std::vector<double> expected(static_cast<std::size_t>(rows));
  for (std::int64_t n = 0; n < count; ++n) {
    index.push_back((n * n) % rows - (n % 2) * rows);
    expected[static_cast<std::size_t>((n * n) % rows)] += 1;
  }
  const Array y =
      called({x, i}, inc_subtensor(x(i), 1),
             {Array::zeros({rows, columns}, DType::float32), Array::from<std::int64_t>(index)});
  const std::vector<float> values = y.to_vector<float>();
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      REQUIRE(values[static_cast<std::size_t>(r * columns + c)] ==
              expected[static_cast<std::size_t>(r)]);
    }
  }
  const Array z =
      called({x, i}, inc_subtensor(x.T()(Slice(), i), 1),
             {Array::zeros({rows, columns}, DType::float32), Array::from<std::int64_t>(index)});
  CHECK(array_equal(z, y.transpose().contiguous()));
}

TEST_CASE("gradients through indexing", "[ops][call][grad]") {
  const Variable x = input(DType::float64, {kAnyDim, 3}, "x");
  const Variable i = input(DType::int64, {kAnyDim}, "i");
  const Array v = counting({4, 3});
  const auto slope = [&](const Variable& y) {
    return called({x, i}, grad(sum(y), x), {v, Array{1, -1, 1}});
  };
  const auto doubles = [](const Array& a) { return a.astype(DType::float64); };
  CHECK(array_equal(slope(x(i) * x(i)),
                    doubles(Array{{0, 0, 0}, {12, 16, 20}, {0, 0, 0}, {18, 20, 22}})));
  CHECK(array_equal(slope(x(i, {0, 1, 2})),
                    doubles(Array{{0, 0, 0}, {1, 0, 1}, {0, 0, 0}, {0, 1, 0}})));
  CHECK(array_equal(slope(x(Slice(1, none, 2), -1) * 5),
                    doubles(Array{{0, 0, 0}, {0, 0, 5}, {0, 0, 0}, {0, 0, 5}})));
  CHECK(array_equal(slope(set_subtensor(x(i), 7.0)),
                    doubles(Array{{1, 1, 1}, {0, 0, 0}, {1, 1, 1}, {0, 0, 0}})));
  CHECK(array_equal(slope(inc_subtensor(x(0), x(1) * 2)),
                    doubles(Array{{1, 1, 1}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}})));
  CHECK(array_equal(slope(max(x, 1) * 2),
                    doubles(Array{{0, 0, 2}, {0, 0, 2}, {0, 0, 2}, {0, 0, 2}})));
  CHECK(array_equal(slope(take_along_axis(x, argmax(x, 1, true), 1)),
                    doubles(Array{{0, 0, 1}, {0, 0, 1}, {0, 0, 1}, {0, 0, 1}})));
}

TEST_CASE("compiled streams give the numbers of random arrays", "[ops][call][random]") {
  const Variable offset = input(DType::int64, {}, "offset");
  const Variable n = input(DType::int64, {}, "n");
  const PhiloxOptions options{.seed = 0xFEDCBA9876543210u, .stream = 77};
  const Array expected =
      random_uniform({1000}, {.seed = options.seed, .dtype = DType::float32, .stream = 77});
  const Function f = function({offset, n}, philox_uniform(offset, {n, Size(5)}, options));
  CHECK(array_equal(f(0, 200)[0], expected.reshape({200, 5})));
  CHECK(array_equal(f(123, 20)[0], expected.slice(0, 123, 223).contiguous().reshape({20, 5})));
  const Array normal = function({offset}, philox_normal(offset, {100000}, options))(0)[0];
  double mean = 0;
  double square = 0;
  for (const float z : normal.to_vector<float>()) {
    mean += z / 1e5;
    square += z * static_cast<double>(z) / 1e5;
  }
  // Ten standard errors.
  CHECK(std::abs(mean) < 0.032);
  CHECK(std::abs(square - 1) < 0.045);
}

TEST_CASE("dot of vectors, matrices and more, compiled", "[ops][call]") {
  const DType dtype = GENERATE(DType::float32, DType::float64, DType::int32, DType::float16);
  const Shape lefts[] = {{4}, {3, 4}, {2, 3, 4}};
  const Shape rights[] = {{4}, {4, 5}, {2, 4, 5}};
  for (const Shape& left : lefts) {
    for (const Shape& right : rights) {
      const Variable a = input(dtype, Shape(std::vector<std::int64_t>(left.size(), kAnyDim)), "a");
      const Variable b = input(dtype, Shape(std::vector<std::int64_t>(right.size(), kAnyDim)), "b");
      const Array x = counting(left, dtype);
      const Array y = counting(right, dtype);
      const Variable c = dot(a, b);
      INFO(left.to_string() << " " << right.to_string() << " " << name_of(dtype));
      REQUIRE(allclose(called({a, b}, c, {x, y}), value(c, {{a, x}, {b, y}}), 1e-3));
      const Variable m = matmul(a, b);
      REQUIRE(allclose(called({a, b}, m, {x, y}), value(m, {{a, x}, {b, y}}), 1e-3));
    }
  }
}
