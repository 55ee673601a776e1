// Kernels that sort along an axis: attributes "axis" (not negative) and "descending" (0 or 1).
#pragma once

#include "compiler/graph/lowering.h"

namespace croton {

/// One of the launches of sort or argsort: buffers are the result, an array of its type to merge
/// into, and the operand. With `places` the result is where elements were, else they themselves.
void lower_sort(KernelLowering& low, bool places);

}  // namespace croton
