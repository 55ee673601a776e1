#pragma once

#include <cstdint>

#include "croton/export.h"
#include "croton/variable.h"

// Functions for neural networks. Integers become floats; negative axes count from the end.
namespace croton {

/// 1 / (1 + exp(-x)).
CROTON_API Variable sigmoid(const Operand& x);
/// log(1 + exp(x)), without overflow.
CROTON_API Variable softplus(const Operand& x);
/// x where x > 0, else alpha * x; alpha broadcasts. The gradient at 0 is (1 + alpha) / 2.
CROTON_API Variable relu(const Operand& x, const Operand& alpha = 0);

/// log(sigmoid(x)), without underflow.
CROTON_API Variable log_sigmoid(const Operand& x);
/// clip(0.2 x + 0.5, 0, 1), as in Theano.
CROTON_API Variable hard_sigmoid(const Operand& x);
/// x / (1 + |x|); 1 and -1 at the infinities.
CROTON_API Variable softsign(const Operand& x);
/// x where x > 0, else alpha * (exp(x) - 1); the gradient at 0 is alpha.
CROTON_API Variable elu(const Operand& x, double alpha = 1);
/// elu with alpha = 1.6732632423543773, times 1.0507009873554805 (Klambauer et al., 2017).
CROTON_API Variable selu(const Operand& x);
/// x where x > 0, else alpha * (exp(x / alpha) - 1); a GraphError for alpha = 0.
CROTON_API Variable celu(const Operand& x, double alpha = 1);

/// How gelu is computed.
enum class GeluForm : std::uint8_t {
  erf,   ///< x times the normal distribution's probability of less than x
  tanh,  ///< x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2, which is close to it
};
/// The Gaussian error linear unit; 0 at -infinity.
CROTON_API Variable gelu(const Operand& x, GeluForm form = GeluForm::erf);
/// x * sigmoid(x); 0 at -infinity.
CROTON_API Variable silu(const Operand& x);
inline Variable swish(const Operand& x) { return silu(x); }
/// x * tanh(softplus(x)); 0 at -infinity.
CROTON_API Variable mish(const Operand& x);
/// clip(x, 0, 6); integers stay integers.
CROTON_API Variable relu6(const Operand& x);

/// exp(x) / sum(exp(x)) along `axis`, without overflow.
CROTON_API Variable softmax(const Operand& x, int axis = -1);
/// log(softmax(x)), accurate for small probabilities.
CROTON_API Variable log_softmax(const Operand& x, int axis = -1);
/// log(sum(exp(x))) along `axis`, without overflow; -inf where all elements are -inf.
CROTON_API Variable logsumexp(const Operand& x, int axis = -1, bool keepdims = false);

/// The elements of x at one position along the last axis: result[i, ...] = x[i, ..., labels[i,
/// ...]]. `labels` are integers of x's shape without that axis; one outside [0, size) is a
/// CallError.
CROTON_API Variable pick(const Operand& x, const Operand& labels);

/// -sum(true_dist * log(coding_dist)) along the last axis; or, where `true_dist` holds integers and
/// has one axis less, -log of the probability of that class. `coding_dist` holds probabilities;
/// when it is a softmax the loss is computed from its operand, so that it neither overflows nor
/// loses small probabilities. A label out of range is a CallError.
CROTON_API Variable categorical_crossentropy(const Operand& coding_dist, const Operand& true_dist);
/// categorical_crossentropy(softmax(logits), labels).
CROTON_API Variable cross_entropy_from_logits(const Operand& logits, const Operand& labels);
/// -(target * log(output) + (1 - target) * log(1 - output)), elementwise. When `output` is a
/// sigmoid the loss is computed from its operand.
CROTON_API Variable binary_crossentropy(const Operand& output, const Operand& target);
/// binary_crossentropy(sigmoid(logits), target).
CROTON_API Variable binary_cross_entropy_from_logits(const Operand& logits, const Operand& target);

/// (x - mean) / sqrt(variance + eps) along `axis`, times gamma, plus beta; gamma and beta are
/// vectors of that axis' size, or scalars.
CROTON_API Variable layer_norm(const Operand& x, const Operand& gamma, const Operand& beta,
                               int axis = -1, double eps = 1e-5);

}  // namespace croton
