// Arrays without elements or axes, steps below zero, NaN and infinity.
#include <croton/croton.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

using namespace croton;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Array value(const Variable& v) { return function({}, v)()[0]; }

Variable symbol(const Array& a) { return shared(a, {.resizable = true}); }

}  // namespace

TEST_CASE("arrays without elements pass through", "[edge]") {
  for (const Shape& shape : {Shape{0}, Shape{0, 3}, Shape{3, 0}, Shape{0, 0}}) {
    Variable x = symbol(Array::zeros(shape));
    CHECK(value(tanh(x) + x * 2).shape() == shape);
    CHECK(value(sum(x)).item<float>() == 0.0f);
    CHECK(value(prod(x)).item<float>() == 1.0f);
    CHECK(std::isnan(value(mean(x)).item<float>()));
    CHECK_FALSE(value(any(gt(x, 0))).item<bool>());
    CHECK(value(all(gt(x, 0))).item<bool>());
    CHECK(value(concatenate({x, x})).size() == 0);
    CHECK(value(x.flatten()).shape() == Shape{0});
    CHECK(value(grad(sum(square(x)), x)).shape() == shape);
  }
  Variable a = symbol(Array::zeros({0, 3})), b = symbol(Array::zeros({3, 0}));
  CHECK(value(dot(a, b)).shape() == Shape{0, 0});
  CHECK(array_equal(value(dot(b, a)), Array::zeros({3, 3})));
  CHECK(array_equal(value(sum(a, 0)), Array::zeros({3})));
  CHECK(value(sum(a, 1)).shape() == Shape{0});
  CHECK(value(a.T()).shape() == Shape{3, 0});
  CHECK(value(softmax(a, 1)).shape() == Shape{0, 3});
  CHECK(value(a(Slice(), 1)).shape() == Shape{0});
  Variable x = symbol(Array::arange(5).astype(DType::float32));
  CHECK(value(x(Slice(3, 3))).shape() == Shape{0});
  CHECK(value(x(Array::zeros({0}, DType::int64))).shape() == Shape{0});
  CHECK(array_equal(value(set_subtensor(x(Slice(2, 2)), 7.0f)), value(x)));
  CHECK(value(arange(0)).shape() == Shape{0});
  CHECK(value(arange(3, 0)).shape() == Shape{0});
  CHECK(value(zeros({2, 0})).shape() == Shape{2, 0});
}

TEST_CASE("arrays without axes are values like others", "[edge]") {
  Variable x = scalar("x");
  Function f =
      function({x}, {x * x, sum(x), reshape(x, {1, 1}), x(newaxis), max(x), grad(x * x, x)});
  Outputs out = f(3.0f);
  CHECK(out[0].shape() == Shape{});
  CHECK(out[0].item<float>() == 9.0f);
  CHECK(out[1].item<float>() == 3.0f);
  CHECK(out[2].shape() == Shape{1, 1});
  CHECK(out[3].shape() == Shape{1});
  CHECK(out[4].item<float>() == 3.0f);
  CHECK(out[5].item<float>() == 6.0f);
  Shared count = shared(0);
  Function step = function({}, count, {.updates = {{count, count + 1}}});
  CHECK(step()[0].item<std::int64_t>() == 0);
  CHECK(step()[0].item<std::int64_t>() == 1);
}

TEST_CASE("slices take steps below zero and bounds beyond the ends", "[edge]") {
  Variable x = vector("x"), m = matrix("m"), k = scalar("k", DType::int64);
  const Array v = {0.0, 1.0, 2.0, 3.0, 4.0}, none_left = Array::zeros({0});
  const auto slice = [&](const Slice& s) { return function({x}, x(s))(v)[0]; };
  CHECK(array_equal(slice(Slice(none, none, -1)), Array({4.0, 3.0, 2.0, 1.0, 0.0})));
  CHECK(array_equal(slice(Slice(3, 0, -2)), Array({3.0, 1.0})));
  CHECK(array_equal(slice(Slice(-2, none, -2)), Array({3.0, 1.0})));
  CHECK(array_equal(slice(Slice(100, -100, -3)), Array({4.0, 1.0})));
  CHECK(array_equal(slice(Slice(-100, 2)), Array({0.0, 1.0})));
  CHECK(array_equal(slice(Slice(1, 3, -1)), none_left));
  CHECK(array_equal(function({x, k}, x(Slice(k, none)))(v, -2)[0], Array({3.0, 4.0})));
  CHECK(array_equal(function({x, k}, x(Slice(none, none, k)))(v, -2)[0], Array({4.0, 2.0, 0.0})));
  const Array grid = {{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}};
  CHECK(array_equal(function({m}, m(Slice(none, none, -1), Slice(none, none, -2)))(grid)[0],
                    Array({{6.0, 4.0}, {3.0, 1.0}})));
  Variable cost =
      sum(m(Slice(none, none, -1), Slice(none, none, -2)) * Array({{1.0, 2.0}, {3.0, 4.0}}));
  CHECK(array_equal(function({m}, grad(cost, m))(grid)[0],
                    Array({{4.0, 0.0, 3.0}, {2.0, 0.0, 1.0}})));
  CHECK(array_equal(
      function({x}, set_subtensor(x(Slice(none, none, -2)), Array({9.0, 8.0, 7.0})))(v)[0],
      Array({7.0, 1.0, 8.0, 3.0, 9.0})));
}

TEST_CASE("strided and reversed arrays can be arguments", "[edge]") {
  Variable x = matrix("x");
  const Array grid = {{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}};
  Function twice = function({x}, x * 2);
  CHECK(array_equal(twice(grid.transpose())[0], Array({{2.0, 8.0}, {4.0, 10.0}, {6.0, 12.0}})));
  CHECK(array_equal(twice(grid.slice(1, {}, {}, -1))[0],
                    Array({{6.0, 4.0, 2.0}, {12.0, 10.0, 8.0}})));
  CHECK(array_equal(twice(Array(1.0f).broadcast_to({2, 2}))[0], Array({{2.0, 2.0}, {2.0, 2.0}})));
}

TEST_CASE("NaN and infinity follow IEEE 754 through ops and reductions", "[edge]") {
  Variable x = vector("x");
  const Array v = Array({1.0f, kNan, -kInf, kInf});
  const auto at = [&](const Variable& y) { return function({x}, y)(v)[0].to_vector<float>(); };
  CHECK(std::isnan(at(x + 1)[1]));
  CHECK(at(x + 1)[2] == -kInf);
  CHECK(at(exp(x))[2] == 0.0f);
  CHECK(at(exp(x))[3] == kInf);
  CHECK(at(tanh(x))[2] == -1.0f);
  CHECK(std::isnan(at(x - x)[3]));
  CHECK(std::isnan(at(x * 0)[3]));
  CHECK(std::isnan(at(maximum(x, 0))[1]));
  CHECK(std::isnan(at(relu(x))[1]));
  CHECK(at(sigmoid(x))[3] == 1.0f);
  CHECK(at(where(isnan(x), 0, x))[1] == 0.0f);
  CHECK(std::isnan(function({x}, max(x))(v)[0].item<float>()));
  CHECK(std::isnan(function({x}, sum(x))(v)[0].item<float>()));
  CHECK(function({x}, argmax(x))(v)[0].item<std::int64_t>() == 1);
  const Array big = Array({1000.0f, 999.0f, -kInf});
  const std::vector<float> p = function({x}, softmax(x))(big)[0].to_vector<float>();
  CHECK(p[0] == Approx(1 / (1 + std::exp(-1.0))));
  CHECK(p[2] == 0.0f);
  CHECK(function({x}, logsumexp(x))(big)[0].item<float>() ==
        Approx(1000 + std::log1p(std::exp(-1.0))));
  CHECK(function({x}, softplus(x))(big)[0].to_vector<float>()[0] == 1000.0f);
  const Array nothing = Array({-kInf, -kInf});
  CHECK(function({x}, logsumexp(x))(nothing)[0].item<float>() == -kInf);
}

TEST_CASE("division by zero of integers is defined, and of floats IEEE", "[edge]") {
  Variable n = vector("n", DType::int32), x = vector("x");
  CHECK_NOTHROW(
      function({n}, {floor_divide(n, 0), mod(n, 0)})(Array({5, -5, 0}).astype(DType::int32)));
  const std::int32_t lowest = std::numeric_limits<std::int32_t>::min();
  CHECK_NOTHROW(function({n}, floor_divide(n, -1))(Array({lowest, 1}).astype(DType::int32)));
  const std::vector<float> q = function({x}, x / 0)(Array({1.0, -1.0, 0.0}))[0].to_vector<float>();
  CHECK(q[0] == kInf);
  CHECK(q[1] == -kInf);
  CHECK(std::isnan(q[2]));
}
