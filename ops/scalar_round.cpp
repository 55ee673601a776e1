// floor, ceil, trunc, round, round_half_away_from_zero.
#include <cmath>

#include "croton/math.h"
#include "ops/registry.h"
#include "ops/scalar.h"

namespace croton {

using namespace scalar;

namespace {

template <kernel::Unary kOp>
Expr rounded(Builder& b, Args x, const Node&) {
  return is_float(x[0].dtype()) ? b.unary(kOp, x[0]) : x[0];
}

// The fraction is exact, so that 0.5 less a little is not taken for a half.
Expr round_away(Builder& b, Args x, const Node&) {
  if (!is_float(x[0].dtype())) return x[0];
  const Expr whole = b.unary(kernel::Unary::trunc, x[0]);
  const Expr size = b.unary(kernel::Unary::abs, x[0] - whole);
  const Expr step = b.select(x[0] < zero(x[0]), -one(x[0]), one(x[0]));
  return b.select(like(size, 0.5) <= size, whole + step, whole);
}

OpDef rounding(const char* name, const char* doc, Expr (*body)(Builder&, Args, const Node&),
               double (*real)(const double*)) {
  return {
      .name = name,
      .doc = doc,
      .infer = rule<1, Accept::any>,
      .scalar = body,
      .grad = zero_gradients,
      .scalar_reference = {.real = real,
                           .integer = [](const std::int64_t* x) { return x[0]; },
                           .natural = [](const std::uint64_t* x) { return x[0]; },
                           .boolean = [](const bool* x) { return x[0]; }},
      .examples = {example(1, -5, 5)},
  };
}

/// Halves to even whatever the rounding mode.
double to_even(const double* x) {
  return std::fabs(std::fmod(x[0], 1.0)) == 0.5 ? 2 * std::round(x[0] / 2) : std::round(x[0]);
}

}  // namespace

void register_scalar_round_ops(OpRegistry& registry) {
  using kernel::Unary;
  registry.add(rounding("floor", "The largest whole number not above x.", rounded<Unary::floor>,
                        [](const double* x) { return std::floor(x[0]); }));
  registry.add(rounding("ceil", "The smallest whole number not below x.", rounded<Unary::ceil>,
                        [](const double* x) { return std::ceil(x[0]); }));
  registry.add(rounding("trunc", "x without its fraction.", rounded<Unary::trunc>,
                        [](const double* x) { return std::trunc(x[0]); }));
  registry.add(rounding("round", "The nearest whole number; halves go to the even one.",
                        rounded<Unary::round>, to_even));
  registry.add(rounding("round_half_away_from_zero",
                        "The nearest whole number; halves go away from zero.", round_away,
                        [](const double* x) { return std::round(x[0]); }));
}

Variable floor(const Operand& x) { return make("floor", Promotion::common, x); }
Variable ceil(const Operand& x) { return make("ceil", Promotion::common, x); }
Variable trunc(const Operand& x) { return make("trunc", Promotion::common, x); }
Variable rint(const Operand& x) { return make("round", Promotion::floating, x); }
Variable round_half_away_from_zero(const Operand& x) {
  return make("round_half_away_from_zero", Promotion::common, x);
}
Variable round(const Operand& x) { return make("round", Promotion::common, x); }

}  // namespace croton
