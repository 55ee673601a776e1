#include "croton/remat.h"

#include <unordered_set>

#include "compiler/grad/reverse.h"
#include "compiler/graph/gradient_ops.h"
#include "croton/error.h"
#include "ops/build.h"

namespace croton {
namespace {

/// The inputs, and the leaves besides them from which a value is made.
std::vector<Variable> sources(const Variable& value, const std::vector<Variable>& inputs) {
  std::vector<Variable> result = inputs;
  VariableSet seen(inputs.begin(), inputs.end());
  std::vector<Variable> todo{value};
  while (!todo.empty()) {
    const Variable v = todo.back();
    todo.pop_back();
    if (!seen.insert(v).second || is_op(v, "constant")) continue;
    if (v.node()->op->form == OpForm::leaf) result.push_back(v);
    for (const Variable& input : v.node()->inputs) todo.push_back(input);
  }
  return result;
}

/// Values between the operands and the value at which the walk back does not just go through.
std::vector<Variable> stops_inside(const Node& node, const ReverseMode& walk) {
  std::vector<Variable> result;
  VariableSet seen(node.inputs.begin() + 1, node.inputs.end());
  std::vector<Variable> todo{node.inputs[0]};
  while (!todo.empty()) {
    const Variable v = todo.back();
    todo.pop_back();
    if (!seen.insert(v).second) continue;
    if (walk.stops_at(v)) {
      result.push_back(v);
    } else {
      todo.insert(todo.end(), v.node()->inputs.begin(), v.node()->inputs.end());
    }
  }
  return result;
}

/// The value once more, from its inputs as they are after its gradient came; and then the gradients
/// of that. Values inside that the walk stops at count as inputs.
std::vector<Variable> remat_gradient(const GradArgs& args) {
  const Loc loc = place_of(args.node);
  internal_check(args.walk != nullptr, "remat needs the walk that it is part of");
  const std::uint64_t since = next_node_id();
  std::vector<Variable> from(args.node.inputs.begin() + 1, args.node.inputs.end());
  const std::size_t operands = from.size();
  for (const Variable& v : stops_inside(args.node, *args.walk)) from.push_back(v);
  VariableMap<Variable> later;
  std::vector<Variable> wrt;
  for (const Variable& v : from) {
    const auto [it, first] = later.emplace(v, Variable());
    if (!first) continue;
    it->second = apply("delay", {v, args.g()}, {}, loc);
    if (is_float(v.dtype()) && args.walk->passes(v)) wrt.push_back(it->second);
  }
  Graph graph;
  graph.outputs = {args.node.inputs[0]};
  const Variable again = rebuild(graph, {}, later).outputs[0];
  ReverseMode inner({});
  inner.start(again, args.g());
  inner.run(wrt);
  std::vector<Variable> result(args.node.inputs.size());
  VariableSet seen;
  for (std::size_t k = 0; k < from.size(); ++k) {
    if (!seen.insert(from[k]).second) continue;
    const Variable& copy = later.at(from[k]);
    if (const std::string* why = inner.undefined(copy)) args.walk->mark_undefined(from[k], *why);
    const Variable gradient = inner.of(copy);
    if (k < operands) {
      result[k + 1] = gradient;
    } else if (gradient.defined()) {
      relocate(gradient, since, loc);
      args.walk->add(from[k], gradient);
    }
  }
  return result;
}

std::vector<Variable> delay_gradient(const GradArgs& args) {
  std::vector<Variable> result(args.node.inputs.size());
  result[0] = args.g();
  return result;
}

void infer_first(Infer& infer) { infer.out(infer.dtype(0), infer.shape(0)); }

}  // namespace

Variable remat(const Variable& value, const std::vector<Variable>& inputs, Loc line) {
  const Loc loc = line.named("remat");
  if (!value.defined()) graph_error("remat", "the value is empty", loc);
  for (const Variable& v : inputs) {
    if (!v.defined()) graph_error("remat", "an input is empty", loc);
  }
  std::vector<Variable> operands = sources(value, inputs);
  operands.insert(operands.begin(), value);
  return apply("remat", std::move(operands), {}, loc);
}

void register_remat_ops(OpRegistry& registry) {
  registry.add({.name = "remat",
                .doc = "The first operand, which is computed again, from the others, for its "
                       "gradient.",
                .form = OpForm::loops,
                .infer = infer_first,
                .expand = [](const Node& node) { return std::vector<Variable>{node.inputs[0]}; },
                .grad = remat_gradient});
  registry.add({.name = "delay",
                .doc = "The first operand, for what is computed after the others and apart from "
                       "what is computed from the operand itself.",
                .form = OpForm::loops,
                .view = true,
                .infer = infer_first,
                .grad = delay_gradient,
                .reference = [](const Node&, std::span<const Array> inputs) {
                  return std::vector<Array>{inputs[0]};
                }});
}

}  // namespace croton
