// dot, matmul and their kin: results as NumPy gives them, types, gradients, and what is refused.
#include <random>

#include "croton/error.h"
#include "croton/linalg.h"
#include "croton/math.h"
#include "tests/ops/graph_values.h"

using namespace croton;
using namespace croton::test;
using Catch::Matchers::Contains;

namespace {

Array whole(const Shape& shape) { return counting(shape, DType::int64); }

/// The sum of products over one axis of each, written down: result (rest of a, rest of b).
Array contracted(const Array& a, std::int64_t axis_a, const Array& b, std::int64_t axis_b) {
  Shape order_a;
  Shape order_b{axis_b};
  Shape shape;
  for (std::int64_t k = 0; k < static_cast<std::int64_t>(a.ndim()); ++k) {
    if (k == axis_a) continue;
    order_a.push_back(k);
    shape.push_back(a.shape()[k]);
  }
  order_a.push_back(axis_a);
  for (std::int64_t k = 0; k < static_cast<std::int64_t>(b.ndim()); ++k) {
    if (k == axis_b) continue;
    order_b.push_back(k);
    shape.push_back(b.shape()[k]);
  }
  const auto x = a.transpose(order_a).to_vector<std::int64_t>();
  const auto y = b.transpose(order_b).to_vector<std::int64_t>();
  const std::size_t inner = static_cast<std::size_t>(a.shape()[axis_a]);
  const std::size_t columns = y.size() / inner;
  std::vector<std::int64_t> result(x.size() / inner * columns);
  for (std::size_t i = 0; i < x.size() / inner; ++i) {
    for (std::size_t k = 0; k < inner; ++k) {
      for (std::size_t j = 0; j < columns; ++j) {
        result[i * columns + j] += x[i * inner + k] * y[k * columns + j];
      }
    }
  }
  return Array::from<std::int64_t>(result, shape);
}

Array product(Variable (*f)(const Operand&, const Operand&), const Array& a, const Array& b,
              bool known) {
  const auto shape = [&](const Array& x) {
    return known ? x.shape() : Shape(std::vector<std::int64_t>(x.ndim(), kAnyDim));
  };
  const Variable x = input(a.dtype(), shape(a), "a");
  const Variable y = input(b.dtype(), shape(b), "b");
  return value(f(x, y), {{x, a}, {y, b}});
}

}  // namespace

TEST_CASE("dot of all ranks", "[ops][dot]") {
  const bool known = GENERATE(true, false);
  const Shape shapes[] = {{4}, {3, 4}, {2, 3, 4}};
  const Shape others[] = {{4}, {4, 5}, {2, 4, 5}};
  for (const Shape& left : shapes) {
    for (const Shape& right : others) {
      const Array a = whole(left);
      const Array b = whole(right);
      const auto rank = static_cast<std::int64_t>(right.size());
      const Array expected =
          contracted(a, static_cast<std::int64_t>(left.size()) - 1, b, rank == 1 ? 0 : rank - 2);
      REQUIRE(array_equal(product(dot, a, b, known), expected));
    }
  }
  CHECK(array_equal(product(dot, Array(3), whole({2, 2}), known), Array{{0, 3}, {6, 9}}));
}

TEST_CASE("matmul broadcasts what stands in front", "[ops][dot]") {
  const Array a = whole({2, 3, 4});
  const Array b = whole({2, 4, 2});
  for (const bool known : {true, false}) {
    const Array y = product(matmul, a, b, known);
    CHECK(array_equal(y[1].contiguous(), contracted(a[1].contiguous(), 1, b[1].contiguous(), 0)));
    CHECK(
        array_equal(product(matmul, a, whole({4, 2}), known), contracted(a, 2, whole({4, 2}), 0)));
    CHECK(array_equal(product(matmul, whole({3}), whole({3, 2}), known), Array{10, 13}));
    CHECK(array_equal(product(matmul, whole({2, 3}), whole({3}), known), Array{5, 14}));
  }
  CHECK(matmul(floats({1, 3, 4}), floats({5, 4, 2})).static_shape() == Shape{5, 3, 2});
  CHECK(matmul(floats({3, 4}), floats({5, 4, 2})).static_shape() == Shape{5, 3, 2});
}

TEST_CASE("outer and tensordot", "[ops][dot]") {
  CHECK(
      array_equal(product(outer, Array{1, 2}, Array{3, 4, 5}, true), Array{{3, 4, 5}, {6, 8, 10}}));
  const Variable a = input(DType::int64, {2, 3, 4}, "a");
  const Variable b = input(DType::int64, {4, 3, 5}, "b");
  const Values values{{a, whole({2, 3, 4})}, {b, whole({4, 3, 5})}};
  // np.tensordot(a, b, axes=([2, 1], [0, 1]))
  CHECK(array_equal(value(tensordot(a, b, {2, 1}, {0, 1}), values),
                    Array{{2200, 2266, 2332, 2398, 2464}, {6160, 6370, 6580, 6790, 7000}}));
  CHECK(tensordot(floats({2, 3}), floats({3, 4}), 1).static_shape() == Shape{2, 4});
  CHECK(tensordot(floats({2, 3}), floats({3, 4}), 0).static_shape() == Shape{2, 3, 3, 4});
  CHECK_THROWS_WITH(tensordot(floats({2}), floats({2}), 2), Contains("[tensordot]"));
}

TEST_CASE("dtypes of products", "[ops][dot]") {
  const auto result = [](DType a, DType b) {
    return dot(input(a, {2, 2}), input(b, {2, 2})).dtype();
  };
  CHECK(result(DType::int8, DType::int8) == DType::int8);
  CHECK(result(DType::int32, DType::float32) == DType::float32);
  CHECK(result(DType::uint8, DType::int16) == DType::int16);
  CHECK(result(DType::float16, DType::float16) == DType::float16);
  CHECK(result(DType::float32, DType::float64) == DType::float64);
  const Array big = Array{{100, 100}, {1, 1}}.astype(DType::int8);
  // 100 * 100 + 100 wraps to 10100 mod 256.
  CHECK(product(dot, big, big, true).at<std::int8_t>({0, 0}) == static_cast<std::int8_t>(10100));
}

TEST_CASE("products that cannot be are refused", "[ops][dot]") {
  CHECK_THROWS_WITH(dot(floats({2, 3}), floats({4, 5})),
                    Contains("[dot] inner sizes clash: got (2, 3) and (4, 5), expected 3 == 4") &&
                        Contains("product_values.cpp"));
  CHECK_THROWS_WITH(dot(floats({3}), floats({1})), Contains("inner sizes clash"));
  CHECK_THROWS_WITH(matmul(floats({}), floats({2})), Contains("scalars are not matrices"));
  CHECK_THROWS_WITH(matmul(floats({2, 2, 3}), floats({4, 3, 2})), Contains("2 and 4"));
  CHECK_THROWS_WITH(dot(input(DType::boolean, {2}), input(DType::boolean, {2})), Contains("bools"));
  CHECK_THROWS_WITH(outer(floats({2, 2}), floats({2})), Contains("two vectors"));
  // A size of 1 does not stretch over the sum, even where the other is not known.
  CHECK(dot(floats({2, kAnyDim}), floats({1})).static_shape() == Shape{2});
}

TEST_CASE("gradients of matrix products", "[ops][dot][grad]") {
  std::mt19937 random(3);
  const auto draw = [&](const Shape& shape) {
    std::vector<double> values(static_cast<std::size_t>(shape.numel()));
    for (double& v : values) v = std::uniform_real_distribution<double>(-1, 1)(random);
    return Array::from<double>(values, shape);
  };
  for (const std::int64_t ta : {0, 1}) {
    for (const std::int64_t tb : {0, 1}) {
      const Variable a = floats(ta ? Shape{2, 4, 3} : Shape{2, 3, 4}, "a");
      const Variable b = floats(tb ? Shape{1, 5, 4} : Shape{1, 4, 5}, "b");
      const Variable g = floats({2, 3, 5}, "g");
      const Variable y =
          apply("gemm", {a, b}, {{"transpose_a", ta}, {"transpose_b", tb}, {"alpha", 0.5}},
                Loc::current());
      const Variable grads[] = {g};
      const std::vector<Variable> slopes = y.node()->op->grad({*y.node(), grads, {}});
      Values values{{a, draw(a.static_shape())}, {b, draw(b.static_shape())}, {g, draw({2, 3, 5})}};
      const auto cost = [&] {
        const auto w = values[g].to_vector<double>();
        const auto v = value(y, values).to_vector<double>();
        double sum = 0;
        for (std::size_t i = 0; i < v.size(); ++i) sum += v[i] * w[i];
        return sum;
      };
      for (int k = 0; k < 2; ++k) {
        const Variable& x = k == 0 ? a : b;
        const auto slope = value(slopes[k], values).to_vector<double>();
        const Array kept = values[x];
        for (std::size_t i = 0; i < slope.size(); ++i) {
          Array moved = kept.copy();
          moved.mutable_data<double>()[i] += 1e-3;
          values[x] = moved;
          const double up = cost();
          moved.mutable_data<double>()[i] -= 2e-3;
          values[x] = moved;
          REQUIRE(slope[i] == Approx((up - cost()) / 2e-3).epsilon(1e-6).margin(1e-9));
        }
        values[x] = kept;
      }
    }
  }
}
