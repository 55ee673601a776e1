// sin, cos, tan and their kin: inverse, hyperbolic, inverse hyperbolic, arctan2.
#include <cmath>

#include "compiler/kernel/math.h"
#include "croton/math.h"
#include "ops/registry.h"
#include "ops/scalar.h"

namespace croton {

using namespace scalar;

namespace {

using V = const Variable&;  // in the rules below: gradient of the result, operand, result

Variable grad_sin(V g, V x, V) { return g * cos(x); }
Variable grad_cos(V g, V x, V) { return -g * sin(x); }
Variable grad_tan(V g, V, V y) { return g * (1 + square(y)); }
Variable grad_arcsin(V g, V x, V) { return g / sqrt(1 - square(x)); }
Variable grad_arccos(V g, V x, V) { return -g / sqrt(1 - square(x)); }
Variable grad_arctan(V g, V x, V) { return g / (1 + square(x)); }
Variable grad_sinh(V g, V x, V) { return g * cosh(x); }
Variable grad_cosh(V g, V x, V) { return g * sinh(x); }
Variable grad_tanh(V g, V, V y) { return g * (1 - square(y)); }
Variable grad_arcsinh(V g, V x, V) { return g / sqrt(square(x) + 1); }
Variable grad_arccosh(V g, V x, V) { return g / sqrt(square(x) - 1); }
Variable grad_arctanh(V g, V x, V) { return g / (1 - square(x)); }

OpDef arctan2_op() {
  return {
      .name = "arctan2",
      .doc = "The angle of the point (x, y); operands y, x.",
      .cost = 30,
      .infer = rule<2, Accept::floating>,
      .scalar = [](Builder&, Args x, const Node&) { return kernel::arctan2(x[0], x[1]); },
      .grad =
          [](const GradArgs& args) {
            // Squares would overflow, or vanish.
            const Variable length = hypot(args.in(0), args.in(1));
            const auto slope = [&](V g, V side) { return g * (side / length / length); };
            return gradients(
                args, [&](const Variable& g) { return slope(g, args.in(1)); },
                [&](const Variable& g) { return -slope(g, args.in(0)); });
          },
      .scalar_reference = {.real = [](const double* x) { return std::atan2(x[0], x[1]); }},
      .examples = {example({{0.2, 5}, {-5, 5}}), example({{-5, -0.2}, {-5, 5}})},
  };
}

}  // namespace

#define CROTON_TRIG(op_name, doc, cost, real_name, ...)                                         \
  registry.add(float_function<grad_##op_name>(                                                  \
      #op_name, doc, cost, [](Builder&, Args x, const Node&) { return kernel::op_name(x[0]); }, \
      [](const double* x) { return std::real_name(x[0]); }, {__VA_ARGS__}))

void register_scalar_trig_ops(OpRegistry& registry) {
  CROTON_TRIG(sin, "The sine of an angle in radians.", 24, sin, example(1, -5, 5));
  CROTON_TRIG(cos, "The cosine of an angle in radians.", 24, cos, example(1, -5, 5));
  CROTON_TRIG(tan, "The tangent of an angle in radians.", 30, tan, example(1, -1.4, 1.4));
  CROTON_TRIG(arcsin, "The angle in [-pi/2, pi/2] of that sine.", 24, asin,
              example(1, -0.95, 0.95));
  CROTON_TRIG(arccos, "The angle in [0, pi] of that cosine.", 24, acos, example(1, -0.95, 0.95));
  CROTON_TRIG(arctan, "The angle in [-pi/2, pi/2] of that tangent.", 20, atan, example(1, -5, 5));
  CROTON_TRIG(sinh, "The hyperbolic sine.", 26, sinh, example(1, -4, 4));
  CROTON_TRIG(cosh, "The hyperbolic cosine.", 22, cosh, example(1, -4, 4));
  CROTON_TRIG(tanh, "The hyperbolic tangent.", 24, tanh, example(1, -4, 4));
  CROTON_TRIG(arcsinh, "The inverse of sinh.", 28, asinh, example(1, -5, 5));
  CROTON_TRIG(arccosh, "The inverse of cosh; NaN below 1.", 28, acosh, example(1, 1.2, 9));
  CROTON_TRIG(arctanh, "The inverse of tanh; NaN outside [-1, 1].", 24, atanh,
              example(1, -0.9, 0.9));
  registry.add(arctan2_op());
}

Variable sin(const Operand& x) { return make("sin", Promotion::floating, x); }
Variable cos(const Operand& x) { return make("cos", Promotion::floating, x); }
Variable tan(const Operand& x) { return make("tan", Promotion::floating, x); }
Variable arcsin(const Operand& x) { return make("arcsin", Promotion::floating, x); }
Variable arccos(const Operand& x) { return make("arccos", Promotion::floating, x); }
Variable arctan(const Operand& x) { return make("arctan", Promotion::floating, x); }
Variable arctan2(const Operand& y, const Operand& x) {
  return make("arctan2", Promotion::floating, y, x);
}
Variable sinh(const Operand& x) { return make("sinh", Promotion::floating, x); }
Variable cosh(const Operand& x) { return make("cosh", Promotion::floating, x); }
Variable tanh(const Operand& x) { return make("tanh", Promotion::floating, x); }
Variable arcsinh(const Operand& x) { return make("arcsinh", Promotion::floating, x); }
Variable arccosh(const Operand& x) { return make("arccosh", Promotion::floating, x); }
Variable arctanh(const Operand& x) { return make("arctanh", Promotion::floating, x); }

}  // namespace croton
