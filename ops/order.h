// The order in which elements are sorted: NaN is the largest, -0 equals 0.
#pragma once

#include "compiler/kernel/builder.h"

namespace croton {

/// An element as a value that can be compared.
inline kernel::Expr comparable(kernel::Expr x) {
  const DType dtype = x.dtype();
  if (dtype == DType::float16 || dtype == DType::bfloat16) {
    return x.builder->cast(x, DType::float32);
  }
  return is_bool(dtype) ? x.builder->cast(x, DType::int32) : x;
}

/// Whether comparable `a` comes before `b`, ascending or descending.
inline kernel::Expr comes_before(kernel::Expr a, kernel::Expr b, bool descending = false) {
  if (descending) return comes_before(b, a);
  if (!is_float(a.dtype())) return a < b;
  return (a < b) | ((b != b) & (a == a));
}

template <class T>
bool value_before(T a, T b, bool descending = false) {
  if (descending) return value_before(b, a);
  return a < b || (b != b && a == a);
}

}  // namespace croton
