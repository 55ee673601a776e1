// Fusion decides which nodes share a kernel. A group is what becomes one kernel (or, for a
// reduction over everything or over leading axes, a kernel and the one that folds its partial
// results), one library call, one copy, or one view.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "compiler/graph/graph.h"
#include "compiler/plan/shapes.h"

namespace croton {

enum class GroupKind : std::uint8_t {
  map,     ///< elementwise over a domain
  row,     ///< stages over the reduced axes, one row of the kept axes after the other
  reduce,  ///< folds over everything, or over axes before the last: partial results, then a fold
  kernel,  ///< one op with a kernel of its own
  library,
  copy,
  view,
};

/// The most nodes in one group.
inline constexpr std::size_t kGroupLimit = 256;
/// The most operands that they read: some 40 bytes each, with sizes, of the 4096 for parameters of
/// a kernel.
inline constexpr std::size_t kOperandLimit = 96;

struct FusionGroup {
  GroupKind kind = GroupKind::map;
  std::vector<const Node*> nodes;         ///< members, oldest first
  std::vector<Variable> outputs;          ///< values that others need
  std::unordered_set<const Node*> reads;  ///< what makes the operands of members, but members
  const std::string* context = nullptr;
  int awaits = 0;  ///< the latest transfer between contexts that it waits for, as in FusionGraph

  /// Whether there is room for one more member.
  bool takes(const Node* node) const;
  void add(const Node* node);

  // map, row, reduce: the domain. Axes that folds reduce are marked.
  std::vector<Dim> domain;
  std::vector<bool> reduced;
  /// For each member: the domain axis of each of its axes, -1 where its size is 1. Members that are
  /// read through another index map than this one are in `displaced` instead.
  std::unordered_map<const Node*, std::vector<int>> axes;
  std::unordered_set<const Node*> displaced;

  bool contains(const Node* node) const { return axes.contains(node) || displaced.contains(node); }
};

/// Whether the node is a reduction that reduces something: over axes of size 1 alone it is the
/// value itself.
bool reduces(const Node* node, const Shapes& shapes);

/// The groups of a graph in an order in which each comes after those that it needs. Every node but
/// leaves is in one group, except index maps and constants' casts that each user computes itself.
/// With `fuse` false each node is a group of its own. `explain` takes, for each value that a group
/// reads from memory though it could have been computed there, the reason.
using Explain = std::function<void(const Node& producer, const Node& root, const char* reason)>;
std::vector<FusionGroup> fuse(const Graph& graph, const Shapes& shapes, bool fuse,
                              const Explain& explain = {});

/// One line a group: its kind, members and outputs.
std::string to_text(const std::vector<FusionGroup>& groups);

}  // namespace croton
