// Repetition along axes of size 1, known sizes, and arrays of one value.
#include <fmt/format.h>

#include "croton/math.h"
#include "croton/tensor.h"
#include "ops/build.h"
#include "ops/reference.h"
#include "ops/registry.h"
#include "ops/sizes.h"

namespace croton {
namespace {

void infer_broadcast(Infer& infer) {
  if (infer.inputs() < 1) infer.fail("an operand is expected");
  std::vector<Dim> shape = size_dims(infer, 1);
  const int extra = static_cast<int>(shape.size()) - infer.ndim(0);
  if (extra < 0) {
    infer.fail(fmt::format("cannot go from {} axes to {}", infer.ndim(0), shape.size()));
  }
  for (int axis = 0; axis < infer.ndim(0); ++axis) {
    Dim& wanted = shape[axis + extra];
    if (infer.shape(0)[axis].is(1)) continue;
    wanted = infer.equal(infer.shape(0)[axis], wanted,
                         fmt::format("axis {} cannot be stretched from size {{a}} to {{b}}", axis),
                         SizeRule::broadcast);
  }
  infer.out(infer.dtype(0), std::move(shape));
}

kernel::Expr broadcast_element(Lowering& low, std::span<const Position> at) {
  const std::vector<Dim>& from = low.in[0].shape;
  const std::size_t extra = at.size() - from.size();
  std::vector<Position> source(from.size());
  for (std::size_t axis = 0; axis < from.size(); ++axis) {
    if (!from[axis].is(1)) source[axis] = at[axis + extra];
  }
  return low.read(0, std::move(source));
}

std::vector<Variable> broadcast_grad(const GradArgs& args) {
  std::vector<Variable> result(args.node.inputs.size());
  result[0] = sum_like(args.g(), args.in(0), args.node.loc);
  return result;
}

std::vector<Array> broadcast_reference(const Node& node, std::span<const Array> inputs) {
  return {inputs[0].broadcast_to(size_numbers(node.attrs(), inputs.subspan(1))).copy()};
}

void infer_specify_shape(Infer& infer) {
  if (infer.inputs() < 1) infer.fail("an operand is expected");
  static_assert(kAnyDim == kInferredSize);
  const std::vector<Dim> sizes = size_dims(infer, 1);
  if (static_cast<int>(sizes.size()) != infer.ndim(0)) {
    infer.fail(fmt::format("{} sizes for {} axes", sizes.size(), infer.ndim(0)));
  }
  std::vector<Dim> shape = infer.shape(0);
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    if (infer.attrs().integers("sizes")[axis] == kAnyDim) continue;
    shape[axis] =
        infer.equal(shape[axis], sizes[axis],
                    fmt::format("axis {} has size {{a}} instead of {{b}}, as specified", axis));
  }
  infer.out(infer.dtype(0), std::move(shape));
}

kernel::Expr same_element(Lowering& low, std::span<const Position> at) {
  return low.read(0, std::vector<Position>(at.begin(), at.end()));
}

/// The dtype of a creation function.
DType created(std::optional<DType> dtype) { return dtype ? *dtype : build_settings().float_x; }

Variable filled(const Sizes& sizes, const LiteralValue& value, DType dtype, const Loc& loc) {
  const SizeList list = size_list("full", sizes, loc);
  std::vector<Variable> inputs{make_scalar(dtype, value, loc)};
  if (list.numbers.empty()) return inputs[0];
  inputs.insert(inputs.end(), list.symbols.begin(), list.symbols.end());
  return apply("broadcast", std::move(inputs), {{"sizes", list.numbers}}, loc);
}

}  // namespace

Variable broadcast_to(const Operand& operand, const Sizes& sizes) {
  const Variable x = operand.variable();
  const Loc loc = operand.loc().named("broadcast_to");
  SizeList list = size_list("broadcast_to", sizes, loc);
  std::vector<Variable> inputs{x};
  inputs.insert(inputs.end(), list.symbols.begin(), list.symbols.end());
  return apply("broadcast", std::move(inputs), {{"sizes", std::move(list.numbers)}}, loc);
}

Variable specify_shape(const Operand& operand, const Shape& sizes) {
  const std::vector<std::int64_t> list(sizes.begin(), sizes.end());
  return apply("specify_shape", {operand.variable()}, {{"sizes", list}}, operand.loc());
}

Variable zeros(const Sizes& sizes, std::optional<DType> dtype, Loc loc) {
  return filled(sizes, std::int64_t{0}, created(dtype), loc.named("zeros"));
}

Variable ones(const Sizes& sizes, std::optional<DType> dtype, Loc loc) {
  return filled(sizes, std::int64_t{1}, created(dtype), loc.named("ones"));
}

Variable full(const Sizes& sizes, const Operand& operand, std::optional<DType> dtype) {
  const Loc loc = operand.loc().named("full");
  if (operand.is_literal() && dtype) return filled(sizes, operand.literal(), *dtype, loc);
  Variable value = operand.variable();
  if (value.ndim() != 0) {
    graph_error("full", fmt::format("a scalar is expected: got {} axes", value.ndim()), loc);
  }
  if (dtype) value = cast_to(value, *dtype, loc);
  return broadcast_to(Operand(value, loc), sizes);
}

Variable zeros_like(const Operand& x, std::optional<DType> dtype) {
  return full_like(x.named("zeros_like"), 0, dtype);
}

Variable ones_like(const Operand& x, std::optional<DType> dtype) {
  return full_like(x.named("ones_like"), 1, dtype);
}

Variable full_like(const Operand& operand, const Operand& value, std::optional<DType> dtype) {
  const Loc loc = operand.loc().named("full_like");
  const Variable x = operand.variable();
  const DType type = dtype.value_or(x.dtype());
  Variable scalar = value.is_literal() ? make_scalar(type, value.literal(), loc)
                                       : cast_to(value.variable(), type, loc);
  if (scalar.ndim() != 0) {
    graph_error("full_like", fmt::format("a scalar is expected: got {} axes", scalar.ndim()), loc);
  }
  return broadcast_like(scalar, x, loc);
}

void register_broadcast_ops(OpRegistry& registry) {
  const auto example = [](Shape shape, std::vector<std::int64_t> sizes) {
    return Example{{std::move(shape)}, {{-3, 3}}, {{"sizes", std::move(sizes)}}};
  };
  registry.add(
      {.name = "broadcast",
       .doc = "Repetition along axes of size 1, and along new ones in front.",
       .form = OpForm::loops,
       .infer = infer_broadcast,
       .element = broadcast_element,
       .grad = broadcast_grad,
       .reference = broadcast_reference,
       .examples = {example({}, {2, 3}), example({3, 1}, {3, 4}), example({4}, {2, 3, 4})}});
  registry.add(
      {.name = "specify_shape",
       .doc = "The operand itself, with sizes that are checked and known.",
       .form = OpForm::loops,
       .view = true,
       .infer = infer_specify_shape,
       .element = same_element,
       .grad =
           [](const GradArgs& args) {
             std::vector<Variable> result(args.node.inputs.size());
             result[0] = args.g();
             return result;
           },
       .reference = [](const Node&,
                       std::span<const Array> inputs) { return std::vector<Array>{inputs[0]}; },
       .examples = {example({2, 3}, {2, -1})}});
}

}  // namespace croton
