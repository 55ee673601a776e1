#pragma once

#include <cstdint>

namespace croton::kernel {

/// Bytes of registers in which a thread of a GPU keeps its parts of block-local arrays.
inline constexpr std::int64_t kThreadArrayBytes = 128;

}  // namespace croton::kernel
