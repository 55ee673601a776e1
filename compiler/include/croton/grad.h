#pragma once

#include <utility>
#include <vector>

#include "croton/variable.h"

namespace croton {

/// What it means when the cost does not depend on a variable in a differentiable way.
enum class Disconnected { raise, warn, ignore };

struct GradOptions {
  /// Values through which no gradient flows.
  std::vector<Variable> consider_constant = {};
  /// What a variable without a gradient means; with warn and ignore its gradient is zeros.
  Disconnected disconnected_inputs = Disconnected::raise;
  /// Gradients of the cost with respect to these values, to start from in addition to the cost
  /// (which may then be an empty Variable).
  std::vector<std::pair<Variable, Variable>> known_grads = {};
};

/// Gradients of a scalar float cost with respect to each of `wrt`, by reverse mode; each has the
/// shape and dtype of its variable (floatX zeros for integers). GraphError when the cost is not a
/// scalar, or does not depend on a variable (see GradOptions).
CROTON_API std::vector<Variable> grad(const Operand& cost, const std::vector<Variable>& wrt,
                                      const GradOptions& options = {});

/// The gradient with respect to one variable.
template <Symbol T>
Variable grad(const Operand& cost, const T& wrt, const GradOptions& options = {}) {
  return grad(cost, std::vector<Variable>{wrt}, options)[0];
}

}  // namespace croton
