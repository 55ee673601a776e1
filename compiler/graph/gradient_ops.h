// Ops that stand for their first operand and are known to differentiation; compiler/grad/ has them.
#pragma once

#include "compiler/graph/graph.h"
#include "compiler/graph/op.h"

namespace croton {

/// custom_gradient: operands value, inputs, and what else the rule uses. The node's graph is the
/// rule; its inputs are symbols for the operands behind the value, the value and its gradient, its
/// outputs the gradients of the inputs (empty where none flows). No other symbols are in it.
void register_custom_gradient_ops(OpRegistry& registry);
/// A graph of which no gradients will be taken, without what only rules use.
Graph without_rules(const Graph& graph);

/// remat: operands value, inputs; the value is computed again where its gradient is. delay:
/// operands value, others; the value, for what is computed after the others, and apart from what is
/// computed from the value itself.
void register_remat_ops(OpRegistry& registry);

}  // namespace croton
