// maximum, minimum, clip, where.
#include <algorithm>
#include <array>
#include <cmath>

#include "croton/math.h"
#include "ops/registry.h"
#include "ops/scalar.h"

namespace croton {

using namespace scalar;

namespace {

Expr larger(Expr a, Expr b) {
  return is_bool(a.dtype()) ? a | b : a.builder->binary(kernel::Binary::max, a, b);
}
Expr smaller(Expr a, Expr b) {
  return is_bool(a.dtype()) ? a & b : a.builder->binary(kernel::Binary::min, a, b);
}

// NaN wins, unlike in std::max.
double real_max(double a, double b) { return std::isnan(a) || a > b ? a : b; }
double real_min(double a, double b) { return std::isnan(a) || a < b ? a : b; }

OpDef maximum_op() {
  return {
      .name = "maximum",
      .doc = "The larger operand; NaN if either is.",
      .commutative = true,
      .infer = rule<2, Accept::any>,
      .scalar = [](Builder&, Args x, const Node&) { return larger(x[0], x[1]); },
      .grad =
          [](const GradArgs& args) {
            return gradients(
                args, [&](const Variable& g) { return only(ge(args.in(0), args.in(1)), g); },
                [&](const Variable& g) { return only(lt(args.in(0), args.in(1)), g); });
          },
      .scalar_reference = {.real = [](const double* x) { return real_max(x[0], x[1]); },
                           .integer = [](const std::int64_t* x) { return std::max(x[0], x[1]); },
                           .natural = [](const std::uint64_t* x) { return std::max(x[0], x[1]); },
                           .boolean = [](const bool* x) { return x[0] || x[1]; }},
      .examples = {example(2, -5, 5)},
  };
}

OpDef minimum_op() {
  return {
      .name = "minimum",
      .doc = "The smaller operand; NaN if either is.",
      .commutative = true,
      .infer = rule<2, Accept::any>,
      .scalar = [](Builder&, Args x, const Node&) { return smaller(x[0], x[1]); },
      .grad =
          [](const GradArgs& args) {
            return gradients(
                args, [&](const Variable& g) { return only(le(args.in(0), args.in(1)), g); },
                [&](const Variable& g) { return only(gt(args.in(0), args.in(1)), g); });
          },
      .scalar_reference = {.real = [](const double* x) { return real_min(x[0], x[1]); },
                           .integer = [](const std::int64_t* x) { return std::min(x[0], x[1]); },
                           .natural = [](const std::uint64_t* x) { return std::min(x[0], x[1]); },
                           .boolean = [](const bool* x) { return x[0] && x[1]; }},
      .examples = {example(2, -5, 5)},
  };
}

// Each element of the result is one of the three operands, and the gradient goes there; x keeps it
// at the ends of the interval.
std::vector<Variable> clip_gradient(const GradArgs& args) {
  const Variable& x = args.in(0);
  const Variable& low = args.in(1);
  const Variable& high = args.in(2);
  return gradients(
      args, [&](const Variable& g) { return only(logical_and(ge(x, low), le(x, high)), g); },
      [&](const Variable& g) { return only(logical_and(lt(x, low), le(low, high)), g); },
      [&](const Variable& g) { return only(gt(maximum(x, low), high), g); });
}

OpDef clip_op() {
  return {
      .name = "clip",
      .doc = "minimum(maximum(x, low), high).",
      .cost = 2,
      .infer = rule<3, Accept::any>,
      .scalar = [](Builder&, Args x, const Node&) { return smaller(larger(x[0], x[1]), x[2]); },
      .grad = clip_gradient,
      .scalar_reference = {
          .real = [](const double* x) { return real_min(real_max(x[0], x[1]), x[2]); },
          .integer = [](const std::int64_t* x) { return std::min(std::max(x[0], x[1]), x[2]); },
          .natural = [](const std::uint64_t* x) { return std::min(std::max(x[0], x[1]), x[2]); },
          .boolean = [](const bool* x) { return (x[0] || x[1]) && x[2]; }},
      .examples = {example({{-5, 5}, {-4, 0}, {1, 4}}), example({{-5, 5}, {1, 4}, {-4, 0}})},
  };
}

void infer_where(Infer& infer) {
  infer.expect_inputs(3);
  if (!is_bool(infer.dtype(0))) infer.fail("the condition must be a bool");
  if (infer.dtype(1) != infer.dtype(2)) {
    infer.fail("both branches must have one dtype; cast them first");
  }
  infer.out(infer.dtype(1), infer.broadcast());
}

OpDef where_op() {
  return {
      .name = "where",
      .doc = "a where the condition holds, else b.",
      .infer = infer_where,
      .scalar = [](Builder& b, Args x, const Node&) { return b.select(x[0], x[1], x[2]); },
      .grad =
          [](const GradArgs& args) {
            return gradients(
                args, [](const Variable& g) { return g; },  // never run: a bool
                [&](const Variable& g) { return only(args.in(0), g); },
                [&](const Variable& g) { return only(logical_not(args.in(0)), g); });
          },
      .scalar_reference = {.real = [](const double* x) { return x[0] != 0 ? x[1] : x[2]; },
                           .integer = [](const std::int64_t* x) { return x[0] ? x[1] : x[2]; },
                           .natural = [](const std::uint64_t* x) { return x[0] ? x[1] : x[2]; },
                           .boolean = [](const bool* x) { return x[0] ? x[1] : x[2]; }},
      .examples = {example({{0, 2}, {-5, 5}, {-5, 5}})},
  };
}

}  // namespace

void register_scalar_select_ops(OpRegistry& registry) {
  registry.add(maximum_op());
  registry.add(minimum_op());
  registry.add(clip_op());
  registry.add(where_op());
}

Variable maximum(const Operand& a, const Operand& b) {
  return make("maximum", Promotion::common, a, b);
}
Variable minimum(const Operand& a, const Operand& b) {
  return make("minimum", Promotion::common, a, b);
}
Variable clip(const Operand& x, const Operand& low, const Operand& high) {
  return make("clip", Promotion::common, x, low, high);
}

Variable where(const Operand& condition, const Operand& a, const Operand& b) {
  const Loc& loc = condition.loc();
  const std::array<Operand, 2> branches{a, b};
  std::vector<Variable> inputs = resolve("where", branches);
  const DType dtype = promote(inputs[0].dtype(), inputs[1].dtype(), build_settings().numpy_policy);
  return apply("where",
               {cast_to(condition.variable(), DType::boolean, loc), cast_to(inputs[0], dtype, loc),
                cast_to(inputs[1], dtype, loc)},
               {}, loc);
}

}  // namespace croton
