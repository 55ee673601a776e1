// Sizes as values.
#include <fmt/format.h>

#include "croton/tensor.h"
#include "ops/axes.h"
#include "ops/build.h"
#include "ops/registry.h"

namespace croton {
namespace {

void infer_size_of(Infer& infer) {
  infer.expect_inputs(1);
  normalize_axis(infer, infer.attrs().integer("axis"), infer.ndim(0));
  infer.out(DType::int64, {});
}

kernel::Expr size_of_element(Lowering& low, std::span<const Position>) {
  return low.value(low.in[0].shape[low.node.attrs().integer("axis")]);
}

void infer_shape_of(Infer& infer) {
  infer.expect_inputs(1);
  infer.out(DType::int64, {Dim(infer.ndim(0))});
}

kernel::Expr shape_of_element(Lowering& low, std::span<const Position> at) {
  const std::vector<Dim>& shape = low.in[0].shape;
  if (shape.empty()) return low.b.i64(0);
  const kernel::Expr axis = low.value(at[0]);
  kernel::Expr size = low.value(shape.back());
  for (std::size_t k = shape.size() - 1; k-- > 0;) {
    size = low.b.select(axis == static_cast<std::int64_t>(k), low.value(shape[k]), size);
  }
  return size;
}

/// The attribute "least" bounds the number; without it 0 is refused.
void infer_checked_number(Infer& infer) {
  infer.expect_inputs(1);
  if (infer.ndim(0) != 0 || infer.dtype(0) != DType::int64) {
    infer.fail("an int64 scalar is expected");
  }
  const Dim number = infer.value(0);
  const std::string& wanted = infer.attrs().text("wanted");
  if (infer.attrs().has("least")) {
    const Dim least = infer.attrs().integer("least");
    infer.equal(max(number, least), number, wanted + ": got {b}");
  } else {
    infer.equal(less(number, 0) + less(0, number), Dim(1), wanted + ": got {a}");
  }
  infer.out(DType::int64, {});
}

kernel::Expr checked_number_element(Lowering& low, std::span<const Position>) {
  return low.read(0, {});
}

std::vector<Array> size_of_reference(const Node& node, std::span<const Array> inputs) {
  return {Array(inputs[0].shape()[static_cast<std::size_t>(node.attrs().integer("axis"))])};
}

std::vector<Array> shape_of_reference(const Node&, std::span<const Array> inputs) {
  const Shape& shape = inputs[0].shape();
  return {Array::from<std::int64_t>(std::span(shape.begin(), shape.size()))};
}

}  // namespace

Variable shape(const Operand& operand) {
  const Variable x = operand.variable();
  const Shape& known = x.static_shape();
  if (known.is_static()) {
    const std::span<const std::int64_t> sizes(known.begin(), known.size());
    return make_constant(Array::from<std::int64_t>(sizes), operand.loc());
  }
  return apply("shape_of", {x}, {}, operand.loc());
}

Variable size(const Operand& operand) {
  const Variable x = operand.variable();
  return count_elements(x, checked_axes("size", none, x.ndim(), operand.loc()), DType::int64,
                        operand.loc());
}

void register_size_ops(OpRegistry& registry) {
  registry.add({.name = "size_of",
                .doc = "One size as an int64 scalar.",
                .form = OpForm::loops,
                .infer = infer_size_of,
                .element = size_of_element,
                .reference = size_of_reference,
                .examples = {{{{3, 4}}, {{-3, 3}}, {{"axis", 1}}}}});
  registry.add({.name = "shape_of",
                .doc = "The sizes as an int64 vector.",
                .form = OpForm::loops,
                .infer = infer_shape_of,
                .element = shape_of_element,
                .reference = shape_of_reference,
                .examples = {{{{3, 4}}, {{-3, 3}}, {}}}});
  registry.add(
      {.name = "checked_number",
       .doc = "The integer itself, where it is within bounds; a call in which it is not is "
              "an error.",
       .form = OpForm::loops,
       .infer = infer_checked_number,
       .element = checked_number_element,
       .reference = [](const Node&,
                       std::span<const Array> inputs) { return std::vector{inputs[0]}; },
       .examples = {
           {{{}}, {{1, 9}}, {{"least", 1}, {"wanted", std::string("a number must be at least 1")}}},
           {{{}}, {{1, 9}}, {{"wanted", std::string("a step must not be 0")}}}}});
}

}  // namespace croton
