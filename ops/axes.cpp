#include "ops/axes.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "ops/build.h"

namespace croton {

int checked_axis(std::string_view op, std::int64_t axis, int rank, const Loc& loc) {
  if (axis < -rank || axis >= rank) {
    graph_error(op,
                rank == 0 ? fmt::format("axis {} of a scalar, which has none", axis)
                          : fmt::format("axis {} is out of range: expected {} to {} for an operand "
                                        "with {} axes",
                                        axis, -rank, rank - 1, rank),
                loc);
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

std::vector<int> checked_axes(std::string_view op, const Axis& axis, int rank, const Loc& loc) {
  std::vector<int> axes;
  if (!axis.axes) {
    axes.resize(static_cast<std::size_t>(rank));
    std::iota(axes.begin(), axes.end(), 0);
    return axes;
  }
  for (int a : *axis.axes) axes.push_back(checked_axis(op, a, rank, loc));
  std::sort(axes.begin(), axes.end());
  const auto twice = std::adjacent_find(axes.begin(), axes.end());
  if (twice != axes.end()) {
    graph_error(op, fmt::format("axis {} is given twice", *twice), loc);
  }
  return axes;
}

}  // namespace croton
