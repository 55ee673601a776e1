// Where the work of a graph lies before it is placed: as far as transfers, targets and scopes say.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/graph/graph.h"

namespace croton {

/// Bytes of a value for a vote; an unknown size counts 1024.
double static_bytes(const Variable& v);

/// Values that are wherever they are needed: arguments, constants, and what is made of nothing.
bool is_everywhere(const Variable& v);

/// The vote of a node's inputs, by their bytes.
class ContextVote {
 public:
  /// `where`: interned; an empty or null one counts among all bytes alone.
  void add(const std::string* where, double bytes);
  /// Where most bytes are; of equals the first. Null when nothing voted.
  const std::string* winner() const;
  double bytes_at(const std::string* where) const;
  double all_bytes() const { return all_; }

 private:
  std::vector<std::pair<const std::string*, double>> votes_;
  double all_ = 0;
};

/// The contexts that transfers, targets, scopes and gradients name among nodes.
bool on_several_contexts(std::span<const Node* const> order);

/// Where nodes will be placed, for graphs that are on several contexts: null for those that nothing
/// draws anywhere, and for all nodes of other graphs. Nodes come inputs first.
class Locations {
 public:
  explicit Locations(std::span<const Node* const> order);
  /// Whether the graph is on several contexts.
  bool several() const { return several_; }
  const std::string* of(const Node& node) const;

 private:
  const std::string* found(const Node& node) const;

  bool several_ = false;
  std::unordered_map<const Node*, const std::string*> inferred_;
};

}  // namespace croton
