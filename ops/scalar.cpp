#include "ops/scalar.h"

#include <fmt/format.h>

#include <array>

#include "croton/math.h"
#include "ops/compose.h"

namespace croton::scalar {

namespace {

/// Why a dtype is not accepted and what to do; null when it is.
const char* objection(Accept accept, DType dtype) {
  switch (accept) {
    case Accept::any:
      return nullptr;
    case Accept::number:
      if (!is_bool(dtype)) return nullptr;
      return "this arithmetic is not defined for bool: cast to a number with astype, or use "
             "logical_and, logical_or, logical_xor, logical_not";
    case Accept::bits:
      if (!is_float(dtype)) return nullptr;
      return "integers or bools expected, got floats: cast with astype, or use logical_and, "
             "logical_or, logical_xor, logical_not";
    case Accept::integer:
      if (is_integer(dtype)) return nullptr;
      return "integers expected: cast with astype";
    case Accept::floating:
      return is_float(dtype) ? nullptr : "floats expected: cast with astype";
    case Accept::boolean:
      return is_bool(dtype) ? nullptr : "bools expected: compare, for instance with ne(x, 0)";
  }
  return nullptr;
}

}  // namespace

void elementwise(Infer& infer, int count, Accept accept, Result result) {
  infer.expect_inputs(count);
  const DType dtype = infer.dtype(0);
  if (const char* why = objection(accept, dtype)) infer.fail(why);
  for (int k = 1; k < count; ++k) {
    if (infer.dtype(k) != dtype) {
      infer.fail("the operands of a node must have one dtype; cast them first");
    }
  }
  infer.out(result == Result::same ? dtype : DType::boolean, infer.broadcast());
}

DType float_result(DType dtype) {
  if (is_float(dtype)) return dtype;
  const BuildSettings settings = build_settings();
  if (!settings.numpy_policy) return settings.float_x;
  switch (size_of(dtype)) {
    case 1:
      return DType::float16;
    case 2:
      return DType::float32;
    default:
      return DType::float64;
  }
}

namespace {

DType target_dtype(Promotion promotion, DType joint) {
  switch (promotion) {
    case Promotion::common:
      return joint;
    case Promotion::integral:
      return is_bool(joint) ? DType::int8 : joint;
    case Promotion::floating:
      return float_result(joint);
    case Promotion::division:
      // NumPy divides small integers in float64 too.
      return !is_float(joint) && build_settings().numpy_policy ? DType::float64
                                                               : float_result(joint);
    case Promotion::truth:
      return DType::boolean;
  }
  return joint;
}

Variable make_of(std::string_view op, Promotion promotion, std::span<const Operand> operands) {
  const Loc& loc = operands[0].loc();
  std::vector<Variable> inputs;
  if (promotion == Promotion::truth) {  // each on its own: they need nothing in common
    for (const Operand& operand : operands) inputs.push_back(operand.variable());
  } else {
    inputs = resolve(op, operands);
  }
  DType joint = inputs[0].dtype();
  if (promotion != Promotion::truth) {
    const bool numpy_policy = build_settings().numpy_policy;
    for (const Variable& input : inputs) joint = promote(joint, input.dtype(), numpy_policy);
  }
  const DType dtype = target_dtype(promotion, joint);
  for (Variable& input : inputs) input = cast_to(input, dtype, loc);
  return apply(op, std::move(inputs), {}, loc);
}

}  // namespace

Variable make(std::string_view op, Promotion promotion, const Operand& a) {
  return make_of(op, promotion, {&a, 1});
}

Variable make(std::string_view op, Promotion promotion, const Operand& a, const Operand& b) {
  const std::array<Operand, 2> operands{a, b};
  return make_of(op, promotion, operands);
}

Variable make(std::string_view op, Promotion promotion, const Operand& a, const Operand& b,
              const Operand& c) {
  const std::array<Operand, 3> operands{a, b, c};
  return make_of(op, promotion, operands);
}

std::vector<Variable> promoted(std::string_view op, std::span<const Operand> operands,
                               bool floats) {
  std::vector<Variable> inputs = resolve(op, operands);
  DType joint = inputs[0].dtype();
  const bool numpy_policy = build_settings().numpy_policy;
  for (const Variable& input : inputs) joint = promote(joint, input.dtype(), numpy_policy);
  if (floats) joint = float_result(joint);
  const Loc& loc = operands[0].loc();
  for (Variable& input : inputs) input = cast_to(input, joint, loc);
  // Shapes that do not fit are told in the user's words, before smaller ops see them.
  for (std::size_t k = 1; k < inputs.size(); ++k) {
    for (std::size_t j = 0; j < k; ++j) apply("eq", {inputs[j], inputs[k]}, {}, loc);
  }
  return inputs;
}

Masked unmask(const Variable& g) {
  if (!is_op(g, "where")) return {{}, g};
  const Node& node = *g.node();
  const Array* otherwise = constant_value(node.inputs[2]);
  if (otherwise == nullptr || otherwise->ndim() != 0 || !is_constant(node.inputs[2], 0)) {
    return {{}, g};
  }
  return {node.inputs[0], node.inputs[1]};
}

Variable only(const Variable& condition, const Variable& g) {
  const Masked inner = unmask(g);
  if (!inner.condition.defined()) return where(condition, g, 0);
  return where(logical_and(condition, inner.condition), inner.below, 0);
}

std::vector<Variable> zero_gradients(const GradArgs& args) {
  std::vector<Variable> result(args.node.inputs.size());
  for (std::size_t k = 0; k < result.size(); ++k) {
    const Variable& input = args.in(static_cast<int>(k));
    if (args.wants(static_cast<int>(k)) && is_float(input.dtype())) {
      result[k] = zeros_like(input, args.node.loc);
    }
  }
  return result;
}

Example example(int count, double low, double high) {
  return {std::vector<Shape>(count, Shape{3, 5}),
          std::vector<std::pair<double, double>>(count, {low, high}),
          {}};
}

Example example(std::vector<std::pair<double, double>> ranges) {
  const std::size_t count = ranges.size();
  return {std::vector<Shape>(count, Shape{3, 5}), std::move(ranges), {}};
}

}  // namespace croton::scalar
