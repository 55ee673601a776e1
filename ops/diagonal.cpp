// Diagonals: read, made, filled, summed.
#include <fmt/format.h>

#include <algorithm>

#include "croton/math.h"
#include "croton/reduce.h"
#include "croton/tensor.h"
#include "ops/axes.h"
#include "ops/build.h"
#include "ops/size_arithmetic.h"
#include "ops/sizes.h"
#include "ops/take.h"

namespace croton {
namespace {

struct TwoAxes {
  int first;
  int second;
};

TwoAxes checked_pair(std::string_view op, int a, int b, int rank, const Loc& loc) {
  if (rank < 2) graph_error(op, fmt::format("at least two axes are expected: got {}", rank), loc);
  const TwoAxes axes{checked_axis(op, a, rank, loc), checked_axis(op, b, rank, loc)};
  if (axes.first == axes.second) graph_error(op, "two different axes are expected", loc);
  return axes;
}

/// The two axes last, in this order, the others before them.
Variable with_last(const Variable& x, TwoAxes axes, const Loc& loc) {
  std::vector<int> order;
  for (int k = 0; k < x.ndim(); ++k) {
    if (k != axes.first && k != axes.second) order.push_back(k);
  }
  order.push_back(axes.first);
  order.push_back(axes.second);
  return dimshuffle(x, order, loc);
}

/// The last two axes where `axes` says.
Variable from_last(const Variable& x, TwoAxes axes, const Loc& loc) {
  std::vector<int> order;
  int next = 0;
  for (int k = 0; k < x.ndim(); ++k) {
    order.push_back(k == axes.first ? x.ndim() - 2 : k == axes.second ? x.ndim() - 1 : next++);
  }
  return dimshuffle(x, order, loc);
}

Variable diagonal_of(const Variable& operand, std::int64_t offset, TwoAxes axes, const Loc& loc) {
  const Variable x = with_last(operand, axes, loc);
  const int rank = x.ndim();
  const std::vector<Size> sizes = sizes_of(x, loc);
  const Size down(offset < 0 ? -offset : 0);
  const Size right(offset > 0 ? offset : 0);
  const Size count = size_max(
      size_min(size_sub(sizes[rank - 2], down, loc), size_sub(sizes[rank - 1], right, loc), loc),
      Size(0), loc);
  const auto place = [&](const Size& from) {
    const Variable k = positions(count, loc);
    return *from.number() == 0 ? k : apply("add", {k, size_variable(from, loc)}, {}, loc);
  };
  return take_entries(x, {rank - 2, rank - 1}, {place(down), place(right)}, 0, loc);
}

/// The last axis as a diagonal over two.
Variable on_diagonal(const Variable& x, std::int64_t offset, const Loc& loc) {
  const int rank = x.ndim() + 1;
  const Size count = sizes_of(x, loc)[x.ndim() - 1];
  const std::int64_t gap = offset < 0 ? -offset : offset;
  // Entry k stands in row k where the offset is not negative, else in column k; along the other
  // axis it stands `gap` further.
  const int own = offset < 0 ? rank - 1 : rank - 2;
  const int other = offset < 0 ? rank - 2 : rank - 1;
  const Size wide = size_add(count, Size(gap), loc);
  Variable place = positions(count, own, rank, loc);
  if (gap != 0) place = apply("add", {place, make_scalar(DType::int64, gap, loc)}, {}, loc);
  const Variable here = apply("eq", {place, positions(wide, other, rank, loc)}, {}, loc);
  const Variable y =
      where(Operand(here, loc), insert_axes(x, {other}, loc), scalar_like(x, 0, loc));
  if (gap == 0) return y;
  std::vector<std::pair<Size, Size>> widths(static_cast<std::size_t>(rank), {0, 0});
  widths[own].second = Size(gap);
  return pad(Operand(y, loc), widths);
}

/// x with the value where column - row == offset, in matrices; on the main diagonal of all axes
/// where there are more than two.
Variable filled(std::string_view op, const Operand& operand, const Operand& given,
                std::int64_t offset) {
  const Variable x = operand.variable();
  const Loc loc = operand.loc().named(op);
  if (x.ndim() < 2) {
    graph_error(op, fmt::format("at least two axes are expected: got {}", x.ndim()), loc);
  }
  const Variable value = given.is_literal() ? make_scalar(x.dtype(), given.literal(), loc)
                                            : cast_to(given.variable(), x.dtype(), loc);
  if (value.ndim() != 0) graph_error(op, "the value must be a scalar", loc);
  const std::vector<Size> sizes = sizes_of(x, loc);
  Variable first = positions(sizes[0], 0, x.ndim(), loc);
  if (offset != 0) first = apply("add", {first, make_scalar(DType::int64, offset, loc)}, {}, loc);
  Variable here;
  for (int k = 1; k < x.ndim(); ++k) {
    const Variable same = apply("eq", {first, positions(sizes[k], k, x.ndim(), loc)}, {}, loc);
    here = here.defined() ? apply("logical_and", {here, same}, {}, loc) : same;
  }
  return where(Operand(here, loc), value, x);
}

}  // namespace

Variable diagonal(const Operand& operand, std::int64_t offset, int axis1, int axis2) {
  const Variable x = operand.variable();
  const Loc loc = operand.loc().named("diagonal");
  return diagonal_of(x, offset, checked_pair("diagonal", axis1, axis2, x.ndim(), loc), loc);
}

Variable alloc_diag(const Operand& operand, std::int64_t offset, int axis1, int axis2) {
  const Variable x = operand.variable();
  const Loc loc = operand.loc().named("alloc_diag");
  if (x.ndim() == 0) graph_error("alloc_diag", "at least one axis is expected", loc);
  const TwoAxes axes = checked_pair("alloc_diag", axis1, axis2, x.ndim() + 1, loc);
  return from_last(on_diagonal(x, offset, loc), axes, loc);
}

Variable diag(const Operand& operand, std::int64_t offset) {
  const Variable x = operand.variable();
  const Loc loc = operand.loc().named("diag");
  if (x.ndim() == 1) return on_diagonal(x, offset, loc);
  if (x.ndim() == 2) return diagonal_of(x, offset, {0, 1}, loc);
  graph_error("diag",
              fmt::format("a vector or a matrix is expected: got {} axes; use diagonal or "
                          "alloc_diag",
                          x.ndim()),
              loc);
}

Variable trace(const Operand& operand, std::int64_t offset, int axis1, int axis2) {
  const Variable x = operand.variable();
  const Loc loc = operand.loc().named("trace");
  const TwoAxes axes = checked_pair("trace", axis1, axis2, x.ndim(), loc);
  return sum(Operand(diagonal_of(x, offset, axes, loc), loc), -1);
}

Variable fill_diagonal(const Operand& x, const Operand& value) {
  return filled("fill_diagonal", x, value, 0);
}

Variable fill_diagonal_offset(const Operand& x, const Operand& value, std::int64_t offset) {
  if (x.variable().ndim() != 2) {
    graph_error("fill_diagonal_offset", "a matrix is expected", x.loc());
  }
  return filled("fill_diagonal_offset", x, value, offset);
}

}  // namespace croton
