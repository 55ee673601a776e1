#include "compiler/rewrite/rewrite.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "compiler/graph/op.h"
#include "compiler/rewrite/selection.h"
#include "compiler/rewrite/trace.h"
#include "croton/error.h"
#include "ops/build.h"
#include "ops/sizes.h"

namespace croton {

bool RewriteContext::used_once(const Variable& v) {
  asked_uses_ = true;
  const int* uses = uses_.find(v.node());
  return uses == nullptr || *uses <= 1;
}

bool RewriteContext::same_shape(const Variable& value, const Variable& like) {
  if (value.ndim() != like.ndim()) return false;
  for (int axis = 0; axis < like.ndim(); ++axis) {
    const std::int64_t mine = value.static_shape()[axis];
    const std::int64_t wanted = like.static_shape()[axis];
    if (mine != wanted) return false;
    if (mine == kAnyDim && !sizes_.implied(value, axis, like, axis)) return false;
  }
  return true;
}

bool RewriteContext::fits(const Variable& value, const Node& node) {
  return value.dtype() == node.outputs[0].dtype && same_shape(value, node.out());
}

Variable RewriteContext::accept(const Variable& value, const Node& node) {
  return value.defined() && fits(value, node) ? value : Variable();
}

Variable RewriteContext::shaped(const Variable& value, const Node& node) {
  const Type& type = node.outputs[0];
  if (fits(value, node)) return value;
  if (value.dtype() != type.dtype || !type.shape.is_static()) return {};
  if (!value.static_shape().is_static()) return {};
  return broadcast_like(value, node.out(), node.loc);
}

Variable RewriteContext::filled(const Node& node, double value) {
  const Shape& shape = node.outputs[0].shape;
  std::vector<Size> sizes;
  for (int axis = 0; axis < static_cast<int>(shape.size()); ++axis) {
    const std::optional<SizeSource> source = sizes_.only(node.out(), axis);
    if (!source || source->node == &node) return {};
    if (source->number != kAnyDim) {
      sizes.emplace_back(source->number);
    } else {
      sizes.emplace_back(size_value(*source));
    }
  }
  return broadcast_sizes(scalar_like(node.out(), value, node.loc), sizes, node.loc);
}

Variable RewriteContext::size_value(const SizeSource& source) {
  const Loc loc = Loc::current();
  if (source.number != kAnyDim) return make_scalar(DType::int64, source.number, loc);
  const Variable v(source.node, source.output);
  return source.axis < 0 ? v : size_of_axis(v, source.axis, loc);
}

/// One sweep over a graph. Works by a stack in place of recursion: a node waits for its inputs,
/// then for the value that a rule gave for it.
class Rewriter {
 public:
  Rewriter(const RuleSelection& rules, std::string_view pass, RewriteTrace* trace)
      : rules_(rules), pass_(pass), trace_(trace) {}

  Graph sweep(const Graph& graph);
  bool changed() const { return applications_ > 0; }
  /// Whether a rule may have been held back by users that are gone now.
  bool may_go_on() const { return changed() && context_.asked_uses_; }

 private:
  struct Entry {
    Variable keep;   ///< the node itself
    Variable value;  ///< what stands for it, once known
    bool done = false;
  };

  void count_uses(const Graph& graph, std::span<const Node* const> order);
  void finish(const Node* root);
  void visit(const Node* node);
  bool is_done(const Node* node) const;
  Variable result_of(const Variable& v) const;
  bool is_unchanged(const Variable& v) const;
  Variable with_results(const Node& node) const;
  Variable apply_rules(const Node& node);
  void check(const Rule& rule, const Node& node, const Variable& value) const;
  void adopt(const Variable& value, std::uint64_t since, const Node& node);

  const RuleSelection& rules_;
  std::string_view pass_;
  RewriteTrace* trace_;
  RewriteContext context_;
  NodeMap<Entry> entries_;
  std::vector<Variable> todo_;
  std::vector<Variable> known_;  ///< that the maps have and nothing else keeps
  std::size_t applications_ = 0;
  std::size_t limit_ = 0;
};

void Rewriter::count_uses(const Graph& graph, std::span<const Node* const> order) {
  context_.uses_ = NodeMap<int>(order.size());
  entries_ = NodeMap<Entry>(order.size());
  limit_ = 64 * (order.size() + 100);
  for (const Node* node : order) {
    for (const Variable& input : node->inputs) ++context_.uses_[input.node()];
  }
  for (const Variable& output : graph.outputs) ++context_.uses_[output.node()];
}

Graph Rewriter::sweep(const Graph& graph) {
  const std::vector<const Node*> order = graph.order();
  count_uses(graph, order);
  for (const Node* node : order) finish(node);
  Graph result;
  result.inputs = graph.inputs;
  for (const Variable& output : graph.outputs) result.outputs.push_back(result_of(output));
  return result;
}

bool Rewriter::is_done(const Node* node) const {
  const Entry* entry = entries_.find(node);
  return entry != nullptr && entry->done;
}

Variable Rewriter::result_of(const Variable& v) const {
  const Variable& value = entries_.find(v.node())->value;
  return v.node()->outputs.size() == 1 ? value : value.node()->out(v.output());
}

bool Rewriter::is_unchanged(const Variable& v) const {
  return entries_.find(v.node())->value.node() == v.node();
}

void Rewriter::finish(const Node* root) {
  visit(root);  // the inputs of the first node are done
  if (is_done(root)) return;
  todo_.push_back(root->out());
  while (!todo_.empty()) {
    const Variable top = todo_.back();
    if (is_done(top.node())) {
      todo_.pop_back();
    } else {
      visit(top.node());
    }
  }
}

/// Either finishes a node, or puts on the stack what it needs.
void Rewriter::visit(const Node* node) {
  Entry& entry = entries_[node];
  if (entry.done) return;
  if (!entry.keep.defined()) entry.keep = node->out();
  if (entry.value.defined()) {  // what a rule gave
    if (is_done(entry.value.node())) {
      entry.value = result_of(entry.value);
      entry.done = true;
    } else {
      todo_.push_back(entry.value);
    }
    return;
  }
  const std::size_t before = todo_.size();
  for (const Variable& input : node->inputs) {
    if (!is_done(input.node())) todo_.push_back(input);
  }
  if (todo_.size() != before) return;
  const Variable current = with_results(*node);
  if (current.node() != node) {
    const int uses = context_.uses_[node];
    context_.uses_[current.node()] = uses;
    known_.push_back(current);
  }
  const Variable next = apply_rules(*current.node());
  if (next.defined()) {
    entry.value = next;
    return;
  }
  entry.value = current;
  entry.done = true;
  if (current.node() != node) entries_[current.node()] = {current, current, true};
}

Variable Rewriter::with_results(const Node& node) const {
  if (std::all_of(node.inputs.begin(), node.inputs.end(),
                  [&](const Variable& v) { return is_unchanged(v); })) {
    return node.out();
  }
  std::vector<Variable> inputs;
  inputs.reserve(node.inputs.size());
  for (const Variable& input : node.inputs) inputs.push_back(result_of(input));
  return with_inputs(node, std::move(inputs));
}

Variable Rewriter::apply_rules(const Node& node) {
  if (node.outputs.size() != 1 || node.op->form == OpForm::leaf) return {};
  for (const Rule* rule : rules_.rules_for(node.op)) {
    const std::uint64_t since = next_node_id();
    const Variable value = rule->apply(node, context_);
    if (!value.defined() || value.same(node.out())) continue;
    check(*rule, node, value);
    adopt(value, since, node);
    if (trace_ != nullptr) {
      trace_->applications.push_back(
          {rule->name, std::string(pass_), rule->precision, node.out(), value});
    }
    if (++applications_ > limit_) {
      throw InternalError(
          fmt::format("the rewrites of pass '{}' do not come to an end; the last rule was '{}'",
                      pass_, rule->name));
    }
    return value;
  }
  return {};
}

void Rewriter::check(const Rule& rule, const Node& node, const Variable& value) const {
  const Type& is = value.node()->outputs[value.output()];
  const Type& wanted = node.outputs[0];
  bool same = is.dtype == wanted.dtype && is.shape.size() == wanted.shape.size();
  for (std::size_t axis = 0; same && axis < is.shape.size(); ++axis) {
    same = wanted.shape[axis] == kAnyDim || is.shape[axis] == wanted.shape[axis];
  }
  if (same) return;
  throw InternalError(fmt::format("rule '{}' of pass '{}' gave {} for {} ({}, {})", rule.name,
                                  pass_, is.to_text(), wanted.to_text(), node.op->name,
                                  to_text(node.loc)));
}

void Rewriter::adopt(const Variable& value, std::uint64_t since, const Node& node) {
  const int uses = context_.uses_[&node];
  context_.uses_[value.node()] += uses;
  for (const Node* made : stand_for(value, since, node)) {
    for (const Variable& input : made->inputs) {
      internal_check(input.node() != &node, "the result of a rule needs what it replaces");
      ++context_.uses_[input.node()];
    }
  }
}

namespace {

/// The place of a node that stands for part of what `node` gave: that of the node of the same op
/// below, which it takes the part of, or else that of `node`.
Loc place_below(const OpDef& op, const Node& node) {
  constexpr std::size_t kNearby = 12;
  if (op.form != OpForm::loops && op.form != OpForm::library) return place_of(node);
  std::array<const Node*, kNearby> nearby{&node};
  std::size_t count = 1;
  for (std::size_t k = 0; k < count; ++k) {
    if (nearby[k]->op == &op) return place_of(*nearby[k]);
    for (const Variable& input : nearby[k]->inputs) {
      if (count < kNearby) nearby[count++] = input.node();
    }
  }
  return place_of(node);
}

}  // namespace

std::vector<const Node*> stand_for(const Variable& value, std::uint64_t since, const Node& node) {
  std::vector<const Node*> todo{value.node()};
  std::vector<const Node*> made;  // few
  while (!todo.empty()) {
    const Node* next = todo.back();
    todo.pop_back();
    if (next->id < since || std::find(made.begin(), made.end(), next) != made.end()) continue;
    made.push_back(next);
    Node* fresh = const_cast<Node*>(next);
    fresh->loc = place_below(*fresh->op, node);
    // Leaves are everywhere, and a transfer says itself where it goes.
    if (fresh->op->form != OpForm::leaf && fresh->op->form != OpForm::move) {
      fresh->context = node.context;
      fresh->beside = node.beside;
    }
    for (const Variable& input : next->inputs) todo.push_back(input.node());
  }
  return made;
}

Graph rewrite(const Graph& graph, std::string_view pass, std::span<const RuleTable> tables,
              const CompileContext& context) {
  constexpr int kSweeps = 8;
  const RuleSelection rules(tables, context.config);
  if (rules.empty()) return graph;
  Graph result = graph;
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    Rewriter rewriter(rules, pass, context.trace.get());
    result = rewriter.sweep(result);
    if (!rewriter.may_go_on()) break;
  }
  return result;
}

namespace {

// Each pass also runs the rules that tidy up what its own ones leave.
struct Tables {
  RuleTable all[7] = {folding_rules(),   arithmetic_rules(), shape_rules(),
                      view_rules(),      stabilize_rules(),  stabilize_gradient_rules(),
                      specialize_rules()};
  // Not those of stabilize, which make ops that have been taken apart by now, nor those that undo
  // the views which libraries want.
  RuleTable specialize[4] = {all[0], all[1], all[2], all[6]};

  std::span<const RuleTable> canonicalize() const { return std::span(all).first(4); }
  std::span<const RuleTable> stabilize() const { return std::span(all).first(6); }
};

const Tables& tables() {
  static const Tables instance;
  return instance;
}

}  // namespace

std::span<const RuleTable> all_rules() { return tables().all; }

Graph canonicalize(const Graph& graph, const CompileContext& context) {
  return rewrite(graph, "canonicalize", tables().canonicalize(), context);
}

Graph stabilize(const Graph& graph, const CompileContext& context) {
  return rewrite(graph, "stabilize", tables().stabilize(), context);
}

Graph specialize(const Graph& graph, const CompileContext& context) {
  return rewrite(graph, "specialize", tables().specialize, context);
}

}  // namespace croton
