// Random graphs, compiled as users compile them, against the references of their ops.
#include <catch2/catch.hpp>
#include <cmath>
#include <ostream>

#include "croton/croton.h"
#include "tests/fuzz/random_graph.h"

using namespace croton;
using test::RandomGraph;

namespace {

bool close(const Array& got, const Array& wanted, DType dtype) {
  if (got.dtype() != wanted.dtype() || !(got.shape() == wanted.shape())) return false;
  const double tolerance = dtype == DType::float64 ? 1e-9 : 2e-3;
  return allclose(got, wanted, tolerance, tolerance, true);
}

void run(unsigned seed, DType dtype, bool fuse, bool check_bounds = false) {
  RandomGraph graph(seed, dtype);
  INFO("seed " << seed << " dtype " << name_of(dtype) << " fuse " << fuse << "\n" << graph.text());
  std::vector<Array> results;
  try {
    const Function f = function(
        graph.inputs, graph.outputs(),
        {.on_unused = OnUnused::ignore,
         .config = current_config().with("fuse", fuse).with("check_bounds", check_bounds)});
    const Outputs outputs = f.call(graph.arguments);
    results.assign(outputs.begin(), outputs.end());
  } catch (const Error& error) {
    FAIL(error.what());
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    INFO("output " << i << "\ngot " << results[i] << "\nwanted "
                   << graph.value(graph.outputs()[i]));
    CHECK(close(results[i], graph.value(graph.outputs()[i]), dtype));
  }
}

/// A scalar that each element of each output counts in, with a weight of its own.
Variable weighted_sum(const std::vector<Variable>& values) {
  Variable total = constant(0.0).astype(DType::float64);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Variable v = flatten(values[i].astype(DType::float64));
    total = total + sum(v * sin(iota_like(v, 0, DType::float64) * 1.7 + static_cast<double>(i)));
  }
  return total;
}

Array moved(const Array& x, const Array& direction, double step) {
  std::vector<double> values = x.to_vector<double>();
  const std::vector<double> along = direction.to_vector<double>();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] += step * along[i];
  return Array::from<double>(values, x.shape());
}

/// The gradient along a direction against the difference of values on both sides.
void check_gradients(unsigned seed) {
  RandomGraph graph(seed, DType::float64);
  INFO("seed " << seed << "\n" << graph.text());
  const Variable cost = weighted_sum(graph.outputs());
  std::vector<Variable> outputs =
      grad(cost, graph.inputs, {.disconnected_inputs = Disconnected::ignore});
  const FunctionOptions options{.on_unused = OnUnused::ignore};
  const Function gradients = function(graph.inputs, outputs, options);
  const Function value = function(graph.inputs, cost, options);
  const Outputs found = gradients.call(graph.arguments);
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    const Array& x = graph.arguments[i];
    REQUIRE(found[i].shape() == x.shape());
    const Array direction =
        random_uniform(x.shape(), {.seed = seed, .dtype = DType::float64, .low = -1});
    double symbolic = 0;
    const std::vector<double> slopes = found[i].to_vector<double>();
    for (std::size_t k = 0; k < slopes.size(); ++k) {
      symbolic += slopes[k] * direction.to_vector<double>()[k];
    }
    const auto at = [&](double step) {
      std::vector<Array> arguments = graph.arguments;
      arguments[i] = moved(x, direction, step);
      return value.call(arguments)[0].item<double>();
    };
    const auto slope = [&](double step) { return (at(step) - at(-step)) / (2 * step); };
    const double wide = slope(1e-5), narrow = slope(1e-6);
    // Beside a kink the two differ, and neither is the gradient.
    if (!(std::abs(wide - narrow) < 1e-5 * (1 + std::abs(wide)))) continue;
    CHECK(symbolic == Approx(narrow).epsilon(1e-3).margin(1e-3));
  }
}

}  // namespace

TEST_CASE("gradients of random graphs are what differences of their values say") {
  for (unsigned seed = 0; seed < 200; ++seed) check_gradients(seed);
}

TEST_CASE("random graphs compute what the references of their ops do") {
  for (unsigned seed = 0; seed < 400; ++seed) {
    run(seed, seed % 3 == 0 ? DType::float32 : DType::float64, true);
    if (seed % 5 == 0) run(seed, DType::float64, false);
    if (seed % 4 == 0) run(seed, DType::float64, true, true);
  }
}
