// Canonical forms of shapes, repetition, reductions and moves.
#include <algorithm>

#include "compiler/rewrite/match.h"
#include "compiler/rewrite/rule.h"
#include "ops/build.h"
#include "ops/sizes.h"
#include "ops/slice.h"

namespace croton {
namespace {

using Context = RewriteContext;
using Integers = std::vector<std::int64_t>;

const Integers& order_of(const Variable& v) { return v.node()->attrs().integers("order"); }

Variable dimshuffled(const Variable& x, const Integers& order) {
  return dimshuffle(x, std::vector<int>(order.begin(), order.end()), Loc::current());
}

bool contains(const Integers& list, std::int64_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// Orders of axes and shapes.

/// dimshuffle(x, the order it has) -> x
Variable dimshuffle_same(const Node& node, Context&) {
  const Integers& order = node.attrs().integers("order");
  if (static_cast<int>(order.size()) != node.inputs[0].ndim()) return {};
  for (std::size_t axis = 0; axis < order.size(); ++axis) {
    if (order[axis] != static_cast<std::int64_t>(axis)) return {};
  }
  return node.inputs[0];
}

/// dimshuffle(dimshuffle(x)) -> dimshuffle(x)
Variable dimshuffle_dimshuffle(const Node& node, Context&) {
  const Variable& inner = node.inputs[0];
  if (!is_op(inner, "dimshuffle")) return {};
  Integers order;
  for (const std::int64_t axis : node.attrs().integers("order")) {
    order.push_back(axis < 0 ? -1 : order_of(inner)[axis]);
  }
  return dimshuffled(in(inner), order);
}

/// The shape of the node's result as a reshape of `x`: by numbers where all are known, else as the
/// node has it.
Variable reshaped(const Variable& x, const Node& node) {
  const Shape& shape = node.outputs[0].shape;
  if (shape.is_static()) {
    const Integers sizes(shape.begin(), shape.end());
    return make("reshape", {x}, {{"sizes", sizes}});
  }
  std::vector<Variable> inputs = node.inputs;
  inputs[0] = x;
  return make("reshape", std::move(inputs), node.attrs());
}

/// Whether numbers of elements are known to agree, so that dropping a reshape drops no check.
bool is_checked(const Node& reshape) {
  return reshape.inputs[0].static_shape().is_static() && reshape.outputs[0].shape.is_static();
}

/// reshape(reshape(x)) -> reshape(x)
Variable reshape_reshape(const Node& node, Context&) {
  const Variable& inner = node.inputs[0];
  if (!is_op(inner, "reshape")) return {};
  const bool all_known = node.outputs[0].shape.is_static() && inner.static_shape().is_static();
  return all_known || is_checked(*inner.node()) ? reshaped(in(inner), node) : Variable();
}

/// reshape(x, its shape) -> x
Variable reshape_same(const Node& node, Context& c) { return c.accept(node.inputs[0], node); }

/// Whether the axes other than those of size 1 are the same; gives the order that makes `to` of x.
bool same_but_ones(const Variable& x, const Variable& to, Context& c, Integers& order) {
  int from = 0;
  const auto skip = [&] {
    while (from < x.ndim() && x.static_shape()[from] == 1) ++from;
  };
  for (int axis = 0; axis < to.ndim(); ++axis) {
    if (to.static_shape()[axis] == 1) {
      order.push_back(-1);
      continue;
    }
    skip();
    if (from == x.ndim()) return false;
    if (x.static_shape()[from] != to.static_shape()[axis]) return false;
    if (!c.sizes().implied(x, from, to, axis)) return false;
    order.push_back(from++);
  }
  skip();
  return from == x.ndim();
}

/// With one axis on either side whose size is not known, those have the same size.
bool same_but_ones_and_one(const Variable& x, const Variable& to, Integers& order) {
  int unknown = -1;
  for (int axis = 0; axis < x.ndim(); ++axis) {
    if (x.static_shape()[axis] == 1) continue;
    if (x.static_shape()[axis] != kAnyDim || unknown >= 0) return false;
    unknown = axis;
  }
  int found = 0;
  for (int axis = 0; axis < to.ndim(); ++axis) {
    const std::int64_t size = to.static_shape()[axis];
    if (size != 1 && size != kAnyDim) return false;
    found += size == kAnyDim;
    order.push_back(size == 1 ? -1 : unknown);
  }
  return unknown >= 0 && found == 1;
}

/// reshape(x) that only adds or drops axes of size 1 -> dimshuffle(x)
Variable reshape_ones(const Node& node, Context& c) {
  const Variable& x = node.inputs[0];
  Integers order;
  if (same_but_ones(x, node.out(), c, order)) return dimshuffled(x, order);
  order.clear();
  // -1 says nothing of its size but what the operand says; a symbol would be checked.
  const bool open = node.inputs.size() == 1;
  if (open && same_but_ones_and_one(x, node.out(), order)) return dimshuffled(x, order);
  return {};
}

/// specify_shape(x, sizes known already) -> x
Variable specify_same(const Node& node, Context&) {
  const Variable& x = node.inputs[0];
  return x.static_shape() == node.outputs[0].shape ? x : Variable();
}

// Repetition.

/// broadcast(x, its shape) -> x
Variable broadcast_same(const Node& node, Context& c) { return c.accept(node.inputs[0], node); }

/// The node's sizes, for another operand.
Variable broadcast_of(const Variable& x, const Node& node) {
  std::vector<Variable> inputs = node.inputs;
  inputs[0] = x;
  return make("broadcast", std::move(inputs), node.attrs());
}

/// broadcast(broadcast(x)) -> broadcast(x)
Variable broadcast_broadcast(const Node& node, Context& c) {
  const Variable& inner = node.inputs[0];
  return is_op(inner, "broadcast") ? c.accept(broadcast_of(in(inner), node), node) : Variable();
}

/// op(broadcast(a), b) -> op(a, b), where b has the shape
Variable broadcast_operand(const Node& node, Context& c) {
  if (node.op->form != OpForm::scalar || node.inputs.size() < 2) return {};
  for (std::size_t k = 0; k < node.inputs.size(); ++k) {
    if (!is_op(node.inputs[k], "broadcast")) continue;
    std::vector<Variable> inputs = node.inputs;
    inputs[k] = in(node.inputs[k]);
    const Variable smaller = with_inputs(node, std::move(inputs));
    if (c.fits(smaller, node)) return smaller;
  }
  return {};
}

bool has_one_element(const Variable& v) {
  const Shape& shape = v.static_shape();
  return std::all_of(shape.begin(), shape.end(), [](std::int64_t size) { return size == 1; });
}

/// A constant, or axes of size 1 around a scalar, as that scalar; undefined when v is neither.
Variable scalar_inside(const Variable& v) {
  if (v.ndim() == 0 || !has_one_element(v)) return {};
  if (is_op(v, "dimshuffle") && in(v).ndim() == 0) return in(v);
  return is_constant_node(v) ? dimshuffled(v, {}) : Variable();
}

/// op(dimshuffle(scalar), x) -> op(scalar, x); the same of constants of one element
Variable scalar_operand(const Node& node, Context& c) {
  if (node.op->form != OpForm::scalar || node.inputs.size() < 2) return {};
  for (std::size_t k = 0; k < node.inputs.size(); ++k) {
    const Variable scalar = scalar_inside(node.inputs[k]);
    if (!scalar.defined()) continue;
    std::vector<Variable> inputs = node.inputs;
    inputs[k] = scalar;
    const Variable smaller = with_inputs(node, std::move(inputs));
    if (c.fits(smaller, node)) return smaller;
  }
  return {};
}

/// broadcast(dimshuffle(scalar)) -> broadcast(scalar); the same of constants of one element
Variable broadcast_scalar(const Node& node, Context&) {
  const Variable scalar = scalar_inside(node.inputs[0]);
  return scalar.defined() ? broadcast_of(scalar, node) : Variable();
}

/// op(broadcast(a), scalar) -> broadcast(op(a, scalar)), of a scalar a
Variable broadcast_result(const Node& node, Context& c) {
  if (node.op->form != OpForm::scalar) return {};
  const Node* wide = nullptr;
  std::vector<Variable> inputs;
  for (const Variable& input : node.inputs) {
    inputs.push_back(input);
    if (input.ndim() == 0) continue;
    if (wide != nullptr || !is_op(input, "broadcast") || in(input).ndim() != 0) return {};
    wide = input.node();
    inputs.back() = in(input);
  }
  return wide != nullptr ? c.accept(broadcast_of(with_inputs(node, inputs), *wide), node)
                         : Variable();
}

/// The sizes that a broadcast gives.
std::vector<Size> sizes_given(const Variable& broadcast) {
  std::vector<Size> sizes;
  int next = 1;
  for (const std::int64_t size : broadcast.node()->attrs().integers("sizes")) {
    sizes.push_back(size == kSymbolSize ? Size(in(broadcast, next++)) : Size(size));
  }
  return sizes;
}

/// dimshuffle(broadcast(scalar)) -> broadcast(scalar)
Variable dimshuffle_broadcast(const Node& node, Context& c) {
  const Variable& inner = node.inputs[0];
  if (!is_op(inner, "broadcast") || in(inner).ndim() != 0) return {};
  const std::vector<Size> sizes = sizes_given(inner);
  std::vector<Size> shuffled;
  for (const std::int64_t axis : node.attrs().integers("order")) {
    shuffled.push_back(axis < 0 ? Size(1) : sizes[axis]);
  }
  return c.accept(broadcast_sizes(in(inner), shuffled, node.loc), node);
}

/// reshape(broadcast(scalar)) -> broadcast(scalar), to a known shape
Variable reshape_broadcast(const Node& node, Context& c) {
  const Variable& inner = node.inputs[0];
  const bool found = is_op(inner, "broadcast") && in(inner).ndim() == 0 && is_checked(node);
  return found ? c.shaped(in(inner), node) : Variable();
}

// Reductions.

/// sum(x) over axes of size 1, or none -> x without them; the same of the other reductions
Variable reduce_ones(const Node& node, Context&) {
  const Variable& x = node.inputs[0];
  const Integers& axes = axes_of(node);
  for (const std::int64_t axis : axes) {
    if (x.static_shape()[axis] != 1) return {};
  }
  if (keeps_dims(node)) return x;
  Integers order;
  for (int axis = 0; axis < x.ndim(); ++axis) {
    if (!contains(axes, axis)) order.push_back(axis);
  }
  return dimshuffled(x, order);
}

/// sum(sum(x)) -> sum(x); the same of max, min, any, all
Variable reduce_reduce(const Node& node, Context& c) {
  const Variable& inner = node.inputs[0];
  if (!is_op(inner, node.op->name) || !c.used_once(inner)) return {};
  const Integers& first = axes_of(*inner.node());
  const bool kept = keeps_dims(*inner.node());
  Integers axes = first;
  if (kept) {
    // An axis of the inner one that the outer one leaves would stay with size 1.
    for (const std::int64_t axis : first) {
      if (!keeps_dims(node) && !contains(axes_of(node), axis)) return {};
    }
    for (const std::int64_t axis : axes_of(node)) {
      if (!contains(axes, axis)) axes.push_back(axis);
    }
  } else {
    if (keeps_dims(node)) return {};
    Integers left;  // axes that the inner one keeps
    for (int axis = 0; axis < in(inner).ndim(); ++axis) {
      if (!contains(first, axis)) left.push_back(axis);
    }
    for (const std::int64_t axis : axes_of(node)) axes.push_back(left[axis]);
  }
  std::sort(axes.begin(), axes.end());
  return make(node.op->name, {in(inner)},
              {{"axes", axes}, {"keepdims", std::int64_t{keeps_dims(node)}}});
}

Variable reduced(const Node& old, std::int64_t keepdims) {
  Attrs attrs = old.attrs();
  attrs.set("keepdims", keepdims);
  return make(old.op->name, old.inputs, std::move(attrs));
}

/// dimshuffle(sum(x, keepdims)) -> dimshuffle(sum(x)); dimshuffle(sum(x)) that puts the axes back
/// -> sum(x, keepdims); the same of the other reductions
Variable dimshuffle_reduce(const Node& node, Context& c) {
  const Variable& inner = node.inputs[0];
  if (!inner.node()->op->fold || !c.used_once(inner)) return {};
  const Integers& axes = axes_of(*inner.node());
  const Integers& order = node.attrs().integers("order");
  const int rank = in(inner).ndim();
  if (!keeps_dims(*inner.node())) {
    Integers back;
    for (int axis = 0, next = 0; axis < rank; ++axis) {
      back.push_back(contains(axes, axis) ? -1 : next++);
    }
    return order == back ? reduced(*inner.node(), 1) : Variable();
  }
  Integers place(static_cast<std::size_t>(rank), -1);
  for (int axis = 0, next = 0; axis < rank; ++axis) {
    if (!contains(axes, axis)) place[axis] = next++;
  }
  Integers mapped;
  for (const std::int64_t axis : order) mapped.push_back(axis < 0 ? -1 : place[axis]);
  return dimshuffled(reduced(*inner.node(), 0), mapped);
}

/// sum(-x) -> -sum(x)
Variable sum_neg(const Node& node, Context& c) {
  const Variable& x = node.inputs[0];
  if (!is_op(x, "neg") || !c.used_once(x)) return {};
  return make("neg", {make("sum", {in(x)}, node.attrs())});
}

/// The product of sizes as a 0-d `dtype`; undefined when one follows from nothing but `wide`.
Variable number_of_elements(const Variable& wide, const Integers& axes, DType dtype, Context& c) {
  std::int64_t known = 1;
  Variable count;
  for (const std::int64_t axis : axes) {
    const std::optional<SizeSource> size = c.sizes().only(wide, static_cast<int>(axis));
    if (!size || size->node == wide.node()) return {};
    if (size->number != kAnyDim) {
      known *= size->number;
      continue;
    }
    const Variable next = c.size_value(*size);
    count = count.defined() ? make("mul", {count, next}) : next;
  }
  const Loc loc = Loc::current();
  const Variable number = is_float(dtype) ? make_scalar(dtype, static_cast<double>(known), loc)
                                          : make_scalar(dtype, known, loc);
  return count.defined() ? make("mul", {cast_to(count, dtype, loc), number}) : number;
}

/// sum(broadcast(x)) over axes that were stretched -> x * their number
Variable sum_broadcast(const Node& node, Context& c) {
  const Variable& wide = node.inputs[0];
  // A narrow integer might not hold the number.
  if (!is_op(wide, "broadcast") || (!is_float(wide.dtype()) && size_of(wide.dtype()) < 8))
    return {};
  const Variable& x = in(wide);
  const Integers& axes = axes_of(node);
  const std::vector<Size> sizes = sizes_given(wide);
  const int extra = wide.ndim() - x.ndim();
  Integers order;
  std::vector<Size> left;
  for (int axis = 0; axis < wide.ndim(); ++axis) {
    const bool from_one = axis < extra || x.static_shape()[axis - extra] == 1;
    if (!contains(axes, axis)) {
      order.push_back(axis < extra ? -1 : axis - extra);
      left.push_back(sizes[axis]);
    } else if (!from_one) {
      return {};
    } else if (keeps_dims(node)) {
      order.push_back(-1);
      left.emplace_back(1);
    }
  }
  const Variable number = number_of_elements(wide, axes, x.dtype(), c);
  if (!number.defined()) return {};
  const Variable product = make("mul", {dimshuffled(x, order), number});
  return c.accept(broadcast_sizes(product, left, node.loc), node);
}

// Sizes as values.

/// size_of(op(x)) -> size_of(x), or a number
Variable size_of_source(const Node& node, Context& c) {
  const int axis = static_cast<int>(node.attrs().integer("axis"));
  const Variable& x = node.inputs[0];
  const SizeSource source = c.sizes().one_of(x, axis);
  const bool same = source.node == x.node() && source.axis == axis;
  return same ? Variable() : c.size_value(source);
}

/// maximum(size_of(x), 0) -> size_of(x)
Variable size_of_positive(const Node& node, Context&) {
  const Variable size = beside(node, 0);
  return size.defined() && is_op(size, "size_of") ? size : Variable();
}

/// shape_of(x) -> constant, where all sizes are known
Variable shape_of_known(const Node& node, Context&) {
  const Shape& shape = node.inputs[0].static_shape();
  if (!shape.is_static()) return {};
  const std::span<const std::int64_t> sizes(shape.begin(), shape.size());
  return make_constant(Array::from<std::int64_t>(sizes), node.loc);
}

/// take(shape_of(x), k) -> size_of(x, k); the same of a slice of one entry
Variable entry_of_shape(const Node& node, Context&) {
  const Variable& shape = node.inputs[0];
  if (!is_op(shape, "shape_of")) return {};
  const bool slice = is_op(node.out(), "slice");
  std::int64_t axis = 0;
  if (slice) {
    const bool entry =
        node.attrs().integers("kind")[0] == static_cast<std::int64_t>(SliceKind::entry);
    if (!entry) return {};
    axis = node.attrs().integers("start")[0];
  } else {
    const Array* index = node.inputs.size() == 2 ? constant_value(node.inputs[1]) : nullptr;
    if (index == nullptr || index->ndim() != 0) return {};
    axis = index->astype(DType::int64).item<std::int64_t>();
  }
  const int rank = in(shape).ndim();
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) return {};
  const Variable size = size_of_axis(in(shape), static_cast<int>(axis), node.loc);
  return slice ? insert_axes(size, {0}, node.loc) : size;
}

// Slices, joins, moves.

/// x[:, 0:, ::1] -> x
Variable slice_all(const Node& node, Context&) {
  const Integers& kind = node.attrs().integers("kind");
  for (std::size_t axis = 0; axis < kind.size(); ++axis) {
    if (kind[axis] == static_cast<std::int64_t>(SliceKind::full)) continue;
    const std::int64_t start = node.attrs().integers("start")[axis];
    const std::int64_t size = node.inputs[0].static_shape()[axis];
    const std::int64_t stop = node.attrs().integers("stop")[axis];
    const bool from_start = start == kOpenBound || start == 0;
    const bool to_end = stop == kOpenBound || (size != kAnyDim && stop >= size);
    const bool range = kind[axis] == static_cast<std::int64_t>(SliceKind::range);
    if (!range || !from_start || !to_end || node.attrs().integers("step")[axis] != 1) return {};
  }
  return node.inputs[0];
}

/// concatenate(x) -> x
Variable concatenate_one(const Node& node, Context&) {
  return node.inputs.size() == 1 ? node.inputs[0] : Variable();
}

/// transfer(x, where it lives) -> x
Variable transfer_same(const Node& node, Context&) {
  const Variable& x = node.inputs[0];
  return x.context() == node.attrs().text("context") ? x : Variable();
}

/// transfer(transfer(x)) -> transfer(x)
Variable transfer_transfer(const Node& node, Context&) {
  const Variable& inner = node.inputs[0];
  return is_op(inner, "transfer") ? with_inputs(node, {in(inner)}) : Variable();
}

constexpr Precision kExact = Precision::exact;
constexpr Precision kRounding = Precision::rounding;

constexpr Rule kRules[] = {
    {"dimshuffle_same", "dimshuffle", "shape useless", kExact, dimshuffle_same},
    {"dimshuffle_dimshuffle", "dimshuffle", "shape", kExact, dimshuffle_dimshuffle},
    {"reshape_same", "reshape", "shape useless", kExact, reshape_same},
    {"reshape_reshape", "reshape", "shape", kExact, reshape_reshape},
    {"reshape_broadcast", "reshape", "shape", kExact, reshape_broadcast},
    {"specify_same", "specify_shape", "shape useless", kExact, specify_same},
    {"broadcast_same", "broadcast", "shape useless", kExact, broadcast_same},
    {"broadcast_broadcast", "broadcast", "shape", kExact, broadcast_broadcast},
    {"broadcast_operand", "", "shape broadcast", kExact, broadcast_operand},
    {"scalar_operand", "", "shape broadcast", kExact, scalar_operand},
    {"broadcast_scalar", "broadcast", "shape broadcast", kExact, broadcast_scalar},
    {"broadcast_result", "", "shape broadcast", kExact, broadcast_result},
    {"dimshuffle_broadcast", "dimshuffle", "shape", kExact, dimshuffle_broadcast},
    {"reduce_ones", "sum prod max min any all", "reduction useless", kExact, reduce_ones},
    {"reduce_reduce", "sum max min any all", "reduction", kRounding, reduce_reduce},
    {"dimshuffle_reduce", "dimshuffle", "shape reduction", kExact, dimshuffle_reduce},
    {"sum_neg", "sum", "reduction", kExact, sum_neg},
    {"sum_broadcast", "sum", "reduction", kRounding, sum_broadcast},
    {"size_of_source", "size_of", "shape", kExact, size_of_source},
    {"size_of_positive", "maximum", "shape", kExact, size_of_positive},
    {"shape_of_known", "shape_of", "shape", kExact, shape_of_known},
    {"entry_of_shape", "take slice", "shape", kExact, entry_of_shape},
    {"slice_all", "slice", "useless", kExact, slice_all},
    {"concatenate_one", "concatenate", "useless", kExact, concatenate_one},
    {"transfer_same", "transfer", "useless transfer", kExact, transfer_same},
    {"transfer_transfer", "transfer", "transfer", kExact, transfer_transfer},
};

constexpr Rule kViewRules[] = {
    {"reshape_ones", "reshape", "shape", kExact, reshape_ones},
};

}  // namespace

RuleTable shape_rules() { return {"canonicalize", kRules}; }

RuleTable view_rules() { return {"canonicalize", kViewRules}; }

}  // namespace croton
