#include "croton/shape.h"

#include <fmt/format.h>

#include "croton/error.h"

namespace croton {
namespace detail {

void throw_rank_too_high(std::size_t rank) {
  throw UserError(
      fmt::format("[Shape] too many axes: got {}, expected at most {}; merge axes with reshape",
                  rank, kMaxRank));
}

void throw_extent_too_large(std::uint64_t value) {
  throw UserError(fmt::format("[Shape] size too large: got {}, expected at most {}", value,
                              std::numeric_limits<std::int64_t>::max()));
}

}  // namespace detail

std::int64_t Shape::numel() const {
  std::int64_t product = 1;
  bool unknown = false;
  bool overflow = false;
  for (std::int64_t s : *this) {
    if (s == 0) return 0;
    if (s < 0) {
      unknown = true;
    } else {
      overflow |= __builtin_mul_overflow(product, s, &product);
    }
  }
  if (overflow) {
    throw UserError(fmt::format("[Shape] too many elements: {} does not fit 63 bits", to_string()));
  }
  return unknown ? kAnyDim : product;
}

std::string Shape::to_string() const {
  std::string text = "(";
  for (std::size_t i = 0; i < rank_; ++i) {
    if (i > 0) text += ", ";
    text += sizes_[i] == kAnyDim ? "?" : std::to_string(sizes_[i]);
  }
  return text + (rank_ == 1 ? ",)" : ")");
}

}  // namespace croton
