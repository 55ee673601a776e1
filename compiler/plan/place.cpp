#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "compiler/graph/op.h"
#include "compiler/passes.h"
#include "croton/error.h"
#include "runtime/log.h"

namespace croton {
namespace {

/// Bytes for the vote of a node's inputs; an unknown size counts 1024.
double static_bytes(const Variable& v) {
  double bytes = static_cast<double>(size_of(v.dtype()));
  for (const std::int64_t size : v.static_shape()) bytes *= size == kAnyDim ? 1024 : size;
  return bytes;
}

/// Values that are wherever they are needed: arguments and constants.
bool is_everywhere(const Variable& v) {
  return is_op(v, "input") || is_op(v, "constant") ||
         (v.node()->inputs.empty() && v.node()->op->form != OpForm::leaf && v.context().empty());
}

class Placer {
 public:
  explicit Placer(const CompileContext& context)
      : default_(intern(context.default_context)), config_(context.config) {}

  /// Inputs that are only seen in another shape are as free as they are: wherever needed.
  void note_free(const Node& asked, const Variable& placed) {
    const Node& node = *placed.node();
    const bool reshapes = node.op->view || node.op->name == "dimshuffle";
    if (!reshapes || !asked.context->empty()) return;
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      const Variable& input = node.inputs[k];
      if (!is_everywhere(input) && (k > 0 || !free_.contains(input.node()))) return;
    }
    free_.insert(&node);
  }

  const std::string* choose(const Node& node) const {
    if (node.op->form == OpForm::move) return intern(node.attrs().text("context"));
    if (!node.context->empty()) return node.context;
    // Where most of the inputs' bytes are; ties go to the left.
    std::vector<std::pair<const std::string*, double>> votes;
    for (const Variable& input : node.inputs) {
      if (is_everywhere(input) || free_.contains(input.node())) continue;
      const std::string* where = input.node()->context;
      const auto found = std::find_if(votes.begin(), votes.end(),
                                      [&](const auto& vote) { return vote.first == where; });
      if (found == votes.end()) {
        votes.emplace_back(where, static_bytes(input));
      } else {
        found->second += static_bytes(input);
      }
    }
    const std::string* best = nullptr;
    double most = -1;
    for (const auto& [where, bytes] : votes) {
      if (bytes > most && !where->empty()) {
        best = where;
        most = bytes;
      }
    }
    return best != nullptr ? best : default_;
  }

  Variable moved(const Variable& v, const std::string* to, const Node* user) {
    if (is_everywhere(v) || v.node()->context == to) return v;
    const std::string key = key_of(v, to);
    if (const auto it = transfers_.find(key); it != transfers_.end()) return it->second;
    Variable copy;
    if (free_.contains(v.node())) {
      copy = made_again(v, to);
    } else {
      if (user != nullptr) implicit(v, to, *user);
      Attrs attrs{{"context", *to}};
      copy = apply("transfer", {v}, attrs, user != nullptr ? user->loc : v.node()->loc);
    }
    set_context(copy, to);
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
      below = with_inputs(*it->node(), std::move(inputs));
      set_context(below, to);
      transfers_.emplace(key_of(*it, to), below);
    }
    return below;
  }

  void implicit(const Variable& v, const std::string* to, const Node& user) const {
    const ImplicitTransfer policy = config_.implicit_transfer();
    if (policy == ImplicitTransfer::allow) return;
    const std::string message = "[" + std::string(title_of(user.loc, user.op->name)) +
                                "] an operand lives on context '" + v.context() +
                                "' and the op runs on '" + *to + "': write .transfer(\"" + *to +
                                "\") or set implicit_transfer=allow; at " + to_text(user.loc);
    if (policy == ImplicitTransfer::raise) throw GraphError(message);
    log_warning(message);
  }

  const std::string* default_;
  const Config& config_;
  std::unordered_map<std::string, Variable> transfers_;
  std::unordered_set<const Node*> free_;
};

}  // namespace

Graph place(const Graph& graph, const CompileContext& context) {
  Placer placer(context);
  // rebuild() keeps a node whose inputs did not change; placing needs a context on every one.
  VariableMap<Variable> placed;
  const auto value = [&](const Variable& v) -> const Variable& {
    const auto it = placed.find(v);
    return it == placed.end() ? v : it->second;
  };
  for (const Node* node : graph.order()) {
    if (node->op->form == OpForm::leaf) continue;
    std::vector<Variable> inputs;
    for (const Variable& input : node->inputs) inputs.push_back(value(input));
    Variable copy = with_inputs(*node, inputs);
    const std::string* where = placer.choose(*copy.node());
    if (node->op->form == OpForm::move) {
      const Variable& source = inputs[0];
      const Variable result = is_everywhere(source) || source.node()->context == where
                                  ? source
                                  : placer.moved(source, where, nullptr);
      placed[node->out()] = result;
      continue;
    }
    bool moved = false;
    for (Variable& input : inputs) {
      Variable there = placer.moved(input, where, node);
      moved = moved || !there.same(input);
      input = std::move(there);
    }
    if (moved) copy = with_inputs(*copy.node(), std::move(inputs));
    Placer::set_context(copy, where);
    placer.note_free(*node, copy);
    for (std::size_t k = 0; k < node->outputs.size(); ++k) {
      placed[node->out(static_cast<int>(k))] = copy.node()->out(static_cast<int>(k));
    }
  }
  Graph result;
  result.inputs = graph.inputs;
  for (const Variable& output : graph.outputs) result.outputs.push_back(value(output));
  return result;
}

}  // namespace croton
