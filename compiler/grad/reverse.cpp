#include "compiler/grad/reverse.h"

#include <fmt/format.h>

#include <memory>
#include <unordered_set>

#include "compiler/graph/op.h"
#include "croton/error.h"
#include "croton/tensor.h"
#include "ops/build.h"

namespace croton {

std::string variable_title(const Variable& v, const Loc& loc) {
  const std::string type = v.node()->outputs[v.output()].to_text();
  if (!v.name().empty()) return fmt::format("'{}' ({})", v.name(), type);
  const Loc made = place_of(*v.node());
  const std::string line = to_text(made);
  return fmt::format("a {} made by '{}'{}", type, made.op,
                     line == to_text(loc) ? "" : " at " + line);
}

namespace {

/// The gradient with the sizes known to be 1 that its variable has, so that what goes on from it
/// may drop them: a slice of an unknown length is not known to have any.
Variable keep_ones(const Variable& gradient, const Variable& variable, const Loc& loc) {
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

/// Puts the nodes below `value` made since then on a context: a named one, or one that placement
/// may know better. A ContextScope around the call of grad says nothing about them; what a rule
/// itself put elsewhere stays there.
void put(const Variable& value, std::uint64_t since, const std::string* context,
         const std::string* beside) {
  const std::string* scope = build_settings().context;
  const bool named = context != nullptr && !context->empty();
  if (scope == nullptr && !named && beside == nullptr) return;
  std::vector<const Node*> todo{value.node()};
  std::unordered_set<const Node*> seen;
  while (!todo.empty()) {
    Node* node = const_cast<Node*>(todo.back());
    todo.pop_back();
    if (node->id < since || !seen.insert(node).second) continue;
    for (const Variable& input : node->inputs) todo.push_back(input.node());
    if (node->op->form == OpForm::leaf || node->op->form == OpForm::move) continue;
    if (!node->context->empty() && node->context != scope) continue;
    node->context = named ? context : intern("");
    node->beside = named ? nullptr : beside;
  }
}

/// Where a gradient is, null when it is left open.
const std::string* place_of_gradient(const Variable& gradient) {
  const Node& node = *gradient.node();
  return node.context->empty() ? node.beside : node.context;
}

}  // namespace

ReverseMode::ReverseMode(std::span<const Variable> constants) {
  for (const Variable& v : constants) {
    if (v.defined()) constants_.insert(v);
  }
}

void ReverseMode::start(const Variable& v, const Variable& gradient) {
  ends_.push_back(v);
  add(v, gradient);
}

void ReverseMode::fix(const Variable& v, const Variable& gradient) {
  start(v, gradient);
  fixed_.insert(v);
}

bool ReverseMode::stops_at(const Variable& v) const {
  return constants_.contains(v) || fixed_.contains(v) || targets_.contains(v);
}

// The gradient of a constant is of use where it is asked for itself.
bool ReverseMode::passes(const Variable& v) const {
  return depends_.contains(v.node()) && (!constants_.contains(v) || targets_.contains(v));
}

void ReverseMode::run(std::span<const Variable> wrt) {
  targets_.insert(wrt.begin(), wrt.end());
  std::unordered_set<const Node*> targets;
  for (const Variable& v : wrt) targets.insert(v.node());
  const std::vector<const Node*> order = topological_order(ends_);
  locations_.emplace(order);
  // Only what is made of one of the variables needs a gradient.
  for (const Node* node : order) {
    bool any = targets.contains(node);
    if (any) reached_.insert(node);
    for (const Variable& input : node->inputs) any = any || passes(input);
    if (any) depends_.insert(node);
  }
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    if (depends_.contains(*it)) backward(**it);
  }
}

Variable ReverseMode::of(const Variable& v) const {
  const auto it = gradients_.find(v);
  return it == gradients_.end() ? Variable() : it->second;
}

const std::string* ReverseMode::undefined(const Variable& v) const {
  const auto it = undefined_.find(v);
  return it == undefined_.end() ? nullptr : &it->second;
}

void ReverseMode::add(const Variable& v, const Variable& gradient) {
  if (fixed_.contains(v)) return;
  const Loc& loc = v.node()->loc;
  if (!locations_ || !locations_->several()) {
    const auto [it, first] = gradients_.emplace(v, gradient);
    if (!first) it->second = sum(it->second, gradient, nullptr, loc);
    return;
  }
  // Summed where they are, so that one of each context crosses to the value's.
  Pieces& pieces = pieces_[v];
  const std::string* where = place_of_gradient(gradient);
  for (auto& [place, piece] : pieces) {
    if (place != where) continue;
    piece = sum(piece, gradient, where, loc);
    return;
  }
  pieces.emplace_back(where, gradient);
}

Variable ReverseMode::sum(const Variable& a, const Variable& b, const std::string* where,
                          const Loc& loc) {
  const std::uint64_t since = next_node_id();
  const Variable value = apply("add", {a, b}, {}, loc);
  put(value, since, nullptr, where);
  return value;
}

/// The gradients that flow into a value become one, on the context of the value.
void ReverseMode::join(const Variable& v) {
  const auto it = pieces_.find(v);
  if (it == pieces_.end()) return;
  const Loc loc = place_of(*v.node());
  const std::string* home = locations_->of(*v.node());
  Variable total = of(v);
  for (const auto& [where, piece] : it->second) {
    const bool away = home != nullptr && where != nullptr && where != home;
    const Variable there = away ? transfer(Operand(piece, loc), *home) : piece;
    total = total.defined() ? sum(total, there, home, loc) : there;
  }
  gradients_.insert_or_assign(v, total);
  pieces_.erase(it);
}

void ReverseMode::mark_undefined(const Variable& v, const std::string& why) {
  if (!fixed_.contains(v)) undefined_.emplace(v, why);
}

void ReverseMode::backward(const Node& node) {
  if (!pieces_.empty()) {
    for (std::size_t k = 0; k < node.outputs.size(); ++k) join(node.out(static_cast<int>(k)));
  }
  const bool undefined_here = node.op->grad == nullptr && node.attrs().has("why");
  if (node.op->grad == nullptr && !undefined_here) return;
  std::vector<Variable> gradients;
  bool any = false;
  const std::string* why = nullptr;
  for (std::size_t k = 0; k < node.outputs.size(); ++k) {
    const Variable out = node.out(static_cast<int>(k));
    const bool constant = constants_.contains(out);
    gradients.push_back(constant ? Variable() : of(out));
    any = any || gradients.back().defined();
    if (!constant && why == nullptr) why = undefined(out);
  }
  if (!any && why == nullptr) return;
  if (undefined_here && why == nullptr) why = &node.attrs().text("why");
  // Gradients of constants and of what leads to none of the variables are not even built.
  const auto needed = std::make_unique<bool[]>(node.inputs.size());
  for (std::size_t k = 0; k < node.inputs.size(); ++k) {
    const Variable& input = node.inputs[k];
    needed[k] = is_float(input.dtype()) && passes(input);
    if (needed[k] && why != nullptr) mark_undefined(input, *why);
  }
  if (why == nullptr) follow_rule(node, gradients, {needed.get(), node.inputs.size()});
}

void ReverseMode::follow_rule(const Node& node, const std::vector<Variable>& gradients,
                              std::span<const bool> needed) {
  const std::uint64_t since = next_node_id();
  const std::vector<Variable> results = node.op->grad({node, gradients, needed, this});
  internal_check(results.size() == node.inputs.size(), "a gradient rule skipped an input");
  const Loc loc = place_of(node);
  for (std::size_t k = 0; k < results.size(); ++k) {
    const Variable& input = node.inputs[k];
    if (!results[k].defined() || !needed[k]) continue;
    const Variable result = cast_to(results[k], input.dtype(), loc);
    relocate(result, since, loc);
    if (result.ndim() != input.ndim()) {
      throw InternalError(fmt::format("the gradient of '{}' for operand {} has {} axes, not {}",
                                      node.op->name, k + 1, result.ndim(), input.ndim()));
    }
    const Variable gradient = keep_ones(result, input, loc);
    put(gradient, since, node.context, locations_ ? locations_->of(node) : nullptr);
    add(input, gradient);
  }
}

}  // namespace croton
