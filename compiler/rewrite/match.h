// What rules are written with: questions about values, and new nodes.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "compiler/graph/op.h"

namespace croton {

/// Operand `k` of the node that gives `v`.
inline const Variable& in(const Variable& v, int k = 0) { return v.node()->inputs[k]; }

/// A new node; rewrite() gives it place and context.
inline Variable make(std::string_view op, std::vector<Variable> inputs, Attrs attrs = {}) {
  return apply(op, std::move(inputs), std::move(attrs), Loc::current());
}

/// The value of every element, where that is known: of constants and what repeats them. Not for
/// integers beyond 2^53.
std::optional<double> splat(const Variable& v);
inline bool is_splat(const Variable& v, double value) {
  const std::optional<double> all = splat(v);
  return all && *all == value;
}

/// The operand of a binary node that stands beside one whose elements are all `value`; undefined
/// when there is none.
Variable beside(const Node& node, double value);

/// 0-d constants of v's dtype.
Variable scalar_of(const Variable& v, double value);

/// Whether an operand is a constant.
inline bool is_constant_node(const Variable& v) { return is_op(v, "constant"); }

/// Whether the values are the same node, or equal constants of one element.
bool same_value(const Variable& a, const Variable& b);

/// The axes of a reduction.
inline const std::vector<std::int64_t>& axes_of(const Node& node) {
  return node.attrs().integers("axes");
}
inline bool keeps_dims(const Node& node) { return node.attrs().integer("keepdims") != 0; }

}  // namespace croton
