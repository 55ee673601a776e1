// Arrays made of positions: the identity, triangles, steps between bounds, grids.
#include <fmt/format.h>

#include <algorithm>

#include "croton/math.h"
#include "croton/tensor.h"
#include "ops/axes.h"
#include "ops/build.h"
#include "ops/checked_size.h"
#include "ops/scalar.h"
#include "ops/size_arithmetic.h"
#include "ops/sizes.h"

namespace croton {
namespace {

Variable combined(std::string_view op, const Variable& a, const Variable& b, const Loc& loc) {
  return apply(op, {a, b}, {}, loc);
}

/// Whether column - row <= k, over `rank` axes of which the last two are rows and columns.
Variable at_or_below(const Size& rows, const Size& columns, const Operand& k, int rank,
                     const Loc& loc) {
  const Variable row = positions(rows, rank - 2, rank, loc);
  const Variable column = positions(columns, rank - 1, rank, loc);
  Variable end = row;
  if (!k.is_literal() || k.literal().real != 0) {
    end =
        combined("add", row, size_variable(whole_number("tri", Size(k.variable()), loc), loc), loc);
  }
  return combined("le", column, end, loc);
}

Variable without_triangle(std::string_view op, const Operand& operand, const Operand& k,
                          bool lower) {
  const Variable x = operand.variable();
  const Loc loc = operand.loc().named(op);
  if (x.ndim() < 2) {
    graph_error(op, fmt::format("at least two axes are expected: got {}", x.ndim()), loc);
  }
  const std::vector<Size> sizes = sizes_of(x, loc);
  const Operand last =
      lower ? k
            : Operand(size_variable(
                          size_sub(whole_number(op, Size(k.variable()), loc), Size(1), loc), loc),
                      loc);
  const Variable kept = at_or_below(sizes[x.ndim() - 2], sizes[x.ndim() - 1], last, x.ndim(), loc);
  const Variable zero = scalar_like(x, 0, loc);
  return lower ? where(Operand(kept, loc), x, zero) : where(Operand(kept, loc), zero, x);
}

struct Bounds {
  Variable first;
  Variable last;
  DType dtype;  ///< of the result
};

/// Bounds as floats of one dtype, in which the result is computed: it is rounded once, in the end.
/// Numbers are float64 as in NumPy; of arrays the promoted dtype, but no narrow one.
Bounds float_bounds(std::string_view op, const Operand& start, const Operand& stop,
                    std::optional<DType> dtype, const Loc& loc) {
  DType work = DType::float64;
  DType result = build_settings().float_x;
  if (!start.is_literal() || !stop.is_literal()) {
    const bool numpy = build_settings().numpy_policy;
    const Operand operands[] = {start, stop};
    const std::vector<Variable> given = resolve(op, operands);
    result = scalar::float_result(promote(given[0].dtype(), given[1].dtype(), numpy));
    work = is_narrow(result) ? DType::float32 : result;
    if (dtype) work = promote(work, is_float(*dtype) ? *dtype : DType::float64, numpy);
  }
  const auto bound = [&](const Operand& given) {
    if (given.is_literal()) return make_scalar(work, given.literal().real, loc);
    return cast_to(given.variable(), work, loc);
  };
  return {bound(start), bound(stop), dtype.value_or(result)};
}

/// log10(x), which for whole powers of ten is exact.
Variable exact_log10(const Variable& x, const Loc& loc) {
  const Variable y = log10(Operand(x, loc));
  const Variable whole = round(Operand(y, loc));
  const Variable back = pow(Operand(scalar_like(x, 10, loc), loc), whole);
  return where(Operand(combined("eq", back, x, loc), loc), whole, y);
}

/// 0, 1, ... along a new first axis.
Variable counted(const Size& count, int rank, DType dtype, const Loc& loc) {
  return cast_to(positions(count, 0, rank + 1, loc), dtype, loc);
}

/// x with a new first axis, its own ones aligned at the right.
Variable fronted(const Variable& x, int rank, const Loc& loc) {
  return shape_padleft(Operand(x, loc), rank + 1 - x.ndim());
}

Variable at_places(const Variable& place, const Size& at, const Variable& value,
                   const Variable& other, const Loc& loc) {
  const Variable here =
      combined("eq", place, cast_to(size_variable(at, loc), place.dtype(), loc), loc);
  return where(Operand(here, loc), value, other);
}

/// From `first` in equal steps to `last`, which is met exactly where it counts.
Variable steps(const Bounds& bounds, const Size& count, bool endpoint, const Loc& loc) {
  const DType work = bounds.first.dtype();
  const int rank = std::max(bounds.first.ndim(), bounds.last.ndim());
  const Variable first = fronted(bounds.first, rank, loc);
  const Variable last = fronted(bounds.last, rank, loc);
  const Variable place = counted(count, rank, work, loc);
  const Size gaps = endpoint ? size_max(size_sub(count, Size(1), loc), Size(1), loc) : count;
  const Variable step = combined("true_divide", combined("sub", last, first, loc),
                                 cast_to(size_variable(gaps, loc), work, loc), loc);
  const Variable y = combined("add", combined("mul", place, step, loc), first, loc);
  if (!endpoint || (count.number() && *count.number() < 2)) return y;
  // With one entry there are no gaps, and it is the first bound.
  const Size end = size_max(size_sub(count, Size(1), loc), Size(1), loc);
  return at_places(place, end, last, y, loc);
}

std::vector<Variable> gridded(const std::vector<Variable>& axes, bool open, const Loc& loc) {
  const int rank = static_cast<int>(axes.size());
  std::vector<Variable> result;
  std::vector<Size> sizes;
  for (const Variable& axis : axes) sizes.push_back(sizes_of(axis, loc)[0]);
  for (int k = 0; k < rank; ++k) {
    std::vector<int> order(axes.size(), -1);
    order[k] = 0;
    const Variable line = dimshuffle(axes[k], order, loc);
    result.push_back(open ? line : broadcast_sizes(line, sizes, loc));
  }
  return result;
}

std::vector<Variable> ranges(std::string_view op, const std::vector<Slice>& slices, Loc line,
                             bool open) {
  const Loc loc = line.named(op);
  std::vector<Variable> axes;
  for (const Slice& slice : slices) {
    const auto bound = [&](const Bound& given, std::int64_t otherwise) {
      if (given.is_none()) return Operand(otherwise, loc);
      return given.number() ? Operand(*given.number(), loc) : Operand(*given.variable(), loc);
    };
    if (slice.stop.is_none()) graph_error(op, "each slice needs a stop", loc);
    axes.push_back(arange(bound(slice.start, 0), bound(slice.stop, 0), bound(slice.step, 1)));
  }
  return gridded(axes, open, loc);
}

}  // namespace

Variable eye(const Size& rows, const Size& columns, const Operand& k, std::optional<DType> dtype,
             Loc line) {
  const Loc loc = line.named("eye");
  const Variable row = positions(rows, 0, 2, loc);
  Variable target = row;
  if (!k.is_literal() || k.literal().real != 0) {
    target =
        combined("add", row, size_variable(whole_number("eye", Size(k.variable()), loc), loc), loc);
  }
  const Variable same = combined("eq", target, positions(columns, 1, 2, loc), loc);
  return cast_to(same, dtype.value_or(build_settings().float_x), loc);
}

Variable eye(const Size& n, std::optional<DType> dtype, Loc loc) {
  return eye(n, n, Operand(0, loc), dtype, loc);
}

Variable identity_like(const Operand& operand, std::optional<DType> dtype) {
  const Variable x = operand.variable();
  const Loc loc = operand.loc().named("identity_like");
  if (x.ndim() != 2) {
    graph_error("identity_like", fmt::format("a matrix is expected: got {} axes", x.ndim()), loc);
  }
  const std::vector<Size> sizes = sizes_of(x, loc);
  return eye(sizes[0], sizes[1], Operand(0, loc), dtype.value_or(x.dtype()), loc);
}

Variable tri(const Size& rows, const Size& columns, const Operand& k, std::optional<DType> dtype,
             Loc line) {
  const Loc loc = line.named("tri");
  return cast_to(at_or_below(rows, columns, k, 2, loc), dtype.value_or(build_settings().float_x),
                 loc);
}

Variable tril(const Operand& x, const Operand& k) { return without_triangle("tril", x, k, true); }
Variable triu(const Operand& x, const Operand& k) { return without_triangle("triu", x, k, false); }

Variable one_hot(const Operand& operand, const Size& length, std::optional<DType> dtype, int axis) {
  const Variable x = operand.variable();
  const Loc loc = operand.loc().named("one_hot");
  if (!is_integer(x.dtype())) {
    graph_error("one_hot", fmt::format("places must be integers: got {}", name_of(x.dtype())), loc);
  }
  const int rank = x.ndim() + 1;
  const int along = checked_axis("one_hot", axis, rank, loc);
  const Variable wide = insert_axes(cast_to(x, DType::int64, loc), {along}, loc);
  const Variable same = eq(Operand(wide, loc), positions(length, along, rank, loc));
  return cast_to(same, dtype.value_or(build_settings().float_x), loc);
}

Variable linspace(const Operand& start, const Operand& stop, const Size& count, bool endpoint,
                  std::optional<DType> dtype) {
  const Loc loc = start.loc().named("linspace");
  const Bounds bounds = float_bounds("linspace", start, stop, dtype, loc);
  const Variable y = steps(bounds, checked_size("linspace", "a count", count, loc), endpoint, loc);
  return cast_to(is_float(bounds.dtype) ? y : floor(Operand(y, loc)), bounds.dtype, loc);
}

Variable logspace(const Operand& start, const Operand& stop, const Size& count, double base,
                  bool endpoint, std::optional<DType> dtype) {
  const Loc loc = start.loc().named("logspace");
  const Bounds bounds = float_bounds("logspace", start, stop, dtype, loc);
  const Variable power =
      steps(bounds, checked_size("logspace", "a count", count, loc), endpoint, loc);
  return cast_to(pow(Operand(scalar_like(power, base, loc), loc), power), bounds.dtype, loc);
}

Variable geomspace(const Operand& start, const Operand& stop, const Size& given, bool endpoint,
                   std::optional<DType> dtype) {
  const Loc loc = start.loc().named("geomspace");
  const Bounds bounds = float_bounds("geomspace", start, stop, dtype, loc);
  const Size count = checked_size("geomspace", "a count", given, loc);
  // Powers of ten between the magnitudes' logarithms, as in NumPy: whole powers are exact then.
  const Variable sign_of_first = sign(Operand(bounds.first, loc));
  const auto exponent = [&](const Variable& bound) {
    return exact_log10(combined("true_divide", bound, sign_of_first, loc), loc);
  };
  const Bounds exponents{exponent(bounds.first), exponent(bounds.last), bounds.dtype};
  const Variable power = steps(exponents, count, endpoint, loc);
  const int rank = power.ndim() - 1;
  Variable y = pow(Operand(scalar_like(power, 10, loc), loc), power);
  y = mul(Operand(fronted(sign_of_first, rank, loc), loc), y);
  const Variable place = counted(count, rank, power.dtype(), loc);
  y = at_places(place, Size(0), fronted(bounds.first, rank, loc), y, loc);
  if (endpoint && !(count.number() && *count.number() < 2)) {
    // Of one entry the first bound is the one that counts.
    const Size end = size_max(size_sub(count, Size(1), loc), Size(1), loc);
    y = at_places(place, end, fronted(bounds.last, rank, loc), y, loc);
  }
  return cast_to(y, bounds.dtype, loc);
}

std::vector<Variable> meshgrid(const Parts& parts, bool matrix_order, bool sparse) {
  std::vector<Variable> axes;
  if (parts.list.empty()) return axes;
  const Loc loc = parts.list[0].loc().named("meshgrid");
  for (const Operand& part : parts.list) {
    const Variable axis = part.variable();
    if (axis.ndim() > 1) {
      graph_error("meshgrid", fmt::format("vectors are expected: got {} axes", axis.ndim()), loc);
    }
    axes.push_back(atleast_1d(Operand(axis, loc)));
  }
  const bool swapped = !matrix_order && axes.size() > 1;
  if (swapped) std::swap(axes[0], axes[1]);
  std::vector<Variable> grid = gridded(axes, sparse, loc);
  if (swapped) std::swap(grid[0], grid[1]);
  return grid;
}

std::vector<Variable> mgrid(const std::vector<Slice>& slices, Loc loc) {
  return ranges("mgrid", slices, loc, false);
}

std::vector<Variable> ogrid(const std::vector<Slice>& slices, Loc loc) {
  return ranges("ogrid", slices, loc, true);
}

}  // namespace croton
