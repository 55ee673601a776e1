// Padding, in NumPy's modes. A constant border is a write into an array of that value; what mirrors
// or repeats is a read at computed places; the others are parts that are joined.
#include <fmt/format.h>

#include <algorithm>

#include "croton/math.h"
#include "croton/reduce.h"
#include "croton/sort.h"
#include "croton/tensor.h"
#include "ops/axes.h"
#include "ops/build.h"
#include "ops/checked_size.h"
#include "ops/size_arithmetic.h"
#include "ops/sizes.h"
#include "ops/slice.h"
#include "ops/take.h"

namespace croton {
namespace {

using Width = std::pair<Size, Size>;

bool is_zero(const Size& size) { return size.number() && *size.number() == 0; }

/// One pair an axis, from one pair for all or as many as there are axes.
template <class Pair>
std::vector<Pair> each_axis(std::string_view what, const std::vector<Pair>& given, int rank,
                            const Loc& loc) {
  if (static_cast<int>(given.size()) == rank) return given;
  if (given.size() != 1) {
    graph_error("pad", fmt::format("{} pairs of {} for {} axes", given.size(), what, rank), loc);
  }
  return std::vector<Pair>(static_cast<std::size_t>(rank), given[0]);
}

/// A scalar in x's dtype.
Variable border_value(const Operand& given, const Variable& x, const Loc& loc) {
  const Variable value = given.is_literal() ? make_scalar(x.dtype(), given.literal(), loc)
                                            : cast_to(given.variable(), x.dtype(), loc);
  if (value.ndim() != 0) graph_error("pad", "values must be scalars", loc);
  return value;
}

/// x put into an array of the value.
Variable padded_with(const Variable& x, const std::vector<Width>& widths, const Variable& value,
                     const Loc& loc) {
  const std::vector<Size> own = sizes_of(x, loc);
  std::vector<Size> sizes;
  SliceBuilder builder;
  for (int k = 0; k < x.ndim(); ++k) {
    const auto& [before, after] = widths[k];
    sizes.push_back(size_add(size_add(before, own[k], loc), after, loc));
    const Size end = size_add(before, own[k], loc);
    is_zero(before) && is_zero(after)
        ? builder.add_full()
        : builder.add_range(Slice(size_bound(before), size_bound(end)), loc);
  }
  std::vector<Variable> inputs{broadcast_sizes(value, sizes, loc), x};
  inputs.insert(inputs.end(), builder.symbols.begin(), builder.symbols.end());
  return apply("set_slice", std::move(inputs), builder.attrs(), loc);
}

Variable padded_constant(Variable x, const std::vector<Width>& widths, const PadOptions& options,
                         const Loc& loc) {
  if (options.values.size() == 1 && options.values[0].first.is_literal() &&
      options.values[0].second.is_literal() &&
      options.values[0].first.literal().real == options.values[0].second.literal().real) {
    return padded_with(x, widths, border_value(options.values[0].first, x, loc), loc);
  }
  const auto values = each_axis("values", options.values, x.ndim(), loc);
  for (int k = 0; k < x.ndim(); ++k) {
    std::vector<Width> one(static_cast<std::size_t>(x.ndim()), Width(0, 0));
    one[k].first = widths[k].first;
    x = padded_with(x, one, border_value(values[k].first, x, loc), loc);
    one[k] = Width(0, widths[k].second);
    x = padded_with(x, one, border_value(values[k].second, x, loc), loc);
  }
  return x;
}

/// The place in an axis of length n that a place from -before on shows.
Variable shown_place(const Variable& place, const Size& length, PadMode mode, const Loc& loc) {
  const auto op = [&](std::string_view name, const Variable& a, const Size& b) {
    return apply(name, {a, size_variable(b, loc)}, {}, loc);
  };
  const Size last = size_sub(length, Size(1), loc);
  if (mode == PadMode::edge) return op("minimum", op("maximum", place, Size(0)), last);
  if (mode == PadMode::wrap) return op("mod", place, length);
  // There and back again: the way back is as long, without the ends where they are not repeated.
  const bool twice = mode == PadMode::symmetric;
  const Size period = size_max(size_mul(twice ? length : last, Size(2), loc), Size(1), loc);
  const Variable phase = op("mod", place, period);
  const Variable back = apply(
      "sub", {size_variable(twice ? size_sub(period, Size(1), loc) : period, loc), phase}, {}, loc);
  return apply("minimum", {phase, back}, {}, loc);
}

Variable padded_by_place(const Variable& x, int axis, const Width& width, PadMode mode,
                         const Loc& loc) {
  const Size length = sizes_of(x, loc)[axis];
  const Size total = size_add(size_add(width.first, length, loc), width.second, loc);
  const Variable place =
      apply("sub", {positions(total, loc), size_variable(width.first, loc)}, {}, loc);
  return take_entries(x, {axis}, {shown_place(place, length, mode, loc)}, 0, loc);
}

/// From `end` (at the outside) to the edge of x, which it does not reach.
Variable ramp(const Variable& x, int axis, const Size& width, const Variable& end, bool left,
              const Loc& loc) {
  const bool whole = !is_float(x.dtype());
  const DType dtype = whole ? DType::float64 : x.dtype();
  // An entry has size 1, which broadcasts, whatever the length.
  SliceBuilder builder;
  for (int k = 0; k < x.ndim(); ++k) {
    k == axis ? builder.add_entry(left ? 0 : -1) : builder.add_full();
  }
  const Variable edge = cast_to(apply("slice", {x}, builder.attrs(), loc), dtype, loc);
  const Variable from = cast_to(end, dtype, loc);
  Variable step = positions(width, axis, x.ndim(), loc);
  if (!left) {
    step = apply("sub", {size_variable(size_sub(width, Size(1), loc), loc), step}, {}, loc);
  }
  const Variable rise =
      apply("true_divide",
            {apply("sub", {edge, from}, {}, loc), cast_to(size_variable(width, loc), dtype, loc)},
            {}, loc);
  const Variable y =
      apply("add", {apply("mul", {cast_to(step, dtype, loc), rise}, {}, loc), from}, {}, loc);
  return cast_to(whole ? apply("floor", {y}, {}, loc) : y, x.dtype(), loc);
}

/// The statistic of the entries next to one side, for a border of that width.
Variable statistic(const Variable& x, int axis, const Size& width, const std::optional<Size>& count,
                   bool left, PadMode mode, const Loc& loc) {
  const std::vector<Size> own = sizes_of(x, loc);
  Variable part = x;
  if (count) {
    const Size used = size_min(*count, own[axis], loc);
    part = part_of_axis(x, axis, left ? Size(0) : size_sub(own[axis], used, loc), used, loc);
  }
  const Operand operand(part, loc);
  Variable y;
  if (mode == PadMode::maximum) {
    y = max(operand, axis, {.keepdims = true});
  } else if (mode == PadMode::minimum) {
    y = min(operand, axis, {.keepdims = true});
  } else {
    const bool whole = !is_float(x.dtype());
    const Operand wide(whole ? cast_to(part, DType::float64, loc) : part, loc);
    y = mode == PadMode::median ? median(wide, axis, true) : mean(wide, axis, {.keepdims = true});
    y = cast_to(whole ? round(Operand(y, loc)) : y, x.dtype(), loc);
  }
  std::vector<Size> sizes = own;
  sizes[axis] = width;
  return broadcast_sizes(y, sizes, loc);
}

Variable padded_by_parts(const Variable& x, int axis, const Width& width, PadMode mode,
                         const PadOptions& options, const Loc& loc) {
  const auto side = [&](bool left) {
    const Size& size = left ? width.first : width.second;
    if (mode == PadMode::linear_ramp) {
      const auto values = each_axis("values", options.values, x.ndim(), loc)[axis];
      const Variable end = border_value(left ? values.first : values.second, x, loc);
      return ramp(x, axis, size, end, left, loc);
    }
    std::optional<Size> count;
    if (!options.stat_length.empty()) {
      const Width counts = each_axis("lengths", options.stat_length, x.ndim(), loc)[axis];
      count = checked_size("pad", "a stat_length", left ? counts.first : counts.second, loc, 1);
    }
    return statistic(x, axis, size, count, left, mode, loc);
  };
  std::vector<Variable> parts;
  if (!is_zero(width.first)) parts.push_back(side(true));
  parts.push_back(x);
  if (!is_zero(width.second)) parts.push_back(side(false));
  return apply("concatenate", std::move(parts), {{"axis", std::int64_t{axis}}}, loc);
}

}  // namespace

Variable pad(const Operand& operand, const PadWidths& given, PadMode mode,
             const PadOptions& options) {
  Variable x = operand.variable();
  const Loc loc = operand.loc().named("pad");
  if (x.ndim() == 0) return x;
  std::vector<Width> widths;
  for (const Width& width : each_axis("widths", given.pairs, x.ndim(), loc)) {
    widths.emplace_back(checked_size("pad", "a width", width.first, loc),
                        checked_size("pad", "a width", width.second, loc));
  }
  if (mode == PadMode::empty) return padded_constant(x, widths, {}, loc);
  if (mode == PadMode::constant) return padded_constant(x, widths, options, loc);
  const bool by_place = mode == PadMode::edge || mode == PadMode::wrap ||
                        mode == PadMode::reflect || mode == PadMode::symmetric;
  for (int k = 0; k < x.ndim(); ++k) {
    if (is_zero(widths[k].first) && is_zero(widths[k].second)) continue;
    if (x.static_shape()[k] == 0) {
      graph_error("pad", fmt::format("axis {} without entries has nothing to repeat", k), loc);
    }
    x = by_place ? padded_by_place(x, k, widths[k], mode, loc)
                 : padded_by_parts(x, k, widths[k], mode, options, loc);
  }
  return x;
}

}  // namespace croton
