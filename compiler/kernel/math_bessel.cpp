// Bessel functions of orders 0 and 1.
#include "compiler/kernel/math.h"
#include "compiler/kernel/math_wide.h"
#include "compiler/kernel/special_coefficients.h"

namespace croton::kernel {
namespace {

/// Up to here by powers of x, beyond by an asymptotic form.
constexpr double kNear = 8;

/// I(x) for x in [0, 8], by a polynomial in x^2; and sqrt(x) exp(-x) I(x) beyond.
struct ModifiedParts {
  Expr near, far, root;
};
ModifiedParts modified(const Work& w, Expr a, int order) {
  const Expr near = w.at_most(a, w.number(kNear));
  const Expr far = w.at_least(a, w.number(kNear));
  const Expr square = near * near;
  const Expr v = w.b.fma(w.number(16), w.number(1) / far, w.number(-1));
  const Expr root = w.b.unary(Unary::sqrt, far);
  if (order == 0) {
    return {w.polynomial(square, kI0NearShort, kI0NearLong),
            w.polynomial(v, kI0FarShort, kI0FarLong), root};
  }
  return {near * w.polynomial(square, kI1NearShort, kI1NearLong),
          w.polynomial(v, kI1FarShort, kI1FarLong), root};
}

template <int kOrder>
Expr bessel_i(const Work& w, Expr x) {
  const Expr a = w.abs(x);
  const ModifiedParts parts = modified(w, w.at_most(a, w.number(1400)), kOrder);
  const Expr far = w.exp_times(a, w.number(0), parts.far / parts.root);
  const Expr y = w.b.select(a < w.number(kNear), parts.near, far);
  return kOrder == 0 ? y : w.with_sign(y, x);
}

template <int kOrder>
Expr bessel_i_scaled(const Work& w, Expr x) {
  const Expr a = w.abs(x);
  const ModifiedParts parts = modified(w, a, kOrder);
  const Expr near = parts.near * w.exp(-w.at_most(a, w.number(kNear)));
  const Expr y = w.b.select(a < w.number(kNear), near, parts.far / parts.root);
  return kOrder == 0 ? y : w.with_sign(y, x);
}

/// J for a >= 8: (P (cos a + sin a) - Q (sin a - cos a)) / sqrt(pi a), and for order 1 the same
/// turned by pi/2.
template <int kOrder>
Expr bessel_j_far(const Work& w, Expr a) {
  const Expr eighth = w.number(kNear) / a;
  const Expr t = eighth * eighth;
  const Expr p =
      kOrder == 0 ? w.polynomial(t, kJ0PShort, kJ0PLong) : w.polynomial(t, kJ1PShort, kJ1PLong);
  const Expr q =
      kOrder == 0 ? w.polynomial(t, kJ0QShort, kJ0QLong) : w.polynomial(t, kJ1QShort, kJ1QLong);
  const Expr sine = sin(a);
  const Expr cosine = cos(a);
  const Expr plus = cosine + sine;
  const Expr minus = sine - cosine;
  const Expr in_phase = kOrder == 0 ? plus : minus;
  const Expr across = kOrder == 0 ? minus : -plus;
  const Expr wave = w.b.fma(p, in_phase, -(q / a * across));
  return wave / w.b.unary(Unary::sqrt, a * w.number(kPi[0]));
}

template <int kOrder>
Expr bessel_j(const Work& w, Expr x) {
  const Expr a = w.abs(x);
  const Expr near = w.at_most(a, w.number(kNear));
  const Expr v = w.b.fma(near, near * w.number(1.0 / 32), w.number(-1));
  Expr small = kOrder == 0 ? w.polynomial(v, kJ0NearShort, kJ0NearLong)
                           : near * w.polynomial(v, kJ1NearShort, kJ1NearLong);
  const Expr far = w.at_least(a, w.number(kNear));
  const Expr y = w.b.select(a < w.number(kNear), small, bessel_j_far<kOrder>(w, far));
  const Expr bounded = w.b.select(a == w.infinity(), w.number(0), y);
  if (kOrder == 0) return bounded;
  // An odd function.
  return w.from_bits(w.to_bits(bounded) ^ (w.to_bits(x) & w.sign_mask()));
}

}  // namespace

Expr i0(Expr x) { return in_float64(bessel_i<0>, x); }
Expr i1(Expr x) { return in_float64(bessel_i<1>, x); }
Expr i0e(Expr x) { return in_float64(bessel_i_scaled<0>, x); }
Expr i1e(Expr x) { return in_float64(bessel_i_scaled<1>, x); }
Expr j0(Expr x) { return in_float64(bessel_j<0>, x); }
Expr j1(Expr x) { return in_float64(bessel_j<1>, x); }

}  // namespace croton::kernel
