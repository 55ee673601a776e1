#pragma once

#include <optional>
#include <vector>

#include "compiler/fuse/grower.h"

namespace croton {

/// An order of groups, and of the nodes that are in none yet, in which each comes after all that it
/// reads from. Fusion keeps it up as groups grow, so that a search for a path between two of them
/// needs to look at nothing but what stands between them. Numbers of nodes do not do for that: a
/// group has older and newer members, and so leads from old nodes to new ones.
class GroupOrder {
 public:
  GroupOrder(const FusionGraph& fusion, const std::vector<FusionGroup>& groups);

  /// A new group, so far of this node alone.
  void add_group(int node);

  /// Lets `node`, which is in no group, and the group stand side by side, so that it may join.
  /// False when one of them needs, by way of a third, the other (or when that takes long to find
  /// out).
  bool bring_together(int node, int group);

 private:
  /// A node in no group, or a group.
  struct Unit {
    int node;
    int group;
  };
  Unit unit_of(int node) const;
  int& place(const Unit& unit);
  template <class Visit>
  void for_each_node(const Unit& unit, const Visit& visit) const;
  /// What `from` needs (or, forward, what needs it) and stands between the two, by place; nothing
  /// when `to` is reached by way of one of them, or when there are too many.
  std::optional<std::vector<Unit>> between(const Unit& from, const Unit& to, bool forward);

  const FusionGraph& fusion_;
  const std::vector<FusionGroup>& groups_;
  std::vector<int> node_place_;
  std::vector<int> group_place_;
};

}  // namespace croton
