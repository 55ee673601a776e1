// Functions given by samples: their integral, and values between them.
#include <fmt/format.h>

#include "croton/indexing.h"
#include "croton/math.h"
#include "croton/reduce.h"
#include "croton/tensor.h"
#include "ops/axes.h"
#include "ops/build.h"
#include "ops/scalar.h"
#include "ops/size_arithmetic.h"
#include "ops/slice.h"

namespace croton {
namespace {

Variable combined(std::string_view op, const Variable& a, const Variable& b, const Loc& loc) {
  return apply(op, {a, b}, {}, loc);
}

/// The float dtype of all of them.
DType common_float(std::span<const Variable> values) {
  DType dtype = values[0].dtype();
  for (const Variable& v : values) dtype = promote(dtype, v.dtype(), build_settings().numpy_policy);
  return scalar::float_result(dtype);
}

}  // namespace

Variable trapezoid(const Operand& operand, const std::optional<Variable>& x, double dx, int axis) {
  const Loc loc = operand.loc().named("trapezoid");
  const Variable given = operand.variable();
  const Variable samples[] = {given, x.value_or(given)};
  const Variable y = cast_to(given, common_float(samples), loc);
  const int along = checked_axis("trapezoid", axis, y.ndim(), loc);
  const auto neighbours = [&](const Variable& v, int k) {
    return std::pair{slice_axis(v, k, Slice(1, none), loc), slice_axis(v, k, Slice(0, -1), loc)};
  };
  const auto [after, before] = neighbours(y, along);
  Variable area = combined("add", after, before, loc);
  Variable width = scalar_like(y, dx, loc);
  if (x) {
    if (x->ndim() != 1 && x->ndim() != y.ndim()) {
      graph_error("trapezoid",
                  fmt::format("x must be a vector or have {} axes: got {}", y.ndim(), x->ndim()),
                  loc);
    }
    const auto [next, place] = neighbours(cast_to(*x, y.dtype(), loc), x->ndim() == 1 ? 0 : along);
    width = combined("sub", next, place, loc);
    if (x->ndim() == 1) {
      std::vector<int> order(static_cast<std::size_t>(y.ndim()), -1);
      order[along] = 0;
      width = dimshuffle(width, order, loc);
    }
  }
  area = combined("mul", combined("mul", area, width, loc), scalar_like(y, 0.5, loc), loc);
  return sum(Operand(area, loc), along);
}

Variable interp(const Operand& operand, const Operand& places, const Operand& values,
                const std::optional<Variable>& left, const std::optional<Variable>& right) {
  const Loc loc = operand.loc().named("interp");
  const Operand operands[] = {operand, places, values};
  std::vector<Variable> given = resolve("interp", operands);
  if (given[1].ndim() != 1 || given[2].ndim() != 1) {
    graph_error("interp", "places and values must be vectors", loc);
  }
  std::vector<Variable> all = given;
  if (left) all.push_back(*left);
  if (right) all.push_back(*right);
  const DType dtype = common_float(all);
  for (Variable& v : given) v = cast_to(v, dtype, loc);
  const Variable& x = given[0];
  const Variable& at = given[1];
  const Variable& y = given[2];
  const Size last = size_sub(sizes_of(at, loc)[0], Size(1), loc);
  const Variable passed = le(Operand(at, loc), insert_axes(x, {x.ndim()}, loc));
  const Variable number = sum(Operand(passed, loc), -1);
  const auto bounded = [&](const Variable& k, const Size& most) {
    const Variable low = combined("maximum", k, make_scalar(DType::int64, 0, loc), loc);
    return combined("minimum", low, size_variable(most, loc), loc);
  };
  const Variable one = make_scalar(DType::int64, 1, loc);
  const Variable before = bounded(combined("sub", number, one, loc),
                                  size_max(size_sub(last, Size(1), loc), Size(0), loc));
  const Variable after = bounded(combined("add", before, one, loc), last);
  const auto entry = [&](const Variable& v, const Variable& k) {
    return take(Operand(v, loc), k, 0);
  };
  const Variable from = entry(at, before);
  const Variable gap = combined("sub", entry(at, after), from, loc);
  const Variable safe = where(Operand(eq(Operand(gap, loc), scalar_like(gap, 0, loc)), loc),
                              scalar_like(gap, 1, loc), gap);
  const Variable slope =
      combined("true_divide", combined("sub", entry(y, after), entry(y, before), loc), safe, loc);
  const Variable inside = combined(
      "add", combined("mul", combined("sub", x, from, loc), slope, loc), entry(y, before), loc);
  const auto end = [&](const std::optional<Variable>& value, const Variable& k) {
    return value ? cast_to(*value, dtype, loc) : entry(y, k);
  };
  const Variable first_place = make_scalar(DType::int64, 0, loc);
  const Variable last_place = size_variable(last, loc);
  const Variable low = lt(Operand(x, loc), entry(at, first_place));
  const Variable high = gt(Operand(x, loc), entry(at, last_place));
  return where(Operand(low, loc), end(left, first_place),
               where(Operand(high, loc), end(right, last_place), inside));
}

}  // namespace croton
