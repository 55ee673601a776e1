#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "compiler/graph/node.h"

namespace croton {

/// A graph to be compiled: inputs, outputs, and the nodes between them. Passes replace outputs;
/// nodes themselves never change.
class Graph {
 public:
  std::vector<Variable> inputs;
  std::vector<Variable> outputs;

  /// Every node that the outputs need, inputs before users.
  std::vector<const Node*> order() const;
};

/// Every node that `outputs` need, inputs before users. Iterative; linear.
std::vector<const Node*> topological_order(std::span<const Variable> outputs);

/// Identity of a value inside maps.
struct VariableHash {
  std::size_t operator()(const Variable& v) const {
    return std::hash<const void*>()(v.node()) * 31 + static_cast<std::size_t>(v.output());
  }
};
struct VariableSame {
  bool operator()(const Variable& a, const Variable& b) const { return a.same(b); }
};
template <class T>
using VariableMap = std::unordered_map<Variable, T, VariableHash, VariableSame>;
using VariableSet = std::unordered_set<Variable, VariableHash, VariableSame>;

/// The graph with values replaced: each node's inputs are looked up in the result so far, nodes
/// whose inputs changed are made again, and `visit` (if any) may replace each node's outputs:
/// it gets the new node and gives one value for each output, or nothing to keep them.
using Visit = std::function<std::vector<Variable>(const Node&)>;
Graph rebuild(const Graph& graph, const Visit& visit,
              const VariableMap<Variable>& replacements = {});

/// Throws InternalError naming the first node that breaks a rule: types as inferred, acyclic,
/// leaves known, outputs defined.
void verify(const Graph& graph);

/// One line a node: "%3 = add(%1, %2) : float32 (?, 10)"; stable, for tests and dumps.
std::string to_text(const Graph& graph);

}  // namespace croton
