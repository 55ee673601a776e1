#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "compiler/graph/location.h"
#include "compiler/graph/op.h"
#include "compiler/passes.h"
#include "croton/error.h"
#include "runtime/log.h"

namespace croton {
namespace {

/// What is told of placing, besides errors.
struct Told {
  bool nodes = false;    ///< where each goes and why, if anyone takes such lines
  bool warnings = true;  ///< of the flags that ask for them
};

std::string node_text(const Node& node) {
  const std::string name = node.name->empty() ? "" : fmt::format(" '{}'", *node.name);
  return fmt::format("{}{} ({})", title_of(node.loc, node.op->name), name, to_text(node.loc));
}

/// Values made of sizes alone: plans know them, so that they lie nowhere and nothing is copied.
class SizeValues {
 public:
  static bool asks(const Node& node) {
    return node.op->name == "size_of" || node.op->name == "shape_of";
  }

  void note(const Node& node) {
    if (asks(node)) nodes_.insert(&node);
    const Type& type = node.outputs[0];
    if (!is_integer(type.dtype) || type.shape.size() > 1 || node.inputs.empty()) return;
    for (const Variable& input : node.inputs) {
      if (!is_op(input, "constant") && !has(input)) return;
    }
    nodes_.insert(&node);
  }
  bool has(const Variable& v) const { return nodes_.contains(v.node()); }

 private:
  std::unordered_set<const Node*> nodes_;
};

class Placer {
 public:
  Placer(const CompileContext& context, Told told)
      : default_(intern(context.default_context)), context_(context), told_(told) {}

  /// Inputs that are only seen in another shape, or repeated, are as free as they are: wherever
  /// needed.
  void note(const Node& asked, const Variable& placed) {
    const Node& node = *placed.node();
    sizes_.note(node);
    const bool reshapes =
        node.op->view || node.op->name == "dimshuffle" || node.op->name == "broadcast";
    if (!reshapes || !asked.context->empty()) return;
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      const Variable& input = node.inputs[k];
      const bool goes_along = k > 0 ? sizes_.has(input) : free_.contains(input.node());
      if (!is_everywhere(input) && !goes_along) return;
    }
    free_.insert(&node);
  }

  /// Where a node goes that is no transfer; its inputs are placed.
  const std::string* choose(const Node& node) const {
    std::string why;
    const std::string* where = wanted(node, why);
    if (node.op->form == OpForm::library && context_.config.soft_placement() &&
        context_.has_library_op && !context_.has_library_op(node.op->name, *where)) {
      if (told_.warnings) {
        log_warning(fmt::format(
            "{} runs on the CPU instead (soft_placement=on): the device of '{}' has no {}",
            node_text(node), *where, node.op->name));
      }
      why = fmt::format("the device of '{}' has no {}", *where, node.op->name);
      where = intern("cpu");
    }
    if (told_.nodes) tell(node, *where, why);
    return where;
  }

  void tell(const Node& node, const std::string& where, std::string_view why) const {
    context_.log(fmt::format("placement: {} on {}: {}", node_text(node), where, why));
  }

  /// A placed value on a context, for a node that uses it or a transfer that asks for it. What was
  /// moved before comes from where it was first.
  Variable moved(Variable v, const std::string* to, const Node* user, const Node* asked = nullptr) {
    while (v.node()->op->form == OpForm::move && v.node()->context != to) v = v.node()->inputs[0];
    if (is_everywhere(v) || v.node()->context == to) return v;
    const std::string key = key_of(v, to);
    if (const auto it = transfers_.find(key); it != transfers_.end()) return it->second;
    Variable copy;
    if (sizes_.has(v)) {
      std::vector<Variable> inputs = v.node()->inputs;
      for (Variable& input : inputs) {
        if (!SizeValues::asks(*v.node())) input = moved(input, to, user, asked);
      }
      copy = with_inputs(*v.node(), std::move(inputs));
    } else if (free_.contains(v.node())) {
      copy = made_again(v, to);
    } else {
      if (user != nullptr) implicit(v, to, *user);
      copy = apply("transfer", {v}, {{"context", *to}},
                   user != nullptr ? place_of(*user) : asked->loc);
    }
    set_context(copy, to);
    sizes_.note(*copy.node());
    transfers_.emplace(key, copy);
    return copy;
  }

  static void set_context(const Variable& v, const std::string* where) {
    const_cast<Node*>(v.node())->context = where;
  }

 private:
  static std::string key_of(const Variable& v, const std::string* to) {
    return std::to_string(v.node()->id) + "." + std::to_string(v.output()) + *to;
  }

  /// A value that is free, on another context; chains of them may be long, and all their values
  /// wanted there.
  Variable made_again(const Variable& v, const std::string* to) {
    std::vector<Variable> chain{v};
    Variable below;
    while (!below.defined() && free_.contains(chain.back().node()->inputs[0].node())) {
      const Variable& input = chain.back().node()->inputs[0];
      const auto known = transfers_.find(key_of(input, to));
      if (known != transfers_.end()) {
        below = known->second;
      } else {
        chain.push_back(input);
      }
    }
    for (auto it = chain.rbegin(); it != chain.rend(); ++it) {
      std::vector<Variable> inputs = it->node()->inputs;
      if (below.defined()) inputs[0] = below;
      for (std::size_t k = 1; k < inputs.size(); ++k) inputs[k] = moved(inputs[k], to, it->node());
      below = with_inputs(*it->node(), std::move(inputs));
      set_context(below, to);
      transfers_.emplace(key_of(*it, to), below);
    }
    return below;
  }

  void implicit(const Variable& v, const std::string* to, const Node& user) const {
    const ImplicitTransfer policy = context_.config.implicit_transfer();
    if (policy == ImplicitTransfer::allow) return;
    const std::string message = fmt::format(
        "[{}] an operand lives on context '{}' and the op runs on '{}': write .transfer(\"{}\") or "
        "set implicit_transfer=allow; at {}",
        title_of(user.loc, user.op->name), v.context(), *to, *to, to_text(user.loc));
    if (policy == ImplicitTransfer::raise) throw GraphError(message);
    if (told_.warnings) log_warning(message);
  }

  /// By the first that says something: the node itself, its forward op, its inputs, a flag.
  const std::string* wanted(const Node& node, std::string& why) const {
    if (!node.context->empty()) {
      if (told_.nodes) why = node.shared ? "its target" : "a scope or target";
      return node.context;
    }
    if (node.beside != nullptr) {
      if (told_.nodes) why = "beside the op whose gradient it is";
      return node.beside;
    }
    ContextVote vote, by_sizes;
    for (const Variable& input : node.inputs) {
      if (is_everywhere(input) || free_.contains(input.node())) continue;
      (sizes_.has(input) ? by_sizes : vote).add(input.node()->context, static_bytes(input));
    }
    const std::string* best = vote.winner();
    if (best == nullptr) {
      vote = by_sizes;
      best = vote.winner();
    }
    if (best == nullptr) {
      if (told_.nodes) why = "the default (flag device)";
      return default_;
    }
    if (told_.nodes) {
      why = fmt::format("{} of {} bytes of its inputs are there", vote.bytes_at(best),
                        vote.all_bytes());
    }
    return best;
  }

  const std::string* default_;
  const CompileContext& context_;
  const Told told_;
  std::unordered_map<std::string, Variable> transfers_;
  std::unordered_set<const Node*> free_;
  SizeValues sizes_;
};

/// The graph with contexts on all nodes, and transfers.
Graph placed_graph(const Graph& graph, const CompileContext& context, Told told) {
  told.nodes = told.nodes && context.log && context.config.log_placement();
  Placer placer(context, told);
  // rebuild() keeps a node whose inputs did not change; placing needs a context on every one.
  VariableMap<Variable> placed;
  const auto value = [&](const Variable& v) -> const Variable& {
    const auto it = placed.find(v);
    return it == placed.end() ? v : it->second;
  };
  for (const Node* node : graph.order()) {
    if (node->op->form == OpForm::leaf) {
      if (told.nodes && node->shared) placer.tell(*node, *node->context, "its target");
      continue;
    }
    std::vector<Variable> inputs;
    for (const Variable& input : node->inputs) inputs.push_back(value(input));
    if (node->op->form == OpForm::move) {
      const std::string* where = intern(node->attrs().text("context"));
      placed[node->out()] = placer.moved(inputs[0], where, nullptr, node);
      continue;
    }
    Variable copy = with_inputs(*node, inputs);
    const std::string* where = placer.choose(*copy.node());
    bool moved = false;
    for (Variable& input : inputs) {
      if (SizeValues::asks(*node)) break;  // it does not read its operand
      Variable there = placer.moved(input, where, node);
      moved = moved || !there.same(input);
      input = std::move(there);
    }
    if (moved) copy = with_inputs(*copy.node(), std::move(inputs));
    Placer::set_context(copy, where);
    placer.note(*node, copy);
    for (std::size_t k = 0; k < node->outputs.size(); ++k) {
      placed[node->out(static_cast<int>(k))] = copy.node()->out(static_cast<int>(k));
    }
  }
  Graph result;
  result.inputs = graph.inputs;
  for (const Variable& output : graph.outputs) result.outputs.push_back(value(output));
  return result;
}

/// "128 bytes", or what there is where sizes are known in calls alone.
std::string bytes_text(const Variable& v) {
  if (!v.static_shape().is_static())
    return "the bytes of " + v.node()->outputs[v.output()].to_text();
  return fmt::format("{:.0f} bytes", static_bytes(v));
}

void tell_transfers(const Graph& graph, const CompileContext& context) {
  for (const Node* node : graph.order()) {
    if (node->op->form != OpForm::move) continue;
    const Variable& from = node->inputs[0];
    const std::string_view user = node->loc.op;
    const std::string name = from.name().empty() ? "" : fmt::format("'{}', ", from.name());
    context.log(fmt::format("placement: transfer of {}{} from {} to {} {} ({})", name,
                            bytes_text(from), from.context(), *node->context,
                            user.empty() ? "that was asked for" : fmt::format("for {}", user),
                            to_text(node->loc)));
  }
}

}  // namespace

Graph locate(const Graph& graph, const CompileContext& context) {
  const bool several = on_several_contexts(graph.order());
  const bool tells = context.log && context.config.log_placement();
  if (!several && !tells) return graph;
  Graph placed = placed_graph(graph, context, {.nodes = true, .warnings = several});
  return several ? placed : graph;
}

Graph place(const Graph& graph, const CompileContext& context) {
  Graph placed = placed_graph(graph, context, {});
  if (context.log && context.config.log_placement()) tell_transfers(placed, context);
  return placed;
}

}  // namespace croton
