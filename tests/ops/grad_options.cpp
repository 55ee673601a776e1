// What grad does with its options, and subgraph_grad.
#include "croton/grad.h"
#include "croton/math.h"
#include "croton/reduce.h"
#include "croton/tensor.h"
#include "tests/ops/op_cases.h"

using namespace croton;
using namespace croton::test;
using Catch::Matchers::Contains;

namespace {

using Slopes = std::vector<double>;

struct Point {
  Variable x = floats({3}, "x");
  Variable y = floats({3}, "y");
  Values at{{x, reals({1, 2, 3})}, {y, reals({5, 7, 11})}};

  Slopes of(const Variable& v) const { return value(v, at).to_vector<double>(); }
};

}  // namespace

TEST_CASE("grad starts from known gradients", "[ops][grad]") {
  const Point p;
  const Variable h = p.x * p.y;
  // Without a cost.
  CHECK(p.of(grad(Variable(), p.x, {.known_grads = {{h, p.x}}})) == Slopes{5, 14, 33});
  CHECK(p.of(grad(Variable(), h, {.known_grads = {{h, p.y}}})) == Slopes{5, 7, 11});
  // Beside one: what flows into h from the cost does not count, what flows past it does.
  const Variable cost = sum(exp(h)) + sum(3 * p.x);
  CHECK(p.of(grad(cost, p.x, {.known_grads = {{h, p.x}}})) == Slopes{8, 17, 36});
  // Of two, one made of the other: each is the whole gradient.
  const Variable k = 2 * h;
  const GradOptions both{.known_grads = {{h, p.x}, {k, p.y}}};
  CHECK(p.of(grad(Variable(), h, both)) == Slopes{1, 2, 3});
  CHECK(p.of(grad(Variable(), p.y, both)) == Slopes{1, 4, 9});
}

TEST_CASE("known gradients have to fit", "[ops][grad]") {
  const Point p;
  const Variable h = p.x * p.y;
  const auto message = [&](const Variable& v, const Variable& g) {
    return message_of<GraphError>([&] { grad(Variable(), p.x, {.known_grads = {{v, g}}}); });
  };
  CHECK_THAT(message(h, floats({3, 1})), Contains("[grad] the known gradient of") &&
                                             Contains("(3, 1)") && Contains("grad_options.cpp:"));
  CHECK_THAT(message(h, floats({4})), Contains("(4,)"));
  CHECK_THAT(message(h, input(DType::int32, {3})), Contains("int32"));
  CHECK_THAT(message(input(DType::int32, {3}, "n"), p.x), Contains("'n'"));
  CHECK_THAT(message(Variable(), p.x), Contains("is empty"));
  CHECK_THAT(message(h, Variable()), Contains("is empty"));
  CHECK_THAT(message_of<GraphError>([&] { grad(Variable(), p.x); }),
             Contains("a cost or .known_grads"));
  CHECK_THAT(message_of<GraphError>([&] {
               grad(Variable(), p.x, {.known_grads = {{h, p.x}, {h, p.y}}});
             }),
             Contains("two known gradients"));
}

TEST_CASE("no gradient flows through what is considered constant", "[ops][grad]") {
  const Point p;
  const Variable h = square(p.x), cost = sum(h * p.x);
  CHECK(p.of(grad(cost, p.x)) == Slopes{3, 12, 27});
  CHECK(p.of(grad(cost, p.x, {.consider_constant = {h}})) == Slopes{1, 4, 9});
  // The constant itself has a gradient, which ends there.
  const std::vector<Variable> both = grad(cost, {h, p.x}, {.consider_constant = {h}});
  CHECK(p.of(both[0]) == Slopes{1, 2, 3});
  CHECK(p.of(both[1]) == Slopes{1, 4, 9});
  CHECK_THAT(message_of<GraphError>([&] { grad(sum(h), p.x, {.consider_constant = {h}}); }),
             Contains("'x'"));
  CHECK(p.of(grad(sum(consider_constant(h) * p.x), p.x)) == Slopes{1, 4, 9});
}

TEST_CASE("variables that the cost does not depend on", "[ops][grad]") {
  const Point p;
  const Variable cost = sum(p.x), cut = sum(disconnected_grad(p.y));
  CHECK_THAT(message_of<GraphError>([&] { grad(cost, p.y); }),
             Contains("[grad]") && Contains("'y'") && Contains("disconnected_inputs") &&
                 Contains("grad_options.cpp:"));
  CHECK_THAT(message_of<GraphError>([&] { grad(cut, p.y); }), Contains("'y'"));
  for (const Disconnected quiet : {Disconnected::ignore, Disconnected::warn}) {
    CHECK(p.of(grad(cost, p.y, {.disconnected_inputs = quiet})) == Slopes{0, 0, 0});
  }
  const GradOptions empty{.disconnected_inputs = Disconnected::ignore,
                          .return_disconnected = NoGradient::empty};
  CHECK(!grad(cost, p.y, empty).defined());
  CHECK(grad(cost, p.x, empty).defined());
  // zero_grad gives a gradient, which is zero.
  CHECK(p.of(grad(sum(zero_grad(p.y)), p.y)) == Slopes{0, 0, 0});
}

TEST_CASE("integers have gradients of zeros in floatX", "[ops][grad]") {
  const Point p;
  const Variable n = input(DType::int32, {3}, "n"), lone = input(DType::int32, {3}, "lone");
  const Variable slope = grad(sum(p.x * n), n);
  CHECK(slope.dtype() == DType::float32);
  Values at = p.at;
  at[n] = counting({3}, DType::int32);
  CHECK(value(slope, at).to_vector<float>() == std::vector<float>{0, 0, 0});
  CHECK_THAT(message_of<GraphError>([&] { grad(sum(p.x * n), lone); }), Contains("'lone'"));
}

TEST_CASE("gradients that are not defined", "[ops][grad]") {
  const Point p;
  const Variable h = grad_undefined(2 * p.x, "nobody knows it");
  CHECK(p.of(h) == Slopes{2, 4, 6});
  const Variable cost = sum(h * p.y) + sum(p.x);
  CHECK_THAT(message_of<GraphError>([&] { grad(cost, p.x); }),
             Contains("'x'") && Contains("nobody knows it") && Contains("null_gradients") &&
                 Contains("grad_options.cpp:"));
  const GradOptions empty{.null_gradients = Undefined::empty};
  const std::vector<Variable> both = grad(cost, {p.x, p.y}, empty);
  CHECK(!both[0].defined());
  CHECK(p.of(both[1]) == Slopes{2, 4, 6});
  // Where no gradient flows there is none to be defined.
  CHECK(p.of(grad(sum(disconnected_grad(h) * p.x), p.x)) == Slopes{2, 4, 6});
  CHECK(p.of(grad(cost, p.x, {.consider_constant = {h}})) == Slopes{1, 1, 1});
  CHECK_THAT(message_of<GraphError>([&] { Lop(h, p.x, p.y); }), Contains("nobody knows it"));
}

TEST_CASE("gradients are named after cost and variable", "[ops][grad]") {
  const Point p;
  const Variable cost = sum(p.x * p.y * p.x);
  const std::vector<Variable> slopes = grad(cost, {p.x, p.y});
  CHECK(slopes[0].name() == "dcost/dx");
  CHECK(slopes[1].name() == "dcost/dy");
  CHECK(grad(cost, p.x, {.add_names = false}).name().empty());
  const Variable loss = floats({}, "loss");
  CHECK(grad(loss, loss).name().empty());  // a constant
  // A value of the user keeps its own name, and so does a gradient with two variables.
  CHECK(grad(sum(p.x * p.y), p.x).defined());
  CHECK(p.y.name() == "y");
}

TEST_CASE("gradients of parts of a graph", "[ops][grad]") {
  const Point p;
  const Variable w = floats({3}, "w"), v = floats({3}, "v");
  Values at = p.at;
  at[w] = reals({1, 10, 100});
  at[v] = reals({2, 20, 200});
  const Variable h = p.x * w, y = h * v, cost = sum(square(y));
  const SubgraphGradients top = subgraph_grad({v}, {h}, {}, cost);
  const SubgraphGradients below = subgraph_grad({w}, {p.x}, {{h, top.end[0]}});
  const std::vector<Variable> whole = grad(cost, {v, w, p.x});
  CHECK(array_equal(value(top.wrt[0], at), value(whole[0], at)));
  CHECK(array_equal(value(below.wrt[0], at), value(whole[1], at)));
  CHECK(array_equal(value(below.end[0], at), value(whole[2], at)));
  // A start and a cost add up, also where one is made of the other.
  const SubgraphGradients both = subgraph_grad({h}, {w}, {{h, p.y}}, sum(h));
  CHECK(value(both.wrt[0], at).to_vector<double>() == Slopes{6, 8, 12});
  // Nothing flows past an end, and what nothing flows into has zeros.
  const SubgraphGradients stopped = subgraph_grad({w}, {h}, {}, cost);
  CHECK(value(stopped.wrt[0], at).to_vector<double>() == Slopes{0, 0, 0});
  CHECK_THAT(message_of<GraphError>([&] { subgraph_grad({w}, {h}, {}); }),
             Contains("[subgraph_grad]") && Contains("got neither"));
}
