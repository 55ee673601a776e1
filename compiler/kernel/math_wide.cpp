#include "compiler/kernel/math_wide.h"

#include "compiler/kernel/coefficients.h"
#include "compiler/kernel/math.h"
#include "compiler/kernel/special_coefficients.h"

namespace croton::kernel {

Double sum(Expr a, Expr b) {
  const Expr high = a + b;
  return {high, (a - high) + b};
}

Double sum_of_any(Expr a, Expr b) {
  const Expr high = a + b;
  const Expr part = high - a;
  return {high, (a - (high - part)) + (b - part)};
}

Double product(Builder& b, Double x, Double y) {
  const Expr high = x.high * y.high;
  const Expr error = b.fma(x.high, y.high, -high);
  return {high, b.fma(x.low, y.high, b.fma(x.high, y.low, error))};
}

Double constant(const Format& f, Format::Table parts, double factor) {
  return {f.number(parts[0] * factor), f.number(parts[1] * factor)};
}

// With s = (m - 1) / (m + 1), log(m) = 2 (s + s^3 / 3 + s^5 A(s^2)).
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

namespace {

Expr exp2_by(const Format& f, Format::Table table, Expr power, Expr low, Expr factor) {
  const Rounded n = round_scaled(f, power, f.number(1));
  Expr p = f.polynomial((power - n.value) + low, table);
  if (factor) p = p * factor;
  const Rounded half = round_scaled(f, n.value, f.number(0.5));
  const Expr rest = n.exponent - half.exponent;
  return p * power_of_two(f, half.exponent) * power_of_two(f, rest);
}

}  // namespace

Expr exp2_wide(const Format& f, Expr power, Expr low, Expr factor) {
  return exp2_by(f, kExp2F64, power, low, factor);
}

Expr exp2_wide(const Work& w, Expr power, Expr low, Expr factor) {
  if (!w.brief) return exp2_by(w, kExp2F64, power, low, factor);
  return exp2_by(w, kExp2ForPowF64, power, low, factor);
}

Double log2_wide(const Work& w, Expr x) {
  if (!w.brief) return log2_wide(static_cast<const Format&>(w), x);
  return {w.log(x) * w.number(kLog2E[0]), w.number(0)};
}

Expr Work::log(Expr x) const {
  if (!brief) return kernel::log(x);
  const auto [k, fraction] = log_parts(*this, x);
  const Expr tail = b.fma(fraction, Format::polynomial(fraction, kLogForPowF64), number(-0.5));
  const Expr y = b.fma(k, number(kLn2[0]), b.fma(fraction * fraction, tail, fraction));
  const Expr edge = b.select(x == number(0), -infinity(), b.select(x < number(0), nan(), x));
  return b.select((number(0) < x) & (x < infinity()), y, edge);
}

Expr Work::exp(Expr x) const {
  if (!brief) return kernel::exp(x);
  const Expr bounded = at_most(at_least(x, number(-700)), number(700));
  const Rounded n = round_scaled(*this, bounded, number(kLog2E[0]));
  const Expr rest = b.fma(bounded, number(kLog2E[0]), -n.value);
  return Format::polynomial(rest, kExp2ForPowF64) * power_of_two(*this, n.exponent);
}

Expr Work::exp_times(Expr x, Expr low, Expr factor) const {
  if (brief) return exp(x) * factor;
  const Expr bounded = at_most(at_least(x, number(-1400)), number(1400));
  const Rounded n = round_scaled(*this, bounded, number(kLog2E[0]));
  const auto [high, ln2_low] = split(kLn2, 0);
  const Expr r = b.fma(n.value, -ln2_low, b.fma(n.value, -high, bounded)) + low;
  const Rounded half = round_scaled(*this, n.value, number(0.5));
  const Expr scale = power_of_two(*this, half.exponent);
  const Expr rest = power_of_two(*this, n.exponent - half.exponent);
  return Format::polynomial(r, kExpF64) * factor * scale * rest;
}

Expr Work::sin_of_turn(Expr d) const { return d * polynomial(d * d, kSinPiShort, kSinPiLong); }

}  // namespace croton::kernel
