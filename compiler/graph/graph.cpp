#include "compiler/graph/graph.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_set>

#include "compiler/graph/infer.h"
#include "compiler/graph/node_map.h"
#include "compiler/graph/op.h"
#include "croton/error.h"

namespace croton {

std::vector<const Node*> topological_order(std::span<const Variable> outputs) {
  std::vector<const Node*> order;
  NodeMap<bool> seen;
  const auto add = [&](const Node* node) {
    bool& known = seen[node];
    if (!known) order.push_back(node);
    known = true;
  };
  for (const Variable& output : outputs) {
    if (output.defined()) add(output.node());
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (const Variable& input : order[i]->inputs) add(input.node());
  }
  // Inputs are older than their users, so that age is an order.
  std::sort(order.begin(), order.end(), [](const Node* a, const Node* b) { return a->id < b->id; });
  return order;
}

std::vector<const Node*> Graph::order() const { return topological_order(outputs); }

Graph rebuild(const Graph& graph, const Visit& visit, const VariableMap<Variable>& replacements) {
  const std::vector<const Node*> order = graph.order();
  NodeMap<Variable> first(order.size());  // of nodes whose first output changed
  VariableMap<Variable> others;
  const auto resolved = [&](const Variable& v) -> const Variable& {
    if (v.output() == 0) {
      const Variable* found = first.find(v.node());
      return found != nullptr ? *found : v;
    }
    const auto it = others.find(v);
    return it == others.end() ? v : it->second;
  };
  for (const Node* node : order) {
    const bool changed = std::any_of(node->inputs.begin(), node->inputs.end(),
                                     [&](const Variable& v) { return !resolved(v).same(v); });
    Variable current = node->out(0);
    if (changed) {
      std::vector<Variable> inputs;
      inputs.reserve(node->inputs.size());
      for (const Variable& input : node->inputs) inputs.push_back(resolved(input));
      current = with_inputs(*node, std::move(inputs));
    }
    std::vector<Variable> values;
    if (visit) values = visit(*current.node());
    for (int k = 0; k < static_cast<int>(node->outputs.size()); ++k) {
      const Variable old = node->out(k);
      Variable value = values.empty() || !values[k].defined() ? current.node()->out(k) : values[k];
      if (!replacements.empty()) {
        if (const auto it = replacements.find(old); it != replacements.end()) value = it->second;
      }
      if (value.same(old)) continue;
      if (k == 0) {
        first[node] = std::move(value);
      } else {
        others.emplace(old, std::move(value));
      }
    }
  }
  Graph result;
  result.inputs = graph.inputs;
  for (const Variable& output : graph.outputs) result.outputs.push_back(resolved(output));
  return result;
}

void verify(const Graph& graph) {
  const auto fail = [](const Node& node, const std::string& what) {
    throw InternalError(fmt::format("graph: node {} ({}): {}", node.id, node.op->name, what));
  };
  std::unordered_set<const Node*> inputs;
  for (const Variable& input : graph.inputs) inputs.insert(input.node());
  for (const Variable& output : graph.outputs) {
    internal_check(output.defined(), "a graph has an empty output");
  }
  for (const Node* node : graph.order()) {
    if (node->op->name == "input" && !inputs.contains(node)) fail(*node, "an unknown input");
    for (const Variable& input : node->inputs) {
      if (input.node()->id >= node->id) fail(*node, "an input is younger than its user");
      if (input.output() >= static_cast<int>(input.node()->outputs.size())) {
        fail(*node, "an input that its node does not have");
      }
    }
    if (node->op->name == "constant" && !node->value.has_value()) fail(*node, "no value");
    if (node->op->form == OpForm::leaf) continue;
    std::vector<Variable> copies = node->inputs;
    const Variable again = with_inputs(*node, std::move(copies));
    for (std::size_t k = 0; k < node->outputs.size(); ++k) {
      if (again.node()->outputs[k].dtype != node->outputs[k].dtype) fail(*node, "a wrong dtype");
      if (again.node()->outputs[k].shape.size() != node->outputs[k].shape.size()) {
        fail(*node, "a wrong rank");
      }
    }
  }
}

std::string to_text(const Graph& graph) {
  std::string text;
  std::unordered_map<const Node*, int> number;
  const auto name = [&](const Variable& v) {
    const std::string base = fmt::format("%{}", number.at(v.node()));
    return v.node()->outputs.size() > 1 ? fmt::format("{}.{}", base, v.output()) : base;
  };
  for (const Node* node : graph.order()) {
    number.emplace(node, static_cast<int>(number.size()));
    std::vector<std::string> operands;
    for (const Variable& input : node->inputs) operands.push_back(name(input));
    if (!node->name->empty()) operands.push_back(fmt::format("'{}'", *node->name));
    if (!node->attrs().empty()) operands.push_back(node->attrs().to_text());
    if (node->op->name == "constant" && node->value.size() == 1) {
      operands.push_back(to_string(node->value));
    }
    std::vector<std::string> types;
    for (const Type& type : node->outputs) types.push_back(type.to_text());
    text += fmt::format("%{} = {}({}) : {}{}\n", number.at(node), node->op->name,
                        fmt::join(operands, ", "), fmt::join(types, ", "),
                        node->context->empty() ? "" : " @" + *node->context);
  }
  std::vector<std::string> outputs;
  for (const Variable& output : graph.outputs) outputs.push_back(name(output));
  return text + fmt::format("return {}\n", fmt::join(outputs, ", "));
}

}  // namespace croton
