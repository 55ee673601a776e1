#include "compiler/rewrite/trace.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "compiler/graph/op.h"
#include "croton/error.h"
#include "ops/evaluate.h"

namespace croton {

double spacing(DType dtype) {
  switch (dtype) {
    case DType::float16:
      return 0x1p-10;
    case DType::bfloat16:
      return 0x1p-7;
    case DType::float32:
      return 0x1p-23;
    default:
      return 0x1p-52;
  }
}

namespace {

struct Tolerance {
  double relative;
  double of_largest;  ///< of the largest finite element, for sums in which things cancel
  double absolute = 0;
};

Tolerance tolerance_of(Precision precision, DType dtype) {
  const double step = spacing(dtype);
  switch (precision) {
    case Precision::exact:
      return {0, 0};
    case Precision::rounding:
      return {32 * step, 8 * step};
    // The old form may have lost most of its digits without becoming infinite.
    case Precision::stabilising:
      return {std::max(0.06, 32 * step), 32 * step};
  }
  return {0, 0};
}

/// Whether `value` is wrong where `expected` is what the old form gave.
bool is_wrong(double value, double expected, Precision precision, double tolerance) {
  if (value == expected || (std::isnan(value) && std::isnan(expected))) return false;
  if (precision == Precision::exact) return true;
  if (!std::isfinite(expected)) return precision != Precision::stabilising;
  return !(std::abs(value - expected) <= tolerance);
}

std::string position_text(const Shape& shape, std::int64_t flat) {
  Shape at = shape;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    at[axis] = flat % shape[axis];
    flat /= shape[axis];
  }
  return at.to_string();
}

std::string float_difference(const Array& value, const Array& expected, Precision precision,
                             Tolerance tolerance) {
  const std::vector<double> is = value.astype(DType::float64).to_vector<double>();
  const std::vector<double> was = expected.astype(DType::float64).to_vector<double>();
  double largest = 0;
  for (const double x : was) {
    if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
  }
  // Numbers below the smallest normal one have few digits.
  const double floor = value.dtype() == DType::float64   ? 0x1p-1022
                       : value.dtype() == DType::float16 ? 0x1p-14
                                                         : 0x1p-126;
  for (std::size_t i = 0; i < is.size(); ++i) {
    const double allowed = tolerance.relative * std::abs(was[i]) + tolerance.of_largest * largest +
                           std::max(tolerance.absolute, floor);
    if (!is_wrong(is[i], was[i], precision, allowed)) continue;
    return fmt::format("element {}: {} became {}",
                       position_text(value.shape(), static_cast<std::int64_t>(i)), was[i], is[i]);
  }
  return {};
}

std::string integer_difference(const Array& value, const Array& expected) {
  const bool wide = value.dtype() == DType::uint64;
  const DType dtype = wide ? DType::uint64 : DType::int64;
  const Array is = value.astype(dtype);
  const Array was = expected.astype(dtype);
  const auto first = [&](const auto& a, const auto& b) -> std::string {
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (a[i] == b[i]) continue;
      return fmt::format("element {}: {} became {}",
                         position_text(value.shape(), static_cast<std::int64_t>(i)), b[i], a[i]);
    }
    return {};
  };
  return wide ? first(is.to_vector<std::uint64_t>(), was.to_vector<std::uint64_t>())
              : first(is.to_vector<std::int64_t>(), was.to_vector<std::int64_t>());
}

std::string difference(const Array& value, const Array& expected, Precision precision,
                       Tolerance tolerance) {
  if (value.dtype() != expected.dtype() || value.shape() != expected.shape()) {
    return fmt::format("{} {} became {} {}", name_of(expected.dtype()),
                       expected.shape().to_string(), name_of(value.dtype()),
                       value.shape().to_string());
  }
  return is_float(value.dtype()) ? float_difference(value, expected, precision, tolerance)
                                 : integer_difference(value, expected);
}

}  // namespace

std::string difference(const Array& value, const Array& expected, Precision precision) {
  return difference(value, expected, precision, tolerance_of(precision, value.dtype()));
}

namespace {

/// For values that many roundings led to, of numbers around 1 that may have cancelled. Kernels keep
/// half precision in float32 from one op to the next, and sum in another order than references.
Tolerance accumulated(DType dtype) {
  const double relative = dtype == DType::float16    ? 0.05
                          : dtype == DType::bfloat16 ? 0.25
                                                     : 4096 * spacing(dtype);
  return {relative, relative / 8, relative / 8};
}

/// The float with the fewest digits among the values that `v` is made from: what it loses, the
/// wider ones behind it do not bring back.
DType coarsest_float(const Variable& v) {
  DType coarsest = DType::float64;
  const Variable outputs[] = {v};
  for (const Node* node : topological_order(outputs)) {
    for (const Type& type : node->outputs) {
      if (is_float(type.dtype) && spacing(type.dtype) > spacing(coarsest)) coarsest = type.dtype;
    }
  }
  return coarsest;
}

/// What a pass made of an output. Each application of a rule is checked by itself; of all together
/// this finds what has gone wrong between them.
std::string pass_difference(const Array& value, const Array& expected, Precision precision,
                            const Variable& v) {
  switch (precision) {
    case Precision::exact:
      return difference(value, expected, precision);
    case Precision::rounding:
      return difference(value, expected, precision, accumulated(coarsest_float(v)));
    case Precision::stabilising:
      break;
  }
  return difference(value, expected, precision, {0.5, 0.1, 0.1});
}

}  // namespace

std::string compiled_difference(const Array& value, const Array& expected, const Variable& v) {
  return difference(value, expected, Precision::rounding, accumulated(coarsest_float(v)));
}

std::string expression_text(const Variable& v, int depth) {
  const Node& node = *v.node();
  if (!node.name->empty() && node.inputs.empty()) return *node.name;
  if (node.op->name == "constant") {
    if (node.value.ndim() == 0) return to_string(node.value);
    return fmt::format("constant {}", node.value.shape().to_string());
  }
  if (depth == 0) return "...";
  std::string text = node.op->name;
  if (!node.attrs().empty()) text += "[" + node.attrs().to_text() + "]";
  std::vector<std::string> operands;
  for (const Variable& input : node.inputs) operands.push_back(expression_text(input, depth - 1));
  return fmt::format("{}({})", text, fmt::join(operands, ", "));
}

std::vector<Array> check_trace(const RewriteTrace& trace, const VariableMap<Array>& known) {
  constexpr int kDepth = 6;
  std::vector<Variable> wanted;
  for (const RewriteTrace::Application& a : trace.applications) {
    wanted.push_back(a.before);
    wanted.push_back(a.after);
  }
  for (const RewriteTrace::PassRun& run : trace.passes) {
    wanted.insert(wanted.end(), run.before.outputs.begin(), run.before.outputs.end());
    wanted.insert(wanted.end(), run.after.outputs.begin(), run.after.outputs.end());
  }
  const std::vector<Array> values = evaluate(wanted, known);
  std::size_t next = 0;
  for (const RewriteTrace::Application& a : trace.applications) {
    const Array& before = values[next++];
    const Array& after = values[next++];
    const std::string wrong = difference(after, before, a.precision);
    if (wrong.empty()) continue;
    throw InternalError(
        fmt::format("[DEBUG] the rule '{}' of pass '{}' changed a value, {}; at {}\n  before: {}\n "
                    " after:  {}\n"
                    "leave it out with optimizer_excluding={} and report it",
                    a.rule, a.pass, wrong, to_text(a.before.node()->loc),
                    expression_text(a.before, kDepth), expression_text(a.after, kDepth), a.rule));
  }
  std::vector<Array> results;
  for (const RewriteTrace::PassRun& run : trace.passes) {
    const std::size_t count = run.before.outputs.size();
    for (std::size_t k = 0; k < count; ++k) {
      const Array& before = values[next + k];
      const Array& after = values[next + count + k];
      const std::string wrong =
          pass_difference(after, before, run.precision, run.before.outputs[k]);
      if (wrong.empty()) continue;
      throw InternalError(
          fmt::format("[DEBUG] the pass '{}' changed output {}, {}\n  before: {}\n  "
                      "after:  {}",
                      run.pass, k, wrong, expression_text(run.before.outputs[k], kDepth),
                      expression_text(run.after.outputs[k], kDepth)));
    }
    results.assign(values.begin() + static_cast<std::ptrdiff_t>(next + count),
                   values.begin() + static_cast<std::ptrdiff_t>(next + 2 * count));
    next += 2 * count;
  }
  return results;
}

}  // namespace croton
