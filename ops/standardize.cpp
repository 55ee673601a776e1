// standardize, and the layer normalisation that is made with it.
#include <fmt/format.h>

#include "croton/math.h"
#include "croton/nn.h"
#include "ops/registry.h"
#include "ops/row.h"

namespace croton {

using namespace row;

namespace {

/// Means along an axis of what has the shape of one operand.
struct RowMean {
  int axis;
  const Loc& loc;
  Variable count;

  RowMean(const Variable& x, int axis, const Loc& loc)
      : axis(axis), loc(loc), count(count_elements(x, {axis}, x.dtype(), loc)) {}
  Variable operator()(const Variable& v) const { return reduce("sum", v, axis, loc) / count; }
};

Variable inverse_deviation(const Variable& centered, const RowMean& mean, double eps) {
  return reciprocal(sqrt(mean(square(centered)) + eps));
}

std::vector<Variable> expand_standardize(const Node& node) {
  return expanded(node, [&](const Variable& x, int axis, const Loc& loc) {
    const RowMean mean(x, axis, loc);
    const Variable centered = x - mean(x);
    return centered * inverse_deviation(centered, mean, node.attrs().real("eps"));
  });
}

// With y the result and r the inverse deviation: r * (g - mean(g) - y * mean(g * y)).
std::vector<Variable> standardize_gradient(const GradArgs& args) {
  const double eps = args.node.attrs().real("eps");
  return row_gradient(args, [eps](const Slope& at) {
    const RowMean mean(at.x, at.axis, at.loc);
    const Variable scale = inverse_deviation(at.x - mean(at.x), mean, eps);
    return scale * (at.g - mean(at.g) - at.y * mean(at.g * at.y));
  });
}

/// A vector as an operand along `axis` of something with `rank` axes.
Variable along_axis(std::string_view what, const Operand& operand, int axis, int rank,
                    const Loc& loc) {
  const Variable v = operand.variable();
  if (v.ndim() > 1) {
    graph_error("layer_norm",
                fmt::format("{} must be a vector or a scalar: got {} axes", what, v.ndim()), loc);
  }
  if (v.ndim() == 0) return v;
  std::vector<int> order{0};
  order.resize(static_cast<std::size_t>(rank - axis), -1);
  return dimshuffle(v, order, loc);
}

}  // namespace

void register_standardize_ops(OpRegistry& registry) {
  const Attrs last{{"axis", std::int64_t{1}}, {"eps", 1e-5}};
  const Attrs first{{"axis", std::int64_t{0}}, {"eps", 1e-3}};
  registry.add({
      .name = "standardize",
      .doc = "(x - mean) / sqrt(variance + eps) along an axis.",
      .form = OpForm::loops,
      .cost = 12,
      .infer = infer_row,
      .expand = expand_standardize,
      .grad = standardize_gradient,
      .examples = {{{Shape{4, 6}}, {{-5, 5}}, last}, {{Shape{4, 6}}, {{-5, 5}}, first}},
  });
}

Variable layer_norm(const Operand& x, const Operand& gamma, const Operand& beta, int axis,
                    double eps) {
  const Loc loc = x.loc().named("layer_norm");
  const Variable y = make_row("standardize", x.named(loc.op), axis, {{"eps", eps}});
  const int at = axis_of(*y.node());
  // Literals stay literals, so that they take the dtype of x.
  const auto operand = [&](std::string_view what, const Operand& given) {
    return given.is_literal() ? given : Operand(along_axis(what, given, at, y.ndim(), loc), loc);
  };
  const Variable scaled = mul({y, loc}, operand("gamma", gamma));
  return add({scaled, loc}, operand("beta", beta));
}

}  // namespace croton
