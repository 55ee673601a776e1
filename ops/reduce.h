// What the reduction ops share. Each has the attributes "axes" (sorted, not negative) and
// "keepdims" (0 or 1).
#pragma once

#include <array>

#include "compiler/graph/op.h"

namespace croton {

/// The type rule: reduced axes vanish or get size 1. With `needs_elements` they must not have
/// length 0.
void infer_reduction(Infer& infer, DType dtype, bool needs_elements);

/// A result of `node` with the reduced axes back, as size 1.
Variable expand_reduced(const Node& node, const Variable& y);

/// Shapes of a reduction, for reference evaluators.
struct ReducedShape {
  Shape result;
  Shape kept;
  std::array<bool, kMaxRank> axis{};  ///< which are reduced

  /// The row-major number of the result that an element of the operand goes to.
  std::int64_t target(const Shape& at) const;
};
ReducedShape reduced_shape(const Attrs& attrs, const Shape& shape);

/// The gradient rule of prod, and the op that it needs.
std::vector<Variable> prod_gradient(const GradArgs& args);
void register_prod_others_op(OpRegistry& registry);

}  // namespace croton
