#include "ops/one_axis.h"

#include <algorithm>

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

}  // namespace croton
