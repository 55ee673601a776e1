// Mathematical functions as straight-line kernel code: written once, printed by both emitters, so
// that a CPU and a GPU give the same bits. Operands and results are float32 or float64; the
// callers cast float16 and bfloat16. The bound of each function in ULP is in math_bounds().
#pragma once

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
Expr sin(Expr x);  ///< as cos and tan: NaN beyond 2^50
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
/// argument, but that sin, cos and tan give NaN beyond 2^50.
struct MathBound {
  std::string_view name;
  double float32_ulp;
  double float64_ulp;
};
std::span<const MathBound> math_bounds();

}  // namespace croton::kernel
