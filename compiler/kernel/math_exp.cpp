// exp, its inverse and what follows from them.
#include <cmath>

#include "compiler/kernel/coefficients.h"
#include "compiler/kernel/math.h"
#include "compiler/kernel/math_parts.h"

namespace croton::kernel {
namespace {

constexpr double kOne[] = {1, 0};

// p * 2^n where the result may be subnormal: then first 2^64 too large, so that only the last
// step rounds. `low` says where that may be.
Expr scale_down(const Format& f, Expr p, Expr exponent, Expr low) {
  constexpr int kLift = 64;
  const Expr bits = f.to_bits(p) + exponent;
  const Expr lifted = bits + f.integer(std::int64_t{kLift} << f.mantissa);
  const Expr y = f.from_bits(f.b.select(low, lifted, bits));
  return f.b.select(low, y * f.number(std::ldexp(1.0, -kLift)), y);
}

// y for x up to `highest`, infinity above, NaN for NaN.
Expr or_overflow(const Format& f, Expr x, Expr highest, Expr y) {
  const Expr huge = f.number(f.pick(0x1p127, 0x1p1023));
  return f.b.select(x <= highest, y, x * huge);
}

// y where 0 < x < infinity; what log gives elsewhere.
Expr or_log_edge(const Format& f, Expr x, Expr y) {
  const Expr zero = f.number(0);
  const Expr edge = f.b.select(x == zero, -f.infinity(), f.b.select(x < zero, f.nan(), x));
  const Expr inside = (zero < x) & (x < f.infinity());
  return f.b.select(inside, y, edge);
}

// k * unit + log(1 + fraction) * factor.
Expr log_in_base(Expr x, Format::Table unit, Format::Table factor) {
  const Format f(x);
  const LogParts parts = log_parts(f, x);
  const auto [high, low] = f.split(factor, 0);
  const auto [unit_high, unit_low] = f.split(unit, 11);
  const Expr rest = log_rest(f, parts.fraction) * high;
  const Expr small = f.b.fma(parts.k, unit_low, f.b.fma(parts.fraction, low, rest));
  const Expr sum = f.b.fma(parts.fraction, high, small);
  return or_log_edge(f, x, f.b.fma(parts.k, unit_high, sum));
}

// log(1 + x) for -1 < x < infinity.
Expr log1p_inside(const Format& f, Expr x) {
  const Expr one = f.number(1);
  const Expr y = one + x;
  const LogParts parts = log_parts(f, y);
  // What the sum lost, times 2^-k: y and its fraction differ in the exponent alone.
  const Expr lost = x - (y - one);
  const Expr power =
      f.at_most(y, f.number(0x1p64));  // above nothing is lost, times a finite number
  const Expr inverse =
      f.from_bits(f.to_bits(one + parts.fraction) - f.to_bits(power) + f.to_bits(one));
  const Expr fraction = f.b.fma(lost, inverse, parts.fraction);
  const auto [high, low] = f.split(kLn2, 11);
  const Expr rest = f.b.fma(parts.k, low, log_rest(f, fraction));
  return f.b.fma(parts.k, high, fraction + rest);
}

}  // namespace

Expr exp(Expr x) {
  const Format f(x);
  const Expr bounded = f.at_least(x, f.number(-104, -746));
  const Rounded n = round_scaled(f, bounded, f.number(kLog2E[0]));
  const auto [high, low] = f.split(kLn2, 0);
  const Expr r = f.b.fma(n.value, -low, f.b.fma(n.value, -high, bounded));
  const Expr p = f.polynomial(r, kExpF32, kExpF64);
  const Expr y = scale_down(f, p, n.exponent, x < f.number(-86, -700));
  return or_overflow(f, x, f.number(88.72283935546875, 709.782712893384), y);
}

Expr exp2(Expr x) {
  const Format f(x);
  const Expr bounded = f.at_least(x, f.number(-151, -1076));
  const Rounded n = round_scaled(f, bounded, f.number(1));
  const Expr p = f.polynomial(bounded - n.value, kExp2F32, kExp2F64);
  const Expr y = scale_down(f, p, n.exponent, x < f.number(-124, -1020));
  return or_overflow(f, x, f.number(0x1.fffffep6, 0x1.fffffffffffffp9), y);
}

Expr expm1(Expr x) {
  const Format f(x);
  const Expr bounded = f.at_least(x, f.number(-18, -40));
  const auto [exponent, part] = expm1_parts(f, bounded);
  // Half of it, as the scale itself may overflow.
  const Expr half_scale = power_of_two(f, exponent - f.integer(std::int64_t{1} << f.mantissa));
  const Expr half = f.b.fma(half_scale, part, half_scale - f.number(0.5));
  const Expr y = or_overflow(f, x, f.number(88.72283935546875, 709.782712893384), half + half);
  return f.b.select(f.abs(x) < f.number(0x1p-26, 0x1p-55), x, y);
}

Expr log(Expr x) {
  const Format f(x);
  const LogParts parts = log_parts(f, x);
  const auto [high, low] = f.split(kLn2, 11);
  const Expr rest = f.b.fma(parts.k, low, log_rest(f, parts.fraction));
  return or_log_edge(f, x, f.b.fma(parts.k, high, parts.fraction + rest));
}

Expr log2(Expr x) { return log_in_base(x, kOne, kLog2E); }

Expr log10(Expr x) { return log_in_base(x, kLog10Of2, kLog10E); }

Expr log1p(Expr x) {
  const Format f(x);
  const Expr y = or_log_edge(f, f.number(1) + x, log1p_inside(f, x));
  return f.b.select(f.abs(x) < f.number(0x1p-26, 0x1p-55), x, y);
}

// 1 / (1 + exp(-x)), all times 2^-64 where exp(-x) may overflow and the result be subnormal.
Expr sigmoid(Expr x) {
  const Format f(x);
  constexpr int kLift = 64;
  const Expr bounded = f.at_most(f.at_least(x, f.number(-104, -746)), f.number(40));
  const Rounded n = round_scaled(f, bounded, f.number(-kLog2E[0]));
  const auto [high, low] = f.split(kLn2, 0);
  const Expr r = f.b.fma(n.value, -low, f.b.fma(n.value, -high, -bounded));
  const Expr deep = x < f.number(-86, -700);
  const Expr lowered = n.exponent - f.integer(std::int64_t{kLift} << f.mantissa);
  const Expr scale = power_of_two(f, f.b.select(deep, lowered, n.exponent));
  const Expr unit = f.b.select(deep, f.number(std::ldexp(1.0, -kLift)), f.number(1));
  return unit / f.b.fma(f.polynomial(r, kExpF32, kExpF64), scale, unit);
}

Expr softplus(Expr x) {
  const Format f(x);
  const Expr e = exp(-f.abs(x));
  const Expr rest = f.b.select(e < f.number(0x1p-26, 0x1p-55), e, log1p_inside(f, e));
  return f.b.select(f.number(0) < x, x, f.number(0)) + rest;
}

Expr tanh(Expr x) {
  const Format f(x);
  const Expr size = f.abs(x);
  const Expr square = x * x;
  const Expr small = f.b.fma(size * square, f.polynomial(square, kTanhF32, kTanhF64), size);
  // Then 1 - 2 / (exp(2x) + 1), where what is taken away is less than what stays.
  const Expr bounded = f.at_most(size, f.number(10, 22));
  const Expr scale = f.number(2 * kLog2E[0]);
  const Rounded n = round_scaled(f, bounded, scale);
  const Expr p = f.polynomial(f.b.fma(bounded, scale, -n.value), kExp2F32, kExp2F64);
  const Expr sum = f.b.fma(p, power_of_two(f, n.exponent), f.number(1));
  const Expr large = f.number(1) - f.number(2) / sum;
  return f.with_sign(f.b.select(f.number(0.7) < size, large, small), x);
}

Expr sinh(Expr x) {
  const Format f(x);
  const Expr size = f.abs(x);
  const Expr bounded = f.at_most(size, f.number(89.5, 710.5));
  const auto [exponent, part] = expm1_parts(f, bounded);
  // A quarter of expm1, as the scale itself may overflow.
  const Expr scale = power_of_two(f, exponent - f.integer(std::int64_t{2} << f.mantissa));
  const Expr quarter = f.b.fma(scale, part, scale - f.number(0.25));
  const Expr half = quarter + quarter / f.b.fma(quarter, f.number(4), f.number(1));
  const Expr y = f.with_sign(half + half, x);
  return f.b.select(size < f.number(0x1p-13, 0x1p-28), x, y);
}

Expr cosh(Expr x) {
  const Format f(x);
  const Expr bounded = f.at_most(f.abs(x), f.number(89.5, 710.5));
  const auto [exponent, part] = expm1_parts(f, bounded);
  const Expr scale = power_of_two(f, exponent - f.integer(std::int64_t{2} << f.mantissa));
  const Expr quarter = f.b.fma(scale, part, scale);
  const Expr half = quarter + f.number(0.0625) / quarter;
  return half + half;
}

Expr is_nan(Expr x) { return x != x; }

}  // namespace croton::kernel
