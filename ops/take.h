// Reading and writing at integer indices.
#pragma once

#include <vector>

#include "compiler/graph/op.h"

namespace croton {

/// Entries at `indices`, one array an axis of `axes` (sorted), which broadcast together; their axes
/// stand where the indexed axes were if those are adjacent, else in front. `below` says how many
/// of the nodes under x belong to the same x(...).
Variable take_entries(const Variable& x, const std::vector<int>& axes,
                      std::vector<Variable> indices, int below, const Loc& loc);

/// x with the value (of the shape of that `take`) put or added there.
Variable write_entries(const Node& take, const Variable& x, const Variable& value, bool add,
                       const Loc& loc);

/// An index that counts from the end as one from the front.
kernel::Expr wrapped_index(kernel::Expr index, kernel::Expr size);
/// Whether 0 <= index < size.
kernel::Expr in_bounds(kernel::Expr index, kernel::Expr size);

}  // namespace croton
