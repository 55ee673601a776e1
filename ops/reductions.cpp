// The public reductions: dtypes, masks and options around the reduction ops.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "croton/math.h"
#include "croton/reduce.h"
#include "ops/axes.h"
#include "ops/build.h"

namespace croton {
namespace {

/// A reduction under way: the operand, the axes, and the dtype that the result will have.
struct Reduction {
  std::string_view op;
  Loc loc;
  Variable x;
  std::vector<int> axes;
  bool keepdims = false;
  std::optional<Variable> mask;

  Reduction(std::string_view name, const Operand& operand, const Axis& axis, bool keep,
            const std::optional<Variable>& where_)
      : op(name),
        loc(operand.loc().named(name)),
        x(operand.variable()),
        axes(checked_axes(name, axis, x.ndim(), loc)),
        keepdims(keep),
        mask(where_) {
    if (mask && !is_bool(mask->dtype())) {
      graph_error(op,
                  fmt::format("the mask `where` must be bool: got {}; compare with 0 to make one",
                              name_of(mask->dtype())),
                  loc);
    }
    if (mask && mask->ndim() > x.ndim()) {
      graph_error(
          op, fmt::format("the mask `where` has {} axes, the operand {}", mask->ndim(), x.ndim()),
          loc);
    }
    if (mask) check_mask_shape();
  }

  /// The mask broadcasts to the operand, never the operand to the mask.
  void check_mask_shape() const {
    const Shape& own = x.static_shape();
    const Shape& given = mask->static_shape();
    for (std::size_t k = 0; k < std::min(own.size(), given.size()); ++k) {
      const std::int64_t size = given[given.size() - 1 - k];
      if (size == 1 || own[own.size() - 1 - k] != 1) continue;
      graph_error(op,
                  fmt::format("the mask `where` of shape {} does not broadcast to the operand's {}",
                              given.to_string(), own.to_string()),
                  loc);
    }
  }

  /// The value with masked elements replaced.
  void fill(double identity) {
    if (mask) x = where(Operand(*mask, loc), x, scalar_like(x, identity, loc));
  }

  Variable run(DType result) const {
    if (axes.empty()) return cast_to(x, result, loc);
    const std::vector<std::int64_t> list(axes.begin(), axes.end());
    return cast_to(apply(op, {x}, {{"axes", list}, {"keepdims", std::int64_t{keepdims}}}, loc),
                   result, loc);
  }
};

Variable arithmetic(std::string_view op, const Operand& operand, const Axis& axis,
                    const ReduceOptions& options, double identity) {
  Reduction r(op, operand, axis, options.keepdims, options.where);
  const DType from = r.x.dtype();
  const DType result = options.dtype       ? *options.dtype
                       : is_float(from)    ? from
                       : is_unsigned(from) ? DType::uint64
                                           : DType::int64;
  if (is_bool(result)) graph_error(op, "cannot accumulate in bool; use any or all", r.loc);
  r.x = cast_to(r.x, is_narrow(result) ? DType::float32 : result, r.loc);
  r.fill(identity);
  return r.run(result);
}

/// What replaces masked elements in max (`sign` -1) and min (+1).
LiteralValue order_identity(DType dtype, bool largest) {
  if (is_float(dtype)) {
    const double infinity = std::numeric_limits<double>::infinity();
    return largest ? -infinity : infinity;
  }
  const int bits = static_cast<int>(size_of(dtype)) * 8;
  if (is_unsigned(dtype)) {
    if (largest) return std::uint64_t{0};
    return ~std::uint64_t{0} >> (64 - bits);
  }
  const std::int64_t top = std::numeric_limits<std::int64_t>::max() >> (64 - bits);
  return largest ? -top - 1 : top;
}

Variable order(std::string_view op, const Operand& operand, const Axis& axis,
               const ReduceOptions& options) {
  Reduction r(op, operand, axis, options.keepdims, options.where);
  const DType from = r.x.dtype();
  const DType result = options.dtype.value_or(from);
  // The order of bools, float16 and bfloat16 is kept by a wider dtype.
  r.x = cast_to(r.x, is_bool(from) ? DType::uint8 : is_narrow(from) ? DType::float32 : from, r.loc);
  if (r.mask) {
    const Variable identity =
        make_scalar(r.x.dtype(), order_identity(r.x.dtype(), op == "max"), r.loc);
    r.x = where(Operand(*r.mask, r.loc), r.x, identity);
  }
  return r.run(result);
}

Variable logic(std::string_view op, const Operand& operand, const Axis& axis,
               const ReduceOptions& options, double identity) {
  Reduction r(op, operand, axis, options.keepdims, options.where);
  r.x = cast_to(r.x, DType::boolean, r.loc);
  r.fill(identity);
  return r.run(options.dtype.value_or(DType::boolean));
}

/// How many elements are reduced into each result, as a 0-d or masked count of that dtype.
Variable count(const Reduction& r, DType dtype) {
  if (!r.mask) return count_elements(r.x, r.axes, dtype, r.loc);
  const Variable ones = broadcast_like(*r.mask, r.x, r.loc);
  return cast_to(sum_axes(cast_to(ones, DType::int64, r.loc), r.axes, r.keepdims, r.loc), dtype,
                 r.loc);
}

/// A mean under way: the operand in the dtype of the computation, and what the sum is divided by.
struct Average : Reduction {
  DType result;
  Variable number;

  template <class Options>
  Average(std::string_view name, const Operand& operand, const Axis& axis, const Options& options)
      : Reduction(name, operand, axis, options.keepdims, options.where),
        result(options.dtype         ? *options.dtype
               : is_float(x.dtype()) ? x.dtype()
                                     : build_settings().float_x) {
    if (!is_float(result)) {
      graph_error(
          op, fmt::format("dtype must be a float: got {}; cast the result", name_of(result)), loc);
    }
    // Integers are summed in float64, which holds them exactly up to 2^53.
    const DType work = !is_float(x.dtype()) ? DType::float64
                       : is_narrow(result)  ? DType::float32
                                            : result;
    x = cast_to(x, work, loc);
    number = count(*this, work);
    // Masked elements may be NaN, which must not reach the gradient.
    fill(0);
  }

  Variable value() const {
    const Variable total = sum_axes(x, axes, keepdims, loc);
    return cast_to(true_divide(Operand(total, loc), number), result, loc);
  }
};

}  // namespace

Variable sum(const Operand& x, const Axis& axis, const ReduceOptions& options) {
  return arithmetic("sum", x, axis, options, 0);
}

Variable prod(const Operand& x, const Axis& axis, const ReduceOptions& options) {
  return arithmetic("prod", x, axis, options, 1);
}

Variable max(const Operand& x, const Axis& axis, const ReduceOptions& options) {
  return order("max", x, axis, options);
}

Variable min(const Operand& x, const Axis& axis, const ReduceOptions& options) {
  return order("min", x, axis, options);
}

Variable any(const Operand& x, const Axis& axis, const ReduceOptions& options) {
  return logic("any", x, axis, options, 0);
}

Variable all(const Operand& x, const Axis& axis, const ReduceOptions& options) {
  return logic("all", x, axis, options, 1);
}

Variable mean(const Operand& x, const Axis& axis, const ReduceOptions& options) {
  return Average("mean", x, axis, options).value();
}

Variable var(const Operand& operand, const Axis& axis, const VarOptions& options) {
  Average a("var", operand, axis, options);
  const Operand x(a.x, a.loc);
  const Variable centre = mean(x, a.axes, {.keepdims = true, .where = a.mask});
  a.x = square(Operand(sub(x, centre), a.loc));
  a.fill(0);
  if (options.ddof != 0) {
    const Variable left = sub(Operand(a.number, a.loc), scalar_like(a.number, options.ddof, a.loc));
    // With too few elements the result is inf or NaN, as in NumPy, never negative.
    a.number = maximum(Operand(left, a.loc), scalar_like(left, 0, a.loc));
  }
  return a.value();
}

Variable std(const Operand& x, const Axis& axis, const VarOptions& options) {
  const Operand named = x.named("std");
  const Operand variance(var(named, axis, options), named.loc());
  // At 0 the root has an infinite slope, and the variance none: together 0, not NaN.
  return where(eq(variance, 0), variance, sqrt(variance));
}

}  // namespace croton
