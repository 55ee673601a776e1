#pragma once

#include "compiler/graph/op.h"
#include "croton/indexing.h"
#include "ops/take.h"

namespace croton {

/// Entries of x where a mask over its first axes is true: the op "masked". GraphError in the name
/// of indexing where the mask has too many axes.
Variable masked_entries(const Variable& x, const Variable& mask, const Loc& loc);

/// The same as a read at integer indices, along the first axis of what the node `masked` selects
/// from with the axes of the mask as one.
Variable taken_masked(const Node& masked);

}  // namespace croton
