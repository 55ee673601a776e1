#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "croton/variable.h"

// Derivatives. A rule of each op gives its part, the chain rule is followed backwards through the
// graph, and what comes out is a graph again, which may be differentiated once more. The values at
// ties and kinks (maximum of equals, abs at 0, ...) are listed in docs/gradients.md.
namespace croton {

/// What it means when the cost does not depend on a variable in a differentiable way.
enum class Disconnected { raise, warn, ignore };

/// What stands for a gradient that there is none of: zeros of the variable's shape, or an empty
/// Variable, which tells it from a gradient that happens to be zero.
enum class NoGradient { zeros, empty };

/// What a gradient that is not defined means (see grad_undefined): an error, or an empty Variable.
enum class Undefined { raise, empty };

struct GradOptions {
  /// Values through which no gradient flows. One that is itself differentiated by has a gradient.
  std::vector<Variable> consider_constant = {};
  /// What a variable without a gradient means; with warn and ignore see `return_disconnected`.
  Disconnected disconnected_inputs = Disconnected::raise;
  /// Gradients of the cost with respect to these values, to start from: instead of a cost (which is
  /// then an empty Variable) or beside one. A known gradient is the whole one: what flows into the
  /// value from others that are made of it does not add to it.
  std::vector<std::pair<Variable, Variable>> known_grads = {};
  /// What a variable without a gradient gets.
  NoGradient return_disconnected = NoGradient::zeros;
  /// What a gradient that is not defined means.
  Undefined null_gradients = Undefined::raise;
  /// Gradients are named "d<cost>/d<variable>" where the variable has a name; a cost without one
  /// counts as "cost".
  bool add_names = true;
};

/// Gradients of a scalar float cost with respect to each of `wrt`, by reverse mode; each has the
/// shape and dtype of its variable. Variables that are not floats get zeros of floatX: no gradient
/// flows through integers and bools. GraphError when the cost is not a scalar float, or does not
/// depend on a variable (see GradOptions).
CROTON_API std::vector<Variable> grad(const Variable& cost, const std::vector<Variable>& wrt,
                                      const GradOptions& options = {}, Loc loc = Loc::current());

/// The gradient with respect to one variable.
template <Symbol T>
Variable grad(const Variable& cost, const T& wrt, const GradOptions& options = {},
              Loc loc = Loc::current()) {
  return grad(cost, std::vector<Variable>{wrt}, options, loc)[0];
}

/// x, with a gradient that is not defined: where one would flow, `grad` says so with this reason.
CROTON_API Variable grad_undefined(const Operand& x, std::string_view why);

/// Gradients of part of a graph.
struct SubgraphGradients {
  std::vector<Variable> wrt;  ///< with respect to the variables, through the part
  std::vector<Variable> end;  ///< with respect to the values at which the part ends
};

/// Gradients with respect to `wrt` and to the values `end` at which the walk back ends: nothing
/// flows through those, so that what lies before them is another part, which goes on from there
/// (give their gradients as its `start`). It begins at the gradients `start` and, unless it is
/// empty, at the cost; both add up. What nothing flows into gets zeros.
CROTON_API SubgraphGradients subgraph_grad(const std::vector<Variable>& wrt,
                                           const std::vector<Variable>& end,
                                           const std::vector<std::pair<Variable, Variable>>& start,
                                           const Variable& cost = {}, Loc loc = Loc::current());

/// Options of Lop and Rop.
struct ProductOptions {
  /// Values through which no derivative flows.
  std::vector<Variable> consider_constant = {};
  /// What it means when no value depends on a variable (Lop), or a value on none of the variables
  /// (Rop); with warn and ignore the result is zeros.
  Disconnected disconnected = Disconnected::raise;
};

/// The left product of a Jacobian: for each of `wrt` the sum over `f` of eval_point^T (df / dwrt).
/// Each eval point has the shape of its value (of any rank), each result that of its variable. The
/// values must be floats, and may be made of one another. GraphError where numbers, ranks or
/// dtypes do not fit.
CROTON_API std::vector<Variable> Lop(const std::vector<Variable>& f,
                                     const std::vector<Variable>& wrt,
                                     const std::vector<Variable>& eval_points,
                                     const ProductOptions& options = {}, Loc loc = Loc::current());

/// The left product of the Jacobian of one value by one variable.
template <Symbol F, Symbol W>
Variable Lop(const F& f, const W& wrt, const Variable& eval_point,
             const ProductOptions& options = {}, Loc loc = Loc::current()) {
  return Lop(std::vector<Variable>{f}, std::vector<Variable>{wrt},
             std::vector<Variable>{eval_point}, options, loc)[0];
}

/// The right product of a Jacobian, the derivative in a direction: for each of `f` the sum over
/// `wrt` of (df / dwrt) eval_point. Each eval point has the shape of its variable, each result that
/// of its value. Every op with a gradient can do it, since the product is the derivative of Lop by
/// its eval point. GraphError where numbers, ranks or dtypes do not fit.
CROTON_API std::vector<Variable> Rop(const std::vector<Variable>& f,
                                     const std::vector<Variable>& wrt,
                                     const std::vector<Variable>& eval_points,
                                     const ProductOptions& options = {}, Loc loc = Loc::current());

/// The right product of the Jacobian of one value by one variable.
template <Symbol F, Symbol W>
Variable Rop(const F& f, const W& wrt, const Variable& eval_point,
             const ProductOptions& options = {}, Loc loc = Loc::current()) {
  return Rop(std::vector<Variable>{f}, std::vector<Variable>{wrt},
             std::vector<Variable>{eval_point}, options, loc)[0];
}

}  // namespace croton
