// The linear recurrence along an axis, with which gradients of running folds take linear time.
#include <algorithm>

#include "croton/math.h"
#include "croton/tensor.h"
#include "ops/build.h"
#include "ops/built_at.h"
#include "ops/cumulative_kernel.h"
#include "ops/reference.h"
#include "ops/registry.h"
#include "ops/running.h"
#include "ops/sizes.h"
#include "ops/slice.h"

namespace croton {
namespace {

void infer_recurrence(Infer& infer) {
  infer.expect_inputs(2);
  const DType dtype = infer.dtype(0);
  if (!is_float(dtype) || is_narrow(dtype)) infer.fail("float32 or float64 expected");
  if (infer.dtype(1) != dtype) infer.fail("both operands must have one dtype");
  if (infer.ndim(1) != infer.ndim(0)) infer.fail("one factor an element is expected");
  normalize_axis(infer, infer.attrs().integer("axis"), infer.ndim(0));
  for (int k = 0; k < infer.ndim(0); ++k) {
    infer.equal(infer.shape(0)[k], infer.shape(1)[k], "one factor an element is expected");
  }
  infer.out(dtype, infer.shape(0));
}

/// The gradient runs the other way, with the factors that lead to what follows.
std::vector<Variable> recurrence_grad(const GradArgs& args) {
  const Loc& loc = args.node.loc;
  const Way way = way_of(args.node);
  const Variable slope = recurrence(args.g(), following(args.in(1), way, loc), way.back(), loc);
  const Variable before = delayed(args.out(), way, 0, loc);
  return {slope, mul(Operand(slope, loc), Operand(before, loc))};
}

std::vector<Array> recurrence_reference(const Node& node, std::span<const Array> inputs) {
  std::vector<double> y = reference::values<double>(inputs[0]);
  const std::vector<double> factors = reference::values<double>(inputs[1]);
  along_lines(inputs[0].shape(), way_of(node), [&](std::size_t e, std::int64_t before) {
    if (before >= 0) y[e] += factors[e] * y[static_cast<std::size_t>(before)];
  });
  return {Array::from<double>(y, inputs[0].shape()).astype(inputs[0].dtype())};
}

Variable joined(const Variable& x, const Variable& end, Way way, bool in_front, const Slice& part,
                const Loc& loc) {
  return built_at(loc, [&] {
    const bool first = in_front != way.reverse;
    const Variable all = first ? concatenate({end, x}, way.axis) : concatenate({x, end}, way.axis);
    return slice_axis(all, way.axis, part, loc);
  });
}

}  // namespace

Way way_of(const Node& node) {
  return {static_cast<int>(node.attrs().integer("axis")), node.attrs().integer("reverse") != 0};
}

Variable recurrence(const Variable& x, const Variable& factor, Way way, const Loc& loc) {
  return apply("recurrence", {x, factor}, way.attrs(), loc);
}

Variable delayed(const Variable& x, Way way, double start, const Loc& loc) {
  std::vector<Size> sizes = sizes_of(x, loc);
  sizes[static_cast<std::size_t>(way.axis)] = 1;
  const Variable first = broadcast_sizes(scalar_like(x, start, loc), sizes, loc);
  return joined(x, first, way, true, way.reverse ? Slice(1, none) : Slice(none, -1), loc);
}

Variable following(const Variable& x, Way way, const Loc& loc) {
  const Variable last =
      slice_axis(x, way.axis, way.reverse ? Slice(none, 1) : Slice(-1, none), loc);
  const Variable rest =
      slice_axis(x, way.axis, way.reverse ? Slice(none, -1) : Slice(1, none), loc);
  return joined(rest, last, way, false, Slice(none, none), loc);
}

void register_recurrence_ops(OpRegistry& registry) {
  const auto example = [](Shape shape, std::int64_t axis, std::int64_t reverse) {
    return Example{{shape, shape}, {{-2, 2}, {-1.2, 1.2}}, {{"axis", axis}, {"reverse", reverse}}};
  };
  registry.add(
      {.name = "recurrence",
       .doc = "y[k] = factor[k] * y[k - 1] + x[k] along an axis; y[0] = x[0].",
       .form = OpForm::loops,
       .infer = infer_recurrence,
       .kernel = lower_recurrence,
       .grad = recurrence_grad,
       .reference = recurrence_reference,
       .examples = {example({5}, 0, 0), example({3, 4}, 0, 1), example({3, 4}, 1, 1),
                    example({2, 3, 4}, 1, 0), example({2, 70}, 1, 0), example({1, 1}, 0, 0)}});
}

}  // namespace croton
