// Orders of axes.
#include <fmt/format.h>

#include <algorithm>

#include "croton/tensor.h"
#include "ops/axes.h"
#include "ops/build.h"
#include "ops/registry.h"

namespace croton {
namespace {

void infer_dimshuffle(Infer& infer) {
  infer.expect_inputs(1);
  std::vector<bool> used(static_cast<std::size_t>(infer.ndim(0)));
  std::vector<Dim> shape;
  for (std::int64_t axis : infer.attrs().integers("order")) {
    if (axis == -1) {
      shape.emplace_back(1);
      continue;
    }
    if (axis < 0 || axis >= infer.ndim(0)) {
      infer.fail(fmt::format("axis {} is out of range: expected 0 to {}, or -1 for a new axis",
                             axis, infer.ndim(0) - 1));
    }
    if (used[axis]) infer.fail(fmt::format("axis {} is given twice", axis));
    used[axis] = true;
    shape.push_back(infer.shape(0)[axis]);
  }
  for (int axis = 0; axis < infer.ndim(0); ++axis) {
    if (used[axis] || infer.shape(0)[axis].is(1)) continue;
    infer.fail(fmt::format("axis {} is left out, which needs a size known to be 1: got {}", axis,
                           infer.shape(0)[axis].is_number()
                               ? fmt::format("{}", infer.shape(0)[axis].number())
                               : "one that is not known when the graph is built"));
  }
  infer.out(infer.dtype(0), std::move(shape));
}

kernel::Expr dimshuffle_element(Lowering& low, std::span<const Position> at) {
  const std::vector<std::int64_t>& order = low.node.attrs().integers("order");
  std::vector<Position> from(low.in[0].shape.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i] >= 0) from[order[i]] = at[i];
  }
  return low.read(0, std::move(from));
}

std::vector<Variable> dimshuffle_grad(const GradArgs& args) {
  const std::vector<std::int64_t>& order = args.node.attrs().integers("order");
  std::vector<int> back(static_cast<std::size_t>(args.in(0).ndim()), -1);
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i] >= 0) back[order[i]] = static_cast<int>(i);
  }
  return {dimshuffle(args.g(), back, args.node.loc)};
}

std::vector<Array> dimshuffle_reference(const Node& node, std::span<const Array> inputs) {
  const Array& x = inputs[0];
  Shape order;
  Shape result;
  for (std::int64_t axis : node.attrs().integers("order")) {
    if (axis >= 0) order.push_back(axis);
    result.push_back(axis < 0 ? 1 : x.shape()[axis]);
  }
  // Axes that are left out go to the end, where they change nothing.
  for (std::int64_t axis = 0; axis < static_cast<std::int64_t>(x.ndim()); ++axis) {
    if (std::find(order.begin(), order.end(), axis) == order.end()) order.push_back(axis);
  }
  return {x.transpose(order).contiguous().reshape(result)};
}

std::vector<int> identity(int rank) {
  std::vector<int> order;
  for (int axis = 0; axis < rank; ++axis) order.push_back(axis);
  return order;
}

}  // namespace

Variable dimshuffle(const Operand& x, const std::vector<int>& order) {
  return dimshuffle(x.variable(), order, x.loc());
}

Variable transpose(const Operand& operand, const std::vector<int>& order) {
  const Variable x = operand.variable();
  const Loc loc = operand.loc().named("transpose");
  std::vector<int> axes;
  if (order.empty()) {
    axes = identity(x.ndim());
    std::reverse(axes.begin(), axes.end());
  } else {
    for (int axis : order) {
      axes.push_back(checked_axis("transpose", axis, x.ndim(), loc));
    }
    if (static_cast<int>(axes.size()) != x.ndim()) {
      graph_error("transpose",
                  fmt::format("an order of {} axes for an operand with {}", axes.size(), x.ndim()),
                  loc);
    }
  }
  return dimshuffle(x, axes, loc);
}

Variable swapaxes(const Operand& operand, int a, int b) {
  const Variable x = operand.variable();
  const Loc loc = operand.loc().named("swapaxes");
  std::vector<int> order = identity(x.ndim());
  std::swap(order[checked_axis("swapaxes", a, x.ndim(), loc)],
            order[checked_axis("swapaxes", b, x.ndim(), loc)]);
  return dimshuffle(x, order, loc);
}

Variable moveaxis(const Operand& operand, int source, int destination) {
  const Variable x = operand.variable();
  const Loc loc = operand.loc().named("moveaxis");
  const int from = checked_axis("moveaxis", source, x.ndim(), loc);
  const int to = checked_axis("moveaxis", destination, x.ndim(), loc);
  std::vector<int> order = identity(x.ndim());
  order.erase(order.begin() + from);
  order.insert(order.begin() + to, from);
  return dimshuffle(x, order, loc);
}

Variable expand_dims(const Operand& operand, const Axis& axis) {
  const Variable x = operand.variable();
  const Loc loc = operand.loc().named("expand_dims");
  if (!axis.axes) graph_error("expand_dims", "an axis is expected", loc);
  const int rank = x.ndim() + static_cast<int>(axis.axes->size());
  return insert_axes(x, checked_axes("expand_dims", axis, rank, loc), loc);
}

Variable squeeze(const Operand& operand, const Axis& axis) {
  const Variable x = operand.variable();
  const Loc loc = operand.loc().named("squeeze");
  std::vector<bool> drop(static_cast<std::size_t>(x.ndim()));
  for (int a : checked_axes("squeeze", axis, x.ndim(), loc)) {
    const std::int64_t size = x.static_shape()[a];
    if (axis.axes && size != 1) {
      graph_error("squeeze",
                  fmt::format("axis {} of {} does not have a size known to be 1", a,
                              x.static_shape().to_string()),
                  loc);
    }
    drop[a] = size == 1;
  }
  std::vector<int> order;
  for (int a = 0; a < x.ndim(); ++a) {
    if (!drop[a]) order.push_back(a);
  }
  return dimshuffle(x, order, loc);
}

void register_dimshuffle_ops(OpRegistry& registry) {
  const auto example = [](Shape shape, std::vector<std::int64_t> order) {
    return Example{{std::move(shape)}, {{-3, 3}}, {{"order", std::move(order)}}};
  };
  registry.add(
      {.name = "dimshuffle",
       .doc = "Axes in another order; -1 inserts one of size 1, sizes of 1 may be dropped.",
       .form = OpForm::loops,
       .infer = infer_dimshuffle,
       .element = dimshuffle_element,
       .grad = dimshuffle_grad,
       .reference = dimshuffle_reference,
       .examples = {example({3, 4}, {1, 0}), example({3}, {-1, 0}), example({2, 1, 3}, {2, -1, 0}),
                    example({}, {-1})}});
}

}  // namespace croton
