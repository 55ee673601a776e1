// lt, le, gt, ge, eq, ne, isnan, isinf, isfinite. No gradient flows through bools.
#include <cmath>
#include <limits>

#include "croton/math.h"
#include "ops/registry.h"
#include "ops/scalar.h"

namespace croton {

using namespace scalar;

namespace {

// The kernel language compares bools for equality alone; false is below true.
Expr less(Expr a, Expr b) { return is_bool(a.dtype()) ? (!a) & b : a < b; }
Expr less_equal(Expr a, Expr b) { return is_bool(a.dtype()) ? (!a) | b : a <= b; }

/// A comparison by one C++ operator in every class of numbers.
#define CROTON_COMPARISON(op_name, text, symmetric, body, symbol)                            \
  {                                                                                          \
    .name = op_name, .doc = text, .commutative = symmetric,                                  \
    .infer = rule<2, Accept::any, Result::boolean>,                                          \
    .scalar = [](Builder&, Args x, const Node&) { return body; },                            \
    .scalar_reference = {                                                                    \
        .real = [](const double* x) -> double { return x[0] symbol x[1]; },                  \
        .integer = [](const std::int64_t* x) -> std::int64_t { return x[0] symbol x[1]; },   \
        .natural = [](const std::uint64_t* x) -> std::uint64_t { return x[0] symbol x[1]; }, \
        .boolean = [](const bool* x) { return x[0] symbol x[1]; }},                          \
    .examples = {example(2, -3, 3), example(2, 0, 2)},                                       \
  }

Expr infinity(Expr x) {
  return x.builder->constant(x.dtype(), std::numeric_limits<double>::infinity());
}
Expr boolean(Expr x, bool value) { return x.builder->integer(DType::boolean, value); }

OpDef isnan_op() {
  return {
      .name = "isnan",
      .doc = "Whether x is NaN; false for integers.",
      .infer = rule<1, Accept::any, Result::boolean>,
      .scalar =
          [](Builder&, Args x, const Node&) {
            return is_float(x[0].dtype()) ? x[0] != x[0] : boolean(x[0], false);
          },
      .scalar_reference = {.real = [](const double* x) -> double { return std::isnan(x[0]); },
                           .integer = [](const std::int64_t*) -> std::int64_t { return 0; },
                           .natural = [](const std::uint64_t*) -> std::uint64_t { return 0; },
                           .boolean = [](const bool*) { return false; }},
      .examples = {example(1, -5, 5)},
  };
}

OpDef isinf_op() {
  return {
      .name = "isinf",
      .doc = "Whether x is an infinity; false for integers.",
      .cost = 2,
      .infer = rule<1, Accept::any, Result::boolean>,
      .scalar =
          [](Builder& b, Args x, const Node&) {
            if (!is_float(x[0].dtype())) return boolean(x[0], false);
            return b.unary(kernel::Unary::abs, x[0]) == infinity(x[0]);
          },
      .scalar_reference = {.real = [](const double* x) -> double { return std::isinf(x[0]); },
                           .integer = [](const std::int64_t*) -> std::int64_t { return 0; },
                           .natural = [](const std::uint64_t*) -> std::uint64_t { return 0; },
                           .boolean = [](const bool*) { return false; }},
      .examples = {example(1, -5, 5)},
  };
}

OpDef isfinite_op() {
  return {
      .name = "isfinite",
      .doc = "Whether x is neither NaN nor an infinity; true for integers.",
      .cost = 2,
      .infer = rule<1, Accept::any, Result::boolean>,
      .scalar =
          [](Builder& b, Args x, const Node&) {
            if (!is_float(x[0].dtype())) return boolean(x[0], true);
            return b.unary(kernel::Unary::abs, x[0]) < infinity(x[0]);
          },
      .scalar_reference = {.real = [](const double* x) -> double { return std::isfinite(x[0]); },
                           .integer = [](const std::int64_t*) -> std::int64_t { return 1; },
                           .natural = [](const std::uint64_t*) -> std::uint64_t { return 1; },
                           .boolean = [](const bool*) { return true; }},
      .examples = {example(1, -5, 5)},
  };
}

}  // namespace

void register_scalar_compare_ops(OpRegistry& registry) {
  registry.add(CROTON_COMPARISON("lt", "a < b.", false, less(x[0], x[1]), <));
  registry.add(CROTON_COMPARISON("le", "a <= b.", false, less_equal(x[0], x[1]), <=));
  registry.add(CROTON_COMPARISON("gt", "a > b.", false, less(x[1], x[0]), >));
  registry.add(CROTON_COMPARISON("ge", "a >= b.", false, less_equal(x[1], x[0]), >=));
  registry.add(CROTON_COMPARISON("eq", "a == b.", true, x[0] == x[1], ==));
  registry.add(CROTON_COMPARISON("ne", "a != b.", true, x[0] != x[1], !=));
  registry.add(isnan_op());
  registry.add(isinf_op());
  registry.add(isfinite_op());
}

Variable lt(const Operand& a, const Operand& b) { return make("lt", Promotion::common, a, b); }
Variable le(const Operand& a, const Operand& b) { return make("le", Promotion::common, a, b); }
Variable gt(const Operand& a, const Operand& b) { return make("gt", Promotion::common, a, b); }
Variable ge(const Operand& a, const Operand& b) { return make("ge", Promotion::common, a, b); }
Variable eq(const Operand& a, const Operand& b) { return make("eq", Promotion::common, a, b); }
Variable ne(const Operand& a, const Operand& b) { return make("ne", Promotion::common, a, b); }
Variable isnan(const Operand& x) { return make("isnan", Promotion::common, x); }
Variable isinf(const Operand& x) { return make("isinf", Promotion::common, x); }
Variable isfinite(const Operand& x) { return make("isfinite", Promotion::common, x); }

}  // namespace croton
