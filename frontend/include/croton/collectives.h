#pragma once

#include <string>
#include <vector>

#include "croton/export.h"
#include "croton/variable.h"

// Values that several contexts have each their own of, and what they make of them together. A list
// has one value for each rank, values[r] on the context of rank r. Functions of these are made of
// transfers and ordinary ops: they are differentiated, fused and scheduled as all else.
//
// Ranks are added up in their order, so that the bits depend on nothing else. float16 and bfloat16
// are combined in float32 and rounded once.
namespace croton {

enum class CollectiveOp { sum, mean, max, min, prod };

/// What a gradient that comes back to all_reduce and all_gather means.
enum class CollectiveGradient {
  /// The derivative: the loss is the sum of what all ranks compute, and a rank's value gets the
  /// gradients of all results that it is in.
  total,
  /// Every rank computes the same loss, which counts once: a rank's value gets the gradient of the
  /// result on its own rank (of its own part, for all_gather), as in MLX.
  once,
};

struct CollectiveOptions {
  /// The context of each rank; the contexts that the values name where it is left out.
  std::vector<std::string> contexts = {};
  /// Only of all_reduce and all_gather.
  CollectiveGradient gradient = CollectiveGradient::total;
  /// Of all_reduce and reduce with CollectiveOp::mean: one scalar a rank, such as numbers of rows;
  /// the result is sum(weight * value) / sum(weight). A rank of weight 0 takes no part, whatever
  /// its value is. Equal weights where it is left out.
  std::vector<Variable> weights = {};
};

// GraphError for an empty list, an empty Variable, values of different dtype or rank, ranks without
// a context, another number of contexts or weights than of values, and means of integers.

/// The values combined, on every rank. All have one shape.
CROTON_API std::vector<Variable> all_reduce(const std::vector<Variable>& values,
                                            CollectiveOp op = CollectiveOp::sum,
                                            const CollectiveOptions& options = {},
                                            Loc loc = Loc::current());
/// The values combined, on the context of rank `root`.
CROTON_API Variable reduce(const std::vector<Variable>& values, CollectiveOp op = CollectiveOp::sum,
                           int root = 0, const CollectiveOptions& options = {},
                           Loc loc = Loc::current());
/// The values combined, and of that a share of the rows (axis 0) on each rank: sizes differ by at
/// most one, the first ranks have more.
CROTON_API std::vector<Variable> reduce_scatter(const std::vector<Variable>& values,
                                                CollectiveOp op = CollectiveOp::sum,
                                                const CollectiveOptions& options = {},
                                                Loc loc = Loc::current());
/// The values one after the other along axis 0, whose lengths may differ, or with `stacked` along a
/// new one, on every rank.
CROTON_API std::vector<Variable> all_gather(const std::vector<Variable>& values,
                                            bool stacked = false,
                                            const CollectiveOptions& options = {},
                                            Loc loc = Loc::current());
/// The same on the context of rank `root`.
CROTON_API Variable gather(const std::vector<Variable>& values, int root = 0, bool stacked = false,
                           const CollectiveOptions& options = {}, Loc loc = Loc::current());
/// A value on each of these contexts.
CROTON_API std::vector<Variable> broadcast(const Variable& value,
                                           const std::vector<std::string>& contexts,
                                           Loc loc = Loc::current());
/// The rows (axis 0) of a value, a share on each of these contexts: 7 rows on 4 are 2, 2, 2, 1.
CROTON_API std::vector<Variable> scatter(const Variable& value,
                                         const std::vector<std::string>& contexts,
                                         Loc loc = Loc::current());
/// Rank r gets the r-th share of the rows of each value, one behind the other.
CROTON_API std::vector<Variable> all_to_all(const std::vector<Variable>& values,
                                            const CollectiveOptions& options = {},
                                            Loc loc = Loc::current());

}  // namespace croton
