// Forms in which nothing overflows and nothing cancels.
#include "compiler/rewrite/stabilize.h"

#include <algorithm>

#include "compiler/rewrite/match.h"
#include "compiler/rewrite/rule.h"
#include "ops/build.h"
#include "ops/row.h"

namespace croton {

std::optional<RowSum> exponential_row_sum(const Variable& v) {
  if (!is_op(v, "sum") || !is_op(in(v), "exp") || axes_of(*v.node()).size() != 1) return {};
  return RowSum{in(in(v)), static_cast<int>(axes_of(*v.node())[0]), keeps_dims(*v.node())};
}

Variable one_plus(const Variable& v) { return is_op(v, "add") ? beside(*v.node(), 1) : Variable(); }

Variable one_minus(const Variable& v) {
  return is_op(v, "sub") && is_splat(in(v), 1) ? in(v, 1) : Variable();
}

Variable sigmoid_of(const Variable& x) { return make("sigmoid", {x}); }
Variable negative(const Variable& x) { return make("neg", {x}); }

Variable make_row_op(std::string_view op, const Variable& x, int axis) {
  return make(op, {x}, {{"axis", std::int64_t{axis}}});
}

namespace {

using Context = RewriteContext;

bool is_last_axis(const Variable& softmax) {
  return row::axis_of(*softmax.node()) == softmax.ndim() - 1;
}

// Logarithms.

/// log(softmax(x)) -> log_softmax(x)
Variable log_softmax_rule(const Node& node, Context&) {
  const Variable& p = node.inputs[0];
  return is_op(p, "softmax") ? make("log_softmax", {in(p)}, p.node()->attrs()) : Variable();
}

bool takes_elements(const Variable& v) {
  const std::string& op = v.node()->op->name;
  return op == "take" || op == "slice" || op == "dimshuffle" || op == "reshape" ||
         op == "take_along_axis";
}

/// log(softmax(x)[index]) -> log_softmax(x)[index], for any way to take elements
Variable log_of_part(const Node& node, Context&) {
  constexpr std::size_t kDeepest = 4;
  std::vector<const Node*> parts;
  Variable v = node.inputs[0];
  for (; takes_elements(v) && parts.size() < kDeepest; v = in(v)) parts.push_back(v.node());
  if (parts.empty() || !is_op(v, "softmax")) return {};
  v = make("log_softmax", {in(v)}, v.node()->attrs());
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    std::vector<Variable> inputs = (*part)->inputs;
    inputs[0] = v;
    v = with_inputs(**part, std::move(inputs));
  }
  return v;
}

/// log(pick(softmax(x), labels)) -> pick(x, labels) - logsumexp(x)
Variable log_picked(const Node& node, Context&) {
  const Variable& picked = node.inputs[0];
  if (!is_op(picked, "pick") || !is_op(in(picked), "softmax") || !is_last_axis(in(picked))) {
    return {};
  }
  const Variable& x = in(in(picked));
  const Variable total =
      make("logsumexp", {x}, {{"axis", std::int64_t{x.ndim() - 1}}, {"keepdims", std::int64_t{0}}});
  return make("sub", {make("pick", {x, in(picked, 1)}), total});
}

/// log(sum(exp(x))) -> logsumexp(x), over one axis or adjacent ones
Variable log_sum_exp(const Node& node, Context&) {
  const Variable& total = node.inputs[0];
  if (!is_op(total, "sum") || !is_op(in(total), "exp")) return {};
  const std::vector<std::int64_t>& axes = axes_of(*total.node());
  const int count = static_cast<int>(axes.size());
  if (count == 0 || axes.back() - axes.front() + 1 != count) return {};
  const bool keepdims = keeps_dims(*total.node());
  const int first = static_cast<int>(axes[0]);
  const Variable x = merge_axes(in(in(total)), first, count, node.loc);
  const Variable y =
      make("logsumexp", {x}, {{"axis", std::int64_t{first}}, {"keepdims", std::int64_t{keepdims}}});
  if (!keepdims || count == 1) return y;
  std::vector<int> more;
  for (int k = 1; k < count; ++k) more.push_back(first + k);
  return insert_axes(y, more, node.loc);
}

/// log(exp(a) + exp(b)) -> max(a, b) + log1p(exp(-|a - b|))
Variable log_add_exp(const Node& node, Context&) {
  const Variable& total = node.inputs[0];
  if (!is_op(total, "add") || !is_op(in(total, 0), "exp") || !is_op(in(total, 1), "exp")) return {};
  const Variable& a = in(in(total, 0));
  const Variable& b = in(in(total, 1));
  // Of two equal infinities the difference would be NaN.
  const Variable distance =
      make("where", {make("eq", {a, b}), scalar_of(a, 0), make("abs", {make("sub", {a, b})})});
  const Variable rest = make("log1p", {make("exp", {negative(distance)})});
  return make("add", {make("maximum", {a, b}), rest});
}

/// log(sigmoid(x)) -> -softplus(-x)
Variable log_sigmoid(const Node& node, Context&) {
  const Variable& s = node.inputs[0];
  return is_op(s, "sigmoid") ? negative(make("softplus", {negative(in(s))})) : Variable();
}

/// log(1 - sigmoid(x)) -> -softplus(x)
Variable log_one_minus_sigmoid(const Node& node, Context& c) {
  const Variable s = one_minus(node.inputs[0]);
  if (!s.defined() || !is_op(s, "sigmoid")) return {};
  return c.accept(negative(make("softplus", {in(s)})), node);
}

/// log1p(-sigmoid(x)) -> -softplus(x)
Variable log1p_neg_sigmoid(const Node& node, Context&) {
  const Variable& x = node.inputs[0];
  const bool found = is_op(x, "neg") && is_op(in(x), "sigmoid");
  return found ? negative(make("softplus", {in(in(x))})) : Variable();
}

/// log1p(exp(x)) -> softplus(x)
Variable log1p_exp(const Node& node, Context&) {
  const Variable& e = node.inputs[0];
  return is_op(e, "exp") ? make("softplus", {in(e)}) : Variable();
}

/// log(1 + x) -> log1p(x)
Variable log_one_plus(const Node& node, Context& c) {
  const Variable x = one_plus(node.inputs[0]);
  return x.defined() ? c.accept(make("log1p", {x}), node) : Variable();
}

/// log(1 - x) -> log1p(-x)
Variable log_one_minus(const Node& node, Context& c) {
  const Variable x = one_minus(node.inputs[0]);
  return x.defined() ? c.accept(make("log1p", {negative(x)}), node) : Variable();
}

/// log(exp(x)) -> x
Variable log_exp(const Node& node, Context&) {
  return is_op(node.inputs[0], "exp") ? in(node.inputs[0]) : Variable();
}

// Exponentials.

/// exp(log_softmax(x)) -> softmax(x)
Variable exp_log_softmax(const Node& node, Context&) {
  const Variable& l = node.inputs[0];
  return is_op(l, "log_softmax") ? make("softmax", {in(l)}, l.node()->attrs()) : Variable();
}

/// exp(x) - 1 -> expm1(x)
Variable exp_minus_one(const Node& node, Context& c) {
  Variable e;
  if (is_op(node.out(), "add")) {
    e = beside(node, -1);
  } else if (is_splat(node.inputs[1], 1)) {
    e = node.inputs[0];
  }
  return e.defined() && is_op(e, "exp") ? c.accept(make("expm1", {in(e)}), node) : Variable();
}

/// exp(x) / sum(exp(x)) -> softmax(x)
Variable exp_over_sum(const Node& node, Context& c) {
  const Variable& e = node.inputs[0];
  const std::optional<RowSum> total = exponential_row_sum(node.inputs[1]);
  if (!is_op(e, "exp") || !total || !total->keepdims || !total->x.same(in(e))) return {};
  return c.accept(make_row_op("softmax", total->x, total->axis), node);
}

/// softmax(x - max(x)) -> softmax(x); the same of log_softmax
Variable shifted_softmax(const Node& node, Context&) {
  const Variable& x = node.inputs[0];
  if (!is_op(x, "sub") || !is_op(in(x, 1), "max") || !in(in(x, 1)).same(in(x))) return {};
  const Node& largest = *in(x, 1).node();
  const std::vector<std::int64_t> axis{row::axis_of(node)};
  if (!keeps_dims(largest) || axes_of(largest) != axis) return {};
  return make(node.op->name, {in(x)}, node.attrs());
}

// Sigmoids.

/// 1 / (1 + exp(-x)) -> sigmoid(x); 1 / (1 + exp(x)) -> sigmoid(-x)
Variable inverse_one_plus_exp(const Node& node, Context& c) {
  const Variable e = one_plus(node.inputs[0]);
  if (!e.defined() || !is_op(e, "exp")) return {};
  return c.accept(sigmoid_of(negative(in(e))), node);
}

/// a / (1 + exp(-x)) -> a * sigmoid(x); exp(x) / (1 + exp(x)) -> sigmoid(x)
Variable over_one_plus_exp(const Node& node, Context& c) {
  const Variable e = one_plus(node.inputs[1]);
  if (!e.defined() || !is_op(e, "exp")) return {};
  const Variable& a = node.inputs[0];
  if (is_op(a, "exp") && in(a).same(in(e))) return c.accept(sigmoid_of(in(e)), node);
  return c.accept(make("mul", {a, sigmoid_of(negative(in(e)))}), node);
}

/// 1 - sigmoid(x) -> sigmoid(-x), unless somebody else needs sigmoid(x), too
Variable one_minus_sigmoid(const Node& node, Context& c) {
  const Variable s = one_minus(node.out());
  if (!s.defined() || !is_op(s, "sigmoid") || !c.used_once(s)) return {};
  return c.accept(sigmoid_of(negative(in(s))), node);
}

/// 1 - erf(x) -> erfc(x); 1 - erfc(x) -> erf(x)
Variable one_minus_erf(const Node& node, Context& c) {
  const Variable y = one_minus(node.out());
  if (!y.defined()) return {};
  if (is_op(y, "erf")) return c.accept(make("erfc", {in(y)}), node);
  return is_op(y, "erfc") ? c.accept(make("erf", {in(y)}), node) : Variable();
}

constexpr Precision kStable = Precision::stabilising;

// The more special forms of a logarithm stand before the more general ones.
constexpr Rule kRules[] = {
    {"log_softmax", "log", "softmax", kStable, log_softmax_rule},
    {"log_of_part", "log", "softmax", kStable, log_of_part},
    {"log_picked", "log", "softmax crossentropy", kStable, log_picked},
    {"log_sum_exp", "log", "softmax", kStable, log_sum_exp},
    {"log_add_exp", "log", "logarithm", kStable, log_add_exp},
    {"log_sigmoid", "log", "sigmoid crossentropy", kStable, log_sigmoid},
    {"log_one_minus_sigmoid", "log", "sigmoid crossentropy", kStable, log_one_minus_sigmoid},
    {"log1p_neg_sigmoid", "log1p", "sigmoid crossentropy", kStable, log1p_neg_sigmoid},
    {"log1p_exp", "log1p", "softplus", kStable, log1p_exp},
    {"log_one_plus", "log", "logarithm", kStable, log_one_plus},
    {"log_one_minus", "log", "logarithm", kStable, log_one_minus},
    {"log_exp", "log", "logarithm", kStable, log_exp},
    {"exp_log_softmax", "exp", "softmax", Precision::rounding, exp_log_softmax},
    {"exp_minus_one", "sub add", "exponential", kStable, exp_minus_one},
    {"exp_over_sum", "true_divide", "softmax", kStable, exp_over_sum},
    {"shifted_softmax", "softmax log_softmax", "softmax", kStable, shifted_softmax},
    {"inverse_one_plus_exp", "reciprocal", "sigmoid", kStable, inverse_one_plus_exp},
    {"over_one_plus_exp", "true_divide", "sigmoid", kStable, over_one_plus_exp},
    {"one_minus_sigmoid", "sub", "sigmoid", kStable, one_minus_sigmoid},
    {"one_minus_erf", "sub", "erf", kStable, one_minus_erf},
};

}  // namespace

RuleTable stabilize_rules() { return {"stabilize", kRules}; }

}  // namespace croton
