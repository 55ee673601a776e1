// What the ops that work along one axis of a float operand share. Each has the attribute "axis",
// not negative.
#pragma once

#include <string_view>
#include <vector>

#include "compiler/graph/op.h"
#include "ops/build.h"

namespace croton::row {

inline int axis_of(const Node& node) { return static_cast<int>(node.attrs().integer("axis")); }

/// The attribute "axis", checked against the operand's rank; the operand must be a float.
int checked_axis(const Infer& infer);

/// The type rule of an op whose result is like its operand.
void infer_row(Infer& infer);

/// A node of `op` on x, made a float, with the axis counted from the front: GraphError when there
/// is no such axis.
Variable make_row(std::string_view op, const Operand& x, int axis, Attrs attrs);

/// The reduction `op` of x along one axis, which stays with size 1.
Variable reduce(std::string_view op, const Variable& x, int axis, const Loc& loc);

/// x without an axis of size 1.
Variable without_axis(const Variable& x, int axis, const Loc& loc);

/// The value of a row op from smaller ones: `rule(x, axis, loc)` works in float32 where the operand
/// is narrower, and its result is rounded once. The pass that puts it in gives the new nodes the
/// place of `node`.
template <class Rule>
std::vector<Variable> expanded(const Node& node, Rule&& rule) {
  const Variable& x = node.inputs[0];
  const DType dtype = x.dtype();
  const bool narrow = dtype == DType::float16 || dtype == DType::bfloat16;
  const Variable wide = narrow ? cast_to(x, DType::float32, node.loc) : x;
  const Loc loc = place_of(node);
  return {cast_to(rule(wide, axis_of(node), loc), dtype, loc)};
}

}  // namespace croton::row
