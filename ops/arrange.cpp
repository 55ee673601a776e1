// Orders of entries and of axes: functions that are made of slices, joins and orders of axes.
#include <fmt/format.h>

#include <algorithm>

#include "croton/tensor.h"
#include "ops/axes.h"
#include "ops/build.h"
#include "ops/size_arithmetic.h"
#include "ops/sizes.h"
#include "ops/slice.h"

namespace croton {
namespace {

Variable flipped(const Variable& x, const std::vector<int>& axes, const Loc& loc) {
  if (axes.empty()) return x;
  SliceBuilder builder;
  for (int k = 0; k < x.ndim(); ++k) {
    const bool flip = std::find(axes.begin(), axes.end(), k) != axes.end();
    flip ? builder.add_range(Slice(none, none, -1), loc) : builder.add_full();
  }
  return apply("slice", {x}, builder.attrs(), loc);
}

/// x with the entries along an axis moved on by `shift`, those at the end coming to the front.
Variable rolled(const Variable& x, int axis, const Size& shift, const Loc& loc) {
  const Size length = sizes_of(x, loc)[axis];
  const Size back = size_mod(shift, length, loc);
  if (back.number() && *back.number() == 0) return x;
  const Size cut = size_sub(length, back, loc);
  const Variable parts[] = {slice_axis(x, axis, Slice(size_bound(cut), none), loc),
                            slice_axis(x, axis, Slice(0, size_bound(cut)), loc)};
  const Variable y =
      apply("concatenate", {parts[0], parts[1]}, {{"axis", std::int64_t{axis}}}, loc);
  // The two parts together are as long as the whole.
  return broadcast_like(y, x, loc);
}

/// At least `rank` axes: new ones go where `order` says, given the axes that there are.
Variable at_least(std::string_view op, const Operand& operand,
                  const std::vector<std::vector<int>>& order) {
  const Variable x = operand.variable();
  const auto rank = static_cast<std::size_t>(x.ndim());
  return rank < order.size() ? dimshuffle(x, order[rank], operand.loc().named(op)) : x;
}

Variable turned(const Variable& x, int k, int first, int second, const Loc& loc) {
  if (k == 0) return x;
  if (k == 2) return flipped(x, {first, second}, loc);
  std::vector<int> order;
  for (int axis = 0; axis < x.ndim(); ++axis) order.push_back(axis);
  std::swap(order[first], order[second]);
  if (k == 1) return dimshuffle(flipped(x, {second}, loc), order, loc);
  return flipped(dimshuffle(x, order, loc), {second}, loc);
}

std::vector<int> new_axes(int from, int count) {
  std::vector<int> axes;
  for (int k = 0; k < count; ++k) axes.push_back(from + k);
  return axes;
}

}  // namespace

Variable flip(const Operand& operand, const Axis& axis) {
  const Variable x = operand.variable();
  const Loc loc = operand.loc().named("flip");
  return flipped(x, checked_axes("flip", axis, x.ndim(), loc), loc);
}

Variable fliplr(const Operand& x) {
  if (x.variable().ndim() < 2) graph_error("fliplr", "at least two axes are expected", x.loc());
  return flip(x.named("fliplr"), 1);
}

Variable flipud(const Operand& x) { return flip(x.named("flipud"), 0); }

Variable rot90(const Operand& operand, int k, int first, int second) {
  const Variable x = operand.variable();
  const Loc loc = operand.loc().named("rot90");
  const int a = checked_axis("rot90", first, x.ndim(), loc);
  const int b = checked_axis("rot90", second, x.ndim(), loc);
  if (a == b) graph_error("rot90", "two different axes are expected", loc);
  return turned(x, ((k % 4) + 4) % 4, a, b, loc);
}

Variable roll(const Operand& operand, const Sizes& shifts, const Axis& axis) {
  Variable x = operand.variable();
  const Loc loc = operand.loc().named("roll");
  const std::vector<Size> by = whole_numbers("roll", shifts, loc);
  if (!axis.axes) {
    if (by.size() != 1) graph_error("roll", "several shifts need as many axes", loc);
    const Variable flat = merge_axes(x, 0, x.ndim(), loc);
    const std::vector<Size> sizes = sizes_of(x, loc);
    const Variable y = rolled(flat, 0, by[0], loc);
    return x.ndim() == 1 ? y : reshape_sizes(y, sizes, loc);
  }
  const std::size_t count = std::max(by.size(), axis.axes->size());
  if ((by.size() != count && by.size() != 1) ||
      (axis.axes->size() != count && axis.axes->size() != 1)) {
    graph_error("roll", fmt::format("{} shifts for {} axes", by.size(), axis.axes->size()), loc);
  }
  for (std::size_t k = 0; k < count; ++k) {
    const int along = (*axis.axes)[axis.axes->size() == 1 ? 0 : k];
    x = rolled(x, checked_axis("roll", along, x.ndim(), loc), by[by.size() == 1 ? 0 : k], loc);
  }
  return x;
}

Variable moveaxis(const Operand& operand, const std::vector<int>& source,
                  const std::vector<int>& destination) {
  const Variable x = operand.variable();
  const Loc loc = operand.loc().named("moveaxis");
  if (source.size() != destination.size()) {
    graph_error("moveaxis",
                fmt::format("{} axes to move to {} places", source.size(), destination.size()),
                loc);
  }
  checked_axes("moveaxis", Axis(source), x.ndim(), loc);
  checked_axes("moveaxis", Axis(destination), x.ndim(), loc);
  std::vector<int> order(static_cast<std::size_t>(x.ndim()), -1);
  std::vector<bool> moved(order.size());
  for (std::size_t k = 0; k < source.size(); ++k) {
    const int from = checked_axis("moveaxis", source[k], x.ndim(), loc);
    order[checked_axis("moveaxis", destination[k], x.ndim(), loc)] = from;
    moved[from] = true;
  }
  int next = 0;
  for (int& place : order) {
    if (place >= 0) continue;
    while (moved[next]) ++next;
    place = next++;
  }
  return dimshuffle(x, order, loc);
}

Variable atleast_1d(const Operand& x) { return at_least("atleast_1d", x, {{-1}}); }
Variable atleast_2d(const Operand& x) { return at_least("atleast_2d", x, {{-1, -1}, {-1, 0}}); }
Variable atleast_3d(const Operand& x) {
  return at_least("atleast_3d", x, {{-1, -1, -1}, {-1, 0, -1}, {0, 1, -1}});
}

Variable shape_padleft(const Operand& operand, int count) {
  const Variable x = operand.variable();
  const Loc loc = operand.loc().named("shape_padleft");
  if (count < 0) graph_error("shape_padleft", "a count must not be negative", loc);
  return insert_axes(x, new_axes(0, count), loc);
}

Variable shape_padright(const Operand& operand, int count) {
  const Variable x = operand.variable();
  const Loc loc = operand.loc().named("shape_padright");
  if (count < 0) graph_error("shape_padright", "a count must not be negative", loc);
  return insert_axes(x, new_axes(x.ndim(), count), loc);
}

Variable shape_padaxis(const Operand& x, int axis) {
  return expand_dims(x.named("shape_padaxis"), axis);
}

Variable flatten(const Operand& operand, int ndim) {
  const Variable x = operand.variable();
  const Loc loc = operand.loc().named("flatten");
  if (ndim < 1 || ndim > std::max(x.ndim(), 1)) {
    graph_error("flatten", fmt::format("{} axes of {} cannot be left", ndim, x.ndim()), loc);
  }
  return merge_axes(x, ndim - 1, x.ndim() - ndim + 1, loc);
}

std::vector<Variable> broadcast_arrays(const Parts& parts) {
  std::vector<Variable> values;
  if (parts.list.empty()) return values;
  const Loc loc = parts.list[0].loc().named("broadcast_arrays");
  std::size_t rank = 0;
  for (const Operand& part : parts.list) {
    values.push_back(part.variable());
    rank = std::max(rank, static_cast<std::size_t>(values.back().ndim()));
  }
  // A size that is not known to be 1 decides, a known one first.
  std::vector<Size> sizes(rank, Size(1));
  for (const bool known : {false, true}) {
    for (const Variable& value : values) {
      const std::vector<Size> own = sizes_of(value, loc);
      for (std::size_t k = 0; k < own.size(); ++k) {
        const bool number = own[k].number() != nullptr;
        if (number != known || (number && *own[k].number() == 1)) continue;
        sizes[rank - own.size() + k] = own[k];
      }
    }
  }
  for (Variable& value : values) value = broadcast_sizes(value, sizes, loc);
  return values;
}

}  // namespace croton
