// Bessel functions of orders 0 and 1.
#include "compiler/kernel/coefficients.h"
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

/// J(x) for x in [0, 8].
template <int kOrder>
Expr bessel_j_near(const Work& w, Expr near) {
  const Expr v = w.b.fma(near, near * w.number(1.0 / 32), w.number(-1));
  return kOrder == 0 ? w.polynomial(v, kJ0NearShort, kJ0NearLong)
                     : near * w.polynomial(v, kJ1NearShort, kJ1NearLong);
}

/// J and Y for a >= 8: J0 = (P (cos a + sin a) - Q (sin a - cos a)) / sqrt(pi a), Y0 with both
/// sums exchanged, and of order 1 the same turned by pi/2.
struct Waves {
  Expr j, y;
};
template <int kOrder>
Waves bessel_far(const Work& w, Expr a) {
  const Expr eighth = w.number(kNear) / a;
  const Expr t = eighth * eighth;
  const Expr p =
      kOrder == 0 ? w.polynomial(t, kJ0PShort, kJ0PLong) : w.polynomial(t, kJ1PShort, kJ1PLong);
  const Expr q =
      (kOrder == 0 ? w.polynomial(t, kJ0QShort, kJ0QLong) : w.polynomial(t, kJ1QShort, kJ1QLong)) /
      a;
  const auto [sine, cosine] = sine_cosine(a);
  const Expr plus = cosine + sine;
  const Expr minus = sine - cosine;
  const Expr root = w.b.unary(Unary::sqrt, a) * w.number(kSqrtPi[0]);
  const Expr in_phase = kOrder == 0 ? plus : minus;
  const Expr across = kOrder == 0 ? minus : -plus;
  return {w.b.fma(p, in_phase, -(q * across)) / root, w.b.fma(p, across, q * in_phase) / root};
}

template <int kOrder>
Expr bessel_j(const Work& w, Expr x) {
  const Expr a = w.abs(x);
  const Expr small = bessel_j_near<kOrder>(w, w.at_most(a, w.number(kNear)));
  const Expr far = w.at_least(a, w.number(kNear));
  const Expr y = w.b.select(a < w.number(kNear), small, bessel_far<kOrder>(w, far).j);
  const Expr bounded = w.b.select(a == w.infinity(), w.number(0), y);
  if (kOrder == 0) return bounded;
  // An odd function.
  return w.from_bits(w.to_bits(bounded) ^ (w.to_bits(x) & w.sign_mask()));
}

/// Y up to 8 is 2/pi (log(x) J(x)), for order 1 less 1/x, and an even or odd function.
template <int kOrder>
Expr bessel_y(const Work& w, Expr x) {
  Builder& b = w.b;
  const Expr zero = w.number(0);
  const Expr near = w.at_most(x, w.number(kNear));
  const Expr v = b.fma(near, near * w.number(1.0 / 32), w.number(-1));
  const Expr rest = kOrder == 0 ? w.polynomial(v, kY0NearShort, kY0NearLong)
                                : near * w.polynomial(v, kY1NearShort, kY1NearLong);
  const Expr log = w.log(near) * w.number(kTwoOverPi[0]);
  Expr small = b.fma(log, bessel_j_near<kOrder>(w, near), rest);
  if (kOrder == 1) small = small - w.number(kTwoOverPi[0]) / near;
  const Expr far = w.at_least(x, w.number(kNear));
  const Expr y = b.select(x < w.number(kNear), small, bessel_far<kOrder>(w, far).y);
  const Expr bounded = b.select(x == w.infinity(), zero, y);
  return b.select(x == zero, -w.infinity(), b.select(x < zero, w.nan(), bounded));
}

}  // namespace

Expr i0(Expr x) { return in_float64(bessel_i<0>, x); }
Expr i1(Expr x) { return in_float64(bessel_i<1>, x); }
Expr i0e(Expr x) { return in_float64(bessel_i_scaled<0>, x); }
Expr i1e(Expr x) { return in_float64(bessel_i_scaled<1>, x); }
Expr j0(Expr x) { return in_float64(bessel_j<0>, x); }
Expr j1(Expr x) { return in_float64(bessel_j<1>, x); }
Expr y0(Expr x) { return in_float64(bessel_y<0>, x); }
Expr y1(Expr x) { return in_float64(bessel_y<1>, x); }

}  // namespace croton::kernel
