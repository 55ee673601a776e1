// logaddexp, logaddexp2, log1mexp.
#include <cmath>
#include <numbers>

#include "compiler/kernel/math.h"
#include "croton/math.h"
#include "croton/nn.h"
#include "ops/registry.h"
#include "ops/scalar.h"

namespace croton {

using namespace scalar;

namespace {

using V = const Variable&;  // in the rules below: gradient of the result, operand, result

/// The part of a in log(base^a + base^b), for log(base) = `factor`; 1/2 where both are the same
/// infinity.
Variable share(V a, V b, double factor) {
  const Variable endless = logical_and(isinf(a), eq(a, b));
  return sigmoid(where(endless, 0, a - b) * factor);
}

template <int kBase>
std::vector<Variable> sum_gradient(const GradArgs& args) {
  const double factor = kBase == 2 ? std::numbers::ln2 : 1;
  const Variable& a = args.in(0);
  const Variable& b = args.in(1);
  return gradients(
      args, [&](const Variable& g) { return g * share(a, b, factor); },
      [&](const Variable& g) { return g * share(b, a, factor); });
}

double real_logaddexp(const double* x) {
  if (x[0] == x[1]) return x[0] + std::numbers::ln2;
  const double more = std::isnan(x[0]) || x[0] > x[1] ? x[0] : x[1];
  return more + std::log1p(std::exp(-std::fabs(x[0] - x[1])));
}

double real_logaddexp2(const double* x) {
  if (x[0] == x[1]) return x[0] + 1;
  const double more = std::isnan(x[0]) || x[0] > x[1] ? x[0] : x[1];
  return more + std::log1p(std::exp2(-std::fabs(x[0] - x[1]))) * std::numbers::log2e;
}

OpDef logaddexp_op() {
  return {
      .name = "logaddexp",
      .doc = "log(exp(a) + exp(b)), without overflow.",
      .commutative = true,
      .cost = 40,
      .infer = rule<2, Accept::floating>,
      .scalar = [](Builder&, Args x, const Node&) { return kernel::logaddexp(x[0], x[1]); },
      .grad = sum_gradient<0>,
      .scalar_reference = {.real = real_logaddexp},
      .examples = {example(2, -5, 5)},
  };
}

OpDef logaddexp2_op() {
  return {
      .name = "logaddexp2",
      .doc = "log2(2^a + 2^b), without overflow.",
      .commutative = true,
      .cost = 40,
      .infer = rule<2, Accept::floating>,
      .scalar = [](Builder&, Args x, const Node&) { return kernel::logaddexp2(x[0], x[1]); },
      .grad = sum_gradient<2>,
      .scalar_reference = {.real = real_logaddexp2},
      .examples = {example(2, -5, 5)},
  };
}

// Not -1 / expm1(-x), whose own slope is a quotient of infinities for large -x. At 0, of either
// sign, it is infinite, and with it all further derivatives.
Variable grad_log1mexp(V g, V x, V y) {
  const Variable origin = eq(x, 0);
  const Variable safe = where(origin, -1, x);
  return g * where(origin, -exp(x - y), exp(safe) / expm1(safe));
}

double real_log1mexp(const double* x) {
  return x[0] > -std::numbers::ln2 ? std::log(-std::expm1(x[0])) : std::log1p(-std::exp(x[0]));
}

}  // namespace

void register_scalar_log_ops(OpRegistry& registry) {
  registry.add(logaddexp_op());
  registry.add(logaddexp2_op());
  registry.add(float_function<grad_log1mexp>(
      "log1mexp", "log(1 - exp(x)), accurate for all x <= 0.", 60,
      [](Builder&, Args x, const Node&) { return kernel::log1mexp(x[0]); }, real_log1mexp,
      {example(1, -5, -0.05)}));
}

Variable logaddexp(const Operand& a, const Operand& b) {
  return make("logaddexp", Promotion::floating, a, b);
}
Variable logaddexp2(const Operand& a, const Operand& b) {
  return make("logaddexp2", Promotion::floating, a, b);
}
Variable log1mexp(const Operand& x) { return make("log1mexp", Promotion::floating, x); }

}  // namespace croton
