#include "ops/build.h"

#include <fmt/format.h>

#include <algorithm>

#include "croton/error.h"
#include "ops/sizes.h"

namespace croton {

void graph_error(std::string_view op, const std::string& message, const Loc& loc) {
  throw GraphError(fmt::format("[{}] {}; at {}", title_of(loc, op), message, to_text(loc)));
}

Variable cast_to(const Variable& x, DType dtype, const Loc& loc) {
  if (x.dtype() == dtype) return x;
  return apply("cast", {x}, {{"dtype", static_cast<std::int64_t>(dtype)}}, loc);
}

Variable sum_axes(const Variable& x, std::vector<int> axes, bool keepdims, const Loc& loc) {
  if (axes.empty()) return x;
  std::sort(axes.begin(), axes.end());
  const DType dtype = x.dtype();
  const Variable wide = is_narrow(dtype) ? cast_to(x, DType::float32, loc) : x;
  const std::vector<std::int64_t> list(axes.begin(), axes.end());
  return cast_to(apply("sum", {wide}, {{"axes", list}, {"keepdims", std::int64_t{keepdims}}}, loc),
                 dtype, loc);
}

Variable sum_like(const Variable& g, const Variable& like, const Loc& loc) {
  const int extra = g.ndim() - like.ndim();
  std::vector<int> added;
  std::vector<int> stretched;
  for (int axis = 0; axis < extra; ++axis) added.push_back(axis);
  for (int axis = 0; axis < like.ndim(); ++axis) {
    if (like.static_shape()[axis] == 1 && g.static_shape()[axis + extra] != 1) {
      stretched.push_back(axis);
    }
  }
  if (stretched.empty()) return sum_axes(g, added, false, loc);
  // One sum over all of them; the axes that stay with size 1 come back afterwards.
  std::vector<int> axes = added;
  for (int axis : stretched) axes.push_back(axis + extra);
  return insert_axes(sum_axes(g, axes, false, loc), stretched, loc);
}

Variable dimshuffle(const Variable& x, const std::vector<int>& order, const Loc& loc) {
  bool same = static_cast<int>(order.size()) == x.ndim();
  for (std::size_t i = 0; i < order.size(); ++i) same &= order[i] == static_cast<int>(i);
  if (same) return x;
  const std::vector<std::int64_t> list(order.begin(), order.end());
  return apply("dimshuffle", {x}, {{"order", list}}, loc);
}

Variable insert_axes(const Variable& x, const std::vector<int>& axes, const Loc& loc) {
  std::vector<int> order;
  int next = 0;
  const int rank = x.ndim() + static_cast<int>(axes.size());
  for (int axis = 0; axis < rank; ++axis) {
    const bool fresh = std::find(axes.begin(), axes.end(), axis) != axes.end();
    order.push_back(fresh ? -1 : next++);
  }
  return dimshuffle(x, order, loc);
}

Variable broadcast_like(const Variable& x, const Variable& like, const Loc& loc) {
  return broadcast_sizes(x, sizes_of(like, loc), loc);
}

Variable scalar_like(const Variable& x, double value, const Loc& loc) {
  // The literal is made in the dtype's own class, so that it is weak nowhere.
  const DType dtype = x.dtype();
  if (is_float(dtype)) return make_scalar(dtype, value, loc);
  if (is_bool(dtype)) return make_scalar(dtype, value != 0, loc);
  return make_scalar(dtype, static_cast<std::int64_t>(value), loc);
}

Variable full_like(const Variable& x, double value, const Loc& loc) {
  return broadcast_like(scalar_like(x, value, loc), x, loc);
}

Variable zeros_like(const Variable& x, const Loc& loc) { return full_like(x, 0, loc); }
Variable ones_like(const Variable& x, const Loc& loc) { return full_like(x, 1, loc); }

Variable size_of_axis(const Variable& x, int axis, const Loc& loc) {
  const std::int64_t size = x.static_shape()[axis];
  if (size != kAnyDim) return make_scalar(DType::int64, size, loc);
  return apply("size_of", {x}, {{"axis", std::int64_t{axis}}}, loc);
}

Variable count_elements(const Variable& x, const std::vector<int>& axes, DType dtype,
                        const Loc& loc) {
  std::int64_t known = 1;
  Variable count;
  for (int axis : axes) {
    if (x.static_shape()[axis] != kAnyDim) {
      known *= x.static_shape()[axis];
      continue;
    }
    const Variable size = size_of_axis(x, axis, loc);
    count = count.defined() ? apply("mul", {count, size}, {}, loc) : size;
  }
  const Variable number = make_scalar(DType::int64, known, loc);
  if (!count.defined()) {
    return is_float(dtype) ? make_scalar(dtype, static_cast<double>(known), loc)
                           : make_scalar(dtype, known, loc);
  }
  if (known != 1) count = apply("mul", {count, number}, {}, loc);
  return cast_to(count, dtype, loc);
}

Variable reshape_sizes(const Variable& x, std::span<const Size> sizes, const Loc& loc) {
  SizeList list = size_list("reshape", sizes, loc);
  std::vector<Variable> inputs{x};
  inputs.insert(inputs.end(), list.symbols.begin(), list.symbols.end());
  return apply("reshape", std::move(inputs), {{"sizes", std::move(list.numbers)}}, loc);
}

Variable merge_axes(const Variable& x, int first, int count, const Loc& loc) {
  if (count == 1) return x;
  if (count == 0) return insert_axes(x, {first}, loc);
  std::vector<int> axes;
  for (int k = 0; k < count; ++k) axes.push_back(first + k);
  const Variable number = count_elements(x, axes, DType::int64, loc);
  const Array* known = constant_value(number);
  std::vector<Size> sizes = sizes_of(x, loc);
  sizes[first] = known ? Size(known->item<std::int64_t>()) : Size(number);
  sizes.erase(sizes.begin() + first + 1, sizes.begin() + first + count);
  return reshape_sizes(x, sizes, loc);
}

std::vector<Size> sizes_of(const Variable& x, const Loc& loc) {
  std::vector<Size> sizes;
  for (int axis = 0; axis < x.ndim(); ++axis) {
    const std::int64_t size = x.static_shape()[axis];
    if (size == kAnyDim) {
      sizes.emplace_back(size_of_axis(x, axis, loc));
    } else {
      sizes.emplace_back(size);
    }
  }
  return sizes;
}

}  // namespace croton
