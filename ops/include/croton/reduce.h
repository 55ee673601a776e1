#pragma once

#include "croton/export.h"
#include "croton/variable.h"

// Reductions, as in NumPy. `axis` is none (all axes), one axis or a list; negative ones count from
// the end; an empty list reduces over nothing. An axis that is out of range or given twice is a
// GraphError. With `where`, elements at which the mask is false do not count.
namespace croton {

struct VarOptions {
  /// Reduced axes stay, with size 1.
  bool keepdims = false;
  /// The divisor is the number of elements minus this.
  double ddof = 0;
  /// dtype of the result and of the computation; a float.
  std::optional<DType> dtype = {};
  /// bool mask, broadcast against the operand: elements where it is false do not count.
  std::optional<Variable> where = {};
};

/// Sums. Signed integers and bool give int64, unsigned ones uint64; float16 and bfloat16 are summed
/// in float32 and rounded once.
CROTON_API Variable sum(const Operand& x, const Axis& axis = none,
                        const ReduceOptions& options = {});
/// Products; dtypes as for `sum`.
CROTON_API Variable prod(const Operand& x, const Axis& axis = none,
                         const ReduceOptions& options = {});
/// Averages. Integers and bool give floatX. The mean of nothing is NaN.
CROTON_API Variable mean(const Operand& x, const Axis& axis = none,
                         const ReduceOptions& options = {});
/// The largest elements; NaN if there is one. Over no elements it is an error: GraphError when the
/// length is known to be 0, else CallError. The gradient goes to every element that is the largest.
CROTON_API Variable max(const Operand& x, const Axis& axis = none,
                        const ReduceOptions& options = {});
/// The smallest elements; otherwise as `max`.
CROTON_API Variable min(const Operand& x, const Axis& axis = none,
                        const ReduceOptions& options = {});
/// Whether an element is not 0; bool.
CROTON_API Variable any(const Operand& x, const Axis& axis = none,
                        const ReduceOptions& options = {});
/// Whether all elements are not 0; bool.
CROTON_API Variable all(const Operand& x, const Axis& axis = none,
                        const ReduceOptions& options = {});
/// Where the largest element is, along one axis or, with none, in the flattened operand: int64. The
/// first one of equals; NaN counts as the largest.
CROTON_API Variable argmax(const Operand& x, const Axis& axis = none, bool keepdims = false);
/// Where the smallest element is; NaN counts as the smallest. Otherwise as `argmax`.
CROTON_API Variable argmin(const Operand& x, const Axis& axis = none, bool keepdims = false);
/// The mean squared distance from the mean, in two passes; dtypes as for `mean`. The divisor is
/// the number of elements reduced over minus `ddof`.
CROTON_API Variable var(const Operand& x, const Axis& axis = none, const VarOptions& options = {});
/// The square root of `var`. Below `using namespace croton` write croton::std(x) or x.std(): C++
/// takes a bare `std` for the namespace.
CROTON_API Variable std(const Operand& x, const Axis& axis = none, const VarOptions& options = {});

}  // namespace croton
