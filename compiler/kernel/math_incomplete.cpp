// The incomplete gamma and beta functions, regularised, and the logarithm of the beta function.
// Series and continued fractions have a fixed number of terms, enough for every argument that they
// are asked for; the last one is computed first.
#include "compiler/kernel/coefficients.h"
#include "compiler/kernel/math.h"
#include "compiler/kernel/math_gamma.h"
#include "compiler/kernel/special_coefficients.h"

namespace croton::kernel {
namespace {

/// From this a on, and near x = a, by Temme's uniform expansion.
constexpr double kTemmeFrom = 20;
/// Below, for a < 1, the upper function is not 1 - the lower one.
constexpr double kSmallX = 1.75;

/// 1 + x/(a + 1) (1 + x/(a + 2) (...)), for x up to a + 2, or 0.31 a.
Expr lower_series(const Work& w, Expr a, Expr x) {
  Expr sum = w.number(1);
  for (int n = w.brief ? 32 : 54; n > 0; --n) {
    sum = w.b.fma(x / (a + w.number(n)), sum, w.number(1));
  }
  return sum;
}

/// The continued fraction of the upper function, of which 1 is to be divided by it (Legendre).
Expr upper_fraction(const Work& w, Expr a, Expr x) {
  const Expr origin = x - a;
  const int count = w.brief ? 20 : 60;
  Expr fraction = origin + w.number(2 * count + 1);
  for (int n = count; n > 0; --n) {
    const Expr term = w.number(n) * (w.number(n) - a) / fraction;
    fraction = origin + w.number(2 * n - 1) - term;
  }
  return fraction;
}

/// log(x/a) - m for m = (x - a)/a.
Expr log_less_linear(const Work& w, Expr m, Expr ratio) {
  Builder& b = w.b;
  const Expr inside = (w.number(-0.29) < m) & (m < w.number(0.41));
  const Expr near = b.select(inside, m, w.number(0));
  return b.select(inside, log_rest(w, near), w.log(ratio) - m);
}

/// The sum of Temme's expansion.
Expr temme_sum(const Work& w, Expr a, Expr eta) {
  const Expr v = w.number(2 * kTemmeFrom) / a - w.number(1);
  const Format::Table numbers = w.brief ? Format::Table(kTemmeShort) : Format::Table(kTemmeLong);
  const std::span<const int> rows =
      w.brief ? std::span<const int>(kTemmeShortRows) : std::span<const int>(kTemmeLongRows);
  std::size_t end = numbers.size();
  Expr sum = w.number(0);
  for (std::size_t j = rows.size(); j-- > 0;) {
    const std::size_t count = static_cast<std::size_t>(rows[j]);
    end -= count;
    sum =
        w.b.fma(sum, v, static_cast<const Format&>(w).polynomial(eta, numbers.subspan(end, count)));
  }
  return sum;
}

/// x^a exp(-x) / gamma(a + 1).
struct Weight {
  Expr value;
  Expr eta;  ///< eta^2/2 = x/a - 1 - log(x/a), with the sign of x - a; for a >= kTemmeFrom
};
Weight weight_of(const Work& w, Expr a, Expr x) {
  Builder& b = w.b;
  const Expr zero = w.number(0);
  const Expr one = w.number(1);
  const Expr limit = w.number(kTemmeFrom);
  // Small a: by logarithms in more digits.
  const Expr below = w.at_most(a, limit);
  const Expr some = w.at_most(x, w.number(2000));
  const Expr positive = b.select(zero < some, some, one);
  const Double log = product(b, {below, zero}, log2_wide(w, positive));
  const Double decay = product(b, {some, zero}, constant(w, kLog2E));
  const Double power = sum_of_any(log.high, -decay.high);
  const Expr low = power.low + (log.low - decay.low);
  const Expr next = below + one;
  const Expr tall = w.number(kStirlingFrom) <= next;
  const Double gamma = log2_gamma(w, w.at_least(next, w.number(kStirlingFrom)));
  const Expr large = exp2_wide(w, gamma.high, gamma.low);
  const Expr inverse =
      one / b.select(tall, large, small_gamma(w, w.at_most(next, w.number(kStirlingFrom))));
  const Expr bounded = w.at_least(power.high, w.number(-1100));
  const Expr small = exp2_wide(w, bounded, low, inverse);
  // Large a: exp(-a eta^2/2) / (sqrt(2 pi a) exp(rest)).
  const Expr above = w.at_least(a, limit);
  const Expr m = (x - above) / above;
  const Expr slope = -log_less_linear(w, m, x / above);
  const Expr root = b.unary(Unary::sqrt, above * w.number(2 * kPi[0]));
  const Expr far = w.exp(-(above * slope)) / (root * w.exp(stirling_rest(w, above)));
  const Expr size = b.unary(Unary::sqrt, slope + slope);
  return {b.select(a < limit, small, far), b.select(m < zero, -size, size)};
}

/// Both functions where neither is 0, 1 or NaN for trivial reasons.
template <bool kUpper>
Expr incomplete_gamma(const Work& w, Expr a, Expr x) {
  Builder& b = w.b;
  const Expr zero = w.number(0);
  const Expr one = w.number(1);
  const Expr half = w.number(0.5);
  const Weight weight = weight_of(w, a, x);
  const Expr large = w.number(kTemmeFrom) <= a;
  const Expr uniform = large & (w.abs(weight.eta) <= one);
  // Temme.
  const Expr above = w.at_least(a, w.number(kTemmeFrom));
  const Expr eta = w.at_most(w.at_least(weight.eta, -one), one);
  const Expr gauss =
      w.exp(-(above * half) * (eta * eta)) / b.unary(Unary::sqrt, above * w.number(2 * kPi[0]));
  const Expr rest = gauss * temme_sum(w, above, eta);
  const Expr argument = eta * b.unary(Unary::sqrt, above * half);
  const Expr center = half * erfc(kUpper ? argument : -argument);
  const Expr temme = kUpper ? center + rest : center - rest;
  // Series and fraction.
  const Expr lower = weight.value * lower_series(w, a, x);
  const Expr upper = weight.value * a / upper_fraction(w, a, x);
  const Expr by_series = (x < w.number(kSmallX)) | (x < a + one) | (large & (weight.eta < zero));
  Expr y;
  if (kUpper) {
    // For small a, where the lower function is near 1.
    const Expr few = w.at_most(a, one);
    const Expr near = w.at_most(x, w.number(kSmallX));
    Expr sum = zero;
    Expr term = one;
    for (int n = 1; n <= (w.brief ? 16 : 26); ++n) {
      term = term * (-near * w.number(1.0 / n));
      sum = sum + term / (few + w.number(n));
    }
    const Expr log = few * w.log(near) - gammaln_of_one_plus(w, few) + log1p(few * sum);
    const Expr small = (a < one) & (x < w.number(kSmallX));
    y = b.select(small, w.abs(expm1(log)), b.select(by_series, one - lower, upper));
  } else {
    y = b.select(by_series, lower, one - upper);
  }
  return b.select(uniform, temme, y);
}

/// The values at the edges: for a = 0 all weight is at x = 0, for a = infinity none is finite.
template <bool kUpper>
Expr incomplete_gamma_rule(const Work& w, Expr a, Expr x) {
  Builder& b = w.b;
  const Expr zero = w.number(0);
  const Expr one = w.number(1);
  const Expr infinity = w.infinity();
  const Expr inside = (zero < a) & (zero < x) & (a < infinity) & (x < infinity);
  const Expr y = incomplete_gamma<kUpper>(w, b.select(inside, a, one), b.select(inside, x, one));
  const Expr none = kUpper ? one : zero;
  const Expr all = kUpper ? zero : one;
  const Expr edge = b.select(x == zero, none, b.select(a == infinity, none, all));
  const Expr wrong = (a < zero) | (x < zero) | (a != a) | (x != x) | ((a == zero) & (x == zero)) |
                     ((a == infinity) & (x == infinity));
  return b.select(wrong, w.nan(), b.select(inside, y, edge));
}

/// log2(gamma(a)) for a > 0.
Double log2_gamma_of_any(const Work& w, Expr a) {
  Builder& b = w.b;
  const Expr limit = w.number(kStirlingFrom);
  const Double near = log2_wide(w, small_gamma(w, w.at_most(a, limit)));
  const Double far = log2_gamma(w, w.at_least(a, limit));
  const Expr small = a < limit;
  return {b.select(small, near.high, far.high), b.select(small, near.low, far.low)};
}

Double sum(Double x, Double y) {
  const Double high = sum_of_any(x.high, y.high);
  return {high.high, high.low + (x.low + y.low)};
}
Double negative(Double x) { return {-x.high, -x.low}; }

/// x^a (1 - x)^b / beta(a, b), for 0 < x < 1, y = 1 - x.
Expr beta_weight(const Work& w, Expr a, Expr b, Expr x, Expr y) {
  const Expr zero = w.number(0);
  const Expr total = a + b;
  const Expr part = total - a;
  const Expr lost = (a - (total - part)) + (b - part);
  const Expr y_lost = (w.number(1) - y) - x;
  Double of_y = log2_wide(w, y);
  of_y.low = of_y.low + y_lost / y * w.number(kLog2E[0]);
  Double of_total = log2_gamma_of_any(w, total);
  of_total.low = w.b.fma(lost, log2_wide(w, total).high, of_total.low);
  const Double gammas =
      sum(of_total, negative(sum(log2_gamma_of_any(w, a), log2_gamma_of_any(w, b))));
  const Double powers =
      sum(product(w.b, {a, zero}, log2_wide(w, x)), product(w.b, {b, zero}, of_y));
  const Double all = sum(powers, gammas);
  const Expr high = w.at_most(w.at_least(all.high, w.number(-1100)), w.number(1000));
  return exp2_wide(w, high, all.low);
}

/// 1 + d1/(1 + d2/(1 + ...)), as numerator and denominator (DLMF 8.17.22).
Expr beta_fraction(const Work& w, Expr a, Expr b, Expr x) {
  const Expr total = a + b;
  Expr p = w.number(1);
  Expr q = w.number(1);
  for (int m = w.brief ? 40 : 56; m >= 0; --m) {
    const Expr twice = a + w.number(2 * m);
    const Expr odd =
        -((a + w.number(m)) * (total + w.number(m)) * x) / (twice * (twice + w.number(1)));
    Expr next = w.b.fma(odd, q, p);
    q = p, p = next;
    if (m == 0) break;
    const Expr even = w.number(m) * (b - w.number(m)) * x / ((twice - w.number(1)) * twice);
    next = w.b.fma(even, q, p);
    q = p, p = next;
  }
  return q / p;
}

Expr betainc_rule(const Work& w, Expr a, Expr b, Expr x) {
  Builder& k = w.b;
  const Expr zero = w.number(0);
  const Expr one = w.number(1);
  const Expr infinity = w.infinity();
  const Expr inside =
      (zero < a) & (zero < b) & (a < infinity) & (b < infinity) & (zero < x) & (x < one);
  const auto some = [&](Expr v, double other) { return k.select(inside, v, w.number(other)); };
  const Expr p = some(a, 1), q = some(b, 1), t = some(x, 0.5);
  const Expr rest = one - t;
  // Exponents may be so large that a float32 needs all digits of float64.
  const Expr weight = beta_weight(Work(t, false), p, q, t, rest);
  // The fraction converges where x is below the mean; else by the other tail, which for b < 1 is
  // near 1 and put off as long as the fraction does.
  const Expr above = (p + one) < t * (p + q + w.number(2));
  const Expr swapped = above & ((one <= q) | (w.number(0.95) < t));
  const Expr first = k.select(swapped, q, p);
  const Expr fraction =
      beta_fraction(w, first, k.select(swapped, p, q), k.select(swapped, rest, t));
  const Expr tail = weight * fraction / first;
  const Expr y = k.select(swapped, one - tail, tail);
  const Expr wrong =
      !((zero < a) & (zero < b) & (a < infinity) & (b < infinity) & (zero <= x) & (x <= one));
  return k.select(wrong, w.nan(), k.select(inside, y, x));
}

Expr betaln_rule(const Work& w, Expr x, Expr y) {
  Builder& k = w.b;
  const Expr half = w.number(0.5);
  const Expr eight = w.number(8);
  const Expr a = k.select(y < x, y, x);
  const Expr b = k.select(y < x, x, y);
  const Expr total = a + b;
  const Expr of_a = gammaln_right(w, a);
  const Expr near = of_a + (gammaln_right(w, b) - gammaln_right(w, total));
  // By Stirling's formula the large parts cancel before they are computed.
  const Expr large_b = w.at_least(b, eight);
  const Expr large_a = w.at_least(a, eight);
  const Expr rests = stirling_rest(w, large_b) - stirling_rest(w, a + large_b);
  const Expr bend = log1p(a / large_b);
  const Expr middle = of_a - (b - half) * bend - a * (w.log(total) - w.number(1)) + rests;
  const Expr far = w.number(kHalfLogTwoPi[0]) - half * w.log(large_a) -
                   a * log1p(large_b / large_a) - (b - half) * bend +
                   (stirling_rest(w, large_a) + rests);
  const Expr y_all = k.select(b < eight, near, k.select(a < eight, middle, far));
  const Expr zero = w.number(0);
  const Expr edge = k.select(a == zero, w.infinity(), -w.infinity());
  const Expr inside = (zero < a) & (b < w.infinity());
  const Expr right = (zero <= a) & (zero <= b) & !((a == zero) & (b == w.infinity()));
  return k.select(right, k.select(inside, y_all, edge), w.nan());
}

}  // namespace

Expr gammainc(Expr a, Expr x) { return in_float64(incomplete_gamma_rule<false>, a, x); }
Expr gammaincc(Expr a, Expr x) { return in_float64(incomplete_gamma_rule<true>, a, x); }
Expr betainc(Expr a, Expr b, Expr x) { return in_float64(betainc_rule, a, b, x); }
Expr betaln(Expr a, Expr b) { return in_float64(betaln_rule, a, b); }

}  // namespace croton::kernel
