#include "ops/special_reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

namespace croton::reference {
namespace {

using Wide = long double;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr Wide kPi = std::numbers::pi_v<Wide>;

bool is_pole(double x) { return x <= 0 && x == std::floor(x); }

/// The z > 0 with erfc(z) = y for 0 < y <= 1, by Newton's method on the logarithm.
Wide inverse_erfc(Wide y) {
  Wide z = y > 0.5L ? (1 - y) * 0.9L : std::sqrt(-std::log(y));
  for (int i = 0; i < 200; ++i) {
    const Wide value = std::erfc(z);
    const Wide slope = 2 * std::numbers::inv_sqrtpi_v<Wide> * std::exp(-z * z);
    const Wide step = std::log(value / y) * value / slope;
    z += step;
    if (std::fabs(step) <= 1e-19L * std::fabs(z)) break;
  }
  return z;
}

}  // namespace

double erfcx(double x) {
  if (x < 100) return static_cast<double>(std::exp(Wide(x) * x) * std::erfc(Wide(x)));
  const Wide square = Wide(x) * x;
  return static_cast<double>(std::numbers::inv_sqrtpi_v<Wide> / x *
                             (1 - (1 - (1.5L - 3.75L / square) / square) / (2 * square)));
}

double erfinv(double x) {
  if (std::isnan(x) || std::fabs(x) > 1) return kNan;
  if (std::fabs(x) == 1) return x * kInfinity;
  if (x == 0) return x;
  Wide z = inverse_erfc(1 - std::fabs(Wide(x)));
  // What 1 - x lost near 0.
  for (int i = 0; i < 3; ++i) {
    const Wide slope = 2 * std::numbers::inv_sqrtpi_v<Wide> * std::exp(-z * z);
    if (std::fabs(x) < 0.5) z -= (std::erf(z) - std::fabs(Wide(x))) / slope;
  }
  return static_cast<double>(std::copysign(z, Wide(x)));
}

double erfcinv(double y) {
  if (std::isnan(y) || y < 0 || y > 2) return kNan;
  if (y == 0) return kInfinity;
  if (y == 2) return -kInfinity;
  if (y > 0.5 && y < 1.5) return erfinv(1 - y);
  return static_cast<double>(y <= 1 ? inverse_erfc(y) : -inverse_erfc(2 - Wide(y)));
}

double digamma(double x) {
  if (std::isnan(x) || x == kInfinity) return x;
  if (x == 0) return -1 / x;
  if (is_pole(x)) return kNan;
  if (x < 0) return static_cast<double>(digamma(1 - x) - kPi / std::tan(kPi * (x - std::round(x))));
  Wide y = x;
  Wide sum = 0;
  for (; y < 20; ++y) sum -= 1 / y;
  const Wide s = 1 / (y * y);
  const Wide rest =
      s * (1.0L / 12 - s * (1.0L / 120 - s * (1.0L / 252 - s * (1.0L / 240 - s / 132))));
  return static_cast<double>(sum + std::log(y) - 1 / (2 * y) - rest);
}

namespace {

/// The derivative of order n of pi / tan(pi x), by that of the cotangent as a polynomial in it.
Wide cotangent_slope(int n, Wide x) {
  std::vector<Wide> q = {0, 1};
  for (int i = 0; i < n; ++i) {
    std::vector<Wide> next(q.size() + 1);
    for (std::size_t k = 1; k < q.size(); ++k) {
      next[k - 1] -= static_cast<Wide>(k) * q[k];
      next[k + 1] -= static_cast<Wide>(k) * q[k];
    }
    q = next;
  }
  const Wide cot = 1 / std::tan(kPi * (x - std::round(x)));
  Wide sum = 0;
  for (std::size_t k = q.size(); k-- > 0;) sum = sum * cot + q[k];
  return sum * std::pow(kPi, Wide(n + 1));
}

}  // namespace

// n! times the sum of 1/(x + k)^(n + 1), whose tail is that of an integral with corrections.
double polygamma(int n, double x) {
  if (std::isnan(x)) return x;
  Wide sum = 0;
  Wide y = x;
  if (x == -kInfinity) return kNan;
  if (x < 0 && !is_pole(x)) {
    const Wide right = polygamma(n, 1 - x);
    return static_cast<double>((n % 2 ? -right : right) - cotangent_slope(n, x));
  }
  if (is_pole(x)) return n % 2 ? kInfinity : x < 0 ? kNan : -kInfinity;
  for (; y < 40 + n; ++y) sum += std::pow(y, Wide(-n - 1));
  const Wide s = 1 / (y * y);
  const Wide a = n + 1;
  const Wide rest = a / 12 - s * (a * (a + 1) * (a + 2) / 720 -
                                  s * a * (a + 1) * (a + 2) * (a + 3) * (a + 4) / 30240);
  sum += std::pow(y, Wide(-n)) * (1 / Wide(n) + 1 / (2 * y) + s * rest);
  return static_cast<double>((n % 2 ? 1 : -1) * std::tgamma(Wide(n + 1)) * sum);
}

double bessel_i_scaled(int order, double x) {
  const Wide a = std::fabs(Wide(x));
  Wide y = 0;
  if (a > 700) {
    const Wide m = 4 * order * order;
    const Wide t = 8 * a;
    y = (1 - (m - 1) / t * (1 - (m - 9) / (2 * t) * (1 - (m - 25) / (3 * t)))) /
        std::sqrt(2 * kPi * a);
  } else {
    Wide term = order == 0 ? 1 : a / 2;
    for (int k = 1; term > y * 1e-21L; ++k) {
      y += term;
      term *= a * a / (Wide(4) * k * (k + order));
    }
    y *= std::exp(-a);
  }
  if (std::isnan(x)) return x;
  return static_cast<double>(order == 1 ? std::copysign(y, Wide(x)) : y);
}

double bessel_i(int order, double x) {
  if (std::fabs(x) > 715) return order == 1 ? std::copysign(kInfinity, x) : kInfinity;
  const Wide e = std::exp(std::fabs(Wide(x)));
  return static_cast<double>(bessel_i_scaled(order, x) * e);
}

double next_after(DType dtype, double a, double b) {
  if (dtype == DType::float64) return std::nextafter(a, b);
  if (dtype == DType::float32) return std::nextafter(static_cast<float>(a), static_cast<float>(b));
  if (a == b) return b;
  if (std::isnan(a) || std::isnan(b)) return kNan;
  // Steps of 2^-24 or 2^-133, or of the last of the digits that it has.
  const bool half = dtype == DType::float16;
  const int digits = half ? 11 : 8;
  if (std::isinf(a)) return std::copysign(half ? 65504 : 0x1.fep127, a);
  const bool towards_zero = a != 0 && (a < b) != (a > 0);
  int exponent = 0;
  const double fraction = std::frexp(a, &exponent);
  if (towards_zero && std::fabs(fraction) == 0.5) --exponent;
  const int least = half ? -24 : -133;
  const double step = std::ldexp(1.0, a == 0 ? least : std::max(exponent - digits, least));
  const double next = a + (b > a ? step : -step);
  return std::fabs(next) > (half ? 65504 : 0x1.fep127) ? std::copysign(kInfinity, next) : next;
}

double bessel_y(int order, double x) {
  if (x == 0) return -kInfinity;
  return x < 0 ? kNan : order == 0 ? ::y0(x) : ::y1(x);
}

namespace {

/// P(a, x) below x = a + 1, Q(a, x) above, for finite positive operands.
Wide gamma_tail(Wide a, Wide x) {
  const Wide weight = std::exp(a * std::log(x) - x - std::lgamma(a));
  if (x < a + 1) {
    Wide sum = 0;
    Wide term = 1 / a;
    for (Wide n = 1; term > sum * 1e-21L && n < 2e6L; ++n) sum += term, term *= x / (a + n);
    return weight * sum;
  }
  Wide fraction = x;
  for (int n = 3000; n > 0; --n) {
    fraction = x + 2 * n - 1 - a - n * (n - a) / (n == 3000 ? x + 2 * n + 1 - a : fraction);
  }
  return weight / fraction;
}

double incomplete_gamma(double a, double x, bool upper) {
  if (!(a >= 0) || !(x >= 0) || (a == 0 && x == 0)) return kNan;
  if (a == kInfinity && x == kInfinity) return kNan;
  if (x == 0 || a == kInfinity) return upper ? 1 : 0;
  if (x == kInfinity || a == 0) return upper ? 0 : 1;
  const Wide tail = gamma_tail(a, x);
  return static_cast<double>(upper == (x >= a + 1.0L) ? tail : 1 - tail);
}

Wide wide_betaln(Wide a, Wide b) { return std::lgamma(a) + std::lgamma(b) - std::lgamma(a + b); }

/// The continued fraction, by its last term first.
Wide beta_tail(Wide a, Wide b, Wide x) {
  Wide fraction = 1;
  for (int k = 4000; k > 0; --k) {
    const Wide m = k / 2;
    const Wide d = k % 2 ? -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
                         : m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    fraction = 1 + d / fraction;
  }
  return std::exp(a * std::log(x) + b * std::log1p(-x) - wide_betaln(a, b)) / (a * fraction);
}

}  // namespace

double gammainc(double a, double x) { return incomplete_gamma(a, x, false); }
double gammaincc(double a, double x) { return incomplete_gamma(a, x, true); }

double betainc(double a, double b, double x) {
  if (!(a > 0) || !(b > 0) || !(x >= 0) || !(x <= 1)) return kNan;
  if (a == kInfinity || b == kInfinity) return kNan;
  if (x == 0 || x == 1) return x;
  if (x <= (a + 1) / (a + b + 2)) return static_cast<double>(beta_tail(a, b, x));
  return static_cast<double>(1 - beta_tail(b, a, 1 - Wide(x)));
}

double betaln(double a, double b) {
  if (!(a >= 0) || !(b >= 0)) return kNan;
  const bool none = std::fmin(a, b) == 0;
  if (std::fmax(a, b) == kInfinity) return none ? kNan : -kInfinity;
  return none ? kInfinity : static_cast<double>(wide_betaln(a, b));
}

}  // namespace croton::reference
