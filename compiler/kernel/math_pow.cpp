// pow: 2^(y log2 |x|), with the logarithm in more digits than the result has.
#include "compiler/kernel/coefficients.h"
#include "compiler/kernel/math.h"
#include "compiler/kernel/math_parts.h"

namespace croton::kernel {
namespace {

// The sum of two, the second one small.
struct Double {
  Expr high, low;
};

// a + b for |a| >= |b|, or a = 0.
Double sum(Expr a, Expr b) {
  const Expr high = a + b;
  return {high, (a - high) + b};
}

Double product(Builder& b, Double x, Double y) {
  const Expr high = x.high * y.high;
  const Expr error = b.fma(x.high, y.high, -high);
  return {high, b.fma(x.low, y.high, b.fma(x.high, y.low, error))};
}

Double constant(const Format& f, Format::Table parts, double factor = 1) {
  return {f.number(parts[0] * factor), f.number(parts[1] * factor)};
}

// log2 of a positive finite float64 to about 64 bits: with s = (m - 1) / (m + 1),
// log(m) = 2 (s + s^3 / 3 + s^5 A(s^2)).
Double log2_wide(const Format& f, Expr x) {
  Builder& b = f.b;
  const auto [k, fraction] = log_parts(f, x);
  const Expr two = f.number(2);
  const Expr divisor = fraction + two;
  const Expr divisor_low = fraction - (divisor - two);
  const Expr inverse = f.number(1) / divisor;
  const Expr s = fraction * inverse;
  const Expr rest = b.fma(-s, divisor_low, b.fma(-s, divisor, fraction));
  const Double ratio = {s, rest * inverse};
  const Double square = product(b, ratio, ratio);
  const Double third = {f.number(1.0 / 3), f.number(0x1.5555555555555p-56)};
  const Expr tail = square.high * f.polynomial(square.high, kArtanhF64);
  Double factor = sum(third.high, tail);
  factor.low = factor.low + third.low;
  const Double cubic = product(b, product(b, ratio, square), factor);
  Double half = sum(ratio.high, cubic.high);
  half.low = half.low + (ratio.low + cubic.low);
  const Double log = product(b, half, constant(f, kLog2E, 2));
  const Double result = sum(k, log.high);
  return {result.high, result.low + log.low};
}

// The logarithm of 0, infinity and NaN.
Expr or_edge(const Format& f, Expr x, Expr log) {
  const Expr above = f.b.select(x < f.infinity(), log, x);
  return f.b.select(x == f.number(0), -f.infinity(), above);
}

// An infinite power of 1 is 1.
Expr exponent_of(const Format& f, Expr size, Expr y, Expr product) {
  const Expr one = (size == f.number(1)) & (f.abs(y) == f.infinity());
  return f.b.select(one, f.number(0), product);
}

// 2^power for |power| <= 1100; `low` is a small correction.
Expr exp2_wide(const Format& f, Expr power, Expr low) {
  const Rounded n = round_scaled(f, power, f.number(1));
  const Expr p = f.polynomial((power - n.value) + low, kExp2F64);
  // In two steps, of which only the second may round, overflow or underflow.
  const Rounded half = round_scaled(f, n.value, f.number(0.5));
  const Expr rest = n.exponent - half.exponent;
  return p * power_of_two(f, half.exponent) * power_of_two(f, rest);
}

// |x|^y in float64.
Expr pow_double(const Format& f, Expr size, Expr y) {
  Builder& b = f.b;
  const Double log = log2_wide(f, size);
  const Expr high = or_edge(f, size, log.high);
  const Expr product = y * high;
  const Expr power = exponent_of(f, size, y, product);
  const Expr bounded = f.at_most(f.at_least(power, f.number(-1100)), f.number(1100));
  const Expr low = b.fma(y, log.low, b.fma(y, log.high, -(y * log.high)));
  return exp2_wide(f, bounded, b.select(bounded == product, low, f.number(0)));
}

// |x|^y for float32, by float64 arithmetic.
Expr pow_single(const Format& f, Expr size, Expr y) {
  Builder& b = f.b;
  const Expr wide = b.cast(size, DType::float64);
  const Format d(wide);
  const auto [k, fraction] = log_parts_of_normal(d, wide);
  const Expr square = fraction * fraction;
  const Expr tail = b.fma(fraction, d.polynomial(fraction, kLogForPowF64), d.number(-0.5));
  const Expr log = b.fma(b.fma(square, tail, fraction), d.number(kLog2E[0]), k);
  const Expr times = b.cast(y, DType::float64) * or_edge(d, wide, log);
  const Expr power = exponent_of(d, wide, b.cast(y, DType::float64), times);
  const Expr bounded = d.at_most(d.at_least(power, d.number(-200)), d.number(200));
  const Rounded n = round_scaled(d, bounded, d.number(1));
  const Expr p = d.polynomial(bounded - n.value, kExp2ForPowF64);
  return b.cast(p * power_of_two(d, n.exponent), DType::float32);
}

}  // namespace

Expr pow(Expr x, Expr y) {
  const Format f(x);
  Builder& b = f.b;
  const Expr size = f.abs(x);
  const Expr value = f.single() ? pow_single(f, size, y) : pow_double(f, size, y);
  const Expr zero = f.number(0);
  const Expr one = f.number(1);
  const Expr half = y * f.number(0.5);
  const Expr whole = b.unary(Unary::round, y) == y;
  const Expr odd = whole & (b.unary(Unary::round, half) != half);
  // An odd power keeps the sign, of zero too; only whole powers of negative numbers exist.
  const Expr negative = f.b.select(odd, x, one);
  const Expr is_real = whole | !((x < zero) & (-f.infinity() < x));
  const Expr signed_value = b.select(is_real, f.with_sign(value, negative), f.nan());
  return b.select((y == zero) | (x == one), one, signed_value);
}

}  // namespace croton::kernel
