// Elementwise functions built from scalar ops.
#include <cmath>
#include <limits>
#include <numbers>

#include "croton/math.h"
#include "ops/compose.h"

namespace croton {

using scalar::composed;

namespace {

using X = const Operand&;

/// y, but `harmless` where x is 0 and the logarithm would be infinite or NaN: up to `lowest`, and
/// at infinity.
Variable spared(X x, X y, double lowest, double harmless) {
  const Variable bad = logical_or(le(y, lowest), eq(y, std::numeric_limits<double>::infinity()));
  return where(logical_and(eq(x, 0), bad), harmless, y);
}

/// The greatest finite number of a float dtype.
double largest(DType dtype) {
  switch (dtype) {
    case DType::float16:
      return 65504;
    case DType::bfloat16:
      return 0x1.fep127;
    case DType::float32:
      return std::numeric_limits<float>::max();
    default:
      return std::numeric_limits<double>::max();
  }
}

}  // namespace

Variable inrange(const Operand& x, const Operand& low, const Operand& high, bool open_low,
                 bool open_high) {
  return composed<false>(
      "inrange",
      [&](X v, X from, X to) {
        return logical_and(open_low ? gt(v, from) : ge(v, from), open_high ? lt(v, to) : le(v, to));
      },
      x, low, high);
}

Variable isclose(const Operand& a, const Operand& b, double rtol, double atol, bool equal_nan) {
  return composed<false>(
      "isclose",
      [&](X first, X second) {
        Variable x = first.variable();
        Variable y = second.variable();
        const Loc& loc = first.loc();
        const Variable equal = eq(x, y);
        // Differences of integers could wrap.
        const DType dtype = is_float(x.dtype()) ? x.dtype() : DType::float64;
        x = cast_to(x, dtype, loc);
        y = cast_to(y, dtype, loc);
        const Variable near = le(abs(x - y), atol + rtol * abs(y));
        const Variable close = logical_or(equal, logical_and(near, isfinite(y)));
        return equal_nan ? logical_or(close, logical_and(isnan(x), isnan(y))) : close;
      },
      a, b);
}

Variable ceil_intdiv(const Operand& a, const Operand& b) {
  return composed<false>(
      "ceil_intdiv",
      [](X x, X y) {
        const Variable quotient = floor_divide(x, y);
        return quotient + cast_to(ne(mod(x, y), 0), quotient.dtype(), x.loc());
      },
      a, b);
}

std::pair<Variable, Variable> divmod(const Operand& a, const Operand& b) {
  return {floor_divide(a.named("divmod"), b), mod(a.named("divmod"), b)};
}

Variable deg2rad(const Operand& x) {
  return composed<true>(
      "deg2rad", [](X v) { return v * (std::numbers::pi / 180); }, x);
}

Variable rad2deg(const Operand& x) {
  return composed<true>(
      "rad2deg", [](X v) { return v * (180 / std::numbers::pi); }, x);
}

Variable xlogy(const Operand& x, const Operand& y) {
  return composed<true>(
      "xlogy", [](X a, X b) { return a * log(spared(a, b, 0, 1)); }, x, y);
}

Variable xlog1py(const Operand& x, const Operand& y) {
  return composed<true>(
      "xlog1py", [](X a, X b) { return a * log1p(spared(a, b, -1, 0)); }, x, y);
}

Variable xlogx(const Operand& x) {
  return composed<true>(
      "xlogx", [](X v) { return v * log(spared(v, v, 0, 1)); }, x);
}

Variable nan_to_num(const Operand& x, double nan, std::optional<double> posinf,
                    std::optional<double> neginf) {
  return composed<false>(
      "nan_to_num",
      [&](X v) -> Variable {
        const DType dtype = v.variable().dtype();
        if (!is_float(dtype)) return v.variable();
        const double most = largest(dtype);
        const double infinity = std::numeric_limits<double>::infinity();
        const Variable low = where(eq(v, -infinity), neginf.value_or(-most), v);
        const Variable both = where(eq(v, infinity), posinf.value_or(most), low);
        return where(isnan(v), nan, both);
      },
      x);
}

}  // namespace croton
