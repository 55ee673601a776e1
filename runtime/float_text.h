#pragma once

#include <string>

#include "croton/dtype.h"

namespace croton {

/// A finite float as decimal digits: value = 0.d1d2d3... * 10^point, with a sign.
struct Decimal {
  bool negative = false;
  std::string digits;  // without trailing zeros; "0" for zero
  int point = 1;
};

/// The shortest digits that `dtype` reads back as `value` (an element of that dtype, as double).
Decimal shortest_decimal(double value, DType dtype);

/// "-12.5": the shortest digits, cut (correctly rounded) to `precision` fractional ones; always
/// with a point, without trailing zeros.
std::string positional_text(double value, DType dtype, int precision);

/// "-1.25e-07": the same in scientific form; the exponent has at least two digits.
std::string scientific_text(double value, DType dtype, int precision);

/// Scientific with exactly `places` fractional digits: the shortest ones if they are that many,
/// else those of the exact value.
std::string fixed_scientific_text(double value, DType dtype, int places);

/// A lone float as NumPy's scalars print it: all digits; scientific below
/// 1e-4 and from 1e3 (16-bit floats), 1e6 (float32) or 1e16 (float64) on.
std::string scalar_text(double value, DType dtype);

}  // namespace croton
