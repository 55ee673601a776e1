#include <cmath>

#include "croton/array.h"
#include "runtime/array_access.h"
#include "runtime/dtype_dispatch.h"

namespace croton {

bool array_equal(const Array& a, const Array& b) {
  if (a.dtype() != b.dtype() || !(a.shape() == b.shape())) return false;
  const Array x = a.to_host().contiguous(), y = b.to_host().contiguous();
  return with_type(a.dtype(), [&]<class T>() {
    const T* p = static_cast<const T*>(x.raw_data());
    const T* q = static_cast<const T*>(y.raw_data());
    for (std::int64_t i = 0; i < x.size(); ++i) {
      if constexpr (std::same_as<T, float16> || std::same_as<T, bfloat16>) {
        if (static_cast<float>(p[i]) != static_cast<float>(q[i])) return false;
      } else {
        if (p[i] != q[i]) return false;
      }
    }
    return true;
  });
}

bool allclose(const Array& a, const Array& b, double rtol, double atol, bool equal_nan) {
  if (!(a.shape() == b.shape())) return false;
  const Array x = a.astype(DType::float64), y = b.astype(DType::float64);
  const std::vector<double> p = x.to_vector<double>(), q = y.to_vector<double>();
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (p[i] == q[i]) continue;  // infinities included
    if (equal_nan && std::isnan(p[i]) && std::isnan(q[i])) continue;
    if (std::isinf(p[i]) || std::isinf(q[i])) return false;
    if (!(std::fabs(p[i] - q[i]) <= atol + rtol * std::fabs(q[i]))) return false;
  }
  return true;
}

}  // namespace croton
