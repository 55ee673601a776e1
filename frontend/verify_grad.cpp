#include "croton/verify_grad.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <string_view>
#include <utility>

#include "compiler/graph/node.h"
#include "croton/function.h"
#include "croton/grad.h"
#include "croton/math.h"
#include "croton/reduce.h"
#include "ops/build.h"
#include "ops/reference.h"

namespace croton {
namespace {

std::string message_of(const GradientError::Place& p) {
  return fmt::format(
      "[verify_grad] the gradient of argument {} at index {} is {} and its finite difference {}: "
      "the absolute error {:.3g} is above {:.3g} and the relative one {:.3g} above {:.3g}",
      p.argument, p.index.to_string(), p.analytic, p.numeric, p.absolute_error,
      p.absolute_tolerance, p.relative_error, p.relative_tolerance);
}

/// How finite differences are made and judged in a dtype.
struct Precision {
  double eps;
  double tolerance;
};

Precision precision_of(DType dtype) {
  if (dtype == DType::float64) return {1e-7, 1e-4};
  if (dtype == DType::float32) return {3e-4, 1e-2};
  return {1e-1, 5e-2};
}

/// The narrowest dtype of the points.
DType working_dtype(const std::vector<Array>& points, const VerifyGradOptions& options,
                    const Loc& loc) {
  if (points.empty()) graph_error("verify_grad", "a point is expected: got none", loc);
  DType result = points[0].dtype();
  for (std::size_t k = 0; k < points.size(); ++k) {
    const DType dtype = points[k].dtype();
    if (!is_float(dtype)) {
      graph_error("verify_grad",
                  fmt::format("points must be floats: got {} for argument {}; let f make other "
                              "operands itself",
                              name_of(dtype), k),
                  loc);
    }
    if (size_of(dtype) < size_of(result)) result = dtype;
  }
  return options.dtype.value_or(result);
}

/// The array with one element, in row-major order, moved by eps relative to its size; and by how
/// much that is in its dtype.
Array nudged(const Array& point, std::int64_t place, double eps, double& step) {
  std::vector<double> values = reference::values<double>(point);
  double& value = values[static_cast<std::size_t>(place)];
  const double before = value;
  double size = eps * std::max(1.0, std::fabs(before));
  while (true) {
    value = before + size;
    Array result = Array::from<double>(values, point.shape()).astype(point.dtype());
    step = reference::values<double>(result)[static_cast<std::size_t>(place)] - before;
    if (std::isinf(step) && std::isfinite(before) && size > 0) {
      size = -size;  // down from the largest numbers
    } else if (step == 0) {
      size *= 2;  // lost in rounding
    } else {
      return result;
    }
  }
}

Shape index_of(std::int64_t place, const Shape& shape) {
  std::vector<std::int64_t> index(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    index[axis] = place % shape[axis];
    place /= shape[axis];
  }
  return Shape(index);
}

double cost_of(const Function& cost, const std::vector<Array>& arguments) {
  return cost.call(arguments)[0].astype(DType::float64).item<double>();
}

using Worst = std::optional<GradientError::Place>;

/// Keeps a place that exceeds both tolerances where no other is worse. NaN exceeds all.
void judge(const GradientError::Place& p, Worst& worst) {
  if (p.absolute_error <= p.absolute_tolerance) return;
  if (p.relative_error <= p.relative_tolerance) return;
  if (worst && (std::isnan(worst->absolute_error) || p.absolute_error <= worst->absolute_error)) {
    return;
  }
  worst = p;
}

/// The worst element of one argument, beside `worst`; `tolerances` says what is wrong.
void compare(const Array& analytic, std::size_t argument, const Function& cost,
             const std::vector<Array>& arguments, double eps,
             const GradientError::Place& tolerances, Worst& worst) {
  const std::vector<double> slopes = reference::values<double>(analytic);
  const double here = cost_of(cost, arguments);
  const Array& point = arguments[argument];
  for (std::int64_t place = 0; place < point.size(); ++place) {
    std::vector<Array> moved = arguments;
    double step = 0;
    moved[argument] = nudged(point, place, eps, step);
    GradientError::Place p = tolerances;
    p.argument = argument;
    p.index = index_of(place, point.shape());
    p.analytic = slopes[static_cast<std::size_t>(place)];
    p.numeric = (cost_of(cost, moved) - here) / step;
    p.absolute_error = std::fabs(p.analytic - p.numeric);
    p.relative_error =
        p.absolute_error / std::max(std::fabs(p.analytic) + std::fabs(p.numeric), 1e-8);
    // Two infinities of one sign are the same.
    if (p.analytic == p.numeric) p.absolute_error = p.relative_error = 0;
    judge(p, worst);
  }
}

/// The numbers by which gradients are judged.
void check_options(const VerifyGradOptions& options, const GradientError::Place& tolerances,
                   double eps, const Loc& loc) {
  if (!(eps > 0) || std::isinf(eps)) {
    graph_error("verify_grad", fmt::format("eps must be positive and finite: got {}", eps), loc);
  }
  const std::pair<std::string_view, double> given[] = {
      {"absolute_tolerance", tolerances.absolute_tolerance},
      {"relative_tolerance", tolerances.relative_tolerance}};
  for (const auto& [name, tolerance] : given) {
    if (tolerance >= 0) continue;
    graph_error("verify_grad", fmt::format("{} must be at least 0: got {}", name, tolerance), loc);
  }
  if (options.tests < 1) {
    graph_error("verify_grad", fmt::format("tests must be at least 1: got {}", options.tests), loc);
  }
}

}  // namespace

GradientError::GradientError(const Place& place) : Error(message_of(place)), place_(place) {}
GradientError::~GradientError() = default;

void verify_grad(const std::function<Variable(const std::vector<Variable>&)>& f,
                 const std::vector<Array>& points, const VerifyGradOptions& options, Loc line) {
  const Loc loc = line.named("verify_grad");
  const Precision precision = precision_of(working_dtype(points, options, loc));
  const double eps = options.eps.value_or(precision.eps);
  GradientError::Place tolerances;
  tolerances.absolute_tolerance = options.absolute_tolerance.value_or(precision.tolerance);
  tolerances.relative_tolerance = options.relative_tolerance.value_or(precision.tolerance);
  check_options(options, tolerances, eps, loc);
  std::vector<Variable> inputs;
  for (const Array& point : points) {
    inputs.push_back(make_input({point.dtype(), point.shape()}, "", loc));
  }
  const Variable y = f(inputs);
  if (!y.defined() || !is_float(y.dtype())) {
    graph_error("verify_grad", "the function must give a float value", loc);
  }
  const Variable weights = make_input(y.node()->outputs[y.output()], "", loc);
  const Variable cost = sum(Operand(y, loc) * weights);
  std::vector<Variable> all = inputs;
  all.push_back(weights);
  const FunctionOptions flags{.on_unused = OnUnused::ignore, .config = options.config};
  const Shape shape = function(inputs, y, flags, loc).call(points)[0].shape();
  const Function value = function(all, cost, flags, loc);
  const Function slopes = function(
      all, grad(cost, inputs, {.disconnected_inputs = Disconnected::ignore}, loc), flags, loc);

  std::mt19937_64 random(options.seed);
  for (int test = 0; test < options.tests; ++test) {
    std::vector<double> numbers(static_cast<std::size_t>(shape.numel()));
    for (double& number : numbers) number = 0.5 + static_cast<double>(random() >> 11) * 0x1p-53;
    std::vector<Array> arguments = points;
    arguments.push_back(Array::from<double>(numbers, shape).astype(y.dtype()));
    Worst worst;
    const Outputs analytic = slopes.call(arguments);
    for (std::size_t k = 0; k < points.size(); ++k) {
      compare(analytic[k], k, value, arguments, eps, tolerances, worst);
    }
    if (worst) throw GradientError(*worst);
  }
}

}  // namespace croton
