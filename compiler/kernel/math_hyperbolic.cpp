// The inverses of the hyperbolic functions, by log1p.
#include "compiler/kernel/coefficients.h"
#include "compiler/kernel/math.h"
#include "compiler/kernel/math_parts.h"

namespace croton::kernel {
namespace {

// Above it log(2x) is as good; below it x^2 does not overflow.
Expr huge(const Format& f) { return f.number(0x1p30, 0x1p60); }

// log(1 + x), plus log(2) where `doubled`.
Expr log1p_and_ln2(const Format& f, Expr x, Expr doubled) {
  return log1p(x) + f.b.select(doubled, f.number(kLn2[0]), f.number(0));
}

}  // namespace

Expr arcsinh(Expr x) {
  const Format f(x);
  const Expr size = f.abs(x);
  const Expr one = f.number(1);
  const Expr square = size * size;
  const Expr root = f.b.unary(Unary::sqrt, f.b.fma(size, size, one));
  const Expr far = huge(f) < size;
  const Expr rest = f.b.select(far, size, size + square / (one + root));
  return f.with_sign(log1p_and_ln2(f, rest, far), x);
}

Expr arccosh(Expr x) {
  const Format f(x);
  const Expr one = f.number(1);
  const Expr t = x - one;
  const Expr root = f.b.unary(Unary::sqrt, f.b.fma(t, t, t + t));
  const Expr far = huge(f) < x;
  const Expr y = log1p_and_ln2(f, f.b.select(far, x, t + root), far);
  return f.b.select(x < one, f.nan(), y);
}

Expr arctanh(Expr x) {
  const Format f(x);
  const Expr size = f.abs(x);
  const Expr y = f.number(0.5) * log1p((size + size) / (f.number(1) - size));
  return f.with_sign(y, x);
}

}  // namespace croton::kernel
