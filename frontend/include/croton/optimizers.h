#pragma once

#include <string>
#include <vector>

#include "croton/export.h"
#include "croton/function.h"
#include "croton/grad.h"
#include "croton/shared.h"
#include "croton/variable.h"

// Optimizers as update rules: what a call of a training function adds to its parameters.
//
// Each takes a cost (a float scalar, of which it takes the gradients) or the gradients, one per
// parameter in the same order and of its shape; and the parameters, shared variables of floats.
// GraphError, with the user's line, for lists of different lengths, gradients of other shapes,
// parameters that are not floats or given twice, and options out of range.
//
// The learning rate may be a number, a Shared or any other float scalar, so that it may change
// between calls. State (velocities, moments) is made as shared variables of zeros, called by the
// parameter ("w.velocity"), on the parameter's context and of its dtype. Parameters of float16 and
// bfloat16 have states of float32: the step is worked out in float32 and the new parameter rounded
// once. A step below half a unit in the parameter's last place is lost then; where that matters,
// keep parameters in float32 and cast them where they are used. In the formulas g is the gradient,
// p the parameter; each line is elementwise.
namespace croton {

/// What an optimizer made. Takes the place of the list of updates: `{.updates = adam(cost, {w})}`.
struct CROTON_API Optimizer {
  /// Of the state, then of the parameters.
  std::vector<Update> updates;
  /// To look at, reset or save beside the parameters; empty for `sgd`.
  std::vector<Shared> state;
  /// What the steps were made of, one per parameter.
  std::vector<Variable> gradients;

  operator std::vector<Update>() const { return updates; }
};

struct SgdOptions {
  Operand learning_rate = 0.01;
};

struct MomentumOptions {
  Operand learning_rate = 0.01;
  /// From 0 to below 1.
  double momentum = 0.9;
};

struct AdagradOptions {
  Operand learning_rate = 0.001;
  /// What the sums of squares start with, at least 0.
  double initial_accumulator = 0.1;
  double epsilon = 1e-7;
};

struct RmspropOptions {
  Operand learning_rate = 0.001;
  /// The decay of the mean of squares, from 0 to below 1.
  double rho = 0.9;
  double epsilon = 1e-7;
};

struct AdadeltaOptions {
  Operand learning_rate = 1.0;
  /// The decay of both means, from 0 to below 1.
  double rho = 0.95;
  double epsilon = 1e-6;
};

struct AdamOptions {
  Operand learning_rate = 0.001;
  /// The decay of the means of gradients and of squares, from 0 to below 1.
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  /// Of the step counter, "adam.step".
  std::string name = "adam";
};

struct AdamaxOptions {
  Operand learning_rate = 0.002;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  std::string name = "adamax";
};

struct AdamwOptions {
  Operand learning_rate = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  /// How much of a parameter, times the learning rate, a step takes away; at least 0.
  double weight_decay = 0.01;
  /// Parameters that do not decay, such as biases; each must be among the parameters.
  std::vector<Shared> without_decay = {};
  std::string name = "adamw";
};

/// p -= learning_rate g.
CROTON_API Optimizer sgd(const std::vector<Variable>& gradients,
                         const std::vector<Shared>& parameters, const SgdOptions& options = {},
                         Loc loc = Loc::current());

/// v = momentum v - learning_rate g; p += v (Polyak, 1964; as Keras and Lasagne have it: a new
/// learning rate leaves v as it is). State: "p.velocity".
CROTON_API Optimizer momentum(const std::vector<Variable>& gradients,
                              const std::vector<Shared>& parameters,
                              const MomentumOptions& options = {}, Loc loc = Loc::current());

/// v = momentum v - learning_rate g; p += momentum v - learning_rate g (Nesterov's, in the form of
/// Bengio et al., 2012, that Keras and Lasagne have). State: "p.velocity".
CROTON_API Optimizer nesterov_momentum(const std::vector<Variable>& gradients,
                                       const std::vector<Shared>& parameters,
                                       const MomentumOptions& options = {},
                                       Loc loc = Loc::current());

/// s += g^2; p -= learning_rate g / sqrt(s + epsilon) (Duchi et al., 2011; formula and defaults of
/// Keras 3 and optax). State: "p.squares".
CROTON_API Optimizer adagrad(const std::vector<Variable>& gradients,
                             const std::vector<Shared>& parameters,
                             const AdagradOptions& options = {}, Loc loc = Loc::current());

/// s = rho s + (1 - rho) g^2; p -= learning_rate g / sqrt(s + epsilon) (Tieleman and Hinton, 2012;
/// epsilon below the root as in Lasagne and Keras 3, whose defaults these are). State:
/// "p.mean_square".
CROTON_API Optimizer rmsprop(const std::vector<Variable>& gradients,
                             const std::vector<Shared>& parameters,
                             const RmspropOptions& options = {}, Loc loc = Loc::current());

/// s = rho s + (1 - rho) g^2; d = g sqrt(t + epsilon) / sqrt(s + epsilon); t = rho t + (1 - rho)
/// d^2; p -= learning_rate d (Zeiler, 2012; defaults of Lasagne). State: "p.mean_square" (s) and
/// "p.mean_square_step" (t).
CROTON_API Optimizer adadelta(const std::vector<Variable>& gradients,
                              const std::vector<Shared>& parameters,
                              const AdadeltaOptions& options = {}, Loc loc = Loc::current());

/// k += 1; m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2; p -= learning_rate mh /
/// (sqrt(vh) + epsilon) where mh = m / (1 - beta1^k), vh = v / (1 - beta2^k) (Kingma and Ba, 2015,
/// algorithm 1, and its defaults; as optax and PyTorch). 1 - beta^k is worked out in float64.
/// State: one int64 counter k, "adam.step", on the context of the first parameter; "p.mean" (m) and
/// "p.mean_square" (v).
CROTON_API Optimizer adam(const std::vector<Variable>& gradients,
                          const std::vector<Shared>& parameters, const AdamOptions& options = {},
                          Loc loc = Loc::current());

/// k += 1; m = beta1 m + (1 - beta1) g; u = max(beta2 u, |g|); p -= learning_rate m / ((1 -
/// beta1^k) (u + epsilon)) (Kingma and Ba, 2015, algorithm 2, and its defaults; epsilon as in
/// Lasagne and Keras: 0 where a gradient has always been 0). State: as of adam, "p.norm" for u.
CROTON_API Optimizer adamax(const std::vector<Variable>& gradients,
                            const std::vector<Shared>& parameters,
                            const AdamaxOptions& options = {}, Loc loc = Loc::current());

/// As adam, and p also loses learning_rate weight_decay p, with the p from before the step
/// (Loshchilov and Hutter, 2019; the formula of optax and PyTorch, whose default weight_decay it
/// has). State: as of adam.
CROTON_API Optimizer adamw(const std::vector<Variable>& gradients,
                           const std::vector<Shared>& parameters, const AdamwOptions& options = {},
                           Loc loc = Loc::current());

/// The gradients of a cost with respect to parameters, as the optimizers below take them.
CROTON_API std::vector<Variable> parameter_gradients(const Variable& cost,
                                                     const std::vector<Shared>& parameters,
                                                     Loc loc = Loc::current());

// The same with the cost in place of its gradients.

template <Symbol T>
Optimizer sgd(const T& cost, const std::vector<Shared>& parameters, const SgdOptions& options = {},
              Loc loc = Loc::current()) {
  return sgd(parameter_gradients(cost, parameters, loc.named("sgd")), parameters, options, loc);
}
template <Symbol T>
Optimizer momentum(const T& cost, const std::vector<Shared>& parameters,
                   const MomentumOptions& options = {}, Loc loc = Loc::current()) {
  return momentum(parameter_gradients(cost, parameters, loc.named("momentum")), parameters, options,
                  loc);
}
template <Symbol T>
Optimizer nesterov_momentum(const T& cost, const std::vector<Shared>& parameters,
                            const MomentumOptions& options = {}, Loc loc = Loc::current()) {
  return nesterov_momentum(parameter_gradients(cost, parameters, loc.named("nesterov_momentum")),
                           parameters, options, loc);
}
template <Symbol T>
Optimizer adagrad(const T& cost, const std::vector<Shared>& parameters,
                  const AdagradOptions& options = {}, Loc loc = Loc::current()) {
  return adagrad(parameter_gradients(cost, parameters, loc.named("adagrad")), parameters, options,
                 loc);
}
template <Symbol T>
Optimizer rmsprop(const T& cost, const std::vector<Shared>& parameters,
                  const RmspropOptions& options = {}, Loc loc = Loc::current()) {
  return rmsprop(parameter_gradients(cost, parameters, loc.named("rmsprop")), parameters, options,
                 loc);
}
template <Symbol T>
Optimizer adadelta(const T& cost, const std::vector<Shared>& parameters,
                   const AdadeltaOptions& options = {}, Loc loc = Loc::current()) {
  return adadelta(parameter_gradients(cost, parameters, loc.named("adadelta")), parameters, options,
                  loc);
}
template <Symbol T>
Optimizer adam(const T& cost, const std::vector<Shared>& parameters,
               const AdamOptions& options = {}, Loc loc = Loc::current()) {
  return adam(parameter_gradients(cost, parameters, loc.named("adam")), parameters, options, loc);
}
template <Symbol T>
Optimizer adamax(const T& cost, const std::vector<Shared>& parameters,
                 const AdamaxOptions& options = {}, Loc loc = Loc::current()) {
  return adamax(parameter_gradients(cost, parameters, loc.named("adamax")), parameters, options,
                loc);
}
template <Symbol T>
Optimizer adamw(const T& cost, const std::vector<Shared>& parameters,
                const AdamwOptions& options = {}, Loc loc = Loc::current()) {
  return adamw(parameter_gradients(cost, parameters, loc.named("adamw")), parameters, options, loc);
}

// Gradient clipping, between the gradients and the optimizer: adam(clip_by_global_norm(grad(cost,
// {w, b}), 1.0), {w, b}). Results have the dtypes of the gradients. GraphError for gradients that
// are not floats, and for numeric bounds out of order.

/// Each element to [low, high]; NaN stays. Bounds broadcast against each gradient.
CROTON_API std::vector<Variable> clip_by_value(const std::vector<Variable>& gradients,
                                               const Operand& low, const Operand& high);

/// Each gradient g for itself, scaled by max_norm / |g| where its Euclidean norm is above max_norm
/// (a scalar, not negative), else unchanged, zeros too. Norms are summed in float64, so that no
/// finite narrower gradient overflows. A norm of NaN makes all of that gradient NaN; an infinite
/// one its finite elements 0 and the infinite ones NaN.
CROTON_API std::vector<Variable> clip_by_norm(const std::vector<Variable>& gradients,
                                              const Operand& max_norm);

/// All gradients by the same factor, so that the norm of all of them together is at most max_norm
/// (Pascanu et al., 2013); otherwise as clip_by_norm.
CROTON_API std::vector<Variable> clip_by_global_norm(const std::vector<Variable>& gradients,
                                                     const Operand& max_norm);

/// The Euclidean norm of all elements together: a float64 scalar; 0 of no gradients.
CROTON_API Variable global_norm(const std::vector<Variable>& gradients, Loc loc = Loc::current());

}  // namespace croton
