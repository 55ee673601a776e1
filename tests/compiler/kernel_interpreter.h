// Runs kernels node by node, by the words of kernel.h: the measure for what emitters print.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "compiler/kernel/kernel.h"

namespace croton::test {

/// Runs blocks 0 to blocks - 1 of a kernel on `buffers`, one for each argument, and records the
/// first failed check in three words of `error`. Lanes run in ascending order. An access outside of
/// a buffer throws std::out_of_range; locals begin as ones in every bit.
void interpret(const kernel::Kernel& kernel, std::vector<std::vector<std::byte>>& buffers,
               std::span<const std::int64_t> sizes, std::int64_t blocks, std::int64_t* error);

}  // namespace croton::test
