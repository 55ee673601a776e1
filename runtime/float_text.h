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

/// A lone float as NumPy's scalars print it: all digits, scientific outside [1e-4, 1e16).
std::string scalar_text(double value, DType dtype);

}  // namespace croton
