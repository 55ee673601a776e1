#include <algorithm>
#include <cstring>
#include <unordered_set>

#include "compiler/graph/op.h"
#include "compiler/rewrite/rewrite.h"

namespace croton {
namespace {

std::uint64_t mix(std::uint64_t h, std::uint64_t v) {
  h = (h ^ v) * 0x9e3779b97f4a7c15ull;
  return h ^ (h >> 29);
}

std::size_t constant_bytes(const Node& node) { return node.value.nbytes(); }

bool is_constant_op(const Node& node) { return node.op->name == "constant"; }

std::uint64_t identity(const Variable& v) {
  return mix(v.node()->id, static_cast<std::uint64_t>(v.output()));
}

struct SameWorkHash {
  std::size_t operator()(const Node* node) const {
    std::uint64_t h = reinterpret_cast<std::uintptr_t>(node->op);
    if (is_constant_op(*node)) {
      h = mix(h, static_cast<std::uint64_t>(node->value.dtype()));
      const auto* bytes = static_cast<const unsigned char*>(node->value.raw_data());
      // Large constants are told apart by their beginning; equality reads all of them.
      const std::size_t count = std::min<std::size_t>(constant_bytes(*node), 1024);
      for (std::size_t i = 0; i < count; ++i) h = mix(h, bytes[i]);
      return h;
    }
    h = mix(h, reinterpret_cast<std::uintptr_t>(node->context));
    if (!node->attrs().empty()) h = mix(h, node->attrs().hash());
    std::size_t k = 0;
    if (node->op->commutative && node->inputs.size() >= 2) {
      h = mix(h, identity(node->inputs[0]) + identity(node->inputs[1]));
      k = 2;
    }
    for (; k < node->inputs.size(); ++k) h = mix(h, identity(node->inputs[k]));
    return h;
  }
};

bool same_inputs(const Node& a, const Node& b) {
  const std::size_t count = a.inputs.size();
  if (count != b.inputs.size()) return false;
  std::size_t k = 0;
  if (a.op->commutative && count >= 2 && a.inputs[0].same(b.inputs[1]) &&
      a.inputs[1].same(b.inputs[0])) {
    k = 2;
  }
  for (; k < count; ++k) {
    if (!a.inputs[k].same(b.inputs[k])) return false;
  }
  return true;
}

struct SameWork {
  bool operator()(const Node* a, const Node* b) const {
    if (a->op != b->op) return false;
    if (is_constant_op(*a)) {
      return a->value.dtype() == b->value.dtype() && a->value.shape() == b->value.shape() &&
             (a->value.raw_data() == b->value.raw_data() ||
              std::memcmp(a->value.raw_data(), b->value.raw_data(), constant_bytes(*a)) == 0);
    }
    return a->context == b->context && a->graph == b->graph && same_inputs(*a, *b) &&
           a->attrs() == b->attrs();
  }
};

bool can_merge(const Node& node) {
  if (node.op->form == OpForm::leaf) return is_constant_op(node);
  return !node.op->random;
}

}  // namespace

Graph merge(const Graph& graph, const CompileContext&) {
  std::unordered_set<const Node*, SameWorkHash, SameWork> known;
  std::vector<Variable> keep;
  // Constants are leaves, which rebuild() shows to the visitor like any other node.
  return rebuild(graph, [&](const Node& node) -> std::vector<Variable> {
    if (!can_merge(node)) return {};
    const auto [it, first] = known.insert(&node);
    if (first) {
      keep.push_back(node.out());
      return {};
    }
    std::vector<Variable> values;
    for (std::size_t k = 0; k < node.outputs.size(); ++k) {
      values.push_back((*it)->out(static_cast<int>(k)));
    }
    return values;
  });
}

}  // namespace croton
