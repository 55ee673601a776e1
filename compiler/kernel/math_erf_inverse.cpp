// The scaled complement of the error function, and the inverses of it and its complement.
#include "compiler/kernel/math.h"
#include "compiler/kernel/math_wide.h"
#include "compiler/kernel/special_coefficients.h"

namespace croton::kernel {
namespace {

Expr erfcx_rule(const Work& w, Expr x) {
  Builder& b = w.b;
  const Expr a = w.abs(x);
  const Expr four = w.number(4);
  const Expr bounded = w.at_most(a, w.number(1e300));
  const Expr q = (bounded - four) / (bounded + four);
  const Expr right = w.polynomial(q, kErfcxShort, kErfcxLong) / b.fma(w.number(2), a, w.number(1));
  // 2 exp(x^2) - erfcx(-x).
  const Expr inside = w.at_most(a, w.number(30));
  const Expr square = inside * inside;
  const Expr lost = b.fma(inside, inside, -square);
  const Expr left = w.exp_times(square, lost, w.number(2)) - right;
  return b.select(x < w.number(0), left, right);
}

/// The z with erf(z) = a for a in [0, 1], from a and w = -log(1 - a^2).
Expr inverse_of(const Work& w, Expr a, Expr log, bool deep) {
  Builder& b = w.b;
  const Expr middle_from = w.number(6.25);
  const Expr central =
      a * w.polynomial(log - w.number(3.125), kErfinvCentralShort, kErfinvCentralLong);
  const Expr s = b.unary(Unary::sqrt, log);
  Expr tail = w.polynomial(s - w.number(4.25), kErfinvMiddleShort, kErfinvMiddleLong);
  if (deep) {
    const Expr v = b.fma(w.number(16), w.number(1) / s, w.number(-1.625));
    const Expr far = w.polynomial(v, kErfinvFarShort, kErfinvFarLong);
    tail = b.select(s < w.number(6), tail, far);
  }
  const Expr y = b.select(log < middle_from, central, s * tail);
  return b.select(log == w.infinity(), log, y);
}

Expr erfinv_rule(const Work& w, Expr x) {
  const Expr one = w.number(1);
  const Expr a = w.abs(x);
  const Expr log = -w.log((one - a) * (one + a));
  return w.with_sign(inverse_of(w, a, log, false), x);
}

Expr erfcinv_rule(const Work& w, Expr y) {
  const Expr one = w.number(1);
  const Expr rest = one - y;
  const Expr log = -w.log(y * (w.number(2) - y));
  return w.with_sign(inverse_of(w, w.abs(rest), log, true), rest);
}

}  // namespace

Expr erfcx(Expr x) { return in_float64(erfcx_rule, x); }
Expr erfinv(Expr x) { return in_float64(erfinv_rule, x); }
Expr erfcinv(Expr y) { return in_float64(erfcinv_rule, y); }

}  // namespace croton::kernel
