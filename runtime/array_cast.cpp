#include <algorithm>
#include <cmath>
#include <limits>

#include "croton/array.h"
#include "runtime/array_access.h"
#include "runtime/dtype_dispatch.h"

namespace croton {
namespace {

/// double or float to an integer: truncates, NaN gives 0, what is out of range the nearest value.
template <class To, class From>
To to_integer(From v) {
  using Limits = std::numeric_limits<To>;
  constexpr From kLow = static_cast<From>(Limits::min());
  constexpr From kAbove = From(2) * static_cast<From>(Limits::max() / 2 + 1);
  if (v != v) return 0;
  if (v < kLow) return Limits::min();
  if (v >= kAbove) return Limits::max();
  return static_cast<To>(v);
}

template <class To, class From>
To convert(From v) {
  constexpr bool kHalf = std::same_as<From, float16> || std::same_as<From, bfloat16>;
  if constexpr (std::same_as<To, From>) {
    return v;
  } else if constexpr (kHalf) {
    return convert<To, float>(static_cast<float>(v));
  } else if constexpr (std::same_as<To, bool>) {
    return v != From(0);
  } else if constexpr (is_integer(dtype_of<To>) && is_float(dtype_of<From>)) {
    return to_integer<To, From>(v);
  } else {
    return static_cast<To>(v);
  }
}

}  // namespace

Array Array::astype(DType wanted) const {
  if (dtype() == wanted) return *this;
  const Array source = to_host().contiguous();
  Array result = ArrayAccess::make_host(wanted, source.shape());
  with_type(source.dtype(), [&]<class From>() {
    with_type(wanted, [&]<class To>() {
      const From* in = static_cast<const From*>(source.raw_data());
      To* out = reinterpret_cast<To*>(ArrayAccess::impl(result)->data);
      std::transform(in, in + source.size(), out, [](From v) { return convert<To, From>(v); });
    });
  });
  return result;
}

}  // namespace croton
