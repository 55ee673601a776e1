// Patterns that the rules of the stage `stabilize` share.
#pragma once

#include <optional>
#include <string_view>

#include "compiler/graph/node.h"

namespace croton {

/// sum(exp(x)) over one axis.
struct RowSum {
  Variable x;
  int axis;
  bool keepdims;
};
std::optional<RowSum> exponential_row_sum(const Variable& v);

/// x of 1 + x; undefined when v is none.
Variable one_plus(const Variable& v);
/// x of 1 - x; undefined when v is none.
Variable one_minus(const Variable& v);

Variable sigmoid_of(const Variable& x);
Variable negative(const Variable& x);
/// softmax or log_softmax along an axis.
Variable make_row_op(std::string_view op, const Variable& x, int axis);

}  // namespace croton
