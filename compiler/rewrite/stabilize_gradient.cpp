// Gradients of what stabilize.cpp recognises: grad() saw the graph as the user wrote it, so its
// result divides by what may have become 0.
#include <algorithm>

#include "compiler/rewrite/match.h"
#include "compiler/rewrite/rule.h"
#include "compiler/rewrite/stabilize.h"
#include "ops/build.h"
#include "ops/row.h"

namespace croton {
namespace {

using Context = RewriteContext;

/// a / b as its operands; `negated` when it was -(a / b).
struct Quotient {
  Variable above;  ///< undefined: 1
  Variable below;
  bool negated = false;
};

std::optional<Quotient> quotient_of(const Variable& v) {
  if (is_op(v, "neg")) {
    std::optional<Quotient> inner = quotient_of(in(v));
    if (inner) inner->negated = !inner->negated;
    return inner;
  }
  if (is_op(v, "true_divide")) return Quotient{in(v), in(v, 1)};
  if (is_op(v, "reciprocal")) return Quotient{{}, in(v)};
  return {};
}

/// (+-) a * b, where a may be 1.
Variable product(const Quotient& q, const Variable& b) {
  const Variable value = q.above.defined() ? make("mul", {q.above, b}) : b;
  return q.negated ? negative(value) : value;
}

/// Whether v lies between 0 and 1, so that dividing by it only goes wrong where it became 0.
bool is_probability(const Variable& v) {
  if (is_op(v, "softmax") || is_op(v, "sigmoid")) return true;
  const Variable rest = one_minus(v);
  return rest.defined() && (is_op(rest, "sigmoid") || is_op(rest, "softmax"));
}

/// How deep sums of gradients are looked into.
constexpr int kDeepest = 8;

/// v * (p * b), without the divisions by p or b that v, a sum of gradients, holds; undefined when
/// it holds none.
Variable without_quotients(const Variable& v, const Variable& p, const Variable& b, int depth) {
  if (const std::optional<Quotient> q = quotient_of(v)) {
    if (is_probability(p) && q->below.same(p)) return product(*q, b);
    if (is_probability(b) && q->below.same(b)) return product(*q, p);
    return {};
  }
  if (depth == 0 || !(is_op(v, "add") || is_op(v, "sub"))) return {};
  std::vector<Variable> terms;
  bool found = false;
  for (int k : {0, 1}) {
    terms.push_back(without_quotients(in(v, k), p, b, depth - 1));
    found = found || terms.back().defined();
  }
  if (!found) return {};
  for (int k : {0, 1}) {
    if (!terms[k].defined()) terms[k] = make("mul", {in(v, k), make("mul", {p, b})});
  }
  return make(v.node()->op->name, std::move(terms));
}

/// (a / p) * (p * b) -> a * b, for a probability p; (a / p + c) * (p * b) -> a * b + c * (p * b)
Variable cancel_probability(const Node& node, Context& c) {
  for (int k : {0, 1}) {
    const Variable& other = node.inputs[1 - k];
    if (!is_op(other, "mul")) continue;
    const Variable value = without_quotients(node.inputs[k], in(other), in(other, 1), kDeepest);
    if (value.defined()) return c.accept(value, node);
  }
  return {};
}

/// (a / (1 + exp(x))) * exp(x) -> a * sigmoid(x)
Variable gradient_of_softplus(const Node& node, Context& c) {
  for (int k : {0, 1}) {
    const std::optional<Quotient> q = quotient_of(node.inputs[k]);
    const Variable& e = node.inputs[1 - k];
    if (!q || !is_op(e, "exp")) continue;
    if (const Variable x = one_plus(q->below); x.defined() && x.same(e)) {
      return c.accept(product(*q, sigmoid_of(in(e))), node);
    }
  }
  return {};
}

/// (a * sigmoid(-x)) * exp(x) -> a * sigmoid(x): the same once the quotient has become a sigmoid
Variable sigmoid_times_exp(const Node& node, Context& c) {
  for (int k : {0, 1}) {
    const Variable& e = node.inputs[1 - k];
    if (!is_op(e, "exp")) continue;
    Variable first = node.inputs[k];
    const bool negated = is_op(first, "neg");
    if (negated) first = in(first);
    const auto matches = [&](const Variable& s) {
      if (!is_op(s, "sigmoid")) return false;
      const Variable& x = in(s);
      return (is_op(x, "neg") && in(x).same(in(e))) || (is_op(in(e), "neg") && in(in(e)).same(x));
    };
    Quotient rest{{}, {}, negated};
    if (is_op(first, "mul")) {
      for (int j : {0, 1}) {
        if (!matches(in(first, j))) continue;
        rest.above = in(first, 1 - j);
        return c.accept(product(rest, sigmoid_of(in(e))), node);
      }
    } else if (matches(first)) {
      return c.accept(product(rest, sigmoid_of(in(e))), node);
    }
  }
  return {};
}

/// (a / sum(exp(x))) * exp(x) -> a * softmax(x), where the sum may have lost its axis and got it
/// back
Variable gradient_of_logsumexp(const Node& node, Context& c) {
  for (int k : {0, 1}) {
    const Variable& e = node.inputs[1 - k];
    if (!is_op(e, "exp")) continue;
    Variable first = node.inputs[k];
    const Variable outer = first;
    if (is_op(first, "dimshuffle")) first = in(first);
    std::optional<Quotient> q = quotient_of(first);
    const std::optional<RowSum> total = q ? exponential_row_sum(q->below) : std::nullopt;
    if (!total || !total->x.same(in(e)) || total->keepdims != outer.same(first)) continue;
    if (!total->keepdims) {
      // The axis must come back where it was.
      const Variable back = insert_axes(first, {total->axis}, node.loc);
      if (!(back.node()->attrs() == outer.node()->attrs())) continue;
      if (q->above.defined() && q->above.ndim() > 0) {
        q->above = broadcast_like(q->above, q->below, node.loc);
        q->above = insert_axes(q->above, {total->axis}, node.loc);
      }
    }
    return c.accept(product(*q, make_row_op("softmax", total->x, total->axis)), node);
  }
  return {};
}

/// sum(a / s) -> sum(a) / s, for a sum s along the same axis
Variable sum_of_quotients(const Node& node, Context& c) {
  const Variable& v = node.inputs[0];
  if (!is_op(v, "true_divide") || !keeps_dims(node) || !c.used_once(v)) return {};
  const Variable& s = in(v, 1);
  if (!is_op(s, "sum") || !keeps_dims(*s.node()) || axes_of(*s.node()) != axes_of(node)) return {};
  if (!c.same_shape(in(v), v)) return {};
  return c.accept(make("true_divide", {make("sum", {in(v)}, node.attrs()), s}), node);
}

// The gradient of softmax is (g - sum(g * s)) * s. A g that came from a logarithm divides by s, and
// with n = g * s the whole is n - s * sum(n).

/// Of inc_take into zeros with a / take(s, indices): the same with a. The indices must be those.
Variable scattered_numerator(const Variable& g, const Variable& s, Context& c) {
  const bool reshaped = is_op(g, "reshape");
  const Variable& scatter = reshaped ? in(g) : g;
  if (!is_op(scatter, "inc_take") || !is_splat(in(scatter), 0)) return {};
  const Variable& value = in(scatter, 1);
  const std::optional<Quotient> q = quotient_of(value);
  if (!q || !is_op(q->below, "take") || !in(q->below).same(s) || q->below.ndim() != 1) return {};
  const Variable& flat = in(scatter, 2);
  const std::vector<Variable>& taken = q->below.node()->inputs;
  const std::vector<Variable> indices(taken.begin() + 1, taken.end());
  if (indices.size() == 1) {
    if (!flat.same(indices[0])) return {};
  } else {
    if (!is_op(flat, "flat_index")) return {};
    for (std::size_t k = 0; k < indices.size(); ++k) {
      if (!in(flat, static_cast<int>(k)).same(indices[k])) return {};
    }
  }
  const Variable one = scalar_of(s, 1);
  Variable a = broadcast_like(q->above.defined() ? q->above : one, q->below, g.node()->loc);
  if (q->negated) a = negative(a);
  if (!c.same_shape(a, value)) return {};
  const Variable inner = make("inc_take", {in(scatter), a, flat}, scatter.node()->attrs());
  if (!reshaped) return inner;
  std::vector<Variable> inputs = g.node()->inputs;
  inputs[0] = inner;
  return make("reshape", std::move(inputs), g.node()->attrs());
}

/// Of pick_grad of a / pick(s, labels): the same of a.
Variable picked_numerator(const Variable& g, const Variable& s) {
  const std::optional<Quotient> q = quotient_of(in(g));
  if (!q || !is_op(q->below, "pick") || !in(q->below).same(s)) return {};
  if (!in(q->below, 1).same(in(g, 1))) return {};
  std::vector<Variable> inputs = g.node()->inputs;
  const Variable a = q->above.defined() ? q->above : scalar_of(s, 1);
  inputs[0] = broadcast_like(a, q->below, g.node()->loc);
  if (q->negated) inputs[0] = negative(inputs[0]);
  return make("pick_grad", std::move(inputs), g.node()->attrs());
}

/// g * s without the divisions that g, a sum of gradients, holds; up to repetition. Undefined when
/// g holds none.
Variable numerator(const Variable& g, const Variable& s, Context& c, int depth) {
  if (const std::optional<Quotient> q = quotient_of(g); q && q->below.same(s)) {
    const Variable a = q->above.defined() ? q->above : scalar_of(s, 1);
    return q->negated ? negative(a) : a;
  }
  if (is_op(g, "pick_grad")) return picked_numerator(g, s);
  if (depth == 0 || !(is_op(g, "add") || is_op(g, "sub"))) return scattered_numerator(g, s, c);
  std::vector<Variable> terms;
  bool found = false;
  for (int k : {0, 1}) {
    terms.push_back(numerator(in(g, k), s, c, depth - 1));
    found = found || terms.back().defined();
  }
  if (!found) return {};
  for (int k : {0, 1}) {
    if (!terms[k].defined()) terms[k] = make("mul", {in(g, k), s});
  }
  return make(g.node()->op->name, std::move(terms));
}

/// (g - sum(g * s)) * s -> n - s * sum(n), with n = g * s, for s = softmax(x) and a g that divides
/// by s
Variable gradient_of_log_softmax(const Node& node, Context& c) {
  for (int k : {0, 1}) {
    const Variable& s = node.inputs[1 - k];
    const Variable& difference = node.inputs[k];
    if (!is_op(s, "softmax") || !is_op(difference, "sub") || !is_op(in(difference, 1), "sum")) {
      continue;
    }
    const Variable& g = in(difference);
    const Node& sum = *in(difference, 1).node();
    const std::vector<std::int64_t> axis{row::axis_of(*s.node())};
    if (!keeps_dims(sum) || axes_of(sum) != axis || !is_op(sum.inputs[0], "mul")) continue;
    const Variable& product = sum.inputs[0];
    const bool same = (in(product).same(g) && in(product, 1).same(s)) ||
                      (in(product).same(s) && in(product, 1).same(g));
    if (!same) continue;
    Variable n = numerator(g, s, c, kDeepest);
    if (!n.defined()) continue;
    const int along = row::axis_of(*s.node());
    const bool full = n.ndim() == s.ndim() && n.static_shape()[along] == s.static_shape()[along] &&
                      c.sizes().implied(n, along, s, along);
    if (!full) n = broadcast_like(n, s, node.loc);
    const bool picked = is_op(n, "pick_grad") && along == n.ndim() - 1;
    const Variable total =
        picked ? insert_axes(in(n), {along}, node.loc) : make("sum", {n}, sum.attrs());
    return c.accept(make("sub", {n, make("mul", {s, total})}), node);
  }
  return {};
}

/// sum(pick_grad(g, labels)) along the last axis -> g
Variable sum_of_picked(const Node& node, Context& c) {
  const Variable& x = node.inputs[0];
  const std::vector<std::int64_t> last{x.ndim() - 1};
  if (!is_op(x, "pick_grad") || axes_of(node) != last) return {};
  const Variable g = keeps_dims(node) ? insert_axes(in(x), {x.ndim() - 1}, node.loc) : in(x);
  return c.accept(g, node);
}

constexpr Precision kStable = Precision::stabilising;

constexpr Rule kRules[] = {
    {"cancel_probability", "mul", "crossentropy gradient", kStable, cancel_probability},
    {"gradient_of_softplus", "mul", "softplus gradient", kStable, gradient_of_softplus},
    {"sigmoid_times_exp", "mul", "sigmoid gradient", kStable, sigmoid_times_exp},
    {"gradient_of_logsumexp", "mul", "softmax gradient", kStable, gradient_of_logsumexp},
    {"sum_of_quotients", "sum", "softmax gradient", Precision::rounding, sum_of_quotients},
    {"gradient_of_log_softmax", "mul", "softmax crossentropy gradient", kStable,
     gradient_of_log_softmax},
    {"sum_of_picked", "sum", "crossentropy gradient", Precision::exact, sum_of_picked},
};

}  // namespace

RuleTable stabilize_gradient_rules() { return {"stabilize", kRules}; }

}  // namespace croton
