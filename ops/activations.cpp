// Activation functions built from scalar ops.
#include <numbers>

#include "croton/math.h"
#include "croton/nn.h"
#include "ops/compose.h"

namespace croton {

using scalar::composed;

namespace {

using X = const Operand&;

/// x times a factor that goes from 0 to 1: 0 at -infinity, and x with slope 1 at infinity, not NaN.
Variable gated(X x, const Variable& factor) {
  return where(gt(x, 1000), x, maximum(x, -1000) * factor);
}

Variable elu_of(X x, double alpha, double scale) {
  const Variable below = (alpha * scale) * expm1(x);
  return where(gt(x, 0), scale == 1 ? x.variable() : scale * x, below);
}

}  // namespace

Variable log_sigmoid(const Operand& x) {
  return composed<true>(
      "log_sigmoid", [](X v) { return -softplus(-v); }, x);
}

Variable hard_sigmoid(const Operand& x) {
  return composed<true>(
      "hard_sigmoid", [](X v) { return clip(0.2 * v + 0.5, 0, 1); }, x);
}

Variable softsign(const Operand& x) {
  return composed<true>(
      "softsign", [](X v) { return where(isinf(v), sign(v), v / (1 + abs(v))); }, x);
}

Variable elu(const Operand& x, double alpha) {
  return composed<true>(
      "elu", [&](X v) { return elu_of(v, alpha, 1); }, x);
}

Variable selu(const Operand& x) {
  return composed<true>(
      "selu", [](X v) { return elu_of(v, 1.6732632423543772848, 1.0507009873554804934); }, x);
}

Variable celu(const Operand& x, double alpha) {
  if (alpha == 0) {
    graph_error("celu", "alpha must not be 0: got 0, expected another number", x.loc());
  }
  return composed<true>(
      "celu", [&](X v) { return where(gt(v, 0), v, alpha * expm1(v / alpha)); }, x);
}

Variable gelu(const Operand& x, GeluForm form) {
  return composed<true>(
      "gelu",
      [&](X v) {
        if (form == GeluForm::erf) {
          return gated(v, 0.5 * erfc(v * (-1 / std::numbers::sqrt2)));
        }
        // 1 + tanh(t) is 2 sigmoid(2t).
        const double slope = 2 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
        return gated(v, sigmoid(slope * (v * (1 + 0.044715 * square(v)))));
      },
      x);
}

Variable silu(const Operand& x) {
  return composed<true>(
      "silu", [](X v) { return gated(v, sigmoid(v)); }, x);
}

Variable mish(const Operand& x) {
  return composed<true>(
      "mish", [](X v) { return gated(v, tanh(softplus(v))); }, x);
}

Variable relu6(const Operand& x) {
  return composed<false>(
      "relu6", [](X v) { return clip(v, 0, 6); }, x);
}

}  // namespace croton
