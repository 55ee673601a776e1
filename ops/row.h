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
  const Variable wide = is_narrow(dtype) ? cast_to(x, DType::float32, node.loc) : x;
  const Loc loc = place_of(node);
  return {cast_to(rule(wide, axis_of(node), loc), dtype, loc)};
}

/// What the gradient of a row op is made from: its operand, its result and the gradient of that.
struct Slope {
  Variable x, y, g;
  int axis;
  const Loc& loc;
};

/// The gradient of a row op: `rule(slope)` works in float32 where the operand is narrower, and its
/// result is rounded once. The result of the op is then made again in float32; what that expands to
/// is shared.
template <class Rule>
std::vector<Variable> row_gradient(const GradArgs& args, Rule&& rule) {
  const Node& node = args.node;
  const Variable& x = args.in(0);
  const int axis = axis_of(node);
  if (!is_narrow(x.dtype())) return {rule(Slope{x, args.out(), args.g(), axis, node.loc})};
  const Variable wide = cast_to(x, DType::float32, node.loc);
  const Variable y = apply(*node.op, {wide}, node.attrs(), node.loc);
  const Variable g = cast_to(args.g(), DType::float32, node.loc);
  return {cast_to(rule(Slope{wide, y, g, axis, node.loc}), x.dtype(), node.loc)};
}

}  // namespace croton::row
