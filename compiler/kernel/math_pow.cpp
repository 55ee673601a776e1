// pow: 2^(y log2 |x|), with the logarithm in more digits than the result has.
#include "compiler/kernel/coefficients.h"
#include "compiler/kernel/math.h"
#include "compiler/kernel/math_wide.h"

namespace croton::kernel {
namespace {

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
