// Reductions: sum, prod, max, min, any, all.
#include "ops/reduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "croton/math.h"
#include "ops/build.h"
#include "ops/reference.h"
#include "ops/registry.h"

namespace croton {

void infer_reduction(Infer& infer, DType dtype, bool needs_elements) {
  infer.expect_inputs(1);
  const std::vector<std::int64_t>& axes = infer.attrs().integers("axes");
  const bool keepdims = infer.attrs().integer("keepdims") != 0;
  std::vector<Dim> shape;
  std::size_t next = 0;
  for (int axis = 0; axis < infer.ndim(0); ++axis) {
    const Dim size = infer.shape(0)[axis];
    if (next == axes.size() || axes[next] != axis) {
      shape.push_back(size);
      continue;
    }
    ++next;
    if (keepdims) shape.emplace_back(1);
    if (!needs_elements) continue;
    if (size.is(0)) infer.fail(fmt::format("nothing to choose from: axis {} has length 0", axis));
    if (!size.is_number()) {
      infer.equal(max(size, Dim(1)), size,
                  fmt::format("nothing to choose from: axis {} has length {{b}}", axis));
    }
  }
  if (next != axes.size()) infer.fail("an axis is out of range");
  infer.out(dtype, std::move(shape));
}

Variable expand_reduced(const Node& node, const Variable& y) {
  const std::vector<std::int64_t>& axes = node.attrs().integers("axes");
  if (node.attrs().integer("keepdims") != 0) return y;
  return insert_axes(y, std::vector<int>(axes.begin(), axes.end()), node.loc);
}

namespace {

void infer_arithmetic(Infer& infer) {
  infer.expect_inputs(1);
  if (is_bool(infer.dtype(0)) || is_narrow(infer.dtype(0))) {
    infer.fail(fmt::format("{} is not a dtype to accumulate in", name_of(infer.dtype(0))));
  }
  infer_reduction(infer, infer.dtype(0), false);
}

void infer_order(Infer& infer) {
  infer.expect_inputs(1);
  if (is_bool(infer.dtype(0)) || is_narrow(infer.dtype(0))) {
    infer.fail(fmt::format("{} is not a dtype to compare in", name_of(infer.dtype(0))));
  }
  infer_reduction(infer, infer.dtype(0), true);
}

void infer_logic(Infer& infer) {
  infer.expect_inputs(1);
  if (!is_bool(infer.dtype(0))) {
    infer.fail(fmt::format("expected bool, got {}", name_of(infer.dtype(0))));
  }
  infer_reduction(infer, DType::boolean, false);
}

std::vector<Variable> sum_grad(const GradArgs& args) {
  const Variable g = expand_reduced(args.node, args.g());
  return {broadcast_like(g, args.in(0), args.node.loc)};
}

/// Every element that equals the result receives the gradient.
std::vector<Variable> order_grad(const GradArgs& args) {
  const Variable chosen = eq(args.in(0), expand_reduced(args.node, args.out()));
  const Variable g = expand_reduced(args.node, args.g());
  return {where(chosen, g, scalar_like(g, 0, args.node.loc))};
}

template <class T>
T fold_start(kernel::Fold fold) {
  switch (fold) {
    case kernel::Fold::prod:
    case kernel::Fold::all:
      return T(1);
    case kernel::Fold::min:
    case kernel::Fold::argmin:
      return std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity()
                                                  : std::numeric_limits<T>::max();
    case kernel::Fold::max:
    case kernel::Fold::argmax:
      return std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                  : std::numeric_limits<T>::lowest();
    case kernel::Fold::sum:
    case kernel::Fold::any:
      break;
  }
  return T(0);
}

template <class T>
T fold_step(kernel::Fold fold, T a, T x) {
  switch (fold) {
    case kernel::Fold::sum:
      return static_cast<T>(a + x);
    case kernel::Fold::prod:
      return static_cast<T>(a * x);
    case kernel::Fold::min:
      return x < a || x != x ? x : a;
    case kernel::Fold::max:
      return a < x || x != x ? x : a;
    case kernel::Fold::any:
      return a || x;
    case kernel::Fold::all:
      return a && x;
    case kernel::Fold::argmin:
    case kernel::Fold::argmax:
      break;
  }
  return a;
}

std::vector<Array> fold_reference(const Node& node, std::span<const Array> inputs) {
  const Array& x = inputs[0];
  const ReducedShape shape = reduced_shape(node.attrs(), x.shape());
  return {reference::with_class(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    const std::vector<T> from = reference::values<T>(x);
    Array to = Array::full(shape.result, fold_start<T>(*node.op->fold), dtype_of<T>);
    T* result = to.mutable_data<T>();
    reference::Odometer position(x.shape());
    for (const T value : from) {
      T& target = result[shape.target(position.at())];
      target = fold_step<T>(*node.op->fold, target, value);
      position.next();
    }
    return to.astype(node.outputs[0].dtype);
  })};
}

std::vector<Example> examples(double low, double high) {
  const auto one = [&](Shape shape, std::vector<std::int64_t> axes, std::int64_t keepdims) {
    return Example{
        {std::move(shape)}, {{low, high}}, {{"axes", std::move(axes)}, {"keepdims", keepdims}}};
  };
  return {one({5}, {0}, 0),       one({3, 4}, {0}, 0),       one({3, 4}, {1}, 1),
          one({3, 4}, {0, 1}, 0), one({2, 3, 4}, {0, 2}, 0), one({2, 3, 4}, {1}, 1),
          one({1, 1}, {0}, 0)};
}

}  // namespace

ReducedShape reduced_shape(const Attrs& attrs, const Shape& shape) {
  ReducedShape reduced;
  for (std::int64_t axis : attrs.integers("axes")) reduced.axis[axis] = true;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (!reduced.axis[axis]) {
      reduced.kept.push_back(shape[axis]);
      reduced.result.push_back(shape[axis]);
    } else if (attrs.integer("keepdims") != 0) {
      reduced.result.push_back(1);
    }
  }
  return reduced;
}

std::int64_t ReducedShape::target(const Shape& at) const {
  Shape position;
  for (std::size_t i = 0; i < at.size(); ++i) {
    if (!axis[i]) position.push_back(at[i]);
  }
  return reference::flat_index(kept, position);
}

void register_reduce_ops(OpRegistry& registry) {
  const auto add_fold = [&](std::string name, std::string doc, kernel::Fold fold,
                            void (*infer)(Infer&), std::vector<Variable> (*grad)(const GradArgs&),
                            double low, double high) {
    registry.add({.name = std::move(name),
                  .doc = std::move(doc),
                  .form = OpForm::loops,
                  .infer = infer,
                  .fold = fold,
                  .grad = grad,
                  .reference = fold_reference,
                  .examples = examples(low, high)});
  };
  add_fold("sum", "Sums over axes.", kernel::Fold::sum, infer_arithmetic, sum_grad, -3, 3);
  add_fold("prod", "Products over axes.", kernel::Fold::prod, infer_arithmetic, prod_gradient, -2,
           2);
  add_fold("max", "The largest elements along axes; NaN if there is one.", kernel::Fold::max,
           infer_order, order_grad, -3, 3);
  add_fold("min", "The smallest elements along axes; NaN if there is one.", kernel::Fold::min,
           infer_order, order_grad, -3, 3);
  add_fold("any", "Whether an element along axes is true.", kernel::Fold::any, infer_logic, nullptr,
           0, 1);
  add_fold("all", "Whether all elements along axes are true.", kernel::Fold::all, infer_logic,
           nullptr, 0, 1);
  register_prod_others_op(registry);
}

}  // namespace croton
