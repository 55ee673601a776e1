// erfcx, erfinv, erfcinv; gamma, gammaln, digamma, polygamma; i0, i1, i0e, i1e, j0, j1, y0, y1.
#include <cmath>
#include <numbers>

#include "compiler/kernel/math.h"
#include "croton/math.h"
#include "ops/compose.h"
#include "ops/registry.h"
#include "ops/special_reference.h"

namespace croton {

using namespace scalar;

namespace {

using V = const Variable&;  // in the rules below: gradient of the result, operand, result

constexpr double kErfSlope = 2 * std::numbers::inv_sqrtpi;

/// The difference of the rule loses the digits that it has in common for large x, where its
/// asymptotic series takes over.
Variable grad_erfcx(V g, V x, V y) {
  const double limit = x.dtype() == DType::float64 ? 8 : 4;
  const Variable far = gt(x, limit);
  const Variable t = 1 / square(where(far, x, limit));
  // Nested by the ratios of its terms, which narrow floats hold.
  constexpr int kTerms = 15;
  Variable series = full_like(t, 1, t.node()->loc);
  for (int n = kTerms - 1; n > 0; --n) series = 1 - (n + 0.5) * t * series;
  return g * where(far, t * series * (-0.5 * kErfSlope), 2 * where(far, 0, x) * y - kErfSlope);
}
Variable grad_erfinv(V g, V, V y) { return g * (exp(square(y)) / kErfSlope); }
Variable grad_erfcinv(V g, V, V y) { return g * (exp(square(y)) / -kErfSlope); }
Variable grad_gamma(V g, V x, V y) { return g * (y * digamma(x)); }
Variable grad_gammaln(V g, V x, V) { return g * digamma(x); }
Variable grad_digamma(V g, V x, V) { return g * polygamma(1, x); }

/// y / x for y = i1(x) (kSign 1) or j1(x) (-1); near 0 by the series, which has slopes there.
template <int kSign>
Variable ratio(V x, V y, const Variable& scale = {}) {
  const Variable near = lt(abs(x), 0.125);
  const Variable z = square(x) * (0.25 * kSign);
  Variable series = 0.5 + z * (1.0 / 4 + z * (1.0 / 24 + z * (1.0 / 288 + z / 5760)));
  if (scale.defined()) series = series * scale;
  return where(near, series, y / where(near, 1, x));
}

Variable grad_i0(V g, V x, V) { return g * i1(x); }
Variable grad_i1(V g, V x, V y) { return g * (i0(x) - ratio<1>(x, y)); }
Variable grad_i0e(V g, V x, V y) { return g * (i1e(x) - sign(x) * y); }
Variable grad_i1e(V g, V x, V y) {
  return g * (i0e(x) - ratio<1>(x, y, exp(-abs(x))) - sign(x) * y);
}
Variable grad_j0(V g, V x, V) { return -g * j1(x); }
Variable grad_j1(V g, V x, V y) { return g * (j0(x) - ratio<-1>(x, y)); }

Variable grad_y0(V g, V x, V) { return -g * y1(x); }
Variable grad_y1(V g, V x, V y) {
  // Both terms are infinite at 0, of which y1(x) / x is the larger.
  const Variable origin = eq(x, 0);
  return g * where(origin, -y, y0(x) - y / where(origin, 1, x));
}

int order_of(const Node& node) { return static_cast<int>(node.attrs().integer("n")); }

std::vector<Array> polygamma_reference(const Node& node, std::span<const Array> inputs) {
  std::vector<double> values = inputs[0].astype(DType::float64).to_vector<double>();
  for (double& v : values) v = reference::polygamma(order_of(node), v);
  return {Array::from<double>(values, inputs[0].shape()).astype(node.outputs[0].dtype)};
}

OpDef polygamma_op() {
  const auto first = [](const double* x) { return reference::polygamma(1, x[0]); };
  OpDef op{
      .name = "polygamma",
      .doc = "The derivative of order n of digamma, 1 <= n <= 100.",
      .cost = 160,
      .infer = rule<1, Accept::floating>,
      .scalar = [](Builder&, Args x,
                   const Node& node) { return kernel::polygamma(order_of(node), x[0]); },
      .grad =
          [](const GradArgs& args) {
            const int n = order_of(args.node);
            return gradients(args,
                             [&](const Variable& g) { return g * polygamma(n + 1, args.in(0)); });
          },
      .scalar_reference = {.real = first},
      .reference = polygamma_reference,
      .examples = {example(1, 0.3, 6)},
  };
  op.examples[0].attrs = {{"n", std::int64_t{1}}};
  return op;
}

}  // namespace

#define CROTON_SPECIAL(op_name, doc, cost, real, ...)                                           \
  registry.add(float_function<grad_##op_name>(                                                  \
      #op_name, doc, cost, [](Builder&, Args x, const Node&) { return kernel::op_name(x[0]); }, \
      [](const double* x) -> double { return real; }, {__VA_ARGS__}))

void register_scalar_special_ops(OpRegistry& registry) {
  CROTON_SPECIAL(erfcx, "exp(x^2) erfc(x).", 50, reference::erfcx(x[0]), example(1, -2, 6));
  CROTON_SPECIAL(erfinv, "The inverse of erf; NaN outside [-1, 1].", 70, reference::erfinv(x[0]),
                 example(1, -0.95, 0.95));
  CROTON_SPECIAL(erfcinv, "The inverse of erfc; NaN outside [0, 2].", 90, reference::erfcinv(x[0]),
                 example(1, 0.05, 1.95));
  CROTON_SPECIAL(gamma, "The gamma function.", 120, std::tgamma(x[0]), example(1, 0.5, 6));
  CROTON_SPECIAL(gammaln, "log(|gamma(x)|).", 110, std::lgamma(x[0]), example(1, 0.2, 20));
  CROTON_SPECIAL(digamma, "The derivative of gammaln.", 90, reference::digamma(x[0]),
                 example(1, 0.3, 20));
  registry.add(polygamma_op());
  CROTON_SPECIAL(i0, "The modified Bessel function of the first kind, order 0.", 80,
                 reference::bessel_i(0, x[0]), example(1, -6, 6));
  CROTON_SPECIAL(i1, "The modified Bessel function of the first kind, order 1.", 80,
                 reference::bessel_i(1, x[0]), example(1, -6, 6));
  CROTON_SPECIAL(i0e, "exp(-|x|) i0(x).", 80, reference::bessel_i_scaled(0, x[0]),
                 example(1, 0.1, 12));
  CROTON_SPECIAL(i1e, "exp(-|x|) i1(x).", 80, reference::bessel_i_scaled(1, x[0]),
                 example(1, 0.1, 12));
  CROTON_SPECIAL(j0, "The Bessel function of the first kind, order 0.", 120, ::j0(x[0]),
                 example(1, -6, 6));
  CROTON_SPECIAL(j1, "The Bessel function of the first kind, order 1.", 120, ::j1(x[0]),
                 example(1, -6, 6));
  CROTON_SPECIAL(y0, "The Bessel function of the second kind, order 0; NaN below 0.", 180,
                 reference::bessel_y(0, x[0]), example(1, 0.3, 9));
  CROTON_SPECIAL(y1, "The Bessel function of the second kind, order 1; NaN below 0.", 180,
                 reference::bessel_y(1, x[0]), example(1, 0.3, 9));
}

Variable erfcx(const Operand& x) { return make("erfcx", Promotion::floating, x); }
Variable erfinv(const Operand& x) { return make("erfinv", Promotion::floating, x); }
Variable erfcinv(const Operand& y) { return make("erfcinv", Promotion::floating, y); }
Variable gamma(const Operand& x) { return make("gamma", Promotion::floating, x); }
Variable gammaln(const Operand& x) { return make("gammaln", Promotion::floating, x); }
Variable digamma(const Operand& x) { return make("digamma", Promotion::floating, x); }

Variable polygamma(int n, const Operand& x) {
  if (n < 0 || n > kernel::kMostPolygamma) {
    graph_error("polygamma",
                "no such order: got " + std::to_string(n) + ", expected 0 to " +
                    std::to_string(kernel::kMostPolygamma) + "; a gradient needs the next one",
                x.loc());
  }
  if (n == 0) return digamma(x.named("polygamma"));
  const Operand operands[] = {x};
  const std::vector<Variable> inputs = promoted("polygamma", operands, true);
  return apply("polygamma", inputs, {{"n", std::int64_t{n}}}, x.loc());
}

Variable trigamma(const Operand& x) { return polygamma(1, x.named("trigamma")); }

Variable ndtri(const Operand& p) {
  return composed<true>(
      "ndtri", [](const Operand& v) { return -std::numbers::sqrt2 * erfcinv(2 * v); }, p);
}

Variable i0(const Operand& x) { return make("i0", Promotion::floating, x); }
Variable i1(const Operand& x) { return make("i1", Promotion::floating, x); }
Variable i0e(const Operand& x) { return make("i0e", Promotion::floating, x); }
Variable i1e(const Operand& x) { return make("i1e", Promotion::floating, x); }
Variable j0(const Operand& x) { return make("j0", Promotion::floating, x); }
Variable j1(const Operand& x) { return make("j1", Promotion::floating, x); }
Variable y0(const Operand& x) { return make("y0", Promotion::floating, x); }
Variable y1(const Operand& x) { return make("y1", Promotion::floating, x); }

}  // namespace croton
