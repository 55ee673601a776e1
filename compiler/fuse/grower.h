#pragma once

#include <queue>
#include <unordered_map>
#include <vector>

#include "compiler/fuse/group.h"

namespace croton {

/// The graph as fusion walks it: nodes by number (inputs before users), their users and groups.
struct FusionGraph {
  FusionGraph(const Graph& graph, const Shapes& shapes);

  const Shapes& shapes;
  std::vector<const Node*> order;
  std::unordered_map<const Node*, int> number;
  std::vector<std::vector<int>> users;
  std::vector<bool> is_output;
  std::vector<int> group_of;  ///< -1: none yet
  /// The latest transfer between contexts that a node waits for, as 1 + its number; 0: none.
  std::vector<int> awaits;
  Explain explain;
};

/// Whether the node can share a kernel with others at all.
bool is_fusible(const Node* node);

class GroupOrder;

/// Grows one group from its root towards older nodes. A producer joins when the kernel's loops can
/// compute it where its user needs it, when nobody outside needs what the group cannot also write
/// or would have to wait for more values of other contexts, and when no path leads from the group
/// through others back into it.
class Grower {
 public:
  Grower(FusionGraph& fusion, std::vector<FusionGroup>& groups, GroupOrder& order, bool fuse)
      : fusion_(fusion), groups_(groups), order_(order), fuse_(fuse) {}

  /// Makes group `group` from node number `root`.
  void start(int group, int root);

  /// Lets node number `root` become one more output of an existing group over the same domain with
  /// which it shares an operand. Gives false when there is none.
  bool join_sibling(int root);

 private:
  /// The axes of a member's operand in terms of the domain; false when it is read elsewhere.
  bool operand_axes(const Node* user, int operand, std::vector<int>& axes) const;
  bool try_join(int producer);
  bool refuse(const Node* producer, const char* reason) const;
  bool join_fold(const Node* fold, const std::vector<int>& axes);
  bool covers_domain(const std::vector<int>& axes) const;
  bool holds_up_others(int node) const;
  bool can_be_output(const Node* node, const std::vector<int>& axes) const;
  bool feeds_fold(const Node* node) const;
  bool follows_fold(const Node* node, const std::vector<int>& axes) const;
  bool sibling_axes(const Node* node, const FusionGroup& group, std::vector<int>& axes) const;
  void add(int node);
  void grow();
  FusionGroup& group() { return groups_[id_]; }
  const FusionGroup& group() const { return groups_[id_]; }

  FusionGraph& fusion_;
  std::vector<FusionGroup>& groups_;
  GroupOrder& order_;
  bool fuse_;
  int id_ = -1;
  std::priority_queue<int> candidates_;
};

}  // namespace croton
