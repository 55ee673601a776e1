// The kernels of the ops that write at integer indices (ops/put.cpp): operand, values and indices
// are the inputs, "axis" the attribute. Along an axis there is an index for each value, else one
// for each place along the axis. Writes to one place happen in the order of the indices, except
// additions where the device has atomic ones.
#pragma once

#include "compiler/graph/op.h"
#include "ops/take.h"

namespace croton {

void put_kernel(KernelLowering& low, WriteMode mode, bool along);

// Ops that writes are made with; register_put_ops adds them.
void register_flat_index_ops(OpRegistry& registry);
void register_masked_ops(OpRegistry& registry);

}  // namespace croton
