// Reading and writing at integer indices.
#pragma once

#include <string_view>
#include <vector>

#include "compiler/graph/op.h"
#include "croton/indexing.h"

namespace croton {

/// Entries at `indices`, one array an axis of `axes` (sorted), which broadcast together; their axes
/// stand where the indexed axes were if those are adjacent, else in front. `below` says how many
/// of the nodes under x belong to the same x(...).
Variable take_entries(const Variable& x, const std::vector<int>& axes,
                      std::vector<Variable> indices, int below, const Loc& loc);

/// The op that writes so, at a vector of indices or, along an axis, with an index for each value.
std::string_view op_name(WriteMode mode, bool along);

/// x with the value (of the shape of that `take`) written there.
Variable write_entries(const Node& take, const Variable& x, const Variable& value, WriteMode mode,
                       const Loc& loc);

/// What `part` was indexed from, with the value in its place; GraphError in the op's name where the
/// value does not fit.
Variable written_part(std::string_view op, const Operand& part, const Operand& value,
                      WriteMode mode);

/// An index operand: integers, GraphError in the op's name otherwise.
Variable index_variable(std::string_view op, const Operand& operand);

/// An index that counts from the end as one from the front.
kernel::Expr wrapped_index(kernel::Expr index, kernel::Expr size);
/// Whether 0 <= index < size.
kernel::Expr in_bounds(kernel::Expr index, kernel::Expr size);

}  // namespace croton
