// Gradient rules of scalar ops: against finite differences of their references, at the points where
// a convention decides, and in their shapes.
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <random>

#include "compiler/graph/graph.h"
#include "compiler/graph/op.h"
#include "croton/error.h"
#include "croton/grad.h"
#include "croton/math.h"
#include "croton/nn.h"
#include "croton/reduce.h"
#include "croton/tensor.h"
#include "ops/evaluate.h"
#include "tests/ops/graph_values.h"
#include "tests/ops/missing_gradients.h"

using namespace croton;

namespace {

Variable scalar_input(DType dtype = DType::float64) {
  return make_input({dtype, {}}, "x", Loc::current());
}

/// Values of a graph of scalars, by the references of its ops.
double value_of(const Variable& y, const VariableMap<double>& inputs) {
  VariableMap<double> values = inputs;
  const Variable outputs[] = {y};
  for (const Node* node : topological_order(outputs)) {
    const Variable out = node->out();
    if (values.contains(out)) continue;
    if (const Array* array = constant_value(out)) {
      values[out] = array->astype(DType::float64).item<double>();
      continue;
    }
    const ScalarReference& reference = node->op->scalar_reference;
    double x[3] = {};
    bool truth[3] = {};
    for (std::size_t k = 0; k < node->inputs.size(); ++k) {
      x[k] = values.at(node->inputs[k]);
      truth[k] = x[k] != 0;
    }
    INFO(node->op->name);
    if (node->op->reference != nullptr) {
      const Array operand = Array::full({}, x[0], DType::float64);
      values[out] = evaluate(*node, {&operand, 1})[0].item<double>();
    } else if (is_bool(node->inputs.back().dtype())) {
      REQUIRE(reference.boolean != nullptr);
      values[out] = reference.boolean(truth);
    } else {
      REQUIRE(reference.real != nullptr);
      values[out] = reference.real(x);
    }
  }
  return values.at(y);
}

/// The gradient graphs of a node, for the gradient `g` of its result.
std::vector<Variable> gradients_of(const Variable& y, const Variable& g) {
  REQUIRE(y.node()->op->grad != nullptr);
  const Variable grads[] = {g};
  bool wanted[3];
  for (std::size_t k = 0; k < 3; ++k) wanted[k] = !test::lacks_gradient(y.node()->op->name, k);
  return y.node()->op->grad({*y.node(), grads, std::span(wanted, y.node()->inputs.size())});
}

/// Gradients of y at a point, for a gradient 1 of y.
std::vector<double> slopes(const Variable& y, const std::vector<double>& at) {
  const Node& node = *y.node();
  const Variable g = scalar_input();
  VariableMap<double> inputs{{g, 1.0}};
  for (std::size_t k = 0; k < at.size(); ++k) inputs[node.inputs[k]] = at[k];
  std::vector<double> result;
  for (const Variable& slope : gradients_of(y, g)) {
    result.push_back(slope.defined() ? value_of(slope, inputs) : NAN);
  }
  return result;
}

bool has_own_gradient(const std::string& op) {
  return op == "zero_grad" || op == "grad_clip" || op == "grad_scale";
}

}  // namespace

TEST_CASE("gradients of scalar ops agree with finite differences", "[ops][grad]") {
  std::mt19937 random(7);
  for (const OpDef* op : OpRegistry::instance().all()) {
    if (op->form != OpForm::scalar || op->grad == nullptr || has_own_gradient(op->name)) continue;
    for (const Example& example : op->examples) {
      if (op->name == "cast" &&
          example.attrs.integer("dtype") != static_cast<std::int64_t>(DType::float32)) {
        continue;
      }
      for (int trial = 0; trial < 10; ++trial) {
        std::vector<Variable> inputs;
        std::vector<double> at;
        for (std::size_t k = 0; k < example.range.size(); ++k) {
          const bool condition = op->name == "where" && k == 0;
          inputs.push_back(scalar_input(condition ? DType::boolean : DType::float64));
          const auto [low, high] = example.range[k];
          const double value = std::uniform_real_distribution<double>(low, high)(random);
          at.push_back(condition ? std::floor(value) : value);
        }
        const Variable y = apply(*op, inputs, example.attrs, Loc::current());
        const std::vector<double> got = slopes(y, at);
        REQUIRE(got.size() == at.size());
        for (std::size_t k = 0; k < at.size(); ++k) {
          if (!is_float(inputs[k].dtype()) || test::lacks_gradient(op->name, k)) continue;
          const double step = 1e-6 * std::fmax(1.0, std::fabs(at[k]));
          std::vector<double> above = at;
          std::vector<double> below = at;
          above[k] += step;
          below[k] -= step;
          const double want =
              (op->scalar_reference.real(above.data()) - op->scalar_reference.real(below.data())) /
              (above[k] - below[k]);
          INFO(op->name << " operand " << k << " at " << at[0] << " "
                        << (at.size() > 1 ? at[1] : 0.0));
          CHECK(got[k] == Approx(want).epsilon(1e-5).margin(1e-7));
        }
      }
    }
  }
}

TEST_CASE("gradients by the parameters of incomplete functions are errors", "[ops][grad]") {
  const Variable a = scalar_input();
  const Variable x = scalar_input();
  const auto message = [](const Variable& y, const Variable& by) {
    return test::message_of<GraphError>([&] { grad(y, by); });
  };
  using Catch::Matchers::Contains;
  CHECK_THAT(message(gammainc(a, x), a), Contains("[gammainc]") && Contains("respect to a"));
  CHECK_THAT(message(gammaincc(a, x), a), Contains("[gammaincc]") && Contains("consider_constant"));
  CHECK_THAT(message(betainc(a, 2, x), a), Contains("[betainc]") && Contains("a and b"));
  CHECK(message(betainc(a, a, x), x) == "nothing was thrown");
  const Variable twice = 2 * a;
  CHECK(grad(gammainc(twice, a), a, {.consider_constant = {twice}}).defined());
}

TEST_CASE("gradients at points where a convention decides", "[ops][grad]") {
  const Variable a = scalar_input();
  const Variable b = scalar_input();
  const Variable c = scalar_input();
  using Slopes = std::vector<double>;

  SECTION("ties of maximum and minimum go to the first operand") {
    CHECK(slopes(maximum(a, b), {2, 2}) == Slopes{1, 0});
    CHECK(slopes(minimum(a, b), {2, 2}) == Slopes{1, 0});
  }
  SECTION("clip keeps the gradient at the ends of the interval") {
    CHECK(slopes(clip(a, b, c), {0, 0, 1}) == Slopes{1, 0, 0});
    CHECK(slopes(clip(a, b, c), {1, 0, 1}) == Slopes{1, 0, 0});
    CHECK(slopes(clip(a, b, c), {-1, 0, 1}) == Slopes{0, 1, 0});
    CHECK(slopes(clip(a, b, c), {2, 0, 1}) == Slopes{0, 0, 1});
    CHECK(slopes(clip(a, b, c), {0.5, 1, 0}) == Slopes{0, 0, 1});
  }
  SECTION("abs and sign are flat at 0") {
    CHECK(slopes(abs(a), {0}) == Slopes{0});
    CHECK(slopes(sign(a), {0}) == Slopes{0});
  }
  SECTION("pow of 0") {
    CHECK(slopes(pow(a, b), {0, 2}) == Slopes{0, 0});
    CHECK(slopes(pow(a, b), {0, 1}) == Slopes{1, 0});
    CHECK(slopes(pow(a, b), {0, 0}) == Slopes{0, 0});
    CHECK(slopes(pow(a, 0), {0})[0] == 0);
    CHECK(slopes(pow(a, 1), {0})[0] == 1);
    CHECK(slopes(pow(a, 2), {0})[0] == 0);
    CHECK(slopes(pow(a, 3), {2})[0] == 12);
  }
  SECTION("relu has the mean of both slopes at 0") {
    CHECK(slopes(relu(a), {0}) == Slopes{0.5});
    CHECK(slopes(relu(a, b), {0, 0.2}) == Slopes{0.6, 0});
  }
  SECTION("the branch that was not taken gets 0") {
    const Variable g = scalar_input();
    const Variable y = where(lt(a, 0), b, c);
    const std::vector<Variable> grads = gradients_of(y, g);
    CHECK(!grads[0].defined());
    const VariableMap<double> at{{a, -1.0}, {g, INFINITY}};
    CHECK(value_of(grads[1], at) == INFINITY);
    CHECK(value_of(grads[2], at) == 0);
  }
  SECTION("ops that change the gradient alone") {
    CHECK(slopes(zero_grad(a), {3}) == Slopes{0});
    CHECK(slopes(consider_constant(a), {3}) == Slopes{0});
    CHECK(slopes(grad_clip(a, -0.5, 0.5), {3}) == Slopes{0.5});
    CHECK(slopes(grad_scale(a, -2), {3}) == Slopes{-2});
    CHECK(disconnected_grad(a).node()->op->grad == nullptr);
  }
}

TEST_CASE("integers get no gradient, and only wanted ones are built", "[ops][grad]") {
  const Variable i = scalar_input(DType::int32);
  const Variable f = scalar_input(DType::float32);
  const Variable g = scalar_input(DType::float32);
  const Variable grads[] = {g};

  const Variable sum = i * f;
  const Variable converted = sum.node()->inputs[0];
  CHECK(!gradients_of(converted, g)[0].defined());
  CHECK(gradients_of(sum, g)[0].dtype() == DType::float32);

  const Variable product = f * scalar_input(DType::float32);
  const bool needed[] = {false, true};
  const std::vector<Variable> some = product.node()->op->grad({*product.node(), grads, needed});
  CHECK(!some[0].defined());
  CHECK(some[1].defined());

  CHECK(lt(f, f).node()->op->grad == nullptr);
  CHECK(isnan(f).node()->op->grad == nullptr);
}

TEST_CASE("no NaN comes from the branch that was not taken", "[ops][grad]") {
  const Variable x = make_input({DType::float64, {kAnyDim}}, "x", Loc::current());
  const VariableMap<Array> at{{x, Array::from<double>({0, -1, 4}, {3})}};
  const auto slopes_of = [&](const Variable& y) {
    const Variable outputs[] = {grad(sum(y), x)};
    return evaluate(outputs, at)[0].to_vector<double>();
  };
  const Variable positive = gt(x, 0);
  using Slopes = std::vector<double>;
  CHECK(slopes_of(where(positive, log(x), 0)) == Slopes{0, 0, 0.25});
  CHECK(slopes_of(where(positive, 2 * sqrt(x) + 1, x)) == Slopes{1, 1, 0.5});
  CHECK(slopes_of(where(logical_not(positive), 0, 1 / x)) == Slopes{0, 0, -0.0625});
  CHECK(slopes_of(maximum(-1, log(exp(-1) / pow(x, -1)))) == Slopes{0, 0, 0.25});
  CHECK(slopes_of(where(lt(x, 9), where(positive, sqrt(x), 0) * x, 0)) == Slopes{0, 0, 3});
  CHECK(slopes_of(relu(where(positive, log(x), -1)))[0] == 0);
}

TEST_CASE("masks on gradients of long chains stay one", "[ops][grad]") {
  const Variable x = make_input({DType::float64, {kAnyDim}}, "x", Loc::current());
  const auto nodes = [&](int length) {
    Variable y = x;
    for (int k = 0; k < length; ++k) y = maximum(y, 0.5) * 2;
    const Variable outputs[] = {grad(sum(y), x)};
    return topological_order(outputs).size();
  };
  CHECK(nodes(80) - nodes(60) == nodes(60) - nodes(40));
}

TEST_CASE("gradients of operands that were stretched have their shape", "[ops][grad]") {
  const auto floats = [](const Shape& shape) {
    return make_input({DType::float64, shape}, "x", Loc::current());
  };
  const Variable column = floats({3, 1});
  const Variable row = floats({4});
  const Variable one = floats({});
  const Variable cost = sum(column * row * one);
  const VariableMap<Array> at{{column, Array{{1.0}, {2.0}, {3.0}}.astype(DType::float64)},
                              {row, Array::from<double>({1, 10, 100, 1000}, {4})},
                              {one, Array::full({}, 2.0, DType::float64)}};
  const std::vector<Variable> slopes = grad(cost, std::vector<Variable>{column, row, one});
  CHECK(slopes[0].static_shape() == Shape{3, 1});
  CHECK(slopes[1].static_shape() == Shape{4});
  CHECK(slopes[2].static_shape() == Shape{});
  const std::vector<Array> values = evaluate(slopes, at);
  CHECK(values[0].to_vector<double>() == std::vector<double>{2222, 2222, 2222});
  CHECK(values[1].to_vector<double>() == std::vector<double>{12, 12, 12, 12});
  CHECK(values[2].item<double>() == 6666);
}

TEST_CASE("gradients keep sizes of 1, so that axes can be dropped on the way back", "[ops][grad]") {
  const auto floats = [](const Shape& shape) {
    return make_input({DType::float64, shape}, "x", Loc::current());
  };
  const Variable x = floats({});
  const Variable rest = floats({kAnyDim});
  const Variable joined = concatenate({expand_dims(x, 0), rest});
  const VariableMap<Array> at{{x, Array::full({}, 3.0, DType::float64)},
                              {rest, Array::from<double>({5, 7}, {2})}};
  const std::vector<Variable> slopes = grad(sum(square(joined)), std::vector<Variable>{x, rest});
  const std::vector<Array> values = evaluate(slopes, at);
  CHECK(values[0].item<double>() == 6);
  CHECK(values[1].to_vector<double>() == std::vector<double>{10, 14});
}

TEST_CASE("gradients of casts go back to the operand's dtype", "[ops][grad]") {
  const Variable x = scalar_input(DType::float16);
  const Variable g = scalar_input(DType::float64);
  CHECK(gradients_of(cast(x, DType::float64), g)[0].dtype() == DType::float16);
}
