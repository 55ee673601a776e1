// Roots and logarithms of sums that neither overflow nor lose what is small; the cube root.
#include "compiler/kernel/coefficients.h"
#include "compiler/kernel/math.h"
#include "compiler/kernel/math_wide.h"

namespace croton::kernel {
namespace {

Expr cbrt_rule(const Work& w, Expr x) {
  Builder& b = w.b;
  const Expr a = w.abs(x);
  // Subnormal squares would spoil the correction.
  const Expr low = a < w.number(0x1p-900);
  const Expr lifted = b.select(low, a * w.number(0x1p162), a);
  const Expr guess = w.exp(w.log(lifted) * w.number(1.0 / 3));
  const Expr square = guess * guess;
  const Expr lost = b.fma(guess, guess, -square);
  const Expr rest = b.fma(-lost, guess, b.fma(-square, guess, lifted));
  const Expr root = guess + rest / (square * w.number(3));
  const Expr y = b.select(low, root * w.number(0x1p-54), root);
  const Expr inside = (w.number(0) < a) & (a < w.infinity());
  return w.with_sign(b.select(inside, y, a), x);
}

Expr hypot_rule(const Work& w, Expr x, Expr y) {
  Builder& b = w.b;
  const Expr ax = w.abs(x);
  const Expr ay = w.abs(y);
  const Expr more = b.select(ax < ay, ay, ax);
  const Expr less = b.select(ax < ay, ax, ay);
  const Expr large = w.number(0x1p500) < more;
  const Expr small = more < w.number(0x1p-500);
  const Expr one = w.number(1);
  const Expr scale = b.select(large, w.number(0x1p-600), b.select(small, w.number(0x1p600), one));
  const Expr back = b.select(large, w.number(0x1p600), b.select(small, w.number(0x1p-600), one));
  const Expr u = more * scale;
  const Expr v = less * scale;
  // The root of u^2 + v^2, and what rounding it took away.
  const Expr square = u * u;
  const Expr total = b.fma(v, v, square);
  const Expr root = b.unary(Unary::sqrt, total);
  const Expr missed = b.fma(v, v, square - total) + b.fma(u, u, -square);
  const Expr rest = b.fma(-root, root, total) + missed;
  const Expr better = root + rest / (root + root);
  const Expr length = b.select(total == w.number(0), total, better) * back;
  const Expr infinite = (ax == w.infinity()) | (ay == w.infinity());
  return b.select(infinite, w.infinity(), length);
}

}  // namespace

Expr cbrt(Expr x) { return in_float64(cbrt_rule, x); }
Expr hypot(Expr x, Expr y) { return in_float64(hypot_rule, x, y); }

Expr logaddexp(Expr x, Expr y) {
  const Format f(x);
  const Expr more = f.b.binary(Binary::max, x, y);
  const Expr rest = log1p(exp(-f.abs(x - y)));
  return more + f.b.select(x == y, f.number(kLn2[0]), rest);
}

Expr logaddexp2(Expr x, Expr y) {
  const Format f(x);
  const Expr more = f.b.binary(Binary::max, x, y);
  const Expr rest = log1p(exp2(-f.abs(x - y))) * f.number(kLog2E[0]);
  return more + f.b.select(x == y, f.number(1), rest);
}

Expr log1mexp(Expr x) {
  const Format f(x);
  const Expr near = f.number(-kLn2[0]) < x;
  const Expr close = log(-expm1(x));
  return f.b.select(near, close, log1p(-exp(x)));
}

}  // namespace croton::kernel
