// Functions that need more digits than their result has: pairs of float64 numbers, and float64
// arithmetic for results in float32.
#pragma once

#include "compiler/kernel/math_parts.h"

namespace croton::kernel {

/// The sum of two, the second one small.
struct Double {
  Expr high, low;
};

/// a + b for |a| >= |b|, or a = 0.
Double sum(Expr a, Expr b);
/// a + b whatever their sizes.
Double sum_of_any(Expr a, Expr b);
Double product(Builder& b, Double x, Double y);
Double constant(const Format& f, Format::Table parts, double factor = 1);

/// log2 of a positive finite float64 to about 64 bits.
Double log2_wide(const Format& f, Expr x);
/// factor * 2^(power + low) for |power| <= 1100; `low` is small. Only the last of its steps may
/// round into the subnormal range, or overflow.
Expr exp2_wide(const Format& f, Expr power, Expr low, Expr factor = {});

/// Both of an angle.
struct SineCosine {
  Expr sine, cosine;
};
SineCosine sine_cosine(Expr x);

/// float64 arithmetic for a result in float64, or for one in float32, which takes shorter
/// polynomials.
struct Work : Format {
  bool brief;  ///< the result is a float32

  Work(Expr wide, bool brief) : Format(wide), brief(brief) {}
  Expr polynomial(Expr x, Table for_float32, Table for_float64) const {
    return Format::polynomial(x, brief ? for_float32 : for_float64);
  }
  Expr log(Expr x) const;
  Expr exp(Expr x) const;
  /// factor * exp(x + low), where `low` is small, without overflow on the way.
  Expr exp_times(Expr x, Expr low, Expr factor) const;
  /// sin(pi d) for |d| <= 1/2.
  Expr sin_of_turn(Expr d) const;
};

/// log2_wide and exp2_wide with as many digits as the result asks for.
Double log2_wide(const Work& w, Expr x);
Expr exp2_wide(const Work& w, Expr power, Expr low, Expr factor = {});

/// The value of `rule(Work, x...)` in float64, rounded to the dtype of the operands.
template <class Rule, class... X>
Expr in_float64(Rule&& rule, Expr first, X... rest) {
  const DType dtype = first.dtype();
  Builder& b = *first.builder;
  const Expr wide = b.cast(first, DType::float64);
  return b.cast(rule(Work(wide, dtype == DType::float32), wide, b.cast(rest, DType::float64)...),
                dtype);
}

}  // namespace croton::kernel
