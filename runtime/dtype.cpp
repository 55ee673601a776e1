#include "croton/dtype.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <string>

#include "croton/error.h"
#include "runtime/float_flag.h"

namespace croton {
namespace {

std::atomic<DType (*)()> default_float_source{nullptr};

DType signed_of_size(std::size_t bytes) {
  switch (bytes) {
    case 1:
      return DType::int8;
    case 2:
      return DType::int16;
    case 4:
      return DType::int32;
    default:
      return DType::int64;
  }
}

DType promote_integers(DType a, DType b) {
  if (is_unsigned(a) == is_unsigned(b)) return size_of(a) >= size_of(b) ? a : b;
  const DType s = is_unsigned(a) ? b : a;
  const DType u = is_unsigned(a) ? a : b;
  if (size_of(s) > size_of(u)) return s;
  return u == DType::uint64 ? DType::float64 : signed_of_size(2 * size_of(u));
}

DType promote_floats(DType a, DType b) {
  if (size_of(a) == size_of(b)) return DType::float32;  // float16 with bfloat16
  return size_of(a) > size_of(b) ? a : b;
}

DType promote_float_with_integer(DType f, DType i) {
  if (size_of(i) == 1) return f;
  if (size_of(i) == 2) return size_of(f) == 2 ? DType::float32 : f;
  return DType::float64;
}

}  // namespace

DType dtype_from_name(std::string_view name) {
  if (name == "boolean") return DType::boolean;
  std::string known;
  for (int i = 0; i < kDTypeCount; ++i) {
    const DType t = static_cast<DType>(i);
    if (name_of(t) == name) return t;
    known += (i ? ", " : "") + std::string(name_of(t));
  }
  throw UserError(fmt::format("[dtype] unknown dtype: got '{}', expected one of {}", name, known));
}

DType promote(DType a, DType b, bool numpy_policy) {
  if (a == b || is_bool(b)) return a;
  if (is_bool(a)) return b;
  if (is_float(a) && is_float(b)) return promote_floats(a, b);
  if (is_integer(a) && is_integer(b)) return promote_integers(a, b);
  const DType f = is_float(a) ? a : b;
  return numpy_policy ? promote_float_with_integer(f, f == a ? b : a) : f;
}

DType dtype_of_flag(FloatX flag) {
  switch (flag) {
    case FloatX::float32:
      return DType::float32;
    case FloatX::float64:
      return DType::float64;
    case FloatX::float16:
      return DType::float16;
    case FloatX::bfloat16:
      return DType::bfloat16;
  }
  return DType::float32;
}

DType default_float() {
  DType (*source)() = default_float_source.load(std::memory_order_acquire);
  return source ? source() : DType::float32;
}

void set_default_float_source(DType (*source)()) {
  default_float_source.store(source, std::memory_order_release);
}

}  // namespace croton
