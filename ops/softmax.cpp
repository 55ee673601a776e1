// softmax, log_softmax, logsumexp: each is one op for rewrites and gradients, and expands into
// reductions and elementwise work along one axis, which share a kernel.
#include <fmt/format.h>

#include <limits>

#include "croton/math.h"
#include "croton/nn.h"
#include "croton/statistics.h"
#include "ops/axes.h"
#include "ops/one_axis.h"
#include "ops/registry.h"
#include "ops/row.h"
#include "ops/scalar.h"

namespace croton {

using namespace row;

namespace {

/// x - max(x), which the exponential cannot make overflow.
Variable shifted(const Variable& x, int axis, const Loc& loc) {
  return x - reduce("max", x, axis, loc);
}

/// The maximum, or 0 where it is infinite: inf - inf would be NaN.
Variable finite_shift(const Variable& x, int axis, const Loc& loc) {
  const Variable largest = reduce("max", x, axis, loc);
  return where(isfinite(largest), largest, 0);
}

/// Rows of -inf alone give NaN or, with the attribute "dead", 0.
std::vector<Variable> expand_softmax(const Node& node) {
  const bool dead = node.attrs().integer_or("dead", 0) != 0;
  return expanded(node, [dead](const Variable& x, int axis, const Loc& loc) {
    const Variable e = exp(dead ? x - finite_shift(x, axis, loc) : shifted(x, axis, loc));
    const Variable total = reduce("sum", e, axis, loc);
    return e * (dead ? where(eq(total, 0), 0, reciprocal(total)) : reciprocal(total));
  });
}

std::vector<Variable> expand_log_softmax(const Node& node) {
  return expanded(node, [](const Variable& x, int axis, const Loc& loc) {
    const Variable s = shifted(x, axis, loc);
    return s - log(reduce("sum", exp(s), axis, loc));
  });
}

std::vector<Variable> expand_logsumexp(const Node& node) {
  return expanded(node, [&](const Variable& x, int axis, const Loc& loc) {
    const Variable shift = finite_shift(x, axis, loc);
    const Variable kept = log(reduce("sum", exp(x - shift), axis, loc)) + shift;
    return node.attrs().integer("keepdims") ? kept : without_axis(kept, axis, loc);
  });
}

/// Whether a gradient of the result `y` has a part that is divided by y: that of log(y).
bool has_quotient(const Variable& g, const Variable& y) {
  const scalar::Masked mask = scalar::unmask(g);
  if (mask.condition.defined()) return has_quotient(mask.below, y);
  const std::vector<Variable>& terms = g.node()->inputs;
  if (is_op(g, "add")) return has_quotient(terms[0], y) || has_quotient(terms[1], y);
  return is_op(g, "true_divide") && terms[1].same(y);
}

/// The product of a gradient of the result and the result `y`, which `wide` has in the dtype of the
/// work. What is divided by y is taken as it is: y may be 0.
Variable by_result(const Variable& g, const Variable& y, const Variable& wide, const Loc& loc) {
  if (const scalar::Masked mask = scalar::unmask(g); mask.condition.defined()) {
    return scalar::only(mask.condition, by_result(mask.below, y, wide, loc));
  }
  const std::vector<Variable>& terms = g.node()->inputs;
  if (is_op(g, "add")) {
    return by_result(terms[0], y, wide, loc) + by_result(terms[1], y, wide, loc);
  }
  if (is_op(g, "true_divide") && terms[1].same(y)) {
    return broadcast_like(cast_to(terms[0], wide.dtype(), loc), wide, loc);
  }
  return cast_to(g, wide.dtype(), loc) * wide;
}

std::vector<Variable> softmax_gradient(const GradArgs& args) {
  return row_gradient(args, [&](const Slope& at) {
    if (!has_quotient(args.g(), args.out())) {
      const Variable weighted = reduce("sum", at.g * at.y, at.axis, at.loc);
      return (at.g - weighted) * at.y;
    }
    const Variable product = by_result(args.g(), args.out(), at.y, at.loc);
    return product - reduce("sum", product, at.axis, at.loc) * at.y;
  });
}

std::vector<Variable> log_softmax_gradient(const GradArgs& args) {
  return row_gradient(args, [](const Slope& at) {
    const Variable total = reduce("sum", at.g, at.axis, at.loc);
    return at.g - exp(at.y) * total;
  });
}

std::vector<Variable> logsumexp_gradient(const GradArgs& args) {
  const int axis = axis_of(args.node);
  const Loc& loc = args.node.loc;
  const bool kept = args.node.attrs().integer("keepdims") != 0;
  const Variable g = kept ? args.g() : insert_axes(args.g(), {axis}, loc);
  // Where all elements are -inf none of them makes the result larger.
  const Variable s = apply("softmax", {args.in(0)},
                           {{"axis", std::int64_t{axis}}, {"dead", std::int64_t{1}}}, loc);
  return {g * s};
}

void infer_logsumexp(Infer& infer) {
  const int axis = checked_axis(infer);
  std::vector<Dim> shape = infer.shape(0);
  if (infer.attrs().integer("keepdims")) {
    shape[axis] = Dim(1);
  } else {
    shape.erase(shape.begin() + axis);
  }
  infer.out(infer.dtype(0), std::move(shape));
}

Example row_example(std::int64_t axis) { return {{Shape{4, 6}}, {{-5, 5}}, {{"axis", axis}}}; }

Example logsumexp_example(std::int64_t axis, std::int64_t keepdims) {
  return {{Shape{4, 6}}, {{-5, 5}}, {{"axis", axis}, {"keepdims", keepdims}}};
}

}  // namespace

void register_softmax_ops(OpRegistry& registry) {
  registry.add({
      .name = "softmax",
      .doc = "exp(x) / sum(exp(x)) along an axis.",
      .form = OpForm::loops,
      .cost = 24,
      .infer = infer_row,
      .expand = expand_softmax,
      .grad = softmax_gradient,
      .examples = {row_example(1),
                   row_example(0),
                   {{Shape{4, 6}}, {{-5, 5}}, {{"axis", 1}, {"dead", 1}}}},
  });
  registry.add({
      .name = "log_softmax",
      .doc = "log(softmax(x)) along an axis.",
      .form = OpForm::loops,
      .cost = 24,
      .infer = infer_row,
      .expand = expand_log_softmax,
      .grad = log_softmax_gradient,
      .examples = {row_example(1), row_example(0)},
  });
  registry.add({
      .name = "logsumexp",
      .doc = "log(sum(exp(x))) along an axis.",
      .form = OpForm::loops,
      .cost = 24,
      .infer = infer_logsumexp,
      .expand = expand_logsumexp,
      .grad = logsumexp_gradient,
      .examples = {logsumexp_example(1, 0), logsumexp_example(0, 1)},
  });
}

Variable softmax(const Operand& x, int axis) { return make_row("softmax", x, axis, {}); }
Variable log_softmax(const Operand& x, int axis) { return make_row("log_softmax", x, axis, {}); }
Variable logsumexp(const Operand& x, int axis, bool keepdims) {
  return make_row("logsumexp", x, axis, {{"keepdims", std::int64_t{keepdims}}});
}

Variable logsumexp(const Operand& operand, const Axis& axis, const ReduceOptions& options) {
  const Loc loc = operand.loc().named("logsumexp");
  const Variable given = operand.variable();
  const DType dtype = options.dtype.value_or(scalar::float_result(given.dtype()));
  if (!is_float(dtype)) {
    graph_error("logsumexp",
                fmt::format("dtype must be a float: got {}; cast the result", name_of(dtype)), loc);
  }
  Variable x = cast_to(given, dtype, loc);
  if (options.where) {
    const Variable nothing = scalar_like(x, -std::numeric_limits<double>::infinity(), loc);
    x = broadcast_like(where(Operand(*options.where, loc), x, nothing), given, loc);
  }
  const std::vector<int> axes = checked_axes("logsumexp", axis, x.ndim(), loc);
  if (axes.empty()) return x;
  const Variable merged = one_axis(x, axes, loc);
  const Variable y = logsumexp(Operand(merged, loc), axes[0], false);
  return options.keepdims ? insert_axes(y, axes, loc) : y;
}

}  // namespace croton
