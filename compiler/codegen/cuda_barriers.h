// Where the threads of a block must wait for one another.
#pragma once

#include <vector>

#include "compiler/codegen/cuda_lanes.h"
#include "compiler/kernel/kernel.h"

namespace croton::codegen {

/// For each node of a kernel whether a barrier stands before it. Every thread of a block runs the
/// uniform code; the iterations of a `lanes` are dealt out to the threads, and a uniform store is
/// made by the first. So a barrier is needed between two accesses to one buffer, at least one of
/// them writing, unless both are made by the first thread alone or in one `lanes`.
std::vector<bool> barriers_before(const kernel::Kernel& kernel, const LaneLayouts& layouts);

/// Whether a `lanes` folds through shared memory, with a barrier in the middle.
bool folds_over_block(const kernel::Kernel& kernel, const kernel::Node& lanes);

}  // namespace croton::codegen
