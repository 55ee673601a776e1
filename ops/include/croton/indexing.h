#pragma once

#include "croton/export.h"
#include "croton/variable.h"

// Reading and writing parts of a value; x(...) itself is a method of Variable. An index out of
// bounds is a GraphError where it is known when the graph is built, else a CallError.
namespace croton {

/// Entries of x at integer indices, along an axis: the axes of `indices` take its place; a scalar
/// drops it. Negative indices count from the end.
CROTON_API Variable take(const Operand& x, const Operand& indices, int axis = 0);

/// For each place of `indices` the entry of x along the axis that it names; the other axes go
/// along. Both have the same number of axes; a size known to be 1 broadcasts.
CROTON_API Variable take_along_axis(const Operand& x, const Operand& indices, int axis = -1);

/// x with a part replaced, where `part` is the result of indexing it: set_subtensor(x(0), v). The
/// value broadcasts to the part's shape, and its dtype must not lose anything in x's. Where an
/// index occurs twice the last one wins.
CROTON_API Variable set_subtensor(const Operand& part, const Operand& value);

/// The same, adding the value; what is given for an index that occurs twice is added twice.
CROTON_API Variable inc_subtensor(const Operand& part, const Operand& value);

}  // namespace croton
