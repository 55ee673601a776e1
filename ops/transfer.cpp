// Values on another context.
#include <fmt/format.h>

#include "croton/tensor.h"
#include "ops/build.h"
#include "ops/registry.h"

namespace croton {
namespace {

void infer_transfer(Infer& infer) {
  infer.expect_inputs(1);
  infer.out(infer.dtype(0), infer.shape(0));
}

/// Back to where the operand came from; placement decides where that was left open.
std::vector<Variable> transfer_grad(const GradArgs& args) {
  const std::string& home = args.in(0).context();
  return {home.empty() ? args.g() : transfer(Operand(args.g(), args.node.loc), home)};
}

}  // namespace

Variable transfer(const Operand& operand, std::string_view context) {
  const Variable x = operand.variable();
  const Loc& loc = operand.loc();
  if (context.empty()) {
    graph_error("transfer", "the name of a context is expected: got an empty one", loc);
  }
  if (x.context() == context) return x;
  const Variable moved = apply("transfer", {x}, {{"context", std::string(context)}}, loc);
  // The node was made just now and nobody else holds it: its context is its target, whatever
  // ContextScope is in force.
  const_cast<Node*>(moved.node())->context = intern(context);
  return moved;
}

void register_transfer_ops(OpRegistry& registry) {
  registry.add({.name = "transfer",
                .doc = "The value on another context.",
                .form = OpForm::move,
                .infer = infer_transfer,
                .grad = transfer_grad,
                .reference = [](const Node&, std::span<const Array> inputs) {
                  return std::vector<Array>{inputs[0]};
                }});
}

}  // namespace croton
