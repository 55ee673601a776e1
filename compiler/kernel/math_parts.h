// What several functions of math.h are made of. Each part is straight-line code for float32 and
// float64; `Format` says how the two differ.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "compiler/kernel/builder.h"

namespace croton::kernel {

/// The layout of float32 or float64, and constants in it.
struct Format {
  Builder& b;
  DType dtype;
  DType bits_type;  ///< the signed integer of the same size
  int mantissa;     ///< explicit bits of the significand
  int bias;

  explicit Format(Expr x);
  bool single() const { return dtype == DType::float32; }

  /// One of two values, or of two tables, by precision.
  template <class T>
  T pick(T for_float32, T for_float64) const {
    return single() ? for_float32 : for_float64;
  }
  Expr number(double value) const { return b.constant(dtype, value); }
  Expr number(double for_float32, double for_float64) const {
    return number(pick(for_float32, for_float64));
  }
  Expr integer(std::int64_t value) const { return b.integer(bits_type, value); }
  Expr infinity() const { return number(std::numeric_limits<double>::infinity()); }
  Expr nan() const;
  Expr to_bits(Expr x) const { return b.bitcast(x, bits_type); }
  Expr from_bits(Expr x) const { return b.bitcast(x, dtype); }
  Expr sign_mask() const;  ///< the sign bit alone
  /// |x| with the sign of `sign`; x must not be negative.
  Expr with_sign(Expr x, Expr sign) const;
  Expr abs(Expr x) const { return b.unary(Unary::abs, x); }
  /// The smaller and the larger one in a form that is one instruction; x when x is NaN.
  Expr at_most(Expr x, Expr limit) const { return b.select(limit < x, limit, x); }
  Expr at_least(Expr x, Expr limit) const { return b.select(x < limit, limit, x); }

  using Table = std::span<const double>;
  /// c[0] + c[1] x + c[2] x^2 + ... by Horner's rule.
  Expr polynomial(Expr x, Table c) const;
  Expr polynomial(Expr x, Table for_float32, Table for_float64) const {
    return polynomial(x, single() ? for_float32 : for_float64);
  }
  /// A constant, given as the sum of doubles, as the sum of two; the upper one has `spare` zero
  /// bits at its end, so that its product with an integer of that many bits is exact.
  struct Split {
    Expr high, low;
  };
  Split split(Table parts, int spare) const;
};

/// A number as integer + rest: the integer nearest to it, as a value of the dtype and as bits in
/// the place of the exponent (modulo its range), which may be added to a number's bits.
struct Rounded {
  Expr value;
  Expr exponent;
};
/// The integer nearest to x * scale; |x * scale| must be less than 2^21, or x NaN.
Rounded round_scaled(const Format& f, Expr x, Expr scale);

/// 2^n from the exponent of a Rounded; -127 < n < 128 or -1023 < n < 1024.
Expr power_of_two(const Format& f, Expr exponent);

/// exp(x) - 1 = scale * part + (scale - 1), with |part| < 0.42.
struct Expm1Parts {
  Expr exponent;  ///< of the scale, see Rounded
  Expr part;
};
Expm1Parts expm1_parts(const Format& f, Expr x);

/// x = 2^k * (1 + fraction), sqrt(1/2) < 1 + fraction < sqrt(2), for positive finite x.
struct LogParts {
  Expr k;
  Expr fraction;
};
LogParts log_parts(const Format& f, Expr x);
/// The same for x that is not subnormal.
LogParts log_parts_of_normal(const Format& f, Expr x);

/// log(1 + x) - x for x of a LogParts.
Expr log_rest(const Format& f, Expr fraction);

}  // namespace croton::kernel
