#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "compiler/graph/node.h"

namespace croton {

/// x with these axes (sorted, not negative, at least one) as one, in the place of the first: for
/// ops along one axis that users may want over several.
Variable one_axis(const Variable& x, const std::vector<int>& axes, const Loc& loc);

/// x and the axis that an op runs along; x flattened where none is given. GraphError in the op's
/// name for several.
std::pair<Variable, int> along_one(std::string_view op, const Variable& x, const Axis& given,
                                   const Loc& loc);

}  // namespace croton
