#include "ops/places.h"

#include <fmt/format.h>

#include "ops/build.h"
#include "ops/size_arithmetic.h"
#include "ops/slice.h"

namespace croton {

Variable cut_to(const Variable& x, const Variable& indices, int axis, const Loc& loc) {
  SliceBuilder builder;
  bool cut = false;
  const std::vector<Size> sizes = sizes_of(indices, loc);
  for (int k = 0; k < x.ndim(); ++k) {
    const std::int64_t own = x.static_shape()[k];
    if (k == axis || (own != kAnyDim && own == indices.static_shape()[k])) {
      builder.add_full();
    } else {
      builder.add_range(Slice(0, size_bound(sizes[k])), loc);
      cut = true;
    }
  }
  if (!cut) return x;
  std::vector<Variable> inputs{x};
  inputs.insert(inputs.end(), builder.symbols.begin(), builder.symbols.end());
  return apply("slice", std::move(inputs), builder.attrs(), loc);
}

std::vector<Variable> index_parts(std::string_view op, const Variable& indices, int most,
                                  const Loc& loc) {
  if (indices.ndim() == 0) graph_error(op, "indices need an axis for the places", loc);
  const int last = indices.ndim() - 1;
  const std::int64_t count = indices.static_shape()[last];
  if (count == kAnyDim) {
    graph_error(op,
                "the size of the last axis of the indices must be known when the graph is "
                "built: it says how many axes they index; use specify_shape",
                loc);
  }
  if (count < 1 || count > most) {
    graph_error(op, fmt::format("{} indices for {} axes", count, most), loc);
  }
  std::vector<int> order;
  for (int k = 0; k < last; ++k) order.push_back(k);
  std::vector<Variable> parts;
  for (std::int64_t k = 0; k < count; ++k) {
    parts.push_back(dimshuffle(part_of_axis(indices, last, Size(k), Size(1), loc), order, loc));
  }
  return parts;
}

std::vector<int> first_axes(std::size_t count) {
  std::vector<int> axes;
  for (std::size_t k = 0; k < count; ++k) axes.push_back(static_cast<int>(k));
  return axes;
}

}  // namespace croton
