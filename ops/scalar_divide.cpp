// true_divide, floor_divide, mod, trunc_divide, fmod, pow.
#include <fmt/format.h>

#include <cmath>

#include "compiler/kernel/math.h"
#include "croton/math.h"
#include "ops/registry.h"
#include "ops/scalar.h"

namespace croton {

using namespace scalar;

namespace {

OpDef true_divide_op() {
  return {
      .name = "true_divide",
      .doc = "a / b.",
      .cost = 4,
      .infer = rule<2, Accept::floating>,
      .scalar = [](Builder&, Args x, const Node&) { return x[0] / x[1]; },
      .grad =
          [](const GradArgs& args) {
            return gradients(
                args, [&](const Variable& g) { return g / args.in(1); },
                [&](const Variable& g) { return -(g * args.out()) / args.in(1); });
          },
      .scalar_reference = {.real = [](const double* x) { return x[0] / x[1]; }},
      .examples = {example({{-5, 5}, {0.5, 5}}), example({{-5, 5}, {-5, -0.5}})},
  };
}

/// Whether a remainder and its divisor differ in sign, so that floor and trunc differ.
Expr floors_away(Expr remainder, Expr divisor) {
  return (remainder != zero(remainder)) &
         ((remainder < zero(remainder)) != (divisor < zero(divisor)));
}

// Floats: by the remainder, which fmod gives exactly, as Python and NumPy do; floor(a / b) would
// give 1 // 0.1 == 10.
Expr floor_divide_body(Builder& b, Args x, const Node&) {
  const DType dtype = x[0].dtype();
  if (is_unsigned(dtype)) return x[0] / x[1];
  const Expr remainder = x[0] % x[1];
  const Expr away = floors_away(remainder, x[1]);
  if (!is_float(dtype)) {
    const Expr quotient = x[0] / x[1];
    return b.select(away, quotient - one(quotient), quotient);
  }
  const Expr exact = (x[0] - remainder) / x[1];
  const Expr quotient = b.select(away, exact - one(exact), exact);
  const Expr whole = b.unary(kernel::Unary::floor, quotient);
  const Expr nearest = b.select(quotient - whole > like(whole, 0.5), whole + one(whole), whole);
  return b.select(x[1] == zero(x[1]), x[0] / x[1], nearest);
}

double real_floor_divide(const double* x) {
  if (x[1] == 0) return x[0] / x[1];
  const double remainder = std::fmod(x[0], x[1]);
  double quotient = (x[0] - remainder) / x[1];
  if (remainder != 0 && (remainder < 0) != (x[1] < 0)) quotient -= 1;
  const double whole = std::floor(quotient);
  return quotient - whole > 0.5 ? whole + 1 : whole;
}

std::int64_t integer_floor_divide(const std::int64_t* x) {
  if (x[1] == 0) return 0;
  if (x[1] == -1) return static_cast<std::int64_t>(-static_cast<std::uint64_t>(x[0]));
  const std::int64_t quotient = x[0] / x[1];
  return x[0] % x[1] != 0 && (x[0] < 0) != (x[1] < 0) ? quotient - 1 : quotient;
}

OpDef floor_divide_op() {
  return {
      .name = "floor_divide",
      .doc = "The largest whole number not above a / b; x // 0 is 0 for integers.",
      .cost = 12,
      .infer = rule<2, Accept::number>,
      .scalar = floor_divide_body,
      .grad = zero_gradients,
      .scalar_reference = {.real = real_floor_divide,
                           .integer = integer_floor_divide,
                           .natural =
                               [](const std::uint64_t* x) { return x[1] == 0 ? 0 : x[0] / x[1]; }},
      .examples = {example({{-20, 20}, {0.6, 5}}), example({{-20, 20}, {-5, -0.6}})},
  };
}

Expr mod_body(Builder& b, Args x, const Node&) {
  const Expr remainder = x[0] % x[1];
  if (is_unsigned(x[0].dtype())) return remainder;
  const Expr moved = b.select(floors_away(remainder, x[1]), remainder + x[1], remainder);
  if (!is_float(x[0].dtype())) return moved;
  // A zero has the sign of the divisor, as in NumPy.
  const Expr signed_zero = b.select(x[1] < zero(x[1]), b.constant(x[0].dtype(), -0.0), zero(x[1]));
  return b.select(remainder == zero(remainder), signed_zero, moved);
}

double real_mod(const double* x) {
  const double remainder = std::fmod(x[0], x[1]);
  if (remainder == 0) return std::copysign(0.0, x[1]);
  return (remainder < 0) != (x[1] < 0) ? remainder + x[1] : remainder;
}

std::int64_t integer_mod(const std::int64_t* x) {
  if (x[1] == 0 || x[1] == -1) return 0;
  const std::int64_t remainder = x[0] % x[1];
  return remainder != 0 && (remainder < 0) != (x[1] < 0) ? remainder + x[1] : remainder;
}

OpDef mod_op() {
  return {
      .name = "mod",
      .doc = "The remainder of floor_divide, with the sign of b; x % 0 is 0 for integers.",
      .cost = 12,
      .infer = rule<2, Accept::number>,
      .scalar = mod_body,
      .grad =
          [](const GradArgs& args) {
            return gradients(
                args, [&](const Variable& g) { return g; },
                [&](const Variable& g) { return -g * floor_divide(args.in(0), args.in(1)); });
          },
      .scalar_reference = {.real = real_mod,
                           .integer = integer_mod,
                           .natural =
                               [](const std::uint64_t* x) { return x[1] == 0 ? 0 : x[0] % x[1]; }},
      .examples = {example({{-20, 20}, {0.6, 5}}), example({{-20, 20}, {-5, -0.6}})},
  };
}

// Floats: by the remainder, as floor_divide.
Expr trunc_divide_body(Builder& b, Args x, const Node&) {
  const Expr quotient = x[0] / x[1];
  if (!is_float(x[0].dtype())) return quotient;
  const Expr whole = b.unary(kernel::Unary::round, (x[0] - x[0] % x[1]) / x[1]);
  return b.select(x[1] == zero(x[1]), quotient, whole);
}

OpDef trunc_divide_op() {
  return {
      .name = "trunc_divide",
      .doc = "a / b without its fraction; x divided by 0 is 0 for integers.",
      .cost = 12,
      .infer = rule<2, Accept::number>,
      .scalar = trunc_divide_body,
      .grad = zero_gradients,
      .scalar_reference = {
          .real =
              [](const double* x) {
                if (x[1] == 0) return x[0] / x[1];
                return std::nearbyint((x[0] - std::fmod(x[0], x[1])) / x[1]);
              },
          .integer = [](const std::int64_t* x) -> std::int64_t {
            if (x[1] == 0) return 0;
            if (x[1] == -1) {
              return static_cast<std::int64_t>(-static_cast<std::uint64_t>(x[0]));
            }
            return x[0] / x[1];
          },
          .natural = [](const std::uint64_t* x) { return x[1] == 0 ? 0 : x[0] / x[1]; }},
      .examples = {example({{-20, 20}, {0.6, 5}}), example({{-20, 20}, {-5, -0.6}})},
  };
}

OpDef fmod_op() {
  return {
      .name = "fmod",
      .doc = "The remainder of trunc_divide, with the sign of a; 0 for integers where b is 0.",
      .cost = 10,
      .infer = rule<2, Accept::number>,
      .scalar = [](Builder&, Args x, const Node&) { return x[0] % x[1]; },
      .grad =
          [](const GradArgs& args) {
            return gradients(
                args, [&](const Variable& g) { return g; },
                [&](const Variable& g) { return -g * trunc_divide(args.in(0), args.in(1)); });
          },
      .scalar_reference = {.real = [](const double* x) { return std::fmod(x[0], x[1]); },
                           .integer = [](const std::int64_t* x) -> std::int64_t {
                             return x[1] == 0 || x[1] == -1 ? 0 : x[0] % x[1];
                           },
                           .natural =
                               [](const std::uint64_t* x) { return x[1] == 0 ? 0 : x[0] % x[1]; }},
      .examples = {example({{-20, 20}, {0.6, 5}}), example({{-20, 20}, {-5, -0.6}})},
  };
}

bool is_literal(Expr x) { return x.builder->node(x.id).op == kernel::Op::constant; }

// By squaring, over all bits of the exponent, so that odd bases wrap as repeated products do; a
// literal exponent needs its own bits only.
Expr integer_pow(Builder& b, Expr x, Expr y) {
  const DType dtype = x.dtype();
  const bool literal = is_literal(y);
  const std::uint64_t exponent = literal ? b.node(y.id).bits : 0;
  const int bits = static_cast<int>(size_of(dtype)) * 8 - (is_unsigned(dtype) ? 0 : 1);
  Expr result = one(x);
  Expr power = x;
  for (int k = 0; k < bits && (!literal || (exponent >> k) != 0); ++k) {
    if (k > 0) power = power * power;
    if (literal) {
      if ((exponent >> k) & 1u) result = result * power;
      continue;
    }
    const Expr bit = (y >> b.integer(dtype, k)) & one(y);
    result = b.select(bit != zero(y), result * power, result);
  }
  if (is_unsigned(dtype)) return result;
  const Expr odd = (y & one(y)) != zero(y);
  const Expr minus_one = b.select(odd, x, one(x));
  const Expr inverse = b.select(x == one(x), x, b.select(x == -one(x), minus_one, zero(x)));
  return b.select(y < zero(y), inverse, result);
}

Expr pow_body(Builder& b, Args x, const Node&) {
  return is_float(x[0].dtype()) ? kernel::pow(x[0], x[1]) : integer_pow(b, x[0], x[1]);
}

std::uint64_t natural_pow(const std::uint64_t* x) {
  std::uint64_t result = 1;
  std::uint64_t power = x[0];
  for (std::uint64_t rest = x[1]; rest != 0; rest >>= 1, power *= power) {
    if (rest & 1u) result *= power;
  }
  return result;
}

std::int64_t signed_pow(const std::int64_t* x) {
  if (x[1] < 0) return x[0] == 1 ? 1 : x[0] == -1 ? (x[1] % 2 != 0 ? -1 : 1) : 0;
  const std::uint64_t operands[] = {static_cast<std::uint64_t>(x[0]),
                                    static_cast<std::uint64_t>(x[1])};
  return static_cast<std::int64_t>(natural_pow(operands));
}

/// g * b * a^(b - 1), and 0 where b is 0, whatever a is. Elsewhere the product stays what it is at
/// b = 0, since it has a slope there.
Variable base_gradient(const GradArgs& args, const Variable& g) {
  const Variable& a = args.in(0);
  const Variable& b = args.in(1);
  if (const Array* exponent = constant_value(b); exponent != nullptr && exponent->ndim() == 0) {
    const double value = exponent->astype(DType::float64).item<double>();
    if (value == 0) return zeros_like(args.out(), args.node.loc);
    if (value == 1) return g;
    if (value == 2) return g * (2 * a);
    return g * (value * pow(a, value - 1));
  }
  const Variable power = pow(a, b - 1);
  return g * where(logical_and(eq(b, 0), logical_not(isfinite(power))), 0, b * power);
}

OpDef pow_op() {
  return {
      .name = "pow",
      .doc = "a to the power of b; integers wrap, and 1 / a^-b is rounded towards 0.",
      .cost = 40,
      .infer = rule<2, Accept::number>,
      .scalar = pow_body,
      .grad =
          [](const GradArgs& args) {
            return gradients(
                args, [&](const Variable& g) { return base_gradient(args, g); },
                [&](const Variable& g) {
                  const Variable& a = args.in(0);
                  const Variable zero_base = eq(a, 0);
                  // The logarithm never sees the 0, so that no NaN comes back from it.
                  return g * where(zero_base, 0, args.out() * log(where(zero_base, 1, a)));
                });
          },
      .scalar_reference = {.real = [](const double* x) { return std::pow(x[0], x[1]); },
                           .integer = signed_pow,
                           .natural = natural_pow},
      .examples = {example({{0.2, 4}, {-3, 3}}), example({{0, 7}, {0, 9}})},
  };
}

}  // namespace

void register_scalar_divide_ops(OpRegistry& registry) {
  registry.add(true_divide_op());
  registry.add(floor_divide_op());
  registry.add(mod_op());
  registry.add(trunc_divide_op());
  registry.add(fmod_op());
  registry.add(pow_op());
}

Variable true_divide(const Operand& a, const Operand& b) {
  return make("true_divide", Promotion::division, a, b);
}

Variable floor_divide(const Operand& a, const Operand& b) {
  return make("floor_divide", Promotion::integral, a, b);
}

Variable mod(const Operand& a, const Operand& b) { return make("mod", Promotion::integral, a, b); }

Variable trunc_divide(const Operand& a, const Operand& b) {
  return make("trunc_divide", Promotion::integral, a, b);
}

Variable fmod(const Operand& a, const Operand& b) {
  return make("fmod", Promotion::integral, a, b);
}

Variable pow(const Operand& a, const Operand& b) {
  const Variable result = make("pow", Promotion::integral, a, b);
  if (b.is_literal() && b.literal().real < 0 && !is_float(result.dtype())) {
    graph_error("pow",
                fmt::format("an integer cannot be raised to the negative power {}: cast it to a "
                            "float first, for instance x.astype(DType::float32)",
                            b.literal().integer),
                a.loc());
  }
  return result;
}

}  // namespace croton
