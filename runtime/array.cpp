#include "croton/array.h"

#include <fmt/format.h>

#include <cstring>
#include <new>

#include "croton/error.h"
#include "runtime/array_access.h"
#include "runtime/free_list.h"
#include "runtime/strided_copy.h"

namespace croton {
namespace {

const ArrayImpl& deref(const detail::ArrayHeader* header) {
  if (header == nullptr) {
    throw UserError("[Array] this Array holds no value: it was default constructed or moved from");
  }
  return *static_cast<const ArrayImpl*>(header);
}

void check_dtype(const ArrayImpl& a, DType wanted) {
  if (a.dtype == wanted) return;
  throw UserError(
      fmt::format("[Array] wrong element type: got {} where the array holds {}; ask for {}, or "
                  "convert with astype(DType::{}) first",
                  name_of(wanted), name_of(a.dtype), name_of(a.dtype),
                  wanted == DType::boolean ? "boolean" : name_of(wanted)));
}

/// Fetches memory of the array, wherever it lives.
void read_bytes(const ArrayImpl& a, void* target, const std::byte* source, std::size_t bytes) {
  if (a.home != nullptr && !a.home->host_accessible()) {
    a.home->copy_to_host(target, source, bytes);
    return;
  }
  if (a.home != nullptr) a.home->wait();
  std::memcpy(target, source, bytes);
}

ArrayImpl* new_impl(DType dtype, const Shape& shape, BlockRef block, std::byte* data,
                    ArrayHome* home) {
  ArrayImpl* impl = new (FreeList<ArrayImpl>::take()) ArrayImpl;
  impl->refs.store(1, std::memory_order_relaxed);
  impl->dtype = dtype;
  impl->shape = shape;
  impl->data = data != nullptr ? data : block->data;
  impl->block = std::move(block);
  impl->home = home;
  impl->size = shape.numel();
  return impl;
}

/// Row-major without gaps; axes of size 1 and arrays without elements do not matter.
bool contiguous_strides(const Shape& shape, const Strides& strides) {
  for (std::int64_t s : shape) {
    if (s == 0) return true;
  }
  std::int64_t expected = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (shape[i] != 1 && strides[i] != expected) return false;
    expected *= shape[i];
  }
  return true;
}

}  // namespace

ArrayHome::~ArrayHome() = default;

namespace detail {
void destroy_array(ArrayHeader* header) noexcept {
  ArrayImpl* impl = static_cast<ArrayImpl*>(header);
  impl->~ArrayImpl();
  FreeList<ArrayImpl>::give(impl);
}
}  // namespace detail

Strides row_major_strides(const Shape& shape) {
  Strides strides{};
  std::uint64_t stride = 1;  // may wrap, but only in arrays without elements
  for (std::size_t i = shape.size(); i-- > 0;) {
    strides[i] = static_cast<std::int64_t>(stride);
    stride *= static_cast<std::uint64_t>(shape[i]);
  }
  return strides;
}

std::size_t bytes_of(const Shape& shape, DType dtype, const char* where) {
  for (std::int64_t s : shape) {
    if (s < 0) {
      throw UserError(
          fmt::format("[{}] sizes of an array must be known and not negative: got {} in shape {}",
                      where, s, shape.to_string()));
    }
  }
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(shape.numel(), static_cast<std::int64_t>(size_of(dtype)), &bytes)) {
    throw UserError(fmt::format("[{}] too many bytes: {} of {} does not fit 63 bits", where,
                                shape.to_string(), name_of(dtype)));
  }
  return static_cast<std::size_t>(bytes);
}

Array ArrayAccess::wrap(DType dtype, const Shape& shape, BlockRef block, std::byte* data,
                        ArrayHome* home) {
  Array array;
  ArrayImpl* impl = new_impl(dtype, shape, std::move(block), data, home);
  impl->strides = row_major_strides(shape);
  array.impl_ = impl;
  return array;
}

Array ArrayAccess::wrap_strided(DType dtype, const Shape& shape, const Strides& strides,
                                BlockRef block, std::byte* data, ArrayHome* home) {
  Array array;
  ArrayImpl* impl = new_impl(dtype, shape, std::move(block), data, home);
  impl->strides = strides;
  impl->contiguous = contiguous_strides(shape, strides);
  array.impl_ = impl;
  return array;
}

Array ArrayAccess::make_host(DType dtype, const Shape& shape) {
  return wrap(dtype, shape, host_block(bytes_of(shape, dtype, "Array")));
}

const Shape& Array::shape() const& { return deref(impl_).shape; }
std::size_t Array::ndim() const { return deref(impl_).shape.size(); }
std::int64_t Array::size() const { return deref(impl_).size; }
DType Array::dtype() const { return deref(impl_).dtype; }
bool Array::is_contiguous() const { return deref(impl_).contiguous; }
const void* Array::raw_data() const { return deref(impl_).data; }

std::size_t Array::nbytes() const {
  const ArrayImpl& a = deref(impl_);
  return static_cast<std::size_t>(a.size) * size_of(a.dtype);
}

std::span<const std::int64_t> Array::strides() const {
  const ArrayImpl& a = deref(impl_);
  return {a.strides.data(), a.shape.size()};
}

std::string Array::context() const {
  const ArrayImpl& a = deref(impl_);
  return a.home ? std::string(a.home->name()) : "cpu";
}

const void* Array::checked_data(DType wanted) const {
  const ArrayImpl& a = deref(impl_);
  check_dtype(a, wanted);
  if (a.home != nullptr) {
    throw UserError(fmt::format("[Array] the elements live on context '{}': take to_host() first",
                                a.home->name()));
  }
  if (!a.contiguous) {
    throw UserError(
        "[Array] data() of a strided view would skip its strides: take contiguous() first, or "
        "raw_data() together with strides()");
  }
  return a.data;
}

void* Array::checked_mutable_data(DType wanted) {
  const ArrayImpl& a = deref(impl_);
  check_dtype(a, wanted);
  if (a.home != nullptr) {
    throw UserError(fmt::format("[Array] the elements live on context '{}': take to_host() first",
                                a.home->name()));
  }
  if (!a.contiguous || !ArrayAccess::unique(*this)) *this = copy();
  return ArrayAccess::impl(*this)->data;
}

Array Array::checked_host(DType wanted) const {
  check_dtype(deref(impl_), wanted);
  return to_host().contiguous();
}

void Array::read_item(void* target, DType wanted) const {
  const ArrayImpl& a = deref(impl_);
  check_dtype(a, wanted);
  if (a.size != 1) {
    throw UserError(fmt::format(
        "[Array] item() wants exactly one element: got shape {} with {}; use at({{...}})",
        a.shape.to_string(), a.size));
  }
  read_bytes(a, target, a.data, size_of(a.dtype));
}

void Array::read_at(void* target, DType wanted, const Shape& index) const {
  const ArrayImpl& a = deref(impl_);
  check_dtype(a, wanted);
  if (index.size() != a.shape.size()) {
    throw UserError(
        fmt::format("[Array] at() wants one index per axis: got {}, expected {} for "
                    "shape {}",
                    index.size(), a.shape.size(), a.shape.to_string()));
  }
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < index.size(); ++i) {
    const std::int64_t n = a.shape[i];
    if (index[i] < -n || index[i] >= n) {
      throw UserError(
          fmt::format("[Array] index out of bounds on axis {}: got {}, expected {} to "
                      "{} for shape {}",
                      i, index[i], -n, n - 1, a.shape.to_string()));
    }
    offset += (index[i] < 0 ? index[i] + n : index[i]) * a.strides[i];
  }
  const std::size_t width = size_of(a.dtype);
  read_bytes(a, target, a.data + offset * static_cast<std::int64_t>(width), width);
}

Array Array::to_host() const {
  const ArrayImpl& a = deref(impl_);
  if (a.home == nullptr) return *this;
  if (a.home->host_accessible()) {
    a.home->wait();
    return ArrayAccess::wrap_strided(a.dtype, a.shape, a.strides, a.block, a.data, nullptr);
  }
  if (a.size == 0) return ArrayAccess::make_host(a.dtype, a.shape);
  // A strided view travels as the stretch of memory that it covers.
  const std::int64_t width = static_cast<std::int64_t>(size_of(a.dtype));
  std::int64_t low = 0, high = 0;
  for (std::size_t i = 0; i < a.shape.size(); ++i) {
    (a.strides[i] < 0 ? low : high) += (a.shape[i] - 1) * a.strides[i];
  }
  BlockRef block = host_block(static_cast<std::size_t>((high - low + 1) * width));
  a.home->copy_to_host(block->data, a.data + low * width, block->bytes);
  std::byte* first = block->data - low * width;
  return ArrayAccess::wrap_strided(a.dtype, a.shape, a.strides, std::move(block), first, nullptr);
}

Array Array::copy() const {
  const Array host = to_host();
  const ArrayImpl& a = deref(host.impl_);
  Array result = ArrayAccess::make_host(a.dtype, a.shape);
  std::byte* target = ArrayAccess::impl(result)->data;
  if (a.contiguous) {
    std::memcpy(target, a.data, host.nbytes());
  } else {
    copy_strided(target, a.data, a.shape, a.strides, size_of(a.dtype));
  }
  return result;
}

Array Array::contiguous() const { return deref(impl_).contiguous ? *this : copy(); }

}  // namespace croton
