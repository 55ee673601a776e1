// sqrt, exp, exp2, expm1, log, log2, log10, log1p, erf, erfc.
#include <cmath>
#include <numbers>

#include "compiler/kernel/math.h"
#include "croton/math.h"
#include "ops/registry.h"
#include "ops/scalar.h"

namespace croton {

using namespace scalar;

namespace {

using V = const Variable&;  // in the rules below: gradient of the result, operand, result

// CROTON_BODY(f): the body of an op that is the kernel function f.
#define CROTON_BODY(function) [](Builder&, Args x, const Node&) { return kernel::function(x[0]); }
#define CROTON_REAL(function) [](const double* x) { return std::function(x[0]); }

Variable grad_sqrt(V g, V, V y) { return g * 0.5 / y; }
Variable grad_exp(V g, V, V y) { return g * y; }
Variable grad_exp2(V g, V, V y) { return g * (y * std::numbers::ln2); }
Variable grad_expm1(V g, V x, V) { return g * exp(x); }  // y + 1 would lose small values
Variable grad_log(V g, V x, V) { return g / x; }
Variable grad_log2(V g, V x, V) { return g / (x * std::numbers::ln2); }
Variable grad_log10(V g, V x, V) { return g / (x * std::numbers::ln10); }
Variable grad_log1p(V g, V x, V) { return g / (1 + x); }

constexpr double kErfSlope = 2 * std::numbers::inv_sqrtpi;
Variable grad_erf(V g, V x, V) { return g * (kErfSlope * exp(-square(x))); }
Variable grad_erfc(V g, V x, V) { return g * (-kErfSlope * exp(-square(x))); }

Expr sqrt_body(Builder& b, Args x, const Node&) { return b.unary(kernel::Unary::sqrt, x[0]); }

}  // namespace

void register_scalar_exp_ops(OpRegistry& registry) {
  registry.add(float_function<grad_sqrt>("sqrt", "The square root; NaN below 0.", 4, sqrt_body,
                                         CROTON_REAL(sqrt), {example(1, 0.1, 9)}));
  registry.add(float_function<grad_exp>("exp", "e^x.", 16, CROTON_BODY(exp), CROTON_REAL(exp),
                                        {example(1, -5, 5)}));
  registry.add(float_function<grad_exp2>("exp2", "2^x.", 14, CROTON_BODY(exp2), CROTON_REAL(exp2),
                                         {example(1, -5, 5)}));
  registry.add(float_function<grad_expm1>("expm1", "e^x - 1, accurate near 0.", 20,
                                          CROTON_BODY(expm1), CROTON_REAL(expm1),
                                          {example(1, -5, 5), example(1, -1e-3, 1e-3)}));
  registry.add(float_function<grad_log>("log", "The natural logarithm; NaN below 0.", 18,
                                        CROTON_BODY(log), CROTON_REAL(log), {example(1, 0.1, 9)}));
  registry.add(float_function<grad_log2>("log2", "The logarithm to base 2.", 18, CROTON_BODY(log2),
                                         CROTON_REAL(log2), {example(1, 0.1, 9)}));
  registry.add(float_function<grad_log10>("log10", "The logarithm to base 10.", 18,
                                          CROTON_BODY(log10), CROTON_REAL(log10),
                                          {example(1, 0.1, 9)}));
  registry.add(float_function<grad_log1p>("log1p", "log(1 + x), accurate near 0.", 20,
                                          CROTON_BODY(log1p), CROTON_REAL(log1p),
                                          {example(1, -0.9, 5), example(1, -1e-3, 1e-3)}));
  registry.add(float_function<grad_erf>("erf", "The error function.", 20, CROTON_BODY(erf),
                                        CROTON_REAL(erf), {example(1, -3, 3)}));
  registry.add(float_function<grad_erfc>("erfc", "1 - erf(x), accurate for large x.", 30,
                                         CROTON_BODY(erfc), CROTON_REAL(erfc),
                                         {example(1, -3, 5)}));
}

Variable sqrt(const Operand& x) { return make("sqrt", Promotion::floating, x); }
Variable exp(const Operand& x) { return make("exp", Promotion::floating, x); }
Variable exp2(const Operand& x) { return make("exp2", Promotion::floating, x); }
Variable expm1(const Operand& x) { return make("expm1", Promotion::floating, x); }
Variable log(const Operand& x) { return make("log", Promotion::floating, x); }
Variable log2(const Operand& x) { return make("log2", Promotion::floating, x); }
Variable log10(const Operand& x) { return make("log10", Promotion::floating, x); }
Variable log1p(const Operand& x) { return make("log1p", Promotion::floating, x); }
Variable erf(const Operand& x) { return make("erf", Promotion::floating, x); }
Variable erfc(const Operand& x) { return make("erfc", Promotion::floating, x); }

}  // namespace croton
