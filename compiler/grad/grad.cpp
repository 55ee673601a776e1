#include "croton/grad.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <unordered_set>

#include "compiler/graph/graph.h"
#include "compiler/graph/op.h"
#include "croton/error.h"
#include "ops/build.h"
#include "runtime/log.h"

namespace croton {
namespace {

/// The variable in a message about `loc`, which is not said twice.
std::string title(const Variable& v, const Loc& loc) {
  const std::string type = v.node()->outputs[v.output()].to_text();
  if (!v.name().empty()) return fmt::format("'{}' ({})", v.name(), type);
  const Loc made = place_of(*v.node());
  const std::string line = to_text(made);
  return fmt::format("a {} made by '{}'{}", type, made.op,
                     line == to_text(loc) ? "" : " at " + line);
}

class ReverseMode {
 public:
  ReverseMode(const GradOptions& options, const Loc& loc) : options_(options), loc_(loc) {
    for (const Variable& v : options.consider_constant) {
      if (v.defined()) constants_.insert(v.node());
    }
  }

  void start(const Variable& v, const Variable& gradient) {
    ends_.push_back(v);
    add(v, gradient);
  }

  void run(const std::vector<Variable>& wrt) {
    std::unordered_set<const Node*> targets;
    for (const Variable& v : wrt) targets.insert(v.node());
    const std::vector<const Node*> order = topological_order(ends_);
    // Only what depends on one of the variables needs a gradient.
    std::unordered_set<const Node*> depends;
    for (const Node* node : order) {
      bool any = targets.contains(node);
      for (const Variable& input : node->inputs) {
        any = any || (depends.contains(input.node()) && !constants_.contains(input.node()));
      }
      if (any) depends.insert(node);
    }
    for (auto it = order.rbegin(); it != order.rend(); ++it) {
      if (depends.contains(*it) && !constants_.contains(*it)) backward(**it, depends);
    }
  }

  Variable of(const Variable& v) const {
    const auto it = gradients_.find(v);
    return it == gradients_.end() ? Variable() : it->second;
  }

 private:
  void add(const Variable& v, const Variable& gradient) {
    const auto [it, first] = gradients_.emplace(v, gradient);
    if (!first) it->second = apply("add", {it->second, gradient}, {}, v.node()->loc);
  }

  void backward(const Node& node, const std::unordered_set<const Node*>& depends) {
    if (node.op->grad == nullptr) return;
    std::vector<Variable> gradients;
    bool any = false;
    for (std::size_t k = 0; k < node.outputs.size(); ++k) {
      gradients.push_back(of(node.out(static_cast<int>(k))));
      any = any || gradients.back().defined();
    }
    if (!any) return;
    // Gradients of constants and of what leads to none of the variables are not even built.
    const auto needed = std::make_unique<bool[]>(node.inputs.size());
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      const Variable& input = node.inputs[k];
      needed[k] = is_float(input.dtype()) && depends.contains(input.node()) &&
                  !constants_.contains(input.node());
    }
    const std::uint64_t since = next_node_id();
    const std::vector<Variable> results =
        node.op->grad({node, gradients, {needed.get(), node.inputs.size()}});
    internal_check(results.size() == node.inputs.size(), "a gradient rule skipped an input");
    for (std::size_t k = 0; k < results.size(); ++k) {
      const Variable& input = node.inputs[k];
      if (!results[k].defined() || !needed[k]) continue;
      const Loc loc = place_of(node);
      const Variable result = cast_to(results[k], input.dtype(), loc);
      relocate(result, since, loc);
      if (result.ndim() != input.ndim()) {
        throw InternalError(fmt::format("the gradient of '{}' for operand {} has {} axes, not {}",
                                        node.op->name, k + 1, result.ndim(), input.ndim()));
      }
      add(input, keep_ones(result, input, loc));
    }
  }

  /// The gradient with the sizes known to be 1 that its variable has, so that what goes on from it
  /// may drop them: a slice of an unknown length is not known to have any.
  static Variable keep_ones(const Variable& gradient, const Variable& variable, const Loc& loc) {
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(variable.ndim()), kAnyDim);
    bool lost = false;
    for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
      if (variable.static_shape()[axis] != 1 || gradient.static_shape()[axis] == 1) continue;
      sizes[axis] = 1;
      lost = true;
    }
    if (!lost) return gradient;
    return apply("specify_shape", {gradient}, {{"sizes", std::move(sizes)}}, loc);
  }

  const GradOptions& options_;
  const Loc& loc_;
  std::vector<Variable> ends_;
  std::unordered_set<const Node*> constants_;
  VariableMap<Variable> gradients_;
};

}  // namespace

std::vector<Variable> grad(const Operand& cost, const std::vector<Variable>& wrt,
                           const GradOptions& options) {
  const Loc& loc = cost.loc();
  const std::uint64_t since = next_node_id();
  ReverseMode reverse(options, loc);
  for (const Variable& v : wrt) {
    if (!v.defined()) graph_error("grad", "a variable to differentiate by is empty", loc);
  }
  for (const auto& [value, gradient] : options.known_grads) {
    if (gradient.ndim() != value.ndim()) {
      graph_error(
          "grad",
          fmt::format("the known gradient of {} has {} axes", title(value, loc), gradient.ndim()),
          loc);
    }
    reverse.start(value, cast_to(gradient, value.dtype(), loc));
  }
  const Variable c = cost.variable();
  if (c.ndim() != 0) {
    graph_error(
        "grad",
        fmt::format("the cost must be a scalar: got {}; take its sum or mean", title(c, loc)), loc);
  }
  if (!is_float(c.dtype())) {
    graph_error("grad", fmt::format("the cost must be a float: got {}", title(c, loc)), loc);
  }
  reverse.start(c, ones_like(c, loc));
  reverse.run(wrt);

  std::vector<Variable> result;
  for (const Variable& v : wrt) {
    Variable gradient = reverse.of(v);
    if (!gradient.defined()) {
      const std::string message = fmt::format(
          "the cost does not depend on {} in a differentiable way; set .disconnected_inputs = "
          "Disconnected::ignore to take zeros",
          title(v, loc));
      if (options.disconnected_inputs == Disconnected::raise) graph_error("grad", message, loc);
      if (options.disconnected_inputs == Disconnected::warn)
        log_warning(fmt::format("[grad] {}", message));
      const Variable like = is_float(v.dtype()) ? v : cast_to(v, build_settings().float_x, loc);
      gradient = zeros_like(like, loc);
      relocate(gradient, since, loc);
    }
    result.push_back(gradient);
  }
  return result;
}

}  // namespace croton
