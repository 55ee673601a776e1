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

  /// Makes an empty handle name what `source` names without counting it: `take_back` must come
  /// before either handle dies or is assigned to.
  static void lend(Array& target, const Array& source) { target.impl_ = source.impl_; }
  static void take_back(Array& target) { target.impl_ = nullptr; }

  /// No other handle or view shares the memory, so it may be written in place.
  static bool unique(const Array& a) {
    const ArrayImpl* i = impl(a);
    return i && i->refs.load(std::memory_order_acquire) == 1 && i->block.unique() &&
           !i->block->read_only;
  }
};

/// Arrays in a row that live elsewhere, as long as this lives: counting the handles of each call
/// would cost more than small calls do.
template <std::size_t n>
class LentArrays {
 public:
  LentArrays() = default;
  LentArrays(const LentArrays&) = delete;
  LentArrays& operator=(const LentArrays&) = delete;
  ~LentArrays() {
    for (std::size_t i = 0; i < n; ++i) {
      if (lent_[i]) ArrayAccess::take_back(arrays_[i]);
    }
  }

  /// Place i, empty so far, names what `array` names.
  void lend(std::size_t i, const Array& array) {
    ArrayAccess::lend(arrays_[i], array);
    lent_[i] = true;
  }
  void own(std::size_t i, Array array) { arrays_[i] = std::move(array); }
  std::span<const Array> first(std::size_t count) const { return {arrays_.data(), count}; }

 private:
  std::array<Array, n> arrays_;
  std::array<bool, n> lent_{};
};

}  // namespace croton
