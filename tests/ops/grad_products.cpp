// Lop and Rop: every op against finite differences along a direction, and what both promise.
#include "croton/grad.h"
#include "croton/linalg.h"
#include "croton/math.h"
#include "croton/reduce.h"
#include "croton/tensor.h"
#include "tests/ops/op_cases.h"

using namespace croton;
using namespace croton::test;
using Catch::Matchers::Contains;

namespace {

/// A direction for each float input, as a symbol with a value.
std::vector<Variable> directions(OpCase& c, std::mt19937& random) {
  std::vector<Variable> list;
  for (const Variable& x : float_inputs(c)) {
    list.push_back(input(DType::float64, x.static_shape(), "v"));
    c.values[list.back()] = drawn_values(c.values.at(x).shape(), {-1, 1}, DType::float64, random);
  }
  return list;
}

/// (f(x + h v) - f(x - h v)) / 2h.
Array along(const OpCase& c, const std::vector<Variable>& v) {
  constexpr double kStep = 1e-6;
  const std::vector<Variable> wrt = float_inputs(c);
  Array ends[2];
  for (int side = 0; side < 2; ++side) {
    Values values = c.values;
    for (std::size_t k = 0; k < wrt.size(); ++k) {
      values[wrt[k]] = moved(c.values.at(wrt[k]), side == 0 ? kStep : -kStep, c.values.at(v[k]));
    }
    ends[side] = value(c.y, values);
  }
  return moved(moved(ends[0], -1, ends[1]), 1 / (2 * kStep) - 1, moved(ends[0], -1, ends[1]));
}

double inner(const Array& a, const Array& b) {
  const std::vector<double> x = a.to_vector<double>();
  const std::vector<double> y = b.to_vector<double>();
  REQUIRE(x.size() == y.size());
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

Variable numbers(std::int64_t size = kAnyDim, const char* name = "x") {
  return floats({size}, name);
}

}  // namespace

TEST_CASE("Rop of every op is its derivative along a direction", "[ops][grad][Rop]") {
  std::mt19937 random(21);
  for (const bool known : {true, false}) {
    for (OpCase& c : differentiable_cases(known, 20)) {
      INFO(c.text());
      const std::vector<Variable> v = directions(c, random);
      const Variable product = Rop({c.y}, float_inputs(c), v)[0];
      const Array got = value(product, c.values);
      const Array want = along(c, v);
      INFO("got\n" << got << "\nwant\n" << want);
      CHECK(got.shape() == want.shape());
      CHECK(allclose(got, want, 1e-5, 1e-7));
    }
  }
}

TEST_CASE("Lop and Rop of every op are products of one Jacobian", "[ops][grad][Lop]") {
  std::mt19937 random(22);
  for (OpCase& c : differentiable_cases(false, 23)) {
    INFO(c.text());
    const std::vector<Variable> wrt = float_inputs(c);
    const std::vector<Variable> v = directions(c, random);
    const Variable u = input(DType::float64, c.y.static_shape(), "u");
    c.values[u] = drawn_values(value(c.y, c.values).shape(), {-1, 1}, DType::float64, random);
    const double right = inner(value(Rop({c.y}, wrt, v)[0], c.values), c.values.at(u));
    double left = 0;
    const std::vector<Variable> products = Lop({c.y}, wrt, {u});
    for (std::size_t k = 0; k < wrt.size(); ++k) {
      left += inner(value(products[k], c.values), c.values.at(v[k]));
    }
    CHECK(left == Approx(right).epsilon(1e-9).margin(1e-12));
  }
}

TEST_CASE("several values and several variables", "[ops][grad][Rop][Lop]") {
  const Variable x = numbers(), y = numbers(kAnyDim, "y"), a = numbers(), b = numbers();
  const Variable f = x * y, h = sum(f) + x;  // h is made of f
  const Values at{
      {x, reals({2, 3})}, {y, reals({5, 7})}, {a, reals({1, 10})}, {b, reals({100, 1000})}};
  const std::vector<Variable> right = Rop({f, h}, {x, y}, {a, b});
  // y a + x b, and the sum of that + a.
  CHECK(value(right[0], at).to_vector<double>() == std::vector<double>{205, 3070});
  CHECK(value(right[1], at).to_vector<double>() == std::vector<double>{3276, 3285});
  const std::vector<Variable> left = Lop({f, h}, {x, y}, {a, b});
  // y a + y sum(b) + b, x a + x sum(b).
  CHECK(value(left[0], at).to_vector<double>() == std::vector<double>{5605, 8770});
  CHECK(value(left[1], at).to_vector<double>() == std::vector<double>{2202, 3330});
  // By a value inside the graph.
  CHECK(value(Rop(h, f, a), at).to_vector<double>() == std::vector<double>{11, 11});
  CHECK(value(Lop(h, f, b), at).to_vector<double>() == std::vector<double>{1100, 1100});
  const Variable w = disconnected_grad(sum(x)) * y;
  CHECK(value(Rop(w, y, b), at).to_vector<double>() == std::vector<double>{500, 5000});
}

TEST_CASE("products of a product of matrices", "[ops][grad][Rop][Lop]") {
  const Variable a = floats({kAnyDim, kAnyDim}), b = floats({kAnyDim, kAnyDim});
  const Variable da = floats({kAnyDim, kAnyDim}), db = floats({kAnyDim, kAnyDim});
  const Values at{{a, counting({2, 3})},
                  {b, counting({3, 2})},
                  {da, Array::ones({2, 3}, DType::float64)},
                  {db, Array::full({3, 2}, 2.0, DType::float64)}};
  const Variable want = dot(da, b) + dot(a, db);
  const Variable got = Rop({dot(a, b)}, {a, b}, {da, db})[0];
  CHECK(array_equal(value(got, at), value(want, at)));
}

TEST_CASE("marks on gradients act on products too", "[ops][grad][Rop][Lop]") {
  const Variable x = numbers(), v = numbers();
  const Values at{{x, reals({2, 3})}, {v, reals({1, 10})}};
  using Slopes = std::vector<double>;
  CHECK(value(Rop(grad_scale(x, 3), x, v), at).to_vector<double>() == Slopes{3, 30});
  CHECK(value(Rop(zero_grad(x) + x, x, v), at).to_vector<double>() == Slopes{1, 10});
  CHECK(value(Lop(grad_clip(x, -2, 2), x, v), at).to_vector<double>() == Slopes{1, 2});
  // Clipping is not linear: what the bounds hold back is known in reverse only.
  CHECK(value(Rop(grad_clip(x, -2, 2), x, v), at).to_vector<double>() == Slopes{1, 10});
}

TEST_CASE("products by what nothing depends on", "[ops][grad][Rop][Lop]") {
  const Variable x = numbers(3), y = numbers(3, "y"), v = numbers(3);
  const Values at{{x, counting({3})}, {y, counting({3})}, {v, counting({3})}};
  const ProductOptions quiet{.disconnected = Disconnected::ignore};
  const Array zeros = Array::zeros({3}, DType::float64);
  CHECK(array_equal(value(Rop(exp(x), y, v, quiet), at), zeros));
  CHECK(array_equal(value(Lop(exp(x), y, v, quiet), at), zeros));
  CHECK_THAT(message_of<GraphError>([&] { Rop(exp(x), y, v); }),
             Contains("[Rop]") && Contains("depends on none") && Contains("grad_products.cpp:"));
  CHECK_THAT(message_of<GraphError>([&] { Lop(exp(x), y, v); }),
             Contains("[Lop]") && Contains("'y'") && Contains("grad_products.cpp:"));
  const ProductOptions constant{.consider_constant = {x}, .disconnected = Disconnected::ignore};
  const Variable z = 2 * x;
  CHECK(array_equal(value(Lop(z * x, x, v, {.consider_constant = {z}}), at), value(z * v, at)));
}

TEST_CASE("products say what does not fit", "[ops][grad][Rop][Lop]") {
  const Variable x = numbers(3), v = numbers(4), m = floats({3, 3});
  const Variable n = input(DType::int64, {3}), none;
  CHECK_THAT(message_of<GraphError>([&] { Rop(exp(x), x, v); }),
             Contains("[Rop] eval point 1") && Contains("(4,)") && Contains("(3,)"));
  CHECK_THAT(message_of<GraphError>([&] { Lop(exp(x), x, m); }),
             Contains("[Lop] eval point 1") && Contains("(3, 3)"));
  CHECK_THAT(message_of<GraphError>([&] { Rop({exp(x)}, {x}, {}); }), Contains("got 0 for 1"));
  CHECK_THAT(message_of<GraphError>([&] { Lop(n + 1, x, x); }), Contains("must be a float"));
  CHECK_THAT(message_of<GraphError>([&] { Lop(x, n, x); }), Contains("must be a float"));
  CHECK_THAT(message_of<GraphError>([&] { Lop(x, x, n); }), Contains("an eval point must be"));
  CHECK_THAT(message_of<GraphError>([&] { Lop(none, x, x); }), Contains("is empty"));
}
