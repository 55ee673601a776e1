#include "croton/vectorize.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "compiler/grad/reverse.h"
#include "compiler/graph/graph.h"
#include "compiler/graph/op.h"
#include "croton/error.h"
#include "ops/axes.h"
#include "ops/batch.h"
#include "ops/build.h"
#include "ops/sizes.h"

namespace croton {
namespace {

/// Puts a batch through a graph, one node after the other.
class Vectorizer {
 public:
  /// Values replaced by a batch, and by one of their own rank.
  Vectorizer(const VariableMap<Variable>& wide, const VariableMap<Variable>& same) {
    for (const auto& [old, value] : wide) lanes_.emplace(old, Lane{value});
    for (const auto& [old, value] : same) lanes_.emplace(old, Lane{value, false});
  }

  Lane of(const Variable& v) const {
    const auto it = lanes_.find(v);
    return it == lanes_.end() ? Lane{v, false} : it->second;
  }

  void run(std::span<const Variable> outputs) {
    for (const Node* node : nodes_below(outputs)) {
      const bool touched =
          std::any_of(node->inputs.begin(), node->inputs.end(),
                      [&](const Variable& input) { return lanes_.contains(input); });
      if (touched) visit(*node);
    }
  }

 private:
  /// The nodes between what is replaced and the outputs, and whatever else those need.
  std::vector<const Node*> nodes_below(std::span<const Variable> outputs) const {
    std::vector<const Node*> nodes;
    std::unordered_set<const Node*> seen;
    const auto add = [&](const Variable& v) {
      if (!lanes_.contains(v) && seen.insert(v.node()).second) nodes.push_back(v.node());
    };
    for (const Variable& v : outputs) add(v);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      for (const Variable& input : nodes[i]->inputs) add(input);
    }
    std::sort(nodes.begin(), nodes.end(),
              [](const Node* a, const Node* b) { return a->id < b->id; });
    return nodes;
  }

  void visit(const Node& node) {
    std::vector<Lane> in;
    bool batched = false;
    for (const Variable& input : node.inputs) {
      in.push_back(of(input));
      batched = batched || in.back().batched;
    }
    const std::uint64_t since = next_node_id();
    std::vector<Lane> results;
    if (!batched) {
      std::vector<Variable> inputs;
      for (const Lane& lane : in) inputs.push_back(lane.value);
      const Variable v = with_inputs(node, std::move(inputs));
      for (std::size_t k = 0; k < node.outputs.size(); ++k) {
        results.push_back({v.node()->out(static_cast<int>(k)), false});
      }
    } else if (node.op->name == "custom_gradient") {
      results = {custom(BatchArgs(node, std::move(in)))};
    } else if (const BatchRule rule = batch_rule(*node.op)) {
      results = rule(BatchArgs(node, std::move(in)));
    } else if (node.op->expand != nullptr) {
      results = expanded(node);
    } else {
      const Loc loc = place_of(node);
      graph_error("vectorize",
                  fmt::format("the op '{}' has no rule for a batch of operands", node.op->name),
                  {static_cast<const std::source_location&>(loc)});
    }
    for (std::size_t k = 0; k < results.size(); ++k) {
      const Variable old = node.out(static_cast<int>(k));
      relocate(results[k].value, since, node.loc);
      if (lanes_.contains(old)) continue;  // one of several outputs is replaced
      lanes_.emplace(old, kept(old, results[k], node.loc));
    }
  }

  /// By the smaller ops that the node stands for.
  std::vector<Lane> expanded(const Node& node) {
    const std::vector<Variable> parts = node.op->expand(node);
    run(parts);
    std::vector<Lane> results;
    for (const Variable& part : parts) results.push_back(of(part));
    return results;
  }

  /// With a rule that takes the batch, too. What the rule only uses stays the same for all where it
  /// is.
  static Lane custom(const BatchArgs& args) {
    const auto own = [&](std::size_t operand) {
      return operand > args.node.graph->outputs.size() && !args.batched(static_cast<int>(operand));
    };
    std::vector<Variable> inputs;
    for (int k = 0; k < args.count(); ++k) {
      inputs.push_back(own(static_cast<std::size_t>(k)) ? args.in[k].value : args.full(k));
    }
    const Lane result = args.again(std::move(inputs), {});
    const Node& node = *result.value.node();
    auto rule = std::make_shared<Graph>();
    VariableMap<Variable> replace;
    const Graph& old = *args.node.graph;
    for (std::size_t k = 0; k < old.inputs.size(); ++k) {
      // Symbols of the operands behind the value, then of it and its gradient.
      const std::size_t operand = k + 1 < node.inputs.size() ? k + 1 : 0;
      if (own(operand)) {
        rule->inputs.push_back(old.inputs[k]);
        continue;
      }
      const Variable& like = node.inputs[operand];
      rule->inputs.push_back(
          make_input(like.node()->outputs[like.output()], old.inputs[k].name(), args.loc));
      replace.emplace(old.inputs[k], rule->inputs.back());
    }
    Vectorizer inner(replace, {});
    std::vector<Variable> wanted;
    for (const Variable& v : old.outputs) {
      if (v.defined()) wanted.push_back(v);
    }
    inner.run(wanted);
    for (std::size_t k = 0; k < old.outputs.size(); ++k) {
      rule->outputs.push_back(Variable());
      if (!old.outputs[k].defined()) continue;
      const Lane lane = inner.of(old.outputs[k]);
      const Variable& like = rule->inputs[k];
      rule->outputs.back() = lane.batched ? lane.value : broadcast_like(lane.value, like, args.loc);
    }
    const_cast<Node&>(node).graph = std::move(rule);
    return result;
  }

  /// A result with the sizes of 1 that were known without the batch: they broadcast.
  static Lane kept(const Variable& old, const Lane& lane, const Loc& loc) {
    const int extra = lane.batched ? 1 : 0;
    internal_check(lane.value.ndim() == old.ndim() + extra, "a rule for a batch changed the rank");
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(lane.value.ndim()), kAnyDim);
    bool lost = false;
    for (int axis = 0; axis < old.ndim(); ++axis) {
      if (old.static_shape()[axis] != 1 || lane.value.static_shape()[axis + extra] == 1) continue;
      sizes[axis + extra] = 1;
      lost = true;
    }
    if (!lost) return lane;
    return {apply("specify_shape", {lane.value}, {{"sizes", std::move(sizes)}}, loc), lane.batched};
  }

  VariableMap<Lane> lanes_;
};

/// The sizes from axis `first` on.
Shape behind(const Shape& shape, int first) {
  return Shape(std::span(shape.begin(), shape.size()).subspan(static_cast<std::size_t>(first)));
}

/// One value that is replaced by another with more axes in front.
struct Widened {
  Variable at;      ///< what is replaced now
  Variable target;  ///< what it is in the end
  int more = 0;     ///< axes to come
};

Widened checked(const Variable& old, const Variable& wide, const Loc& loc) {
  if (!old.defined() || !wide.defined()) {
    graph_error("vectorize", "a value to replace, or what replaces it, is empty", loc);
  }
  Widened result{old, cast_to(wide, old.dtype(), loc), wide.ndim() - old.ndim()};
  Shape known(std::vector<std::int64_t>(static_cast<std::size_t>(wide.ndim()), kAnyDim));
  bool fits = wide.dtype() == old.dtype() && result.more >= 0;
  bool more_known = false;
  for (int axis = 0; fits && axis < old.ndim(); ++axis) {
    const std::int64_t want = old.static_shape()[axis];
    const std::int64_t have = wide.static_shape()[axis + result.more];
    fits = want == kAnyDim || have == kAnyDim || want == have;
    if (want != kAnyDim && have == kAnyDim) {
      known[axis + result.more] = want;
      more_known = true;
    }
  }
  if (!fits) {
    graph_error("vectorize",
                fmt::format("{} can be replaced by a value of its dtype and shape with more axes "
                            "in front: got {}",
                            variable_title(old, loc), variable_title(wide, loc)),
                loc);
  }
  if (more_known) {
    const std::vector<std::int64_t> sizes(known.begin(), known.end());
    result.target = apply("specify_shape", {result.target}, {{"sizes", sizes}}, loc);
  }
  return result;
}

/// The sizes of the axes that come with one pass agree where they are known.
void check_sizes(const VariableMap<Variable>& replace, const Loc& loc) {
  std::int64_t size = kAnyDim;
  for (const auto& [old, wide] : replace) {
    const std::int64_t own = wide.static_shape()[0];
    if (own == kAnyDim || own == size) continue;
    if (size != kAnyDim) {
      graph_error("vectorize",
                  fmt::format("the sizes of the batch clash: got {} and {}", size, own), loc);
    }
    size = own;
  }
}

}  // namespace

std::vector<Variable> vectorize_graph(const std::vector<Variable>& outputs,
                                      const std::vector<std::pair<Variable, Variable>>& replace,
                                      Loc line) {
  const Loc loc = line.named("vectorize_graph");
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    if (!outputs[k].defined()) {
      graph_error("vectorize", fmt::format("output {} is empty", k + 1), loc);
    }
  }
  std::vector<Widened> values;
  VariableMap<Variable> same;
  int passes = 0;
  for (const auto& [old, wide] : replace) {
    Widened value = checked(old, wide, loc);
    passes = std::max(passes, value.more);
    if (value.more == 0) {
      same.emplace(old, value.target);
    } else {
      values.push_back(std::move(value));
    }
  }
  std::vector<Variable> results = outputs;
  // One axis a pass, the one next to the values' own axes first.
  for (int pass = 0; pass < std::max(passes, 1); ++pass) {
    VariableMap<Variable> step;
    for (Widened& value : values) {
      if (value.more == 0) continue;
      --value.more;
      Variable next = value.target;
      if (value.more > 0) {
        const Variable& target = value.target;
        next = make_input({target.dtype(), behind(target.static_shape(), value.more)}, "", loc);
      }
      step.emplace(value.at, next);
      value.at = next;
    }
    check_sizes(step, loc);
    Vectorizer vectorizer(step, same);
    vectorizer.run(results);
    for (Variable& result : results) result = vectorizer.of(result).value;
    same.clear();
  }
  return results;
}

namespace {

/// The axis of the batch in each of `count` values.
std::vector<std::optional<int>> batch_axes(const std::vector<std::optional<int>>& given,
                                           std::size_t count, std::string_view what,
                                           const Loc& loc) {
  if (given.empty()) return std::vector<std::optional<int>>(count, 0);
  if (given.size() == count) return given;
  graph_error(
      "vmap",
      fmt::format("one axis for each {} is expected: got {} for {}", what, given.size(), count),
      loc);
}

}  // namespace

std::vector<Variable> vmap(
    const std::function<std::vector<Variable>(const std::vector<Variable>&)>& f,
    const std::vector<Variable>& inputs, const VmapOptions& options, Loc line) {
  const Loc loc = line.named("vmap");
  const auto in_axes = batch_axes(options.in_axes, inputs.size(), "input", loc);
  std::vector<Variable> elements;
  std::vector<std::pair<Variable, Variable>> replace;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    if (!inputs[k].defined()) graph_error("vmap", fmt::format("input {} is empty", k + 1), loc);
    if (!in_axes[k]) {
      elements.push_back(inputs[k]);
      continue;
    }
    const int rank = inputs[k].ndim();
    const int axis = checked_axis("vmap", *in_axes[k], rank, loc);
    std::vector<int> order{axis};
    for (int other = 0; other < rank; ++other) {
      if (other != axis) order.push_back(other);
    }
    const Variable wide = dimshuffle(inputs[k], order, loc);
    elements.push_back(
        make_input({wide.dtype(), behind(wide.static_shape(), 1)}, inputs[k].name(), loc));
    replace.emplace_back(elements.back(), wide);
  }
  if (replace.empty()) graph_error("vmap", "an input with a batch's axis is expected", loc);
  const std::vector<Variable> results = f(elements);
  std::vector<Variable> outputs = vectorize_graph(results, replace, loc);
  const auto out_axes = batch_axes(options.out_axes, outputs.size(), "output", loc);
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    Variable& y = outputs[k];
    const bool batched = y.ndim() != results[k].ndim();
    if (!out_axes[k]) {
      if (batched) {
        graph_error("vmap",
                    fmt::format("output {} has no axis for the batch, and depends on it", k + 1),
                    loc);
      }
      continue;
    }
    if (!batched) {  // the same for all
      std::vector<Size> sizes = sizes_of(y, loc);
      sizes.insert(sizes.begin(), sizes_of(replace[0].second, loc)[0]);
      y = broadcast_sizes(y, sizes, loc);
    }
    const int axis = checked_axis("vmap", *out_axes[k], y.ndim(), loc);
    std::vector<int> order;
    for (int other = 1; other < y.ndim(); ++other) order.push_back(other);
    order.insert(order.begin() + axis, 0);
    y = dimshuffle(y, order, loc);
  }
  return outputs;
}

}  // namespace croton
