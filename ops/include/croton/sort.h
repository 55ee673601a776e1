#pragma once

#include <utility>
#include <vector>

#include "croton/export.h"
#include "croton/variable.h"

// Sorting, and what is made with it. NaN counts as the largest element, and -0 equals 0. Gradients
// go to the elements that the results are.
namespace croton {

struct SortOptions {
  /// The largest first.
  bool descending = false;
};

/// Elements in order along an axis; with none the operand is flattened. Equal ones stay in their
/// order.
CROTON_API Variable sort(const Operand& x, const Axis& axis = -1, const SortOptions& options = {});
/// Where the elements of `sort` are along the axis: int64. Equal ones stay in their order.
CROTON_API Variable argsort(const Operand& x, const Axis& axis = -1,
                            const SortOptions& options = {});

struct TopkOptions {
  /// The k largest; else the k smallest.
  bool largest = true;
};

/// The k largest (smallest) elements along an axis, the largest (smallest) first, and where they
/// are: int64, of equals the first. A k beyond the axis is a GraphError or, where it shows in the
/// call, a CallError.
CROTON_API std::pair<Variable, Variable> topk(const Operand& x, const Size& k, int axis = -1,
                                              const TopkOptions& options = {});

enum class Side { left, right };

/// Where `values` would be inserted into a sorted vector so that it stays sorted: int64, before
/// equal elements (left) or after them (right).
CROTON_API Variable searchsorted(const Operand& sorted, const Operand& values,
                                 Side side = Side::left);
/// The same for a vector that is sorted in the order of `sorter`, as `argsort` gives it.
CROTON_API Variable searchsorted(const Operand& vector, const Operand& values, Side side,
                                 const Operand& sorter);

struct BincountOptions {
  /// Of the result. With none it is one more than the largest element, as in NumPy: a size that the
  /// function computes itself, unless the operand is a constant.
  std::optional<Size> length = {};
  /// The result is at least so long.
  std::int64_t minlength = 0;
  /// One an element, or a scalar: what is summed in place of 1.
  std::optional<Variable> weights = {};
};

/// How often each of 0, 1, ... is in an array of integers: int64; or the sums of their weights, in
/// the dtype of these. An element that is negative, or too large for the length, is a CallError.
CROTON_API Variable bincount(const Operand& x, const BincountOptions& options = {});

/// What a quantile between two elements is; as in NumPy.
enum class Quantile { linear, lower, higher, nearest, midpoint };

struct QuantileOptions {
  bool keepdims = false;
  Quantile method = Quantile::linear;
};

/// Quantiles over axes, as NumPy's: `q` is a scalar or a vector within [0, 1], the axis of which
/// comes first in the result. Integers give floatX. NaN where an element is NaN.
CROTON_API Variable quantile(const Operand& x, const Operand& q, const Axis& axis = none,
                             const QuantileOptions& options = {});
/// The same with `q` within [0, 100].
CROTON_API Variable percentile(const Operand& x, const Operand& q, const Axis& axis = none,
                               const QuantileOptions& options = {});
/// quantile(x, 0.5).
CROTON_API Variable median(const Operand& x, const Axis& axis = none, bool keepdims = false);

// NaN does not count; NaN where there is nothing else.
CROTON_API Variable nanquantile(const Operand& x, const Operand& q, const Axis& axis = none,
                                const QuantileOptions& options = {});
CROTON_API Variable nanpercentile(const Operand& x, const Operand& q, const Axis& axis = none,
                                  const QuantileOptions& options = {});
CROTON_API Variable nanmedian(const Operand& x, const Axis& axis = none, bool keepdims = false);

}  // namespace croton
