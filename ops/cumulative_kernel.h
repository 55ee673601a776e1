// Running folds along an axis: attributes "axis" (not negative) and "reverse" (0 or 1).
#pragma once

#include "compiler/graph/lowering.h"
#include "compiler/graph/op.h"

namespace croton {

/// An associative combination and the value that changes nothing.
struct RunningFold {
  kernel::Expr (*combine)(kernel::Builder&, kernel::Expr before, kernel::Expr x) = nullptr;
  kernel::Expr (*identity)(kernel::Builder&, DType) = nullptr;
  int cost = 1;
};

/// The kernels of a node: buffers are the result and the operand.
void lower_running(KernelLowering& low, const RunningFold& fold);

/// The kernels of a recurrence y[k] = factor[k] * y[k - 1] + x[k]: buffers are the result, x and
/// the factors. One element comes after the other along the axis, since products of factors may
/// overflow where no result does.
void lower_recurrence(KernelLowering& low);

}  // namespace croton
