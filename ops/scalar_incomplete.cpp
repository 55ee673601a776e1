// gammainc, gammaincc, betainc, betaln.
#include "compiler/kernel/math.h"
#include "croton/math.h"
#include "ops/compose.h"
#include "ops/registry.h"
#include "ops/special_reference.h"

namespace croton {

using namespace scalar;

namespace {

/// The gradient by a parameter has no closed form.
Variable no_gradient(const GradArgs& args, const char* parameter, const char* argument) {
  graph_error(args.node.op->name,
              std::string("the gradient with respect to ") + parameter +
                  " is not available, only that with respect to " + argument + ": take " +
                  parameter + " out of the variables, or name it in GradOptions::consider_constant",
              args.node.loc);
}

/// +-exp((a - 1) log(x) - x - gammaln(a)).
Variable gamma_slope(const GradArgs& args, const Variable& g) {
  const Variable& a = args.in(0);
  const Variable& x = args.in(1);
  return g * exp(xlogy(a - 1, x) - x - gammaln(a));
}

OpDef gammainc_op() {
  return {
      .name = "gammainc",
      .doc = "The regularised lower incomplete gamma function; operands a, x.",
      .cost = 1200,
      .infer = rule<2, Accept::floating>,
      .scalar = [](Builder&, Args x, const Node&) { return kernel::gammainc(x[0], x[1]); },
      .grad =
          [](const GradArgs& args) {
            return gradients(
                args, [&](const Variable&) { return no_gradient(args, "a", "x"); },
                [&](const Variable& g) { return gamma_slope(args, g); });
          },
      .scalar_reference = {.real = [](const double* x) { return reference::gammainc(x[0], x[1]); }},
      .examples = {example({{0.5, 4}, {0.2, 6}}), example({{15, 40}, {10, 50}})},
  };
}

OpDef gammaincc_op() {
  return {
      .name = "gammaincc",
      .doc = "1 - gammainc(a, x), accurate where that is near 1; operands a, x.",
      .cost = 1400,
      .infer = rule<2, Accept::floating>,
      .scalar = [](Builder&, Args x, const Node&) { return kernel::gammaincc(x[0], x[1]); },
      .grad =
          [](const GradArgs& args) {
            return gradients(
                args, [&](const Variable&) { return no_gradient(args, "a", "x"); },
                [&](const Variable& g) { return -gamma_slope(args, g); });
          },
      .scalar_reference = {.real =
                               [](const double* x) { return reference::gammaincc(x[0], x[1]); }},
      .examples = {example({{0.5, 4}, {0.2, 6}}), example({{15, 40}, {10, 50}})},
  };
}

OpDef betainc_op() {
  return {
      .name = "betainc",
      .doc = "The regularised incomplete beta function; operands a, b, x.",
      .cost = 2000,
      .infer = rule<3, Accept::floating>,
      .scalar = [](Builder&, Args x, const Node&) { return kernel::betainc(x[0], x[1], x[2]); },
      .grad =
          [](const GradArgs& args) {
            const auto none = [&](const Variable&) { return no_gradient(args, "a and b", "x"); };
            return gradients(args, none, none, [&](const Variable& g) {
              const Variable& a = args.in(0);
              const Variable& b = args.in(1);
              const Variable& x = args.in(2);
              return g * exp(xlogy(a - 1, x) + xlog1py(b - 1, -x) - betaln(a, b));
            });
          },
      .scalar_reference = {.real =
                               [](const double* x) {
                                 return reference::betainc(x[0], x[1], x[2]);
                               }},
      .examples = {example({{0.5, 4}, {0.5, 4}, {0.1, 0.9}})},
  };
}

OpDef betaln_op() {
  return {
      .name = "betaln",
      .doc = "log(gamma(a) gamma(b) / gamma(a + b)).",
      .commutative = true,
      .cost = 400,
      .infer = rule<2, Accept::floating>,
      .scalar = [](Builder&, Args x, const Node&) { return kernel::betaln(x[0], x[1]); },
      .grad =
          [](const GradArgs& args) {
            const auto slope = [&](const Variable& g, const Variable& x) {
              return g * (digamma(x) - digamma(args.in(0) + args.in(1)));
            };
            return gradients(
                args, [&](const Variable& g) { return slope(g, args.in(0)); },
                [&](const Variable& g) { return slope(g, args.in(1)); });
          },
      .scalar_reference = {.real = [](const double* x) { return reference::betaln(x[0], x[1]); }},
      .examples = {example(2, 0.3, 12)},
  };
}

}  // namespace

void register_scalar_incomplete_ops(OpRegistry& registry) {
  registry.add(gammainc_op());
  registry.add(gammaincc_op());
  registry.add(betainc_op());
  registry.add(betaln_op());
}

Variable gammainc(const Operand& a, const Operand& x) {
  return make("gammainc", Promotion::floating, a, x);
}
Variable gammaincc(const Operand& a, const Operand& x) {
  return make("gammaincc", Promotion::floating, a, x);
}
Variable betainc(const Operand& a, const Operand& b, const Operand& x) {
  return make("betainc", Promotion::floating, a, b, x);
}
Variable betaln(const Operand& a, const Operand& b) {
  return make("betaln", Promotion::floating, a, b);
}

Variable gammal(const Operand& a, const Operand& x) {
  return composed<true>(
      "gammal", [](const Operand& k, const Operand& v) { return gammainc(k, v) * gamma(k); }, a, x);
}
Variable gammau(const Operand& a, const Operand& x) {
  return composed<true>(
      "gammau", [](const Operand& k, const Operand& v) { return gammaincc(k, v) * gamma(k); }, a,
      x);
}

Variable chi2sf(const Operand& x, const Operand& k) {
  return composed<true>(
      "chi2sf", [](const Operand& v, const Operand& n) { return gammaincc(0.5 * n, 0.5 * v); }, x,
      k);
}

}  // namespace croton
