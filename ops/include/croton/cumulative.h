#pragma once

#include "croton/export.h"
#include "croton/variable.h"

namespace croton {

struct CumulativeOptions {
  /// dtype of the result and of the accumulation.
  std::optional<DType> dtype = {};
  /// From the last element to the first.
  bool reverse = false;
  /// Without the element itself: the first one of sums is 0, of products 1.
  bool exclusive = false;
};

// Running reductions along one axis; with none the operand is flattened. float16 and bfloat16 are
// accumulated in float32.
/// Sums of the elements up to each; dtypes as for `sum`.
CROTON_API Variable cumsum(const Operand& x, const Axis& axis = none,
                           const CumulativeOptions& options = {});
/// Products of the elements up to each; dtypes as for `prod`. Derivatives are right at zeros, too.
CROTON_API Variable cumprod(const Operand& x, const Axis& axis = none,
                            const CumulativeOptions& options = {});
/// The largest of the elements up to each, NaN from the first one on; never exclusive. The gradient
/// goes to the latest of equals.
CROTON_API Variable cummax(const Operand& x, const Axis& axis = none,
                           const CumulativeOptions& options = {});
/// The smallest of the elements up to each; otherwise as `cummax`.
CROTON_API Variable cummin(const Operand& x, const Axis& axis = none,
                           const CumulativeOptions& options = {});
/// log(cumsum(exp(x))) without overflow; integers give floatX. Exclusive ones start with -inf.
CROTON_API Variable logcumsumexp(const Operand& x, const Axis& axis = none,
                                 const CumulativeOptions& options = {});
/// Differences of neighbours along an axis, `n` times over; of bools whether they differ.
CROTON_API Variable diff(const Operand& x, int n = 1, int axis = -1);

}  // namespace croton
