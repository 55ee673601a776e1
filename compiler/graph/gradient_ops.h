// Ops that stand for their first operand and are known to differentiation; compiler/grad/ has them.
#pragma once

#include "compiler/graph/op.h"

namespace croton {

/// custom_gradient: operands value, inputs. The node's graph is the rule; its inputs are symbols
/// for the inputs, the value and its gradient, its outputs the gradients of the inputs (empty where
/// none flows).
void register_custom_gradient_ops(OpRegistry& registry);

/// remat: operands value, inputs; the value is computed again where its gradient is. delay:
/// operands value, others; the value, for what is computed after the others, and apart from what is
/// computed from the value itself.
void register_remat_ops(OpRegistry& registry);

}  // namespace croton
