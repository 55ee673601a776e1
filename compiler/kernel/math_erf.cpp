// The error function and its complement.
#include <cmath>

#include "compiler/kernel/coefficients.h"
#include "compiler/kernel/math.h"
#include "compiler/kernel/math_parts.h"

namespace croton::kernel {
namespace {

Expr small_erf(const Format& f, Expr x, Expr square) {
  return f.b.fma(x, f.polynomial(square, kErfF32, kErfF64), x);
}

// exp(-x^2) scaled by 2^lift where that may be subnormal, and the factor that takes it back.
struct Gauss {
  Expr value;
  Expr factor;
};
Gauss gauss(const Format& f, Expr x) {
  Builder& b = f.b;
  constexpr int kLift = 64;
  const Expr square = x * x;
  const Expr lost = b.fma(x, x, -square);
  const Rounded n = round_scaled(f, -square, f.number(kLog2E[0]));
  const auto [high, low] = f.split(kLn2, 0);
  const Expr r = b.fma(n.value, -low, b.fma(n.value, -high, -square)) - lost;
  const Expr deep = f.number(f.pick(80.0, 690.0)) < square;
  const Expr lifted = n.exponent + f.integer(std::int64_t{kLift} << f.mantissa);
  const Expr scale = power_of_two(f, b.select(deep, lifted, n.exponent));
  return {f.polynomial(r, kExpF32, kExpF64) * scale,
          b.select(deep, f.number(std::ldexp(1.0, -kLift)), f.number(1))};
}

}  // namespace

Expr erf(Expr x) {
  const Format f(x);
  Builder& b = f.b;
  const Expr size = f.abs(x);
  const Expr small = small_erf(f, size, size * size);
  // 1 - 2^(log2(erfc(x))).
  const Expr bounded = f.at_most(size - f.number(1), f.number(3, 4.95));
  const Expr power = f.polynomial(bounded, kLog2ErfcF32, kLog2ErfcF64);
  const Rounded n = round_scaled(f, power, f.number(1));
  const Expr p = f.polynomial(power - n.value, kExp2F32, kExp2F64);
  const Expr large = b.fma(-p, power_of_two(f, n.exponent), f.number(1));
  return f.with_sign(b.select(f.number(1) < size, large, small), x);
}

Expr erfc(Expr x) {
  const Format f(x);
  Builder& b = f.b;
  const Expr size = f.abs(x);
  const Expr one = f.number(1);
  const Expr near = one - small_erf(f, x, x * x);
  // exp(-x^2) P((x - k)/(x + k)) / (1 + 2x).
  const Expr bounded = f.at_most(size, f.number(10.1, 27.3));
  const Expr k = f.number(2, 4);
  const Expr q = (bounded - k) / (bounded + k);
  const Expr p = f.polynomial(q, kErfcF32, kErfcF64) / b.fma(f.number(2), bounded, one);
  const Gauss g = gauss(f, bounded);
  const Expr right = g.value * p * g.factor;
  const Expr far = b.select(x < f.number(0), f.number(2) - right, right);
  return b.select(f.number(0.45) < size, far, near);
}

}  // namespace croton::kernel
