#include "compiler/partition/partitioner.h"

#include <fmt/format.h>

#include <algorithm>

#include "croton/error.h"
#include "croton/math.h"
#include "croton/tensor.h"
#include "ops/build.h"
#include "ops/sizes.h"
#include "ops/slice.h"

namespace croton {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

void set_context(const Variable& v, const std::string* context) {
  const_cast<Node*>(v.node())->context = context;
}

std::string key_of(const Variable& v) { return fmt::format("{}.{}", v.node()->id, v.output()); }

/// Two partial results as one.
Variable folded(kernel::Fold fold, const Variable& a, const Variable& b, const Loc& loc) {
  const auto binary = [&](std::string_view op) { return apply(op, {a, b}, {}, loc); };
  switch (fold) {
    case kernel::Fold::sum:
      return binary("add");
    case kernel::Fold::prod:
      return binary("mul");
    case kernel::Fold::max:
      return binary("maximum");
    case kernel::Fold::min:
      return binary("minimum");
    case kernel::Fold::any:
      return binary("logical_or");
    case kernel::Fold::all:
      return binary("logical_and");
    case kernel::Fold::argmin:
    case kernel::Fold::argmax:
      break;
  }
  throw InternalError("internal error: partial results that cannot be combined");
}

}  // namespace

Partitioner::Partitioner(const PartitionRequest& request) : note_whole_(request.note_whole) {
  for (const std::string& context : request.contexts) {
    const std::string* name = intern(context);
    auto found = std::find(names_.begin(), names_.end(), name);
    if (found == names_.end()) found = names_.insert(names_.end(), name);
    context_of_.push_back(static_cast<int>(found - names_.begin()));
  }
}

const Held& Partitioner::find(const Variable& v) {
  if (const auto found = held_.find(v); found != held_.end()) return found->second;
  find_all({&v, 1});
  return held_.at(v);
}

void Partitioner::find_all(std::span<const Variable> values) {
  for (const Node* node : topological_order(values)) {
    if (!held_.contains(node->out())) process(*node);
  }
}

void Partitioner::process(const Node& node) {
  std::vector<Held> results = results_of(node);
  for (std::size_t k = 0; k < results.size(); ++k) {
    held_[node.out(static_cast<int>(k))] = std::move(results[k]);
  }
}

std::vector<Held> Partitioner::results_of(const Node& node) {
  if (node.op->form == OpForm::leaf) {
    internal_check(node.op->name == "constant", "a leaf that nobody holds");
    return {Held{Held::kWhole, std::vector<Variable>(at(contexts()), node.out())}};
  }
  // Placement is the partition's: the user's was made for one copy of the graph.
  if (node.op->form == OpForm::move) return {held(node.inputs[0])};
  bool cut = false;
  bool counts = false;
  for (const Variable& input : node.inputs) {
    cut |= held(input).cut();
    counts |= held(input).counts_rows();
  }
  if (cut || counts) {
    if (const PartitionRule rule = partition_rule(*node.op)) {
      if (std::optional<std::vector<Held>> results = rule(node, *this)) return std::move(*results);
    }
    if (cut && node.op->expand != nullptr) {
      std::vector<Held> results;
      for (const Variable& v : node.op->expand(node)) results.push_back(find(v));
      return results;
    }
    if (cut && note_whole_) note_whole_(node);
  }
  return each_context(node);
}

const Variable& Partitioner::part(const Held& held, int shard) const {
  return held.parts[at(held.cut() ? shard : context_of(shard))];
}

Held Partitioner::whole(const Held& held, const Loc& loc) {
  if (!held.cut()) return held;
  Held result;
  for (int c = 0; c < contexts(); ++c) {
    std::vector<Variable> parts;
    for (const Variable& v : held.parts) parts.push_back(moved(v, c, loc));
    result.parts.push_back(on(c, [&] {
      return apply("concatenate", parts, {{"axis", std::int64_t{held.axis}}}, loc);
    }));
  }
  return result;
}

Held Partitioner::cut(const Held& held, int axis, const std::vector<Variable>& sizes,
                      const Loc& loc) {
  internal_check(!held.cut(), "a value is cut twice");
  Held result{axis, {}, sizes};
  const int rank = held.parts[0].ndim();
  for (int c = 0; c < contexts(); ++c) {
    // A value of another size must not be cut where the parts would still fit.
    const Variable checked = on(c, [&] {
      std::vector<std::int64_t> known(at(rank), kAnyDim);
      known[at(axis)] = kSymbolSize;
      return apply("specify_shape", {held.parts[at(c)], total(sizes, c)}, {{"sizes", known}}, loc);
    });
    for (int p = 0; p < shards(); ++p) {
      if (context_of(p) != c) continue;
      result.parts.push_back(on(c, [&] {
        const Variable first = start(sizes, p);
        const Variable last = apply("add", {first, sizes[at(p)]}, {}, loc);
        return slice_axis(checked, axis, Slice(first, last), loc);
      }));
    }
  }
  return result;
}

Held Partitioner::aligned(const Held& held, int axis, const std::vector<Variable>& sizes,
                          const Loc& loc) {
  if (held.cut() && held.axis == axis) return held;
  const Held all = whole(held, loc);
  const bool stretched = axis < 0 || all.parts[0].static_shape()[at(axis)] == 1;
  return stretched ? all : cut(all, axis, sizes, loc);
}

Variable Partitioner::reduce_on(int context, const std::vector<Variable>& partials,
                                kernel::Fold fold, const Loc& loc) const {
  const DType dtype = partials[0].dtype();
  const DType wide = is_narrow(dtype) ? DType::float32 : dtype;
  Variable sum;
  for (const Variable& partial : partials) {
    sum = on(context, [&] {
      const Variable next = cast_to(partial, wide, loc);
      return sum.defined() ? folded(fold, sum, next, loc) : next;
    });
  }
  return sum;
}

Held Partitioner::all_reduce(const std::vector<Variable>& partials, kernel::Fold fold,
                             const Loc& loc) {
  const DType dtype = partials[0].dtype();
  // What the shards of one context have is put together there, and travels once.
  std::vector<Variable> own;
  for (int c = 0; c < contexts(); ++c) {
    std::vector<Variable> mine;
    for (int p = 0; p < shards(); ++p) {
      if (context_of(p) == c) mine.push_back(partials[at(p)]);
    }
    own.push_back(reduce_on(c, mine, fold, loc));
  }
  Held result;
  for (int c = 0; c < contexts(); ++c) {
    Variable sum = moved(own[0], c, loc);
    for (int k = 1; k < contexts(); ++k) {
      const Variable next = moved(own[at(k)], c, loc);
      sum = on(c, [&] { return folded(fold, sum, next, loc); });
    }
    result.parts.push_back(on(c, [&] { return cast_to(sum, dtype, loc); }));
  }
  return result;
}

Variable Partitioner::on(int context, const std::function<Variable()>& build) const {
  const std::uint64_t since = next_node_id();
  Variable result = build();
  std::vector<const Node*> open{result.node()};
  for (std::size_t i = 0; i < open.size(); ++i) {
    const Node* node = open[i];
    if (node->id < since || node->context == name(context)) continue;
    if (node->op->form != OpForm::leaf) const_cast<Node*>(node)->context = name(context);
    for (const Variable& input : node->inputs) open.push_back(input.node());
  }
  return result;
}

Variable Partitioner::moved(const Variable& v, int context, const Loc& loc) {
  const bool anywhere = is_op(v, "input") || is_op(v, "constant");
  if (anywhere || v.node()->context == name(context)) return v;
  Variable& copy = moved_[{key_of(v), context}];
  if (!copy.defined()) {
    copy = apply("transfer", {v}, {{"context", *name(context)}}, loc);
    set_context(copy, name(context));
  }
  return copy;
}

/// The scalar worked out on that context, from what it is made of: sizes of inputs, which every
/// context knows, and constants.
Variable Partitioner::again_on(const Variable& scalar, int context) {
  const Node& node = *scalar.node();
  if (node.op->form == OpForm::leaf || node.context == name(context)) return scalar;
  Variable& again = scalars_[{key_of(scalar), context}];
  if (!again.defined()) {
    std::vector<Variable> inputs;
    for (const Variable& input : node.inputs) inputs.push_back(again_on(input, context));
    again = with_inputs(node, std::move(inputs)).node()->out(scalar.output());
    set_context(again, name(context));
  }
  return again;
}

Variable Partitioner::sum_of(const std::vector<Variable>& sizes, int count, int context) {
  Variable sum = make_scalar(DType::int64, std::int64_t{0}, sizes[0].node()->loc);
  for (int p = 0; p < count; ++p) {
    const Variable next = again_on(sizes[at(p)], context);
    sum = p == 0 ? next : on(context, [&] {
      return apply("add", {sum, next}, {}, next.node()->loc);
    });
  }
  return sum;
}

Variable Partitioner::total(const std::vector<Variable>& sizes, int context) {
  return sum_of(sizes, shards(), context);
}

Variable Partitioner::start(const std::vector<Variable>& sizes, int shard) {
  return sum_of(sizes, shard, context_of(shard));
}

std::vector<Held> Partitioner::each_shard(const Node& node, int axis, std::vector<Variable> sizes,
                                          const Inputs& inputs) const {
  std::vector<Held> results(node.outputs.size(), Held{axis, {}, std::move(sizes)});
  for (int p = 0; p < shards(); ++p) {
    const Variable made = with_inputs(node, inputs(p));
    set_context(made, name(context_of(p)));
    for (std::size_t k = 0; k < results.size(); ++k) {
      results[k].parts.push_back(made.node()->out(static_cast<int>(k)));
    }
  }
  return results;
}

std::vector<Held> Partitioner::each_context(const Node& node) {
  std::vector<Held> inputs;
  for (const Variable& input : node.inputs) inputs.push_back(whole(held(input), node.loc));
  std::vector<Held> results(node.outputs.size());
  for (int c = 0; c < contexts(); ++c) {
    std::vector<Variable> mine;
    for (const Held& input : inputs) mine.push_back(input.parts[at(c)]);
    const Variable made = with_inputs(node, std::move(mine));
    set_context(made, name(c));
    for (std::size_t k = 0; k < results.size(); ++k) {
      results[k].parts.push_back(made.node()->out(static_cast<int>(k)));
    }
  }
  return results;
}

std::vector<Variable> Partitioner::partials(const Node& node, const Inputs& inputs) const {
  return each_shard(node, 0, {}, inputs)[0].parts;
}

std::vector<Variable> Partitioner::parts_of(const Node& node, int shard) const {
  std::vector<Variable> parts;
  for (const Variable& input : node.inputs) parts.push_back(part(held(input), shard));
  return parts;
}

}  // namespace croton
