// add, sub, mul, neg, abs, sign, square, reciprocal.
#include <cmath>

#include "croton/math.h"
#include "ops/registry.h"
#include "ops/scalar.h"

namespace croton {

using namespace scalar;

namespace {

OpDef add_op() {
  return {
      .name = "add",
      .doc = "a + b; \"or\" of bools.",
      .commutative = true,
      .infer = rule<2, Accept::any>,
      .scalar = [](Builder&, Args x,
                   const Node&) { return is_bool(x[0].dtype()) ? x[0] | x[1] : x[0] + x[1]; },
      .grad =
          [](const GradArgs& args) {
            return gradients(
                args, [&](const Variable& g) { return g; }, [&](const Variable& g) { return g; });
          },
      .scalar_reference = {.real = [](const double* x) { return x[0] + x[1]; },
                           .integer =
                               [](const std::int64_t* x) {
                                 return static_cast<std::int64_t>(static_cast<std::uint64_t>(x[0]) +
                                                                  static_cast<std::uint64_t>(x[1]));
                               },
                           .natural = [](const std::uint64_t* x) { return x[0] + x[1]; },
                           .boolean = [](const bool* x) { return x[0] || x[1]; }},
      .examples = {example(2, -5, 5)},
  };
}

void infer_sub(Infer& infer) {
  infer.expect_inputs(2);
  if (is_bool(infer.dtype(0)) && is_bool(infer.dtype(1))) {
    infer.fail(
        "bools cannot be subtracted: use logical_xor, or cast one of them to a number with astype");
  }
  elementwise(infer, 2, Accept::number, Result::same);
}

OpDef sub_op() {
  return {
      .name = "sub",
      .doc = "a - b.",
      .infer = infer_sub,
      .scalar = [](Builder&, Args x, const Node&) { return x[0] - x[1]; },
      .grad =
          [](const GradArgs& args) {
            return gradients(
                args, [&](const Variable& g) { return g; }, [&](const Variable& g) { return -g; });
          },
      .scalar_reference = {.real = [](const double* x) { return x[0] - x[1]; },
                           .integer =
                               [](const std::int64_t* x) {
                                 return static_cast<std::int64_t>(static_cast<std::uint64_t>(x[0]) -
                                                                  static_cast<std::uint64_t>(x[1]));
                               },
                           .natural = [](const std::uint64_t* x) { return x[0] - x[1]; }},
      .examples = {example(2, -5, 5)},
  };
}

OpDef mul_op() {
  return {
      .name = "mul",
      .doc = "a * b; \"and\" of bools.",
      .commutative = true,
      .infer = rule<2, Accept::any>,
      .scalar = [](Builder&, Args x,
                   const Node&) { return is_bool(x[0].dtype()) ? x[0] & x[1] : x[0] * x[1]; },
      .grad =
          [](const GradArgs& args) {
            return gradients(
                args, [&](const Variable& g) { return g * args.in(1); },
                [&](const Variable& g) { return g * args.in(0); });
          },
      .scalar_reference = {.real = [](const double* x) { return x[0] * x[1]; },
                           .integer =
                               [](const std::int64_t* x) {
                                 return static_cast<std::int64_t>(static_cast<std::uint64_t>(x[0]) *
                                                                  static_cast<std::uint64_t>(x[1]));
                               },
                           .natural = [](const std::uint64_t* x) { return x[0] * x[1]; },
                           .boolean = [](const bool* x) { return x[0] && x[1]; }},
      .examples = {example(2, -5, 5)},
  };
}

OpDef neg_op() {
  return {
      .name = "neg",
      .doc = "-x; unsigned integers wrap.",
      .infer = rule<1, Accept::number>,
      .scalar = [](Builder&, Args x, const Node&) { return -x[0]; },
      .grad =
          [](const GradArgs& args) {
            return gradients(args, [&](const Variable& g) { return -g; });
          },
      .scalar_reference = {.real = [](const double* x) { return -x[0]; },
                           .integer =
                               [](const std::int64_t* x) {
                                 return static_cast<std::int64_t>(
                                     -static_cast<std::uint64_t>(x[0]));
                               },
                           .natural = [](const std::uint64_t* x) { return -x[0]; }},
      .examples = {example(1, -5, 5)},
  };
}

OpDef abs_op() {
  return {
      .name = "abs",
      .doc = "|x|; the smallest integer of a signed dtype stays.",
      .infer = rule<1, Accept::any>,
      .scalar =
          [](Builder& b, Args x, const Node&) {
            return is_signed(x[0].dtype()) ? b.unary(kernel::Unary::abs, x[0]) : x[0];
          },
      .grad =
          [](const GradArgs& args) {
            return gradients(args, [&](const Variable& g) { return g * sign(args.in(0)); });
          },
      .scalar_reference = {.real = [](const double* x) { return std::fabs(x[0]); },
                           .integer =
                               [](const std::int64_t* x) {
                                 return x[0] < 0 ? static_cast<std::int64_t>(
                                                       -static_cast<std::uint64_t>(x[0]))
                                                 : x[0];
                               },
                           .natural = [](const std::uint64_t* x) { return x[0]; },
                           .boolean = [](const bool* x) { return x[0]; }},
      .examples = {example(1, -5, 5)},
  };
}

Expr sign_body(Builder& b, Args x, const Node&) {
  if (!is_signed(x[0].dtype())) return b.select(x[0] != zero(x[0]), one(x[0]), zero(x[0]));
  // The last x is a zero or NaN, which stay.
  return b.select(x[0] > zero(x[0]), one(x[0]), b.select(x[0] < zero(x[0]), -one(x[0]), x[0]));
}

OpDef sign_op() {
  return {
      .name = "sign",
      .doc = "-1, 0 or 1 by the sign of x; NaN for NaN.",
      .cost = 4,
      .infer = rule<1, Accept::number>,
      .scalar = sign_body,
      .grad = zero_gradients,
      .scalar_reference = {
          .real = [](const double* x) { return x[0] > 0   ? 1.0
                                               : x[0] < 0 ? -1.0
                                                          : x[0]; },
          .integer = [](const std::int64_t* x) -> std::int64_t { return (x[0] > 0) - (x[0] < 0); },
          .natural = [](const std::uint64_t* x) -> std::uint64_t { return x[0] != 0; }},
      .examples = {example(1, -5, 5)},
  };
}

OpDef square_op() {
  return {
      .name = "square",
      .doc = "x * x.",
      .infer = rule<1, Accept::any>,
      .scalar = [](Builder&, Args x,
                   const Node&) { return is_bool(x[0].dtype()) ? x[0] : x[0] * x[0]; },
      .grad =
          [](const GradArgs& args) {
            return gradients(args, [&](const Variable& g) { return g * (2 * args.in(0)); });
          },
      .scalar_reference = {.real = [](const double* x) { return x[0] * x[0]; },
                           .integer =
                               [](const std::int64_t* x) {
                                 const auto u = static_cast<std::uint64_t>(x[0]);
                                 return static_cast<std::int64_t>(u * u);
                               },
                           .natural = [](const std::uint64_t* x) { return x[0] * x[0]; },
                           .boolean = [](const bool* x) { return x[0]; }},
      .examples = {example(1, -5, 5)},
  };
}

OpDef reciprocal_op() {
  return {
      .name = "reciprocal",
      .doc = "1 / x.",
      .cost = 4,
      .infer = rule<1, Accept::floating>,
      .scalar = [](Builder&, Args x, const Node&) { return one(x[0]) / x[0]; },
      .grad =
          [](const GradArgs& args) {
            return gradients(args, [&](const Variable& g) { return -g * square(args.out()); });
          },
      .scalar_reference = {.real = [](const double* x) { return 1 / x[0]; }},
      .examples = {example(1, 0.5, 5), example(1, -5, -0.5)},
  };
}

}  // namespace

void register_scalar_arithmetic_ops(OpRegistry& registry) {
  registry.add(add_op());
  registry.add(sub_op());
  registry.add(mul_op());
  registry.add(neg_op());
  registry.add(abs_op());
  registry.add(sign_op());
  registry.add(square_op());
  registry.add(reciprocal_op());
}

Variable add(const Operand& a, const Operand& b) { return make("add", Promotion::common, a, b); }
Variable sub(const Operand& a, const Operand& b) { return make("sub", Promotion::common, a, b); }
Variable mul(const Operand& a, const Operand& b) { return make("mul", Promotion::common, a, b); }
Variable neg(const Operand& x) { return make("neg", Promotion::common, x); }
Variable abs(const Operand& x) { return make("abs", Promotion::common, x); }
Variable sign(const Operand& x) { return make("sign", Promotion::common, x); }
Variable square(const Operand& x) { return make("square", Promotion::common, x); }
Variable reciprocal(const Operand& x) { return make("reciprocal", Promotion::floating, x); }

}  // namespace croton
