// What the functions of the gamma family share, in float64.
#pragma once

#include "compiler/kernel/math_wide.h"

namespace croton::kernel {

/// From here on by Stirling's formula.
inline constexpr int kStirlingFrom = 13;

/// log(gamma(a)) - (a - 1/2) log(a) + a - log(2 pi)/2 for a >= 8.
Expr stirling_rest(const Work& w, Expr a);
/// gamma(a) for 0 <= a < kStirlingFrom; exact for whole numbers.
Expr small_gamma(const Work& w, Expr a);
/// log2(gamma(a)) for a >= 8.
Double log2_gamma(const Work& w, Expr a);
/// log(gamma(a)) for a >= 0.
Expr gammaln_right(const Work& w, Expr a);
/// log(gamma(1 + a)) for 0 <= a <= 0.75, accurate near 0 too.
Expr gammaln_of_one_plus(const Work& w, Expr a);

}  // namespace croton::kernel
