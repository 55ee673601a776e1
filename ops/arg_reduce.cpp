// argmax and argmin.
#include <fmt/format.h>

#include "croton/math.h"
#include "croton/statistics.h"
#include "croton/tensor.h"
#include "ops/axes.h"
#include "ops/build.h"
#include "ops/reduce.h"
#include "ops/reference.h"
#include "ops/registry.h"
#include "ops/slice.h"

namespace croton {
namespace {

void infer_argument(Infer& infer) {
  infer.expect_inputs(1);
  const DType dtype = infer.dtype(0);
  if (is_bool(dtype) || dtype == DType::float16 || dtype == DType::bfloat16) {
    infer.fail(fmt::format("{} is not a dtype to compare in", name_of(dtype)));
  }
  if (infer.attrs().integers("axes").size() != 1) infer.fail("one axis expected");
  infer_reduction(infer, DType::int64, true);
}

std::vector<Array> reference_argument(const Node& node, std::span<const Array> inputs) {
  const Array& x = inputs[0];
  const bool largest = *node.op->fold == kernel::Fold::argmax;
  const auto axis = static_cast<std::size_t>(node.attrs().integers("axes")[0]);
  const ReducedShape shape = reduced_shape(node.attrs(), x.shape());
  return {reference::with_class(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    const std::vector<T> from = reference::values<T>(x);
    Array to = Array::zeros(shape.result, DType::int64);
    std::int64_t* result = to.mutable_data<std::int64_t>();
    std::vector<T> best(static_cast<std::size_t>(to.size()));
    reference::Odometer position(x.shape());
    for (const T value : from) {
      const auto k = static_cast<std::size_t>(shape.target(position.at()));
      const T old = best[k];
      const bool better = largest ? old < value : value < old;
      if (position.at()[axis] == 0 || (old == old && (better || value != value))) {
        best[k] = value;
        result[k] = position.at()[axis];
      }
      position.next();
    }
    return to;
  })};
}

/// x with an axis the other way round, so that its last element is its first.
Variable flipped(const Variable& x, int axis, const Loc& loc) {
  return slice_axis(x, axis, Slice(none, none, -1), loc);
}

Variable argument(std::string_view op, const Operand& operand, const Axis& axis,
                  const ArgOptions& options) {
  const Loc loc = operand.loc().named(op);
  Variable x = operand.variable();
  const int rank = x.ndim();
  const DType dtype = x.dtype();
  if (is_bool(dtype)) x = cast_to(x, DType::uint8, loc);
  if (dtype == DType::float16 || dtype == DType::bfloat16) x = cast_to(x, DType::float32, loc);
  std::vector<int> axes = checked_axes(op, axis, rank, loc);
  if (!axis.axes && rank != 1) {
    x = croton::flatten(Operand(x, loc));
    axes = {0};
  }
  if (axes.size() != 1) {
    graph_error(op, fmt::format("one axis expected, or none for all: got {} axes", axes.size()),
                loc);
  }
  const bool keep_here = options.keepdims && (axis.axes || rank == 1);
  if (options.last) x = flipped(x, axes[0], loc);
  Variable y = apply(
      op, {x},
      {{"axes", std::vector<std::int64_t>{axes[0]}}, {"keepdims", std::int64_t{keep_here}}}, loc);
  if (options.last) {
    const Variable count = size_of_axis(x, axes[0], loc);
    const Variable end = sub(Operand(count, loc), scalar_like(count, 1, loc));
    y = sub(Operand(end, loc), Operand(y, loc));
  }
  if (options.keepdims && !keep_here) y = dimshuffle(y, std::vector<int>(rank, -1), loc);
  return y;
}

std::vector<Example> examples() {
  const auto one = [](Shape shape, std::int64_t axis, std::int64_t keepdims) {
    return Example{{std::move(shape)},
                   {{-3, 3}},
                   {{"axes", std::vector<std::int64_t>{axis}}, {"keepdims", keepdims}}};
  };
  return {one({5}, 0, 0), one({3, 4}, 0, 0), one({3, 4}, 1, 1), one({2, 3, 4}, 1, 0)};
}

}  // namespace

Variable argmax(const Operand& x, const Axis& axis, const ArgOptions& options) {
  return argument("argmax", x, axis, options);
}

Variable argmin(const Operand& x, const Axis& axis, const ArgOptions& options) {
  return argument("argmin", x, axis, options);
}

Variable argmax(const Operand& x, const Axis& axis, bool keepdims) {
  return argmax(x, axis, ArgOptions{.keepdims = keepdims});
}

Variable argmin(const Operand& x, const Axis& axis, bool keepdims) {
  return argmin(x, axis, ArgOptions{.keepdims = keepdims});
}

std::pair<Variable, Variable> max_and_argmax(const Operand& operand, const Axis& axis,
                                             const ArgOptions& options) {
  const Operand x = operand.named("max_and_argmax");
  const Variable where_it_is = argmax(x, axis, options);
  return {max(x, axis, {.keepdims = options.keepdims}), where_it_is};
}

void register_arg_reduce_ops(OpRegistry& registry) {
  const auto add = [&](std::string name, std::string doc, kernel::Fold fold) {
    registry.add({.name = std::move(name),
                  .doc = std::move(doc),
                  .form = OpForm::loops,
                  .infer = infer_argument,
                  .fold = fold,
                  .reference = reference_argument,
                  .examples = examples()});
  };
  add("argmax", "Where the largest element along an axis is; the first of equals.",
      kernel::Fold::argmax);
  add("argmin", "Where the smallest element along an axis is; the first of equals.",
      kernel::Fold::argmin);
}

}  // namespace croton
