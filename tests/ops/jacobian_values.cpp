// Jacobians and Hessians: against products with one direction after the other, and closed forms.
#include "croton/function.h"
#include "croton/indexing.h"
#include "croton/jacobian.h"
#include "croton/linalg.h"
#include "croton/math.h"
#include "croton/nn.h"
#include "croton/reduce.h"
#include "croton/tensor.h"
#include "tests/ops/op_cases.h"

using namespace croton;
using namespace croton::test;
using Catch::Matchers::Contains;

namespace {

/// For each element of x an array that is 1 there.
Array unit(const Shape& shape, std::int64_t place) {
  std::vector<double> values(static_cast<std::size_t>(shape.numel()));
  values[static_cast<std::size_t>(place)] = 1;
  return reals(values, shape);
}

Shape joined(const Shape& a, const Shape& b) {
  std::vector<std::int64_t> sizes(a.begin(), a.end());
  sizes.insert(sizes.end(), b.begin(), b.end());
  return Shape(sizes);
}

}  // namespace

TEST_CASE("Jacobians of every op are columns of Rop", "[ops][grad][jacobian]") {
  for (const bool known : {true, false}) {
    for (OpCase& c : differentiable_cases(known, 40)) {
      INFO(c.text());
      const std::vector<Variable> wrt = float_inputs(c);
      const std::vector<Variable> matrices = jacobian(c.y, wrt);
      const Shape shape = value(c.y, c.values).shape();
      for (std::size_t k = 0; k < wrt.size(); ++k) {
        const Shape own = c.values.at(wrt[k]).shape();
        const Array matrix = value(matrices[k], c.values);
        REQUIRE(matrix.shape() == joined(shape, own));
        const std::vector<double> got = matrix.to_vector<double>();
        const Variable v = input(DType::float64, wrt[k].static_shape());
        const Variable product = Rop(c.y, wrt[k], v);
        for (std::int64_t column = 0; column < own.numel(); ++column) {
          Values at = c.values;
          at[v] = unit(own, column);
          const std::vector<double> want = value(product, at).to_vector<double>();
          for (std::size_t row = 0; row < want.size(); ++row) {
            INFO("input " << k << ", row " << row << ", column " << column);
            CHECK(got[row * static_cast<std::size_t>(own.numel()) +
                      static_cast<std::size_t>(column)] ==
                  Approx(want[row]).epsilon(1e-10).margin(1e-12));
          }
        }
      }
    }
  }
}

TEST_CASE("Jacobians in closed form", "[ops][grad][jacobian]") {
  const Variable x = floats({kAnyDim}, "x"), w = floats({kAnyDim, kAnyDim}, "w");
  const Values at{{x, reals({1, 2, 3})}, {w, counting({2, 3})}};
  using Slopes = std::vector<double>;
  CHECK(array_equal(value(jacobian(dot(w, x), x), at), at.at(w)));
  CHECK(value(jacobian(square(x), x), at).to_vector<double>() == Slopes{2, 0, 0, 0, 4, 0, 0, 0, 6});
  CHECK(value(jacobian(sum(square(x)), x), at).to_vector<double>() == Slopes{2, 4, 6});
  // Of a matrix by a vector, and of a vector by a matrix.
  const Array outer_slope = value(jacobian(outer(x, x), x), at);
  CHECK(outer_slope.shape() == Shape{3, 3, 3});
  CHECK(outer_slope.at<double>({0, 1, 0}) == 2);
  CHECK(outer_slope.at<double>({2, 2, 2}) == 6);
  const Array by_matrix = value(jacobian(dot(w, x), w), at);
  CHECK(by_matrix.shape() == Shape{2, 2, 3});
  CHECK(by_matrix.at<double>({1, 1, 2}) == 3);
  CHECK(by_matrix.at<double>({1, 0, 2}) == 0);
  // Zeros that do not depend on the direction.
  CHECK(value(jacobian(zero_grad(x), x), at).to_vector<double>() == Slopes(9, 0.0));
  CHECK(value(jacobian(exp(x), w, {.disconnected = Disconnected::ignore}), at).shape() ==
        Shape{3, 2, 3});
  const std::vector<Variable> both = jacobian(dot(w, x), {w, x});
  CHECK(both.size() == 2);
}

TEST_CASE("Hessians in closed form", "[ops][grad][hessian]") {
  const Variable x = floats({kAnyDim}, "x"), a = floats({kAnyDim, kAnyDim}, "a");
  const Values at{{x, reals({1, 2, 3})}, {a, reals({4, 1, 0, 3, 5, 2, 7, 1, 6}, {3, 3})}};
  const Variable form = dot(x, dot(a, x));
  CHECK(array_equal(value(hessian(form, x), at), value(a + a.T(), at)));
  const Array cubes = value(hessian(sum(x * x * x), x), at);
  CHECK(cubes.to_vector<double>() == std::vector<double>{6, 0, 0, 0, 12, 0, 0, 0, 18});
  // By a matrix: of rank 4.
  const Array by_matrix = value(hessian(square(sum(a)), a), at);
  CHECK(by_matrix.shape() == Shape{3, 3, 3, 3});
  CHECK(array_equal(by_matrix, Array::full({3, 3, 3, 3}, 2.0, DType::float64)));
  const std::vector<Variable> both = hessian(form, {x, a}, {.disconnected = Disconnected::ignore});
  CHECK(array_equal(value(both[1], at), Array::zeros({3, 3, 3, 3}, DType::float64)));
  CHECK_THAT(message_of<GraphError>([&] { hessian(sum(x), x); }),
             Contains("does not depend") || Contains("depends on"));
}

TEST_CASE("Hessian-vector products are rows of the Hessian", "[ops][grad][hessian]") {
  std::mt19937 random(41);
  const Variable x = floats({kAnyDim}, "x"), w = floats({kAnyDim, kAnyDim}, "w");
  const Variable cost = sum(softplus(dot(tanh(dot(w, x)), w))) + prod(x) * logsumexp(x);
  const Variable vx = floats({kAnyDim}), vw = floats({kAnyDim, kAnyDim});
  Values at{{x, drawn_values({3}, {-1, 1}, DType::float64, random)},
            {w, drawn_values({4, 3}, {-1, 1}, DType::float64, random)},
            {vx, drawn_values({3}, {-1, 1}, DType::float64, random)},
            {vw, drawn_values({4, 3}, {-1, 1}, DType::float64, random)}};
  const std::vector<Variable> slopes = grad(cost, {x, w});
  const std::vector<Variable> product = hessian_vector_product(cost, {x, w}, {vx, vw});
  const Variable want_x =
      dot(jacobian(slopes[0], x), vx) + sum(jacobian(slopes[0], w) * vw, {1, 2});
  const Variable want_w =
      dot(jacobian(slopes[1], x), vx) + sum(jacobian(slopes[1], w) * vw, {2, 3});
  CHECK(allclose(value(product[0], at), value(want_x, at), 1e-11, 1e-12));
  CHECK(allclose(value(product[1], at), value(want_w, at), 1e-11, 1e-12));
  CHECK(allclose(value(hessian_vector_product(cost, x, vx), at),
                 value(dot(hessian(cost, x), vx), at), 1e-11, 1e-12));
  // Many vectors at once: all unit vectors give the Hessian itself.
  const Variable many = floats({kAnyDim, kAnyDim});
  at[many] = value(eye(3, DType::float64));
  CHECK(allclose(value(hessian_vector_product(cost, x, many), at), value(hessian(cost, x), at),
                 1e-11, 1e-12));
}

TEST_CASE("compiled Jacobians and Hessians, sizes unknown", "[ops][grad][jacobian][hessian]") {
  std::mt19937 random(42);
  const Variable x = floats({kAnyDim}, "x"), w = floats({kAnyDim, kAnyDim}, "w");
  const Variable y = softmax(dot(w, tanh(x)));
  const Variable cost = logsumexp(dot(w, x)) + sum(square(x(Slice(0, none, 2))));
  const std::vector<Variable> outputs{jacobian(y, x), jacobian(y, w), hessian(cost, x)};
  const Function f = function({x, w}, outputs);
  for (const std::int64_t n : {1, 3, 17}) {
    const Values at{{x, drawn_values({n}, {-1, 1}, DType::float64, random)},
                    {w, drawn_values({5, n}, {-1, 1}, DType::float64, random)}};
    const Outputs got = f(at.at(x), at.at(w));
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      INFO(n << " elements, output " << k);
      const Array want = value(outputs[k], at);
      REQUIRE(got[k].shape() == want.shape());
      CHECK(allclose(got[k], want, 1e-11, 1e-12));
    }
  }
}

TEST_CASE("the graph of a Jacobian does not grow with the value", "[ops][grad][jacobian]") {
  const auto nodes = [](std::int64_t size) {
    const Variable x = floats({size});
    const Variable outputs[] = {jacobian(exp(x) * sum(x), x)};
    return topological_order(outputs).size();
  };
  CHECK(nodes(3) == nodes(300));
}

TEST_CASE("Jacobians and Hessians say what does not fit", "[ops][grad][jacobian][hessian]") {
  const Variable x = floats({3}, "x"), y = floats({3}, "y"), n = input(DType::int64, {3}, "n");
  const Variable none_yet;
  CHECK_THAT(message_of<GraphError>([&] { jacobian(n + 1, x); }),
             Contains("[jacobian] the value to differentiate must be a float") &&
                 Contains("jacobian_values.cpp:"));
  CHECK_THAT(message_of<GraphError>([&] { jacobian(exp(x), n); }), Contains("'n'"));
  CHECK_THAT(message_of<GraphError>([&] { jacobian(exp(x), y); }),
             Contains("[jacobian]") && Contains("'y'"));
  CHECK_THAT(message_of<GraphError>([&] { jacobian(none_yet, x); }), Contains("is empty"));
  CHECK_THAT(message_of<GraphError>([&] { hessian(exp(x), x); }),
             Contains("[hessian] the cost must be a scalar"));
  CHECK_THAT(message_of<GraphError>([&] { hessian_vector_product(sum(x), {x}, {}); }),
             Contains("[hessian_vector_product] one vector for each"));
  CHECK_THAT(message_of<GraphError>([&] { hessian_vector_product(sum(x * x), x, floats({4})); }),
             Contains("(4,)"));
}
