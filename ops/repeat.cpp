// Copies along axes, and parts of an axis.
#include <fmt/format.h>

#include <algorithm>

#include "croton/cumulative.h"
#include "croton/math.h"
#include "croton/reduce.h"
#include "croton/sort.h"
#include "croton/tensor.h"
#include "ops/axes.h"
#include "ops/build.h"
#include "ops/built_at.h"
#include "ops/checked_size.h"
#include "ops/size_arithmetic.h"
#include "ops/sizes.h"
#include "ops/take.h"

namespace croton {
namespace {

constexpr std::string_view kCount = "a count";

/// Copies along each axis: (.., n, ..) -> (.., count, n, ..) or, inside, (.., n, count, ..), then
/// joined.
Variable copied(const Variable& x, const std::vector<Size>& counts, bool inside, const Loc& loc) {
  std::vector<int> fresh;
  std::vector<Size> wide;
  std::vector<Size> sizes;
  const std::vector<Size> own = sizes_of(x, loc);
  for (int k = 0; k < x.ndim(); ++k) {
    sizes.push_back(size_mul(own[k], counts[k], loc));
    const bool once = counts[k].number() && *counts[k].number() == 1;
    if (!once && !inside) {
      fresh.push_back(static_cast<int>(wide.size()));
      wide.push_back(counts[k]);
    }
    wide.push_back(own[k]);
    if (!once && inside) {
      fresh.push_back(static_cast<int>(wide.size()));
      wide.push_back(counts[k]);
    }
  }
  if (fresh.empty()) return x;
  return reshape_sizes(broadcast_sizes(insert_axes(x, fresh, loc), wide, loc), sizes, loc);
}

/// Entry k `counts[k]` times, of counts that are known when the graph is built.
Variable repeated_each(const Variable& x, int axis, const Array& counts, const Loc& loc) {
  const std::int64_t length = x.static_shape()[axis];
  if (length != kAnyDim && length != counts.size()) {
    graph_error("repeat",
                fmt::format("{} counts for axis {} of size {}", counts.size(), axis, length), loc);
  }
  std::vector<std::int64_t> places;
  std::int64_t place = 0;
  for (const std::int64_t count : counts.astype(DType::int64).to_vector<std::int64_t>()) {
    checked_size("repeat", kCount, Size(count), loc);
    places.insert(places.end(), static_cast<std::size_t>(count), place);
    ++place;
  }
  Variable source = x;
  if (length == kAnyDim) {
    Shape sizes = x.static_shape();
    sizes[axis] = counts.size();
    source = specify_shape(Operand(x, loc), sizes);
  }
  const Variable index = make_constant(Array::from<std::int64_t>(places, {places.size()}), loc);
  return take_entries(source, {axis}, {index}, 0, loc);
}

/// The same of counts that are known in the call only.
Variable repeated_as_told(const Variable& x, int axis, const Variable& given, const Loc& loc) {
  const Variable counts = cast_to(given, DType::int64, loc);
  std::vector<Size> same = sizes_of(x, loc);
  same[axis] = sizes_of(counts, loc)[0];
  const Variable ends = cumsum(Operand(counts, loc), 0);
  const Variable none = make_constant(Array::zeros({1}, DType::int64), loc);
  const Variable least = built_at(loc, [&] {
    return min(concatenate(Parts({counts, none}, loc), 0));
  });
  const Size checked = checked_size("repeat", kCount, Size(least), loc);
  const Size total = size_add(checked, Size(sum_axes(counts, {0}, false, loc)), loc);
  const Variable entry = searchsorted(Operand(ends, loc), positions(total, loc), Side::right);
  return take_entries(broadcast_sizes(x, same, loc), {axis}, {entry}, 0, loc);
}

/// Parts one after the other; together they must be as long as the axis.
std::vector<Variable> parts_of(std::string_view op, const Variable& x, int axis,
                               const std::vector<Size>& given, const Loc& loc) {
  std::vector<Size> sizes;
  Size total = std::int64_t{0};
  for (const Size& size : given) {
    sizes.push_back(checked_size(op, "a size", size, loc));
    total = size_add(total, sizes.back(), loc);
  }
  const std::int64_t length = x.static_shape()[axis];
  if (length != kAnyDim && total.number() && *total.number() != length) {
    graph_error(op,
                fmt::format("the sizes must sum to that of axis {}: got {}, expected {}", axis,
                            *total.number(), length),
                loc);
  }
  const Variable whole = with_size(x, axis, total, loc);
  std::vector<Variable> parts;
  Size begin = std::int64_t{0};
  for (const Size& size : sizes) {
    parts.push_back(part_of_axis(whole, axis, begin, size, loc));
    begin = size_add(begin, size, loc);
  }
  return parts;
}

}  // namespace

Variable tile(const Operand& operand, const Sizes& counts) {
  Variable x = operand.variable();
  const Loc loc = operand.loc().named("tile");
  std::vector<Size> each;
  for (const Size& count : whole_numbers("tile", counts, loc)) {
    each.push_back(checked_size("tile", kCount, count, loc));
  }
  const int missing = static_cast<int>(each.size()) - x.ndim();
  if (missing > 0) x = shape_padleft(Operand(x, loc), missing);
  if (missing < 0) each.insert(each.begin(), static_cast<std::size_t>(-missing), Size(1));
  return copied(x, each, false, loc);
}

Variable tile_axis(const Operand& operand, const Size& times, int axis) {
  const Variable x = operand.variable();
  const Loc loc = operand.loc().named("tile");
  std::vector<Size> each(static_cast<std::size_t>(x.ndim()), Size(1));
  each[checked_axis("tile", axis, x.ndim(), loc)] = checked_size("tile", kCount, times, loc);
  return copied(x, each, false, loc);
}

Variable repeat(const Operand& operand, const Operand& counts, const Axis& axis) {
  Variable x = operand.variable();
  const Loc loc = operand.loc().named("repeat");
  int along = 0;
  if (!axis.axes) {
    x = merge_axes(x, 0, x.ndim(), loc);
  } else {
    if (axis.axes->size() != 1) graph_error("repeat", "one axis is expected", loc);
    along = checked_axis("repeat", (*axis.axes)[0], x.ndim(), loc);
  }
  const Variable given = counts.variable();
  if (!is_integer(given.dtype()) || given.ndim() > 1) {
    graph_error("repeat",
                "counts must be an integer, or a vector of one an entry: got " +
                    given.node()->outputs[given.output()].to_text(),
                loc);
  }
  if (given.ndim() == 0 || given.static_shape()[0] == 1) {
    std::vector<Size> each(static_cast<std::size_t>(x.ndim()), Size(1));
    each[along] = checked_size("repeat", kCount, dimshuffle(given, {}, loc), loc);
    return copied(x, each, true, loc);
  }
  if (const Array* known = constant_value(given)) return repeated_each(x, along, *known, loc);
  return repeated_as_told(x, along, given, loc);
}

std::vector<Variable> split(const Operand& operand, const Sizes& sizes, int axis) {
  const Variable x = operand.variable();
  const Loc loc = operand.loc().named("split");
  const int along = checked_axis("split", axis, x.ndim(), loc);
  return parts_of("split", x, along, whole_numbers("split", sizes, loc), loc);
}

std::vector<Variable> split_evenly(const Operand& operand, std::int64_t parts, int axis) {
  const Variable x = operand.variable();
  const Loc loc = operand.loc().named("split");
  const int along = checked_axis("split", axis, x.ndim(), loc);
  if (parts < 1) graph_error("split", fmt::format("{} parts; at least 1 is expected", parts), loc);
  const Size size = size_divide(sizes_of(x, loc)[along], Size(parts), loc);
  return parts_of("split", x, along, std::vector<Size>(static_cast<std::size_t>(parts), size), loc);
}

std::vector<Variable> array_split(const Operand& operand, std::int64_t parts, int axis) {
  const Variable x = operand.variable();
  const Loc loc = operand.loc().named("array_split");
  const int along = checked_axis("array_split", axis, x.ndim(), loc);
  if (parts < 1) {
    graph_error("array_split", fmt::format("{} parts; at least 1 is expected", parts), loc);
  }
  const Size length = sizes_of(x, loc)[along];
  std::vector<Variable> result;
  Size begin = std::int64_t{0};
  for (std::int64_t k = 0; k < parts; ++k) {
    // ceil((length - k) / parts): the first ones are longer by one.
    const Size size = size_divide(size_add(length, Size(parts - 1 - k), loc), Size(parts), loc);
    result.push_back(part_of_axis(x, along, begin, size, loc));
    begin = size_add(begin, size, loc);
  }
  return result;
}

}  // namespace croton
