#pragma once

#include <vector>

#include "compiler/graph/node.h"

namespace croton {

/// x with these axes (sorted, not negative, at least one) as one, in the place of the first: for
/// ops along one axis that users may want over several.
Variable one_axis(const Variable& x, const std::vector<int>& axes, const Loc& loc);

}  // namespace croton
