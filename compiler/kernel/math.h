// Mathematical functions as straight-line kernel code: written once, printed by both emitters, so
// that a CPU and a GPU give the same bits. Operands and results are float32 or float64; the
// callers cast float16 and bfloat16. The bound of each function in ULP is in math_bounds().
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "compiler/kernel/builder.h"

namespace croton::kernel {

Expr exp(Expr x);
Expr exp2(Expr x);
Expr expm1(Expr x);
Expr log(Expr x);
Expr log2(Expr x);
Expr log10(Expr x);
Expr log1p(Expr x);
Expr pow(Expr x, Expr y);
Expr sin(Expr x);
Expr cos(Expr x);
Expr tan(Expr x);
Expr arcsin(Expr x);
Expr arccos(Expr x);
Expr arctan(Expr x);
Expr arctan2(Expr y, Expr x);
Expr sinh(Expr x);
Expr cosh(Expr x);
Expr tanh(Expr x);
Expr arcsinh(Expr x);
Expr arccosh(Expr x);
Expr arctanh(Expr x);
Expr erf(Expr x);
Expr erfc(Expr x);
Expr erfcx(Expr x);
Expr erfinv(Expr x);
Expr erfcinv(Expr y);
Expr gamma(Expr x);
Expr gammaln(Expr x);
Expr digamma(Expr x);
inline constexpr int kMostPolygamma = 100;
Expr polygamma(int n, Expr x);  ///< 1 <= n <= kMostPolygamma
Expr i0(Expr x);
Expr i1(Expr x);
Expr i0e(Expr x);
Expr i1e(Expr x);
Expr j0(Expr x);
Expr j1(Expr x);
Expr y0(Expr x);
Expr y1(Expr x);
/// Lower and upper incomplete gamma functions, regularised.
Expr gammainc(Expr a, Expr x);
Expr gammaincc(Expr a, Expr x);
/// The incomplete beta function, regularised; for a and b up to about 1000.
Expr betainc(Expr a, Expr b, Expr x);
Expr betaln(Expr a, Expr b);
Expr cbrt(Expr x);
Expr hypot(Expr x, Expr y);
Expr logaddexp(Expr a, Expr b);
Expr logaddexp2(Expr a, Expr b);
Expr log1mexp(Expr x);  ///< log(1 - exp(x))
Expr sigmoid(Expr x);
Expr softplus(Expr x);
Expr is_nan(Expr x);

/// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011): four uint32
/// words from a uint64 key and a 128-bit counter, of which the lower half is `counter` and the
/// upper half `stream` (both uint64).
struct PhiloxWords {
  Expr word[4];
};
PhiloxWords philox(Expr key, Expr stream, Expr counter);

/// The greatest error in units in the last place, subnormal results included. It holds for every
/// argument; of betainc for a and b up to 1000, and of polygamma for the orders 1 to 3, beyond
/// which it grows with the order.
struct MathBound {
  /// Of what units are: of the value; or, where results near 0 are differences of larger numbers,
  /// of something larger, should the value be smaller.
  enum class Unit : std::uint8_t {
    value,
    one,        ///< 1
    logarithm,  ///< the value times -log(value)
    beta,       ///< the same, or 1 for b < 1 and x > 0.95
    one_left,   ///< 1, for x < 0
    envelope,   ///< sqrt(2 / (pi |x|)) for |x| > 2
    wave,       ///< the same, and 1 below
    operand,    ///< the larger operand
  };
  std::string_view name;
  double float32_ulp;
  double float64_ulp;
  Unit unit = Unit::value;
};
std::span<const MathBound> math_bounds();

}  // namespace croton::kernel
