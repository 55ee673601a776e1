#pragma once

#include <string_view>
#include <type_traits>
#include <utility>

#include "croton/reduce.h"

// Reductions beyond those of croton/reduce.h; axes, masks and dtypes as there.
namespace croton {

struct ArgOptions {
  /// Reduced axes stay, with size 1.
  bool keepdims = false;
  /// Of equal elements the last one counts, not the first.
  bool last = false;
};

/// The order of a norm: none, a number (0, 1, 2, infinities, any p), or "fro".
struct CROTON_API NormOrder {
  NormOrder(None) {}
  template <class T>
  requires std::is_arithmetic_v<T> NormOrder(T order) : p(static_cast<double>(order)) {}
  NormOrder(std::string_view order) : name(order) {}
  NormOrder(const char* order) : name(order) {}
  std::optional<double> p;
  std::string_view name;
};

/// Where the largest element is, as `argmax` of croton/reduce.h, with options.
CROTON_API Variable argmax(const Operand& x, const Axis& axis, const ArgOptions& options);
CROTON_API Variable argmin(const Operand& x, const Axis& axis, const ArgOptions& options);
/// `max` and `argmax` over the same axis; with none, in the flattened operand.
CROTON_API std::pair<Variable, Variable> max_and_argmax(const Operand& x, const Axis& axis = none,
                                                        const ArgOptions& options = {});
/// log(sum(exp(x))) over one axis, several or, with none, all of them, without overflow; -inf where
/// all elements are -inf. Integers give floatX; masked elements count as -inf.
CROTON_API Variable logsumexp(const Operand& x, const Axis& axis,
                              const ReduceOptions& options = {});

/// `max` minus `min`; not for bool.
CROTON_API Variable ptp(const Operand& x, const Axis& axis = none,
                        const ReduceOptions& options = {});
/// How many elements are not 0: int64 unless a dtype is given.
CROTON_API Variable count_nonzero(const Operand& x, const Axis& axis = none,
                                  const ReduceOptions& options = {});
/// The mean weighted by `weights`, which have x's shape or, where `axis` is one axis, are a vector
/// along it: sum(x * weights) / sum(weights).
CROTON_API Variable average(const Operand& x, const Operand& weights, const Axis& axis = none,
                            bool keepdims = false);

struct CovOptions {
  /// Whether a row holds the observations of one variable, instead of a column.
  bool rowvar = true;
  /// The divisor is the number of observations minus this: 1 where it is not given, as in NumPy.
  std::optional<double> ddof = {};
  /// How often each observation counts: a vector of integers, one an observation.
  std::optional<Variable> fweights = {};
  /// How much each observation counts: a vector.
  std::optional<Variable> aweights = {};
  std::optional<DType> dtype = {};
};

/// Covariances between the variables of a matrix; a vector is the observations of one variable, of
/// which the variance comes as a scalar. Integers and bool give floatX; float16 and bfloat16 are
/// computed in float32. As numpy.cov.
CROTON_API Variable cov(const Operand& x, const CovOptions& options = {});
/// Covariances divided by both standard deviations, between -1 and 1. As numpy.corrcoef.
CROTON_API Variable corrcoef(const Operand& x, bool rowvar = true);

/// Norms, as numpy.linalg.norm; integers give floatX. With no order the square root of the sum of
/// squares, over any axes. Over one axis the norm of a vector: the largest (infinity) or smallest
/// (-infinity) magnitude, the number of elements that are not 0 (0), else sum(|x|^p)^(1/p). Over
/// two axes (row, column) that of a matrix: "fro", the largest (1) or smallest (-1) sum of
/// magnitudes of a column, or of a row (infinity, -infinity). The gradient is 0 where the norm of
/// order p is 0 and, for p < 1, in elements that are 0.
CROTON_API Variable norm(const Operand& x, const NormOrder& order = none, const Axis& axis = none,
                         bool keepdims = false);

// Elements that are NaN do not count; otherwise as the reduction of that name.
CROTON_API Variable nansum(const Operand& x, const Axis& axis = none,
                           const ReduceOptions& options = {});
CROTON_API Variable nanprod(const Operand& x, const Axis& axis = none,
                            const ReduceOptions& options = {});
/// NaN where there is nothing else, as all the following.
CROTON_API Variable nanmean(const Operand& x, const Axis& axis = none,
                            const ReduceOptions& options = {});
CROTON_API Variable nanmax(const Operand& x, const Axis& axis = none,
                           const ReduceOptions& options = {});
CROTON_API Variable nanmin(const Operand& x, const Axis& axis = none,
                           const ReduceOptions& options = {});
CROTON_API Variable nanvar(const Operand& x, const Axis& axis = none,
                           const VarOptions& options = {});
CROTON_API Variable nanstd(const Operand& x, const Axis& axis = none,
                           const VarOptions& options = {});
/// Where the largest element is that is not NaN; -1 where there is none, as in JAX.
CROTON_API Variable nanargmax(const Operand& x, const Axis& axis = none,
                              const ArgOptions& options = {});
CROTON_API Variable nanargmin(const Operand& x, const Axis& axis = none,
                              const ArgOptions& options = {});

}  // namespace croton
