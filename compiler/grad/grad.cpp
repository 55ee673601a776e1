#include "croton/grad.h"

#include <fmt/format.h>

#include "compiler/grad/reverse.h"
#include "compiler/graph/op.h"
#include "croton/error.h"
#include "ops/build.h"
#include "runtime/log.h"

namespace croton {
namespace {

void check_defined(const std::vector<Variable>& list, std::string_view what, const Loc& loc) {
  for (const Variable& v : list) {
    if (!v.defined()) graph_error("grad", fmt::format("{} is empty", what), loc);
  }
}

void check_cost(const Variable& cost, const Loc& loc) {
  if (cost.ndim() != 0) {
    graph_error("grad",
                fmt::format("the cost must be a scalar: got {}; take its sum or mean",
                            variable_title(cost, loc)),
                loc);
  }
  if (!is_float(cost.dtype())) {
    graph_error("grad", fmt::format("the cost must be a float: got {}", variable_title(cost, loc)),
                loc);
  }
}

/// A gradient that the user gave, as one of its value.
Variable known_gradient(const Variable& value, const Variable& gradient, const Loc& loc) {
  check_defined({value}, "a value with a known gradient", loc);
  check_defined({gradient}, "a known gradient", loc);
  if (!is_float(value.dtype())) {
    graph_error("grad",
                fmt::format("only floats have gradients, and one is given for {}",
                            variable_title(value, loc)),
                loc);
  }
  bool fits = gradient.ndim() == value.ndim() && is_float(gradient.dtype());
  for (int axis = 0; fits && axis < value.ndim(); ++axis) {
    const std::int64_t want = value.static_shape()[axis];
    const std::int64_t have = gradient.static_shape()[axis];
    fits = want == have || want == kAnyDim || have == kAnyDim;
  }
  if (!fits) {
    graph_error("grad",
                fmt::format("the known gradient of {} must be a float of its shape: got {}",
                            variable_title(value, loc), variable_title(gradient, loc)),
                loc);
  }
  return cast_to(gradient, value.dtype(), loc);
}

void start(ReverseMode& reverse, const Variable& cost, const GradOptions& options, const Loc& loc) {
  VariableSet seen;
  for (const auto& [value, gradient] : options.known_grads) {
    reverse.fix(value, known_gradient(value, gradient, loc));
    if (!seen.insert(value).second) {
      graph_error("grad", fmt::format("two known gradients of {}", variable_title(value, loc)),
                  loc);
    }
  }
  if (cost.defined()) {
    check_cost(cost, loc);
    reverse.fix(cost, ones_like(cost, loc));
  } else if (options.known_grads.empty()) {
    graph_error("grad", "a cost or .known_grads to start from is expected: got an empty Variable",
                loc);
  }
}

/// What stands for a gradient that nothing flows into.
Variable no_gradient(const Variable& v, const GradOptions& options, const Loc& loc) {
  if (options.return_disconnected == NoGradient::empty) return {};
  const Variable like = is_float(v.dtype()) ? v : cast_to(v, build_settings().float_x, loc);
  return zeros_like(like, loc);
}

void report_disconnected(const Variable& v, Disconnected meaning, const Loc& loc) {
  const std::string message = fmt::format(
      "the cost does not depend on {} in a differentiable way; set .disconnected_inputs = "
      "Disconnected::ignore to take zeros",
      variable_title(v, loc));
  if (meaning == Disconnected::raise) graph_error("grad", message, loc);
  if (meaning == Disconnected::warn) log_warning(fmt::format("[grad] {}", message));
}

Variable result_of(const ReverseMode& reverse, const Variable& v, const GradOptions& options,
                   const Loc& loc) {
  if (const std::string* why = reverse.undefined(v)) {
    if (options.null_gradients == Undefined::empty) return {};
    graph_error("grad",
                fmt::format("the gradient with respect to {} is not defined: {}; set "
                            ".null_gradients = Undefined::empty to take an empty Variable",
                            variable_title(v, loc), *why),
                loc);
  }
  const Variable gradient = reverse.of(v);
  if (gradient.defined()) return gradient;
  // An integer that is connected has a gradient, which is zero.
  if (is_float(v.dtype()) || !reverse.reaches(v)) {
    report_disconnected(v, options.disconnected_inputs, loc);
  }
  return no_gradient(v, options, loc);
}

/// Names a gradient that was made by this very call and has none.
void give_name(const Variable& gradient, const Variable& v, const Variable& cost,
               std::uint64_t since) {
  if (!gradient.defined() || v.name().empty()) return;
  const Node& node = *gradient.node();
  if (node.id < since || !node.name->empty() || node.op->form == OpForm::leaf) return;
  const bool has_name = cost.defined() && !cost.name().empty();
  const std::string_view of = has_name ? std::string_view(cost.name()) : "cost";
  const_cast<Node&>(node).name = intern(fmt::format("d{}/d{}", of, v.name()));
}

}  // namespace

std::vector<Variable> grad(const Variable& cost, const std::vector<Variable>& wrt,
                           const GradOptions& options, Loc loc) {
  const std::uint64_t since = next_node_id();
  check_defined(wrt, "a variable to differentiate by", loc);
  ReverseMode reverse(options.consider_constant);
  start(reverse, cost, options, loc);
  reverse.run(wrt);

  std::vector<Variable> result;
  for (const Variable& v : wrt) {
    const std::uint64_t before = next_node_id();
    result.push_back(result_of(reverse, v, options, loc));
    relocate(result.back(), before, loc);
    if (options.add_names) give_name(result.back(), v, cost, since);
  }
  return result;
}

SubgraphGradients subgraph_grad(const std::vector<Variable>& wrt, const std::vector<Variable>& end,
                                const std::vector<std::pair<Variable, Variable>>& start_at,
                                const Variable& cost, Loc line) {
  const Loc loc = line.named("subgraph_grad");
  if (start_at.empty() && !cost.defined()) {
    graph_error("subgraph_grad", "gradients or a cost to start from are expected: got neither",
                loc);
  }
  std::vector<Variable> all = wrt;
  all.insert(all.end(), end.begin(), end.end());
  check_defined(all, "a variable to differentiate by", loc);
  ReverseMode reverse(end);
  for (const auto& [value, gradient] : start_at) {
    reverse.start(value, known_gradient(value, gradient, loc));
  }
  if (cost.defined()) {
    check_cost(cost, loc);
    reverse.start(cost, ones_like(cost, loc));
  }
  reverse.run(all);
  const GradOptions options{.disconnected_inputs = Disconnected::ignore};
  SubgraphGradients result;
  for (const Variable& v : wrt) result.wrt.push_back(result_of(reverse, v, options, loc));
  for (const Variable& v : end) result.end.push_back(result_of(reverse, v, options, loc));
  return result;
}

Variable grad_undefined(const Operand& x, std::string_view why) {
  return apply("disconnected_grad", {x.variable()}, {{"why", std::string(why)}}, x.loc());
}

}  // namespace croton
