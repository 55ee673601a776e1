// Axes as users give them.
#pragma once

#include <string_view>
#include <vector>

#include "croton/variable.h"

namespace croton {

/// An axis in [0, rank); negative ones count from the end. GraphError in the op's name.
int checked_axis(std::string_view op, std::int64_t axis, int rank, const Loc& loc);
/// Sorted axes in [0, rank), all of them for none. GraphError in the op's name when one is out of
/// range or given twice.
std::vector<int> checked_axes(std::string_view op, const Axis& axis, int rank, const Loc& loc);

}  // namespace croton
