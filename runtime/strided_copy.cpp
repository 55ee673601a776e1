#include "runtime/strided_copy.h"

#include <cstring>

namespace croton {
namespace {

template <std::size_t kWidth>
void copy_row(std::byte* target, const std::byte* source, std::int64_t n, std::int64_t step) {
  for (std::int64_t i = 0; i < n; ++i) {
    std::memcpy(target + i * static_cast<std::int64_t>(kWidth), source + i * step, kWidth);
  }
}

void copy_innermost(std::byte* target, const std::byte* source, std::int64_t n, std::int64_t stride,
                    std::size_t width) {
  const std::int64_t step = stride * static_cast<std::int64_t>(width);
  if (stride == 1) {
    std::memcpy(target, source, static_cast<std::size_t>(n) * width);
    return;
  }
  switch (width) {
    case 1:
      copy_row<1>(target, source, n, step);
      break;
    case 2:
      copy_row<2>(target, source, n, step);
      break;
    case 4:
      copy_row<4>(target, source, n, step);
      break;
    default:
      copy_row<8>(target, source, n, step);
      break;
  }
}

}  // namespace

void copy_strided(std::byte* target, const std::byte* source, const Shape& shape,
                  const Strides& strides, std::size_t width) {
  if (shape.numel() == 0) return;
  if (shape.empty()) {
    std::memcpy(target, source, width);
    return;
  }
  const std::size_t last = shape.size() - 1;
  const std::int64_t w = static_cast<std::int64_t>(width);
  Strides index{};
  for (;;) {
    copy_innermost(target, source, shape[last], strides[last], width);
    target += shape[last] * w;
    // Count the outer axes up like an odometer.
    std::size_t axis = last;
    for (;;) {
      if (axis == 0) return;
      --axis;
      source += strides[axis] * w;
      if (++index[axis] < shape[axis]) break;
      source -= shape[axis] * strides[axis] * w;
      index[axis] = 0;
    }
  }
}

}  // namespace croton
