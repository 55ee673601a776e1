// Of each place the product of the others: the gradient of prod.
#include <algorithm>

#include "croton/math.h"
#include "croton/tensor.h"
#include "ops/build.h"
#include "ops/reduce.h"
#include "ops/reference.h"

namespace croton {
namespace {

std::vector<int> axes_of(const Node& node) {
  const std::vector<std::int64_t>& list = node.attrs().integers("axes");
  return {list.begin(), list.end()};
}

/// Without a zero in the group prod / x; with one the product of the others, at the zero only; with
/// more nothing.
std::vector<Variable> expand_others(const Node& node) {
  const Loc& loc = node.loc;
  const Variable& x = node.inputs[0];
  const Variable is_zero = eq(x, scalar_like(x, 0, loc));
  const Variable zeros = sum_axes(cast_to(is_zero, DType::int64, loc), axes_of(node), true, loc);
  const Variable others = where(is_zero, scalar_like(x, 1, loc), x);
  const Variable product = apply("prod", {others}, node.attrs(), loc);
  const Variable nothing = scalar_like(x, 0, loc);
  const Variable at_zero = where(eq(zeros, scalar_like(zeros, 1, loc)), product, nothing);
  const Variable elsewhere =
      where(eq(zeros, scalar_like(zeros, 0, loc)), true_divide(product, others), nothing);
  return {where(is_zero, at_zero, elsewhere)};
}

/// An operand with the reduced axes joined into a last one, and back.
struct Joined {
  const Loc& loc;
  std::vector<int> order;  ///< kept axes, then reduced ones
  int count = 0;

  Joined(const Node& node, const Loc& loc) : loc(loc) {
    const std::vector<int> axes = axes_of(node);
    count = static_cast<int>(axes.size());
    for (int axis = 0; axis < node.inputs[0].ndim(); ++axis) {
      if (std::find(axes.begin(), axes.end(), axis) == axes.end()) order.push_back(axis);
    }
    order.insert(order.end(), axes.begin(), axes.end());
  }

  Variable operator()(const Variable& x) const {
    const Variable moved = dimshuffle(x, order, loc);
    return merge_axes(moved, moved.ndim() - count, count, loc);
  }

  Variable back(const Variable& y, const Variable& like) const {
    const Variable moved = dimshuffle(like, order, loc);
    std::vector<int> inverse(order.size());
    for (std::size_t k = 0; k < order.size(); ++k) inverse[order[k]] = static_cast<int>(k);
    const Variable apart = count == 1 ? y : reshape_sizes(y, sizes_of(moved, loc), loc);
    return dimshuffle(apart, inverse, loc);
  }
};

// The sum over i != j of g_i times the product of all but i and j. In a matrix whose row i has a 1
// in place of x_i that is of the same kind, and so exact at zeros to any order; quotients are not.
std::vector<Variable> others_gradient(const GradArgs& args) {
  const Loc& loc = args.node.loc;
  const Joined joined(args.node, loc);
  const Variable x = joined(args.in(0));
  const int last = x.ndim() - 1;
  const Variable diagonal = eye(sizes_of(x, loc)[last], DType::boolean, loc);
  const Variable rows = where(diagonal, scalar_like(x, 1, loc), insert_axes(x, {last}, loc));
  const Variable left =
      apply("prod_others", {rows},
            {{"axes", std::vector<std::int64_t>{last + 1}}, {"keepdims", std::int64_t{1}}}, loc);
  const Variable terms = mul(insert_axes(joined(args.g()), {last + 1}, loc), left);
  const Variable y = sum_axes(where(diagonal, scalar_like(x, 0, loc), terms), {last}, false, loc);
  return {joined.back(y, args.in(0))};
}

void infer_others(Infer& infer) {
  infer.expect_inputs(1);
  for (const std::int64_t axis : infer.attrs().integers("axes")) {
    normalize_axis(infer, axis, infer.ndim(0));
  }
  if (!is_float(infer.dtype(0)) || size_of(infer.dtype(0)) < 4) {
    infer.fail("float32 or float64 expected");
  }
  infer.out(infer.dtype(0), infer.shape(0));
}

std::vector<Array> others_reference(const Node& node, std::span<const Array> inputs) {
  const Array& x = inputs[0];
  const ReducedShape shape = reduced_shape(node.attrs(), x.shape());
  const std::vector<double> from = reference::values<double>(x);
  std::vector<std::int64_t> group;
  reference::Odometer position(x.shape());
  for (std::size_t i = 0; i < from.size(); ++i, position.next()) {
    group.push_back(shape.target(position.at()));
  }
  Array result = Array::ones(x.shape(), DType::float64);
  double* to = result.mutable_data<double>();
  for (std::size_t i = 0; i < from.size(); ++i) {
    for (std::size_t k = 0; k < from.size(); ++k) {
      if (k != i && group[k] == group[i]) to[i] *= from[k];
    }
  }
  return {result.astype(x.dtype())};
}

}  // namespace

std::vector<Variable> prod_gradient(const GradArgs& args) {
  const Loc& loc = args.node.loc;
  Attrs attrs{{"axes", args.node.attrs().integers("axes")}, {"keepdims", std::int64_t{1}}};
  const Variable others = apply("prod_others", {args.in(0)}, std::move(attrs), loc);
  return {mul(expand_reduced(args.node, args.g()), others)};
}

void register_prod_others_op(OpRegistry& registry) {
  const auto example = [](Shape shape, std::vector<std::int64_t> axes) {
    return Example{
        {std::move(shape)}, {{0.5, 2}}, {{"axes", std::move(axes)}, {"keepdims", std::int64_t{1}}}};
  };
  registry.add({.name = "prod_others",
                .doc = "For each place the product of the other elements along axes.",
                .form = OpForm::loops,
                .cost = 8,
                .infer = infer_others,
                .expand = expand_others,
                .grad = others_gradient,
                .reference = others_reference,
                .examples = {example({5}, {0}), example({3, 4}, {0}), example({3, 4}, {1}),
                             example({2, 3, 4}, {0, 2}), example({1}, {0})}});
}

}  // namespace croton
