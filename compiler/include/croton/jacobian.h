#pragma once

#include <vector>

#include "croton/grad.h"
#include "croton/variable.h"

// Matrices of derivatives. Each is one walk back through the graph for all entries at once: the
// walk is written for one entry and put on the batch of them (see vectorize_graph).
namespace croton {

/// The Jacobian of a float value of any rank by each of `wrt`: all derivatives of each element by
/// each element of the variable, of shape expr.shape + wrt.shape and the dtype of the variable.
/// Sizes need not be known. GraphError when the value does not depend on a variable (see
/// ProductOptions), or an op of its gradient has no rule for a batch.
CROTON_API std::vector<Variable> jacobian(const Variable& expr, const std::vector<Variable>& wrt,
                                          const ProductOptions& options = {},
                                          Loc loc = Loc::current());

/// The Jacobian by one variable.
template <Symbol T>
Variable jacobian(const Variable& expr, const T& wrt, const ProductOptions& options = {},
                  Loc loc = Loc::current()) {
  return jacobian(expr, std::vector<Variable>{wrt}, options, loc)[0];
}

/// The Hessian of a scalar float cost by each of `wrt` alone: all second derivatives, of shape
/// wrt.shape + wrt.shape. GraphError as for jacobian; a cost that is linear in a variable has no
/// second derivative, which is an error unless `.disconnected` says otherwise.
CROTON_API std::vector<Variable> hessian(const Variable& cost, const std::vector<Variable>& wrt,
                                         const ProductOptions& options = {},
                                         Loc loc = Loc::current());

/// The Hessian by one variable.
template <Symbol T>
Variable hessian(const Variable& cost, const T& wrt, const ProductOptions& options = {},
                 Loc loc = Loc::current()) {
  return hessian(cost, std::vector<Variable>{wrt}, options, loc)[0];
}

/// Products of the Hessian of a scalar float cost by all of `wrt` together with vectors, one for
/// each variable and of its shape: the sum over j of (d^2 cost / dwrt_i dwrt_j) vectors_j for each
/// i. The Hessian itself is not built. Vectors may have axes in front, of one size: products with
/// many vectors at once, with the same axes in front.
CROTON_API std::vector<Variable> hessian_vector_product(const Variable& cost,
                                                        const std::vector<Variable>& wrt,
                                                        const std::vector<Variable>& vectors,
                                                        const ProductOptions& options = {},
                                                        Loc loc = Loc::current());

/// The product by one variable.
template <Symbol T>
Variable hessian_vector_product(const Variable& cost, const T& wrt, const Variable& vector,
                                const ProductOptions& options = {}, Loc loc = Loc::current()) {
  return hessian_vector_product(cost, std::vector<Variable>{wrt}, std::vector<Variable>{vector},
                                options, loc)[0];
}

}  // namespace croton
