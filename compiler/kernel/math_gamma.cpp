// The gamma function, its logarithm, and the derivatives of that.
#include "compiler/kernel/math_gamma.h"

#include <array>
#include <cmath>
#include <vector>

#include "compiler/kernel/coefficients.h"
#include "compiler/kernel/math.h"
#include "compiler/kernel/special_coefficients.h"
#include "croton/error.h"

namespace croton::kernel {
namespace {

/// What reflections need: how far x is from the nearest integer, and sin(pi x).
struct Turn {
  Expr rest;  ///< x - nearest integer
  Expr sine;
};
Turn turn_of(const Work& w, Expr x) {
  const Expr nearest = w.b.unary(Unary::round, x);
  const Expr rest = x - nearest;
  const Expr sine = w.sin_of_turn(rest);
  const Expr half = nearest * w.number(0.5);
  const Expr odd = w.b.unary(Unary::round, half) != half;
  return {rest, w.b.select(odd, -sine, sine)};
}

/// a = count + fraction.
struct Whole {
  Expr count, fraction;
};
Whole whole_of(const Work& w, Expr a) {
  const Expr count = w.b.unary(Unary::floor, a);
  return {count, a - count};
}

/// (t + 2)(t + 3)...(a - 1), which takes gamma(2 + t) to gamma(a), for a below `limit`.
Expr rising(const Work& w, const Whole& a, int limit) {
  Expr result = w.number(1);
  for (int k = 2; k + 1 < limit; ++k) {
    const Expr factor = a.fraction + w.number(k);
    result = result * w.b.select(w.number(k) < a.count, factor, w.number(1));
  }
  return result;
}

}  // namespace

Expr stirling_rest(const Work& w, Expr a) {
  const Expr inverse = w.number(1) / a;
  return inverse * w.polynomial(inverse * inverse, kStirlingShort, kStirlingLong);
}

Expr small_gamma(const Work& w, Expr a) {
  Builder& b = w.b;
  const Expr one = w.number(1);
  const Whole parts = whole_of(w, a);
  const Expr t = parts.fraction;
  const Expr base = b.fma(t, w.polynomial(t, kGammaShort, kGammaLong), one);
  const Expr below_two = b.select(parts.count < w.number(2), one + t, one);
  const Expr below_one = b.select(parts.count < one, t, one);
  return base * rising(w, parts, kStirlingFrom) / (below_two * below_one);
}

Double log2_gamma(const Work& w, Expr a) {
  Builder& b = w.b;
  const Expr zero = w.number(0);
  const Double log = log2_wide(w, a);
  const Double power = product(b, {a - w.number(0.5), zero}, log);
  const Double decay = product(b, {a, zero}, constant(w, kLog2E));
  const Double main = sum_of_any(power.high, -decay.high);
  const Double total = sum_of_any(main.high, w.number(kHalfLog2TwoPi[0]));
  const Expr rest = b.fma(stirling_rest(w, a), w.number(kLog2E[0]), power.low - decay.low);
  return {total.high, total.low + (main.low + rest)};
}

Expr gammaln_right(const Work& w, Expr a) {
  Builder& b = w.b;
  const Expr one = w.number(1);
  const Expr tiny = a < w.number(0.75);
  const Expr small = a < w.number(3);
  const Expr middle = a < w.number(8);
  const Whole parts = whole_of(w, w.at_most(a, w.number(8)));
  const Expr z = b.select(tiny, a + one, b.select(small, a, parts.fraction + w.number(2)));
  const Expr low = w.polynomial(z - w.number(1.125), kGammalnLowShort, kGammalnLowLong);
  const Expr high = w.polynomial(z - w.number(2.25), kGammalnHighShort, kGammalnHighLong);
  const Expr roots = (z - one) * (z - w.number(2));
  const Expr near = roots * b.select(z < w.number(1.5), low, high);
  const Expr product = b.select(small, one, rising(w, parts, 8));
  const Expr log = w.log(b.select(tiny, a, b.select(middle, product, a)));
  const Expr below = near + b.select(tiny, -log, log);
  const Expr rest = stirling_rest(w, w.at_least(a, w.number(8))) + w.number(kHalfLogTwoPi[0] - 0.5);
  const Expr above = b.fma(a - w.number(0.5), log - one, rest);
  return b.select(middle, below, above);
}

Expr gammaln_of_one_plus(const Work& w, Expr a) {
  const Expr low = w.polynomial(a - w.number(0.125), kGammalnLowShort, kGammalnLowLong);
  const Expr high = w.polynomial(a - w.number(1.25), kGammalnHighShort, kGammalnHighLong);
  return a * (a - w.number(1)) * w.b.select(a < w.number(0.5), low, high);
}

namespace {

Expr gamma_rule(const Work& w, Expr x) {
  Builder& b = w.b;
  const Expr a = w.abs(x);
  const Expr limit = w.number(kStirlingFrom);
  const Expr far = limit <= a;
  const Expr near = small_gamma(w, w.at_most(a, limit));
  const Double power = log2_gamma(w, w.at_least(w.at_most(a, w.number(200)), limit));
  const Expr bounded = w.at_most(power.high, w.number(1100));
  const Expr positive = b.select(far, exp2_wide(w, bounded, power.low), near);
  // gamma(-a) = -pi / (a sin(pi a) gamma(a)).
  const Expr factor = w.number(-kPi[0]) / (a * turn_of(w, a).sine);
  const Expr negative = b.select(far, exp2_wide(w, -bounded, -power.low, factor), factor / near);
  const Expr pole = b.unary(Unary::floor, x) == x;
  const Expr left = b.select(pole, w.nan(), negative);
  const Expr y = b.select(x < w.number(0), left, b.select(x < w.infinity(), positive, x));
  // Where x is tiny, 1/x is as good, and what is above would underflow.
  return b.select(a < w.number(0x1p-60), w.number(1) / x, y);
}

Expr gammaln_rule(const Work& w, Expr x) {
  Builder& b = w.b;
  const Expr a = w.abs(x);
  const Expr right = gammaln_right(w, a);
  // Where x is tiny both sides agree, and what follows would underflow.
  const Expr reflected = (x < w.number(-0x1p-60)) & (a < w.infinity());
  const Expr left = w.log(w.number(kPi[0]) / (a * w.abs(turn_of(w, a).sine))) - right;
  return b.select(reflected, left, right);
}

/// digamma(y) for y > 0.
Expr digamma_right(const Work& w, Expr y) {
  Builder& b = w.b;
  const Expr zero = w.number(0);
  const Expr one = w.number(1);
  const Expr eight = w.number(8);
  const Whole parts = whole_of(w, w.at_most(y, eight));
  const Expr z = parts.fraction + one;
  const Expr root = (z - w.number(kDigammaRoot[0])) - w.number(kDigammaRoot[1]);
  Expr near = root * w.polynomial(z - w.number(1.5), kDigammaNearShort, kDigammaNearLong);
  Expr steps = b.select(parts.count < one, -one / y, zero);
  for (int k = 6; k >= 1; --k) {
    const Expr step = one / (parts.fraction + w.number(k));
    steps = steps + b.select(w.number(k) < parts.count, step, zero);
  }
  near = near + steps;
  const Expr inverse = one / w.at_least(y, eight);
  const Expr square = inverse * inverse;
  const Expr rest = b.fma(square, w.polynomial(square, kDigammaFarShort, kDigammaFarLong),
                          inverse * w.number(0.5));
  return b.select(y < eight, near, w.log(y) - rest);
}

/// pi / tan(pi d) for |d| <= 1/2.
Expr cotangent(const Work& w, Expr d) {
  const Expr cosine = w.sin_of_turn(w.number(0.5) - w.abs(d));
  return cosine / w.sin_of_turn(d);
}

Expr digamma_rule(const Work& w, Expr x) {
  Builder& b = w.b;
  const Expr zero = w.number(0);
  const Expr left = x < zero;
  const Expr right = digamma_right(w, b.select(left, w.number(1) - x, x));
  const Expr nearest = b.unary(Unary::round, x);
  const Expr cot = b.select(nearest == x, w.nan(), cotangent(w, x - nearest));
  const Expr y = b.select(left, b.fma(w.number(-kPi[0]), cot, right), right);
  return b.select(x == zero, w.number(-1) / x, y);
}

/// B_2j / (2j)! for j = 1, 2, ...
constexpr double kBernoulli[] = {1.0 / 12,
                                 -1.0 / 720,
                                 1.0 / 30240,
                                 -1.0 / 1209600,
                                 1.0 / 47900160,
                                 -691.0 / 1307674368000,
                                 1.0 / 74724249600,
                                 -3617.0 / 10670622842880000,
                                 43867.0 / 5109094217170944000,
                                 -174611.0 / 802857662698291200000.0,
                                 77683.0 / 14101100039391805440000.0};

/// x^k by squaring, for k >= 1.
Expr power(Expr x, int k) {
  if (k == 1) return x;
  const Expr half = power(x, k / 2);
  return k % 2 ? half * half * x : half * half;
}

/// (-1)^(n+1) polygamma(n, y) for y > 0: n! times the sum of 1/(y + k)^(n+1), of which the first
/// terms one by one and the others by the formula of Euler and Maclaurin.
Expr polygamma_right(const Work& w, int n, Expr y) {
  Builder& b = w.b;
  const Expr one = w.number(1);
  const int steps = (w.brief ? 5 : 9) + 2 * n;
  const int terms = w.brief ? 6 : 11;
  // Powers of the inverse times 2^scale, and n! by 2^(n scale): neither leaves the range of numbers
  // before the result does.
  const int scale = static_cast<int>(std::lround(std::lgamma(n + 1.0) / std::log(2.0) / n));
  const double factorial = std::ldexp(std::tgamma(n + 1.0), -n * scale);
  const Expr unit = w.number(std::ldexp(1, scale));
  const Expr small = y < w.number(steps);
  const Expr inverse = one / b.select(small, y + w.number(steps), y);
  const Expr square = inverse * inverse;
  std::vector<double> series = {1.0 / n};
  double rising = 1;  // (2j + n - 1)! / n!
  for (int j = 1; j <= terms; ++j) {
    rising *= j == 1 ? n + 1 : (2 * j + n - 2.0) * (2 * j + n - 1.0);
    series.push_back(kBernoulli[j - 1] * rising);
  }
  const Expr smooth = static_cast<const Format&>(w).polynomial(square, series);
  const Expr total = power(inverse * unit, n) * b.fma(inverse, w.number(0.5), smooth);
  Expr first = w.number(0);
  for (int k = steps - 1; k >= 0; --k) first = first + power(unit / (y + w.number(k)), n + 1);
  const Expr near = total + first * w.number(std::ldexp(1, -scale));
  return b.select(small, near, total) * w.number(factorial);
}

/// The derivatives of cot(pi x) by pi^n: polynomials in cot(pi x), lowest power first.
std::vector<double> cotangent_derivative(int n) {
  std::vector<double> q = {0, 1};
  for (int i = 0; i < n; ++i) {
    std::vector<double> next(q.size() + 1);
    for (std::size_t k = 1; k < q.size(); ++k) {
      next[k - 1] -= static_cast<double>(k) * q[k];
      next[k + 1] -= static_cast<double>(k) * q[k];
    }
    q = next;
  }
  return q;
}

Expr polygamma_rule(const Work& w, int n, Expr x) {
  Builder& b = w.b;
  const Expr left = x < w.number(0);
  const Expr right = polygamma_right(w, n, b.select(left, w.number(1) - x, x));
  const Expr nearest = b.unary(Unary::round, x);
  Expr cot = cotangent(w, x - nearest);
  // The two sides of a pole have different signs where n is even.
  if (n % 2 == 0) cot = b.select(x == nearest, w.nan(), cot);
  const Expr wave = static_cast<const Format&>(w).polynomial(cot, cotangent_derivative(n));
  const double sign = n % 2 ? 1 : -1;
  // (-1)^n polygamma(n, 1 - x) is -right for every n.
  const Expr reflected = b.fma(w.number(-std::pow(kPi[0], n + 1)), wave, -right);
  return b.select(left, reflected, w.number(sign) * right);
}

}  // namespace

Expr gamma(Expr x) { return in_float64(gamma_rule, x); }
Expr gammaln(Expr x) { return in_float64(gammaln_rule, x); }
Expr digamma(Expr x) { return in_float64(digamma_rule, x); }

Expr polygamma(int n, Expr x) {
  internal_check(n >= 1 && n <= kMostPolygamma, "polygamma is of order 1 to 100");
  return in_float64([&](const Work& w, Expr wide) { return polygamma_rule(w, n, wide); }, x);
}

}  // namespace croton::kernel
