#include "croton/remat.h"

#include <unordered_set>

#include "compiler/grad/reverse.h"
#include "compiler/graph/gradient_ops.h"
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

/// The value once more, from its inputs as they are after its gradient came; and then the gradients
/// of that.
std::vector<Variable> remat_gradient(const GradArgs& args) {
  const Loc loc = place_of(args.node);
  const std::size_t count = args.node.inputs.size();
  VariableMap<Variable> later;
  std::vector<Variable> wrt;
  for (std::size_t k = 1; k < count; ++k) {
    wrt.push_back(apply("delay", {args.node.inputs[k], args.g()}, {}, loc));
    later.emplace(args.node.inputs[k], wrt.back());
  }
  Graph graph;
  graph.outputs = {args.node.inputs[0]};
  const Variable again = rebuild(graph, {}, later).outputs[0];
  ReverseMode reverse({});
  reverse.start(again, args.g());
  reverse.run(wrt);
  std::vector<Variable> result(count);
  for (std::size_t k = 1; k < count; ++k) result[k] = reverse.of(wrt[k - 1]);
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
