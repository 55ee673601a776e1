// sigmoid, softplus, relu, leaky_relu, logistic_loss.
#include <cmath>

#include "compiler/kernel/math.h"
#include "croton/math.h"
#include "croton/nn.h"
#include "ops/registry.h"
#include "ops/scalar.h"

namespace croton {

using namespace scalar;

namespace {

using V = const Variable&;  // in the rules below: gradient of the result, operand, result

Variable grad_sigmoid(V g, V, V y) { return g * (y * (1 - y)); }
Variable grad_softplus(V g, V x, V) { return g * sigmoid(x); }

// At 0 the gradient is the mean of both sides, as Theano has it.
Variable grad_relu(V g, V x, V) { return only(ge(x, 0), where(eq(x, 0), g * 0.5, g)); }

Expr relu_body(Builder& b, Args x, const Node&) {
  return b.binary(kernel::Binary::max, x[0], zero(x[0]));
}

OpDef relu_op() {
  return {
      .name = "relu",
      .doc = "maximum(x, 0).",
      .infer = rule<1, Accept::number>,
      .scalar = relu_body,
      .grad =
          [](const GradArgs& args) {
            return gradients(
                args, [&](const Variable& g) { return grad_relu(g, args.in(0), args.out()); });
          },
      .scalar_reference = {.real = [](const double* x) { return x[0] < 0 ? 0.0 : x[0]; },
                           .integer = [](const std::int64_t* x) { return x[0] < 0 ? 0 : x[0]; },
                           .natural = [](const std::uint64_t* x) { return x[0]; }},
      .examples = {example(1, -5, 5)},
  };
}

OpDef leaky_relu_op() {
  return {
      .name = "leaky_relu",
      .doc = "x where x > 0, else alpha * x; operands x, alpha.",
      .cost = 3,
      .infer = rule<2, Accept::floating>,
      .scalar = [](Builder& b, Args x,
                   const Node&) { return b.select(x[0] > zero(x[0]), x[0], x[0] * x[1]); },
      .grad =
          [](const GradArgs& args) {
            const Variable& x = args.in(0);
            const Variable& alpha = args.in(1);
            return gradients(
                args,
                [&](const Variable& g) {
                  return g * where(gt(x, 0), 1, where(eq(x, 0), 0.5 * (1 + alpha), alpha));
                },
                [&](const Variable& g) { return only(lt(x, 0), g * x); });
          },
      .scalar_reference = {.real = [](const double* x) { return x[0] > 0 ? x[0] : x[0] * x[1]; }},
      .examples = {example({{-5, 5}, {-1, 1}})},
  };
}

double real_softplus(const double* x) {
  return x[0] > 0 ? x[0] + std::log1p(std::exp(-x[0])) : std::log1p(std::exp(x[0]));
}

// The loss of a logit z and a target t: with p = sigmoid(z), -(t log(p) + (1 - t) log(1 - p)) in a
// form in which nothing cancels.
Expr logistic_loss_body(Builder& b, Args x, const Node&) {
  const Expr z = x[0];
  const Expr tail = kernel::log1p(kernel::exp(-b.unary(kernel::Unary::abs, z)));
  return b.binary(kernel::Binary::max, z, zero(z)) - z * x[1] + tail;
}

OpDef logistic_loss_op() {
  return {
      .name = "logistic_loss",
      .doc = "The binary cross-entropy of sigmoid(z) and a target; operands z, target.",
      .cost = 40,
      .infer = rule<2, Accept::floating>,
      .scalar = logistic_loss_body,
      .grad =
          [](const GradArgs& args) {
            return gradients(
                args, [&](const Variable& g) { return g * (sigmoid(args.in(0)) - args.in(1)); },
                [&](const Variable& g) { return -g * args.in(0); });
          },
      .scalar_reference = {.real =
                               [](const double* x) {
                                 return std::fmax(x[0], 0) - x[0] * x[1] +
                                        std::log1p(std::exp(-std::fabs(x[0])));
                               }},
      .examples = {example({{-9, 9}, {0, 1}})},
  };
}

}  // namespace

void register_scalar_activation_ops(OpRegistry& registry) {
  registry.add(float_function<grad_sigmoid>(
      "sigmoid", "1 / (1 + exp(-x)).", 20,
      [](Builder&, Args x, const Node&) { return kernel::sigmoid(x[0]); },
      [](const double* x) { return 1 / (1 + std::exp(-x[0])); }, {example(1, -9, 9)}));
  registry.add(float_function<grad_softplus>(
      "softplus", "log(1 + exp(x)), without overflow.", 36,
      [](Builder&, Args x, const Node&) { return kernel::softplus(x[0]); }, real_softplus,
      {example(1, -9, 9)}));
  registry.add(relu_op());
  registry.add(leaky_relu_op());
  registry.add(logistic_loss_op());
}

Variable sigmoid(const Operand& x) { return make("sigmoid", Promotion::floating, x); }
Variable softplus(const Operand& x) { return make("softplus", Promotion::floating, x); }

Variable binary_cross_entropy_from_logits(const Operand& logits, const Operand& target) {
  constexpr std::string_view kName = "binary_cross_entropy_from_logits";
  return make("logistic_loss", Promotion::floating, logits.named(kName), target.named(kName));
}

Variable relu(const Operand& x, const Operand& alpha) {
  if (alpha.is_literal() && alpha.literal().real == 0) return make("relu", Promotion::common, x);
  return make("leaky_relu", Promotion::floating, x.named("relu"), alpha.named("relu"));
}

}  // namespace croton
