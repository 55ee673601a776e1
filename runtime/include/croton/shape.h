#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "croton/dtype.h"
#include "croton/export.h"

namespace croton {

/// A size that is not known before the call.
inline constexpr std::int64_t kAnyDim = -1;
/// The most axes that an array or a variable can have.
inline constexpr std::size_t kMaxRank = 8;

namespace detail {
[[noreturn]] CROTON_API void throw_rank_too_high(std::size_t rank);
[[noreturn]] CROTON_API void throw_extent_too_large(std::uint64_t value);
}  // namespace detail

/// One size of a Shape: takes any integer type.
struct Extent {
  std::int64_t value = 0;

  template <Integer T>
  constexpr Extent(T v) : value(static_cast<std::int64_t>(v)) {
    if constexpr (std::is_unsigned_v<T> && sizeof(T) == 8) {
      if (v > static_cast<T>(std::numeric_limits<std::int64_t>::max())) {
        detail::throw_extent_too_large(v);
      }
    }
  }
};

/// The sizes of up to kMaxRank axes, stored inline; kAnyDim stands for an unknown one. A longer
/// list is a UserError.
class Shape {
 public:
  constexpr Shape() = default;
  Shape(std::initializer_list<Extent> sizes) {
    check_rank(sizes.size());
    for (const Extent& e : sizes) sizes_[rank_++] = e.value;
  }
  Shape(std::span<const std::int64_t> sizes) {
    check_rank(sizes.size());
    for (std::int64_t s : sizes) sizes_[rank_++] = s;
  }
  Shape(const std::vector<std::int64_t>& sizes) : Shape(std::span<const std::int64_t>(sizes)) {}

  std::size_t size() const { return rank_; }
  bool empty() const { return rank_ == 0; }
  std::int64_t operator[](std::size_t axis) const { return sizes_[axis]; }
  std::int64_t& operator[](std::size_t axis) { return sizes_[axis]; }
  std::int64_t back() const { return sizes_[rank_ - 1]; }
  const std::int64_t* data() const { return sizes_.data(); }
  const std::int64_t* begin() const { return sizes_.data(); }
  const std::int64_t* end() const { return sizes_.data() + rank_; }
  std::int64_t* begin() { return sizes_.data(); }
  std::int64_t* end() { return sizes_.data() + rank_; }

  void push_back(std::int64_t size) {
    check_rank(rank_ + std::size_t{1});
    sizes_[rank_++] = size;
  }
  void pop_back() { sizes_[--rank_] = 0; }
  void clear() { *this = Shape(); }

  /// No size is unknown (or negative).
  bool is_static() const {
    for (std::int64_t s : *this) {
      if (s < 0) return false;
    }
    return true;
  }

  /// The number of elements, 1 without axes; kAnyDim when a size is unknown and none is 0. A
  /// UserError when it does not fit 63 bits.
  CROTON_API std::int64_t numel() const;

  /// "(2, 3)", "(5,)", "()"; an unknown size prints as "?".
  CROTON_API std::string to_string() const;

  friend bool operator==(const Shape& a, const Shape& b) {
    if (a.rank_ != b.rank_) return false;
    for (std::size_t i = 0; i < a.rank_; ++i) {
      if (a.sizes_[i] != b.sizes_[i]) return false;
    }
    return true;
  }

 private:
  static void check_rank(std::size_t rank) {
    if (rank > kMaxRank) detail::throw_rank_too_high(rank);
  }

  std::array<std::int64_t, kMaxRank> sizes_{};
  std::uint32_t rank_ = 0;
};

}  // namespace croton
