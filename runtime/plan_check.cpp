#include "runtime/plan_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "runtime/shared_state.h"

namespace croton {
namespace {

/// "axis 1 of argument 0 (\"x\")" for a size that a call brings with it, else nothing.
std::string source_of(const Plan& plan, DimRef ref) {
  const DimTable::Term& term = plan.dims.terms()[static_cast<std::size_t>(ref)];
  if (term.op != DimOp::input_size) return {};
  const auto input = static_cast<std::size_t>(term.a);
  if (input >= plan.inputs.size()) {
    return fmt::format("axis {} of {}", term.b, plan.shareds[input - plan.inputs.size()]->title());
  }
  if (plan.inputs[input].taken) return {};
  const std::string& name = plan.inputs[input].name;
  return name.empty() ? fmt::format("axis {} of argument {}", term.b, input)
                      : fmt::format("axis {} of argument {} (\"{}\")", term.b, input, name);
}

/// How the user says that this size is always 1.
std::string remedy(const Plan& plan, DimRef ref) {
  const DimTable::Term& term = plan.dims.terms()[static_cast<std::size_t>(ref)];
  const auto input = static_cast<std::size_t>(term.a);
  const bool is_taken = input < plan.inputs.size() && plan.inputs[input].taken;
  if (term.op != DimOp::input_size || is_taken) {
    return "it is computed: pass what it is a size of through specify_shape, with a 1 there";
  }
  if (input >= plan.inputs.size()) return "make the shared variable without .resizable";
  std::vector<std::string> sizes;
  const PlanInput& given = plan.inputs[input];
  for (std::size_t axis = 0; axis < given.shape.size(); ++axis) {
    sizes.push_back(static_cast<DimRef>(axis) == term.b ? "1"
                    : given.shape[axis] == kAnyDim      ? "kAnyDim"
                                                        : fmt::format("{}", given.shape[axis]));
  }
  return fmt::format("declare it, as in tensor(\"{}\", DType::{}, {{{}}})", given.name,
                     given.dtype == DType::boolean ? "boolean" : name_of(given.dtype),
                     fmt::join(sizes, ", "));
}

}  // namespace

std::string filled(std::string message, std::string_view name, std::string_view text) {
  const std::string mark = fmt::format("{{{}}}", name);
  for (std::size_t p = message.find(mark); p != std::string::npos; p = message.find(mark, p)) {
    message.replace(p, mark.size(), text);
    p += text.size();
  }
  return message;
}

std::string filled(std::string message, std::string_view name, std::int64_t value) {
  return filled(std::move(message), name, fmt::format("{}", value));
}

std::string clash_text(const Plan& plan, const PlanCheck& check, std::int64_t a, std::int64_t b) {
  std::string text = filled(filled(check.message, "a", a), "b", b);
  const std::string from_a = source_of(plan, check.a), from_b = source_of(plan, check.b);
  if (!from_a.empty()) text += fmt::format("; {} is {}", from_a, a);
  if (!from_b.empty()) text += fmt::format("{} {} is {}", from_a.empty() ? ";" : ",", from_b, b);
  if (check.broadcasts && (a == 1) != (b == 1)) {
    const DimRef one = a == 1 ? check.a : check.b;
    text += fmt::format(
        "; a size of 1 is stretched only where it is known to be 1 when the graph is built: {}",
        remedy(plan, one));
  }
  return check.line.empty() ? text : text + "; at " + check.line;
}

}  // namespace croton
