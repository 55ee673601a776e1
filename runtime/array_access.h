#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "croton/array.h"
#include "runtime/block.h"

namespace croton {

using Strides = std::array<std::int64_t, kMaxRank>;

/// What an Array points to. `data` is the address of element (0, ..., 0), inside `block`.
struct ArrayImpl : detail::ArrayHeader {
  DType dtype = DType::float32;
  bool contiguous = true;
  Shape shape;
  Strides strides{};  // in elements
  std::int64_t size = 0;
  std::byte* data = nullptr;
  BlockRef block;
  ArrayHome* home = nullptr;  // null: plain host memory
};

/// Strides of a row-major array without gaps.
Strides row_major_strides(const Shape& shape);

/// The bytes of a contiguous array; a UserError that begins with `where` unless every size is known
/// and the total fits.
std::size_t bytes_of(const Shape& shape, DType dtype, const char* where);

/// How the runtime looks into arrays and makes them; no malloc in the steady state.
class ArrayAccess {
 public:
  static ArrayImpl* impl(const Array& a) { return static_cast<ArrayImpl*>(a.impl_); }

  /// Wraps memory: a contiguous array of that shape at `data` (inside `block`, or of the block's
  /// start when null). Nothing is checked.
  static Array wrap(DType dtype, const Shape& shape, BlockRef block, std::byte* data = nullptr,
                    ArrayHome* home = nullptr);
  /// The same with strides in elements.
  static Array wrap_strided(DType dtype, const Shape& shape, const Strides& strides, BlockRef block,
                            std::byte* data, ArrayHome* home);
  /// Uninitialised host memory.
  static Array make_host(DType dtype, const Shape& shape);

  /// No other handle or view shares the memory, so it may be written in place.
  static bool unique(const Array& a) {
    const ArrayImpl* i = impl(a);
    return i && i->refs.load(std::memory_order_acquire) == 1 && i->block.unique() &&
           !i->block->read_only;
  }
};

}  // namespace croton
