#include "croton/custom_gradient.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "compiler/grad/reverse.h"
#include "compiler/graph/gradient_ops.h"
#include "ops/build.h"

namespace croton {
namespace {

/// The rule on the values of the node.
std::vector<Variable> follow(const GradArgs& args) {
  const Graph& rule = *args.node.graph;
  VariableMap<Variable> at;
  const std::size_t count = args.node.inputs.size() - 1;
  for (std::size_t k = 0; k < count; ++k) at.emplace(rule.inputs[k], args.node.inputs[k + 1]);
  at.emplace(rule.inputs[count], args.out());
  at.emplace(rule.inputs[count + 1], args.g());
  // rebuild() gives one value for each output, and none of them may be empty.
  Graph wanted;
  std::vector<std::size_t> places;
  for (std::size_t k = 0; k < rule.outputs.size(); ++k) {
    if (!rule.outputs[k].defined() || !args.wants(static_cast<int>(k) + 1)) continue;
    wanted.outputs.push_back(rule.outputs[k]);
    places.push_back(k + 1);
  }
  const Graph done = rebuild(wanted, {}, at);
  std::vector<Variable> result(count + 1);
  for (std::size_t i = 0; i < places.size(); ++i) result[places[i]] = done.outputs[i];
  return result;
}

/// What the rule gave for an input, in its dtype; empty where no gradient flows.
Variable checked(const Variable& gradient, const Variable& input, std::size_t number,
                 const Loc& loc) {
  if (!gradient.defined()) return {};
  const Shape& have = gradient.static_shape();
  const Shape& want = input.static_shape();
  bool fits = have.size() == want.size() && is_float(gradient.dtype()) && is_float(input.dtype());
  for (std::size_t axis = 0; fits && axis < want.size(); ++axis) {
    fits = have[axis] == want[axis] || have[axis] == kAnyDim || want[axis] == kAnyDim;
  }
  if (!fits) {
    graph_error("custom_gradient",
                fmt::format("the rule's gradient {} does not fit its input, {}: got {}", number,
                            variable_title(input, loc), variable_title(gradient, loc)),
                loc);
  }
  return cast_to(gradient, input.dtype(), loc);
}

std::vector<Variable> defined_of(const std::vector<Variable>& list) {
  std::vector<Variable> result;
  for (const Variable& v : list) {
    if (v.defined()) result.push_back(v);
  }
  return result;
}

/// The values that a rule uses as they are: not made of its symbols, and no constants.
std::vector<Variable> captures_of(const Graph& rule) {
  std::unordered_set<const Node*> made;  // of symbols
  for (const Variable& v : rule.inputs) made.insert(v.node());
  std::vector<Variable> result;
  VariableSet seen;
  const auto use = [&](const Variable& v) {
    if (made.contains(v.node()) || is_op(v, "constant")) return;
    if (seen.insert(v).second) result.push_back(v);
  };
  const std::vector<Variable> outputs = defined_of(rule.outputs);
  for (const Node* node : topological_order(outputs)) {
    const bool of_symbols = std::any_of(node->inputs.begin(), node->inputs.end(),
                                        [&](const Variable& v) { return made.contains(v.node()); });
    if (!of_symbols) continue;
    made.insert(node);
    for (const Variable& input : node->inputs) use(input);
  }
  for (const Variable& v : outputs) use(v);
  return result;
}

Variable symbol_for(const Variable& v, const Loc& loc) {
  return make_input(v.node()->outputs[v.output()], v.name(), loc);
}

/// Makes what the rule uses as it is symbols, in front of those of the value and its gradient.
void take_symbols(Graph& rule, const std::vector<Variable>& captures, const Loc& loc) {
  VariableMap<Variable> replace;
  std::vector<Variable> symbols;
  for (const Variable& v : captures) {
    symbols.push_back(symbol_for(v, loc));
    replace.emplace(v, symbols.back());
  }
  Graph wanted;
  wanted.outputs = defined_of(rule.outputs);
  const Graph done = rebuild(wanted, {}, replace);
  std::size_t next = 0;
  for (Variable& v : rule.outputs) {
    if (v.defined()) v = done.outputs[next++];
  }
  rule.inputs.insert(rule.inputs.end() - 2, symbols.begin(), symbols.end());
}

}  // namespace

Variable custom_gradient(const std::vector<Variable>& inputs, const Variable& value,
                         const GradientRule& rule, Loc line) {
  const Loc loc = line.named("custom_gradient");
  std::vector<Variable> operands{value};
  operands.insert(operands.end(), inputs.begin(), inputs.end());
  for (const Variable& v : operands) {
    if (!v.defined()) graph_error("custom_gradient", "the value or an input is empty", loc);
  }
  if (!is_float(value.dtype())) {
    graph_error("custom_gradient",
                fmt::format("only floats have gradients: got {}", variable_title(value, loc)), loc);
  }
  auto graph = std::make_shared<Graph>();
  for (const Variable& v : inputs) graph->inputs.push_back(symbol_for(v, loc));
  const std::vector<Variable> symbols = graph->inputs;
  graph->inputs.push_back(symbol_for(value, loc));
  graph->inputs.push_back(symbol_for(value, loc));
  const std::vector<Variable> gradients =
      rule(symbols, graph->inputs[inputs.size()], graph->inputs.back());
  if (gradients.size() != inputs.size()) {
    graph_error("custom_gradient",
                fmt::format("the rule must give one gradient for each input: got {} for {}",
                            gradients.size(), inputs.size()),
                loc);
  }
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    graph->outputs.push_back(checked(gradients[k], inputs[k], k + 1, loc));
  }
  const std::vector<Variable> captures = captures_of(*graph);
  take_symbols(*graph, captures, loc);
  operands.insert(operands.end(), captures.begin(), captures.end());
  const Variable marked = apply("custom_gradient", std::move(operands), {}, loc);
  // The node was made just now and nobody else holds it.
  const_cast<Node*>(marked.node())->graph = std::move(graph);
  return marked;
}

Graph without_rules(const Graph& graph) {
  return rebuild(graph, [](const Node& node) -> std::vector<Variable> {
    if (node.op->name != "custom_gradient") return {};
    const std::size_t count = 1 + node.graph->outputs.size();
    if (node.inputs.size() == count) return {};
    return {with_inputs(node, {node.inputs.begin(), node.inputs.begin() + count})};
  });
}

void register_custom_gradient_ops(OpRegistry& registry) {
  registry.add({.name = "custom_gradient",
                .doc = "The first operand; its gradients with respect to the others come from a "
                       "rule of the user, for whose sake alone the last ones are there.",
                .form = OpForm::loops,
                .infer = [](Infer& infer) { infer.out(infer.dtype(0), infer.shape(0)); },
                .expand = [](const Node& node) { return std::vector<Variable>{node.inputs[0]}; },
                .grad = follow});
}

}  // namespace croton
