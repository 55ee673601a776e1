// The same elements in another shape.
#include <fmt/format.h>

#include "croton/tensor.h"
#include "ops/build.h"
#include "ops/registry.h"
#include "ops/sizes.h"

namespace croton {
namespace {

/// What is left of a product of sizes when those that stand on both sides are taken away.
struct Ratio {
  Dim above = 1;
  Dim below = 1;
};

Ratio reduced_ratio(std::vector<Dim> above, std::vector<Dim> below) {
  for (Dim& b : below) {
    if (b.is(0)) continue;
    for (Dim& a : above) {
      if (!a.same(b)) continue;
      a = 1;
      b = 1;
      break;
    }
  }
  Ratio ratio;
  for (const Dim& a : above) ratio.above = ratio.above * a;
  for (const Dim& b : below) ratio.below = ratio.below * b;
  return ratio;
}

void infer_reshape(Infer& infer) {
  if (infer.inputs() < 1) infer.fail("an operand is expected");
  std::vector<Dim> shape = size_dims(infer, 1);
  const std::vector<std::int64_t>& sizes = infer.attrs().integers("sizes");
  int inferred = -1;
  std::vector<Dim> given;
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    if (sizes[axis] != kInferredSize) {
      given.push_back(shape[axis]);
      continue;
    }
    if (inferred >= 0) infer.fail("only one size may be -1");
    inferred = static_cast<int>(axis);
  }
  const Ratio ratio = reduced_ratio(infer.shape(0), given);
  const std::string clash = "the number of elements does not fit the new shape";
  Dim have = 1;
  Dim want = 1;
  for (const Dim& size : infer.shape(0)) have = have * size;
  for (const Dim& size : given) want = want * size;
  if (inferred < 0 && have.is_number() && want.is_number()) infer.equal(have, want, clash);
  if (inferred < 0) {
    infer.equal(ratio.above, ratio.below, clash);
  } else {
    if (ratio.below.is(0)) infer.fail("the size -1 is undetermined beside a size of 0");
    shape[inferred] = floor_div(ratio.above, ratio.below);
    infer.equal(ratio.above, shape[inferred] * ratio.below, clash);
  }
  infer.out(infer.dtype(0), std::move(shape));
}

/// The row-major number of a position.
Position flat_position(Lowering& low, std::span<const Dim> shape, std::span<const Position> at) {
  Position flat;
  Dim stride = 1;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    if (!shape[axis].is(1)) flat = scaled(at[axis], stride, low.value(stride)) + flat;
    stride = stride * shape[axis];
  }
  return flat;
}

kernel::Expr reshape_element(Lowering& low, std::span<const Position> at) {
  const std::vector<Dim>& from = low.in[0].shape;
  const std::vector<Dim>& to = low.out[0].shape;
  // Axes in front that are the same on both sides keep their positions.
  std::size_t front = 0;
  while (front < from.size() && front < to.size() && from[front].same(to[front])) ++front;
  std::vector<Position> source(at.begin(), at.begin() + static_cast<std::ptrdiff_t>(front));
  const Position flat = flat_position(low, std::span(to).subspan(front), at.subspan(front));
  std::vector<std::size_t> open;
  for (std::size_t axis = front; axis < from.size(); ++axis) {
    source.emplace_back();
    if (!from[axis].is(1)) open.push_back(axis);
  }
  if (open.size() == 1) {
    source[open[0]] = flat;
  } else if (!open.empty()) {
    kernel::Expr rest = low.value(flat);
    for (std::size_t i = open.size(); i-- > 1;) {
      const kernel::Expr size = low.value(from[open[i]]);
      source[open[i]] = low.computed(rest % size);
      rest = rest / size;
    }
    source[open[0]] = low.computed(rest);
  }
  return low.read(0, std::move(source));
}

Variable reshape_to(const Variable& x, SizeList list, const Loc& loc) {
  bool same = list.symbols.empty() && list.numbers.size() == x.static_shape().size();
  for (std::size_t i = 0; same && i < list.numbers.size(); ++i) {
    same = list.numbers[i] == x.static_shape()[i];
  }
  // -1 as the only size changes nothing in a vector.
  same |= list.numbers.size() == 1 && list.numbers[0] == kInferredSize && x.ndim() == 1;
  if (same && x.static_shape().is_static()) return x;
  std::vector<Variable> inputs{x};
  inputs.insert(inputs.end(), list.symbols.begin(), list.symbols.end());
  return apply("reshape", std::move(inputs), {{"sizes", std::move(list.numbers)}}, loc);
}

std::vector<Variable> reshape_grad(const GradArgs& args) {
  const Loc& loc = args.node.loc;
  std::vector<Variable> result(args.node.inputs.size());
  // With at most one unknown size, -1 stands for it and no symbol is needed.
  SizeList list;
  int unknown = 0;
  for (std::int64_t size : args.in(0).static_shape()) {
    list.numbers.push_back(size);
    unknown += size == kAnyDim;
  }
  for (std::int64_t size : args.in(0).static_shape()) {
    if (size == 0) unknown = 2;
  }
  if (unknown > 1) list = size_list("reshape", sizes_of(args.in(0), loc), loc);
  result[0] = reshape_to(args.g(), std::move(list), loc);
  return result;
}

std::vector<Array> reshape_reference(const Node& node, std::span<const Array> inputs) {
  return {inputs[0].contiguous().reshape(size_numbers(node.attrs(), inputs.subspan(1)))};
}

}  // namespace

Variable reshape(const Operand& operand, const Sizes& sizes) {
  return reshape_to(operand.variable(), size_list("reshape", sizes, operand.loc(), true),
                    operand.loc());
}

Variable flatten(const Operand& x) { return reshape(x.named("flatten"), {-1}); }
Variable ravel(const Operand& x) { return reshape(x.named("ravel"), {-1}); }

void register_reshape_ops(OpRegistry& registry) {
  const auto example = [](Shape shape, std::vector<std::int64_t> sizes) {
    return Example{{std::move(shape)}, {{-3, 3}}, {{"sizes", std::move(sizes)}}};
  };
  registry.add({.name = "reshape",
                .doc = "The same elements, row-major, in another shape.",
                .form = OpForm::loops,
                .view = true,
                .infer = infer_reshape,
                .element = reshape_element,
                .grad = reshape_grad,
                .reference = reshape_reference,
                .examples = {example({3, 4}, {4, 3}), example({2, 3, 4}, {-1}),
                             example({6}, {2, -1}), example({1}, {}), example({}, {1, 1})}});
}

}  // namespace croton
