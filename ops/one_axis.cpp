#include "ops/one_axis.h"

#include <fmt/format.h>

#include <algorithm>

#include "croton/tensor.h"
#include "ops/axes.h"
#include "ops/build.h"

namespace croton {

Variable one_axis(const Variable& x, const std::vector<int>& axes, const Loc& loc) {
  std::vector<int> order;
  for (int k = 0; k < x.ndim(); ++k) {
    if (std::find(axes.begin(), axes.end(), k) == axes.end()) order.push_back(k);
  }
  order.insert(order.begin() + axes[0], axes.begin(), axes.end());
  return merge_axes(dimshuffle(x, order, loc), axes[0], static_cast<int>(axes.size()), loc);
}

std::pair<Variable, int> along_one(std::string_view op, const Variable& x, const Axis& given,
                                   const Loc& loc) {
  const std::vector<int> axes = checked_axes(op, given, x.ndim(), loc);
  if (!given.axes) return {x.ndim() == 1 ? x : flatten({x, loc}), 0};
  if (axes.size() == 1) return {x, axes[0]};
  graph_error(op, fmt::format("one axis expected, or none for all: got {} axes", axes.size()), loc);
}

}  // namespace croton
