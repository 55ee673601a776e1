// Which integers of a kernel are indices that 32 bits hold where all sizes do.
#pragma once

#include <vector>

#include "compiler/kernel/kernel.h"

namespace croton::codegen {

/// How each int64 node is computed.
enum class IndexType : std::uint8_t {
  none,     ///< in 64 bits
  exact,    ///< in the program's index type, which holds its value
  address,  ///< in the index type, modulo its range: only addresses come from it
};

/// The index type holds any size, number of blocks or element of a buffer: the launch sees to it.
std::vector<IndexType> index_types(const kernel::Kernel& kernel);

}  // namespace croton::codegen
