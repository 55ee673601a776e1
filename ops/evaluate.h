// The reference evaluator: values of nodes by the references of their ops, in plain loops over host
// arrays and in the widest type of each dtype's class (double, int64, uint64, bool).
#pragma once

#include <span>
#include <vector>

#include "compiler/graph/graph.h"

namespace croton {

/// The shape to which the operands of an elementwise node broadcast.
Shape broadcast_shape(std::span<const Array> inputs);

/// Whether `evaluate` can give the value of the node: not of random ops, inputs and shared values.
bool can_evaluate(const Node& node);

/// The values of a node's outputs. Throws CallError where the op objects to the values, and
/// InternalError when the op has no reference.
std::vector<Array> evaluate(const Node& node, std::span<const Array> inputs);

/// The values of `outputs`, each node between them and `known` once; `known` holds what inputs and
/// shared values (and anything else) stand for.
std::vector<Array> evaluate(std::span<const Variable> outputs, const VariableMap<Array>& known);

}  // namespace croton
