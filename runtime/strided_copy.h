#pragma once

#include <cstddef>

#include "runtime/array_access.h"

namespace croton {

/// Copies the elements of a strided array (strides in elements of `width` bytes) to `target` in
/// row-major order.
void copy_strided(std::byte* target, const std::byte* source, const Shape& shape,
                  const Strides& strides, std::size_t width);

}  // namespace croton
