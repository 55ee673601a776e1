// Quantiles and medians, by sorting.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "croton/indexing.h"
#include "croton/math.h"
#include "croton/reduce.h"
#include "croton/sort.h"
#include "croton/tensor.h"
#include "ops/axes.h"
#include "ops/build.h"
#include "ops/built_at.h"
#include "ops/one_axis.h"

namespace croton {
namespace {

void check_range(std::string_view op, const Variable& q, double highest, const Loc& loc) {
  if (q.ndim() > 1) {
    graph_error(op, fmt::format("q must be a scalar or a vector: got {} axes", q.ndim()), loc);
  }
  const Array* known = constant_value(q);
  if (known == nullptr) return;
  for (const double value : known->astype(DType::float64).to_vector<double>()) {
    if (value >= 0 && value <= highest) continue;
    graph_error(op, fmt::format("q must be between 0 and {}: got {}", highest, value), loc);
  }
}

/// A quantile under way: the reduced axes are one.
struct Sorted {
  Loc loc;
  Variable x;
  int axis = 0;
  bool skip_nan = false;

  Variable taken(const Variable& values, const Variable& position) const {
    return take_along_axis({values, loc}, {cast_to(position, DType::int64, loc), loc}, axis);
  }

  /// How many elements count, with the axis as size 1.
  Variable count() const {
    if (skip_nan && is_float(x.dtype())) {
      return sum(cast_to(logical_not(isnan(x)), DType::float64, loc), axis, {.keepdims = true});
    }
    return dimshuffle(cast_to(size_of_axis(x, axis, loc), DType::float64, loc),
                      std::vector<int>(static_cast<std::size_t>(x.ndim()), -1), loc);
  }

  /// The quantiles along the axis; `q` is a vector of float64.
  Variable at(const Variable& q, Quantile method, DType result) const {
    std::vector<int> order(static_cast<std::size_t>(x.ndim()), -1);
    order[static_cast<std::size_t>(axis)] = 0;
    const Variable last = maximum(count() - 1.0, 0.0);
    const Variable position = dimshuffle(q, order, loc) * last;
    const Variable low = floor(position);
    const Variable high = minimum(low + 1.0, last);
    const Variable values = sort({x, loc}, axis);
    const DType work = size_of(result) < 4 ? DType::float32 : result;
    const auto one = [&](const Variable& p) { return cast_to(taken(values, p), work, loc); };
    Variable y;
    switch (method) {
      case Quantile::lower:
        y = one(low);
        break;
      case Quantile::higher:
        y = one(ceil(position));
        break;
      case Quantile::nearest:
        y = one(round(position));
        break;
      case Quantile::midpoint: {
        const Variable whole = eq(position, low);
        y = between(one(low), one(high),
                    cast_to(where(whole, 0.0, full_like(position, 0.5, loc)), work, loc));
        break;
      }
      case Quantile::linear:
        y = between(one(low), one(high), cast_to(position - low, work, loc));
        break;
    }
    if (!skip_nan && is_float(x.dtype())) {
      y = where(any(isnan(x), axis, {.keepdims = true}),
                scalar_like(y, std::numeric_limits<double>::quiet_NaN(), loc), y);
    }
    return cast_to(y, result, loc);
  }

  /// From the nearer of both, as NumPy. Nothing is added to equal infinities, or for a part of 0.
  Variable between(const Variable& a, const Variable& b, const Variable& part) const {
    const Variable same =
        logical_or(logical_and(eq(a, b), isinf(a)), eq(part, scalar_like(part, 0, loc)));
    const Variable step = where(same, scalar_like(a, 0, loc), b - a);
    const Variable half = scalar_like(part, 0.5, loc);
    const Variable one = scalar_like(part, 1, loc);
    return where(ge(part, half), b - step * (one - part), a + step * part);
  }
};

Variable quantiles(std::string_view op, const Operand& operand, const Operand& given, double scale,
                   const Axis& axis, const QuantileOptions& options, bool skip_nan) {
  const Loc loc = operand.loc().named(op);
  const Variable x = operand.variable();
  // A number keeps the digits that float32 does not have.
  Variable q =
      given.is_literal() ? make_scalar(DType::float64, given.literal(), loc) : given.variable();
  check_range(op, q, scale, loc);
  const std::vector<int> axes = checked_axes(op, axis, x.ndim(), loc);
  for (const int k : axes) {
    if (x.static_shape()[static_cast<std::size_t>(k)] == 0) {
      graph_error(op, fmt::format("there is no quantile of no elements: axis {} has length 0", k),
                  loc);
    }
  }
  return built_at(loc, [&] {
    const bool scalar = q.ndim() == 0;
    q = cast_to(q, DType::float64, loc);
    if (scale != 1) q = q / scale;
    q = clip(q, 0.0, 1.0);
    if (scalar) q = insert_axes(q, {0}, loc);
    const DType result = is_float(x.dtype()) ? x.dtype() : build_settings().float_x;
    const int place = axes.empty() ? 0 : axes[0];
    const Variable merged = axes.empty() ? insert_axes(x, {0}, loc) : one_axis(x, axes, loc);
    const Sorted sorted{loc, merged, place, skip_nan};
    Variable y = sorted.at(q, options.method, result);
    // The axis of q goes to the front, or away.
    std::vector<int> order;
    if (!scalar) order.push_back(place);
    for (int k = 0; k < y.ndim(); ++k) {
      if (k != place) order.push_back(k);
    }
    y = dimshuffle(y, order, loc);
    if (!options.keepdims) return y;
    std::vector<int> back = axes;
    for (int& k : back) k += scalar ? 0 : 1;
    return insert_axes(y, back, loc);
  });
}

}  // namespace

Variable quantile(const Operand& x, const Operand& q, const Axis& axis,
                  const QuantileOptions& options) {
  return quantiles("quantile", x, q, 1, axis, options, false);
}

Variable percentile(const Operand& x, const Operand& q, const Axis& axis,
                    const QuantileOptions& options) {
  return quantiles("percentile", x, q, 100, axis, options, false);
}

Variable median(const Operand& x, const Axis& axis, bool keepdims) {
  return quantiles("median", x, 0.5, 1, axis, {.keepdims = keepdims}, false);
}

Variable nanquantile(const Operand& x, const Operand& q, const Axis& axis,
                     const QuantileOptions& options) {
  return quantiles("nanquantile", x, q, 1, axis, options, true);
}

Variable nanpercentile(const Operand& x, const Operand& q, const Axis& axis,
                       const QuantileOptions& options) {
  return quantiles("nanpercentile", x, q, 100, axis, options, true);
}

Variable nanmedian(const Operand& x, const Axis& axis, bool keepdims) {
  return quantiles("nanmedian", x, 0.5, 1, axis, {.keepdims = keepdims}, true);
}

}  // namespace croton
