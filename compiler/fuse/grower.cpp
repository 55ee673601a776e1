#include "compiler/fuse/grower.h"

#include <algorithm>

#include "compiler/fuse/group_order.h"
#include "compiler/graph/op.h"

namespace croton {
namespace {

/// From this many scalar operations an element on, computing a value again costs more than
/// reading it.
constexpr int kExpensive = 6;

std::vector<int> fold_axes(const Node* fold) {
  const auto& list = fold->attrs().integers("axes");
  return {list.begin(), list.end()};
}

bool is_reduced(const Node* fold, int axis) {
  const auto& list = fold->attrs().integers("axes");
  return std::find(list.begin(), list.end(), axis) != list.end();
}

/// The reduction runs along the last axis that counts, so that its operand is read contiguously.
bool folds_last_axis(const Node* fold, const Shapes& shapes) {
  const std::vector<Dim>& shape = shapes.of(fold->inputs[0]).shape;
  for (int axis = static_cast<int>(shape.size()) - 1; axis >= 0; --axis) {
    if (!shape[axis].is(1)) return is_reduced(fold, axis);
  }
  return true;
}

bool keeps_an_axis(const FusionGroup& group) {
  for (std::size_t axis = 0; axis < group.domain.size(); ++axis) {
    if (!group.reduced[axis] && !group.domain[axis].is(1)) return true;
  }
  return false;
}

bool has_reduced(const FusionGroup& group) {
  return std::find(group.reduced.begin(), group.reduced.end(), true) != group.reduced.end();
}

/// Scalar constants stand in the kernel's text.
bool is_read(const Variable& operand) {
  return constant_value(operand) == nullptr || operand.ndim() > 0;
}

}  // namespace

bool FusionGroup::takes(const Node* node) const {
  if (nodes.size() >= kGroupLimit) return false;
  std::size_t count = reads.size();
  for (const Variable& operand : node->inputs) {
    if (is_read(operand) && !reads.contains(operand.node())) ++count;
  }
  return count <= kOperandLimit;
}

void FusionGroup::add(const Node* node) {
  nodes.push_back(node);
  reads.erase(node);
  for (const Variable& operand : node->inputs) {
    if (is_read(operand) && !contains(operand.node())) reads.insert(operand.node());
  }
}

void Grower::start(int id, int root) {
  id_ = id;
  order_.add_group(root);
  const Node* node = fusion_.order[root];
  FusionGroup& g = group();
  g.context = node->context;
  g.awaits = fusion_.awaits[root];
  const std::vector<Dim>& shape =
      node->op->fold ? fusion_.shapes.of(node->inputs[0]).shape : fusion_.shapes.of(node)[0].shape;
  g.domain = shape;
  g.reduced.assign(shape.size(), false);
  std::vector<int> axes;
  if (node->op->fold) {
    const bool keepdims = node->attrs().integer("keepdims") != 0;
    for (const int axis : fold_axes(node)) g.reduced[axis] = !shape[axis].is(1);
    for (int axis = 0; axis < static_cast<int>(shape.size()); ++axis) {
      if (!is_reduced(node, axis)) {
        axes.push_back(shape[axis].is(1) ? -1 : axis);
      } else if (keepdims) {
        axes.push_back(-1);
      }
    }
    if (reduces(node, fusion_.shapes)) {
      g.kind = folds_last_axis(node, fusion_.shapes) && keeps_an_axis(g) ? GroupKind::row
                                                                         : GroupKind::reduce;
    }
  } else {
    for (int axis = 0; axis < static_cast<int>(shape.size()); ++axis) {
      axes.push_back(shape[axis].is(1) ? -1 : axis);
    }
  }
  g.axes.emplace(node, std::move(axes));
  add(root);
  if (fuse_) grow();
}

void Grower::add(int node) {
  fusion_.group_of[node] = id_;
  group().add(fusion_.order[node]);
  for (const Variable& input : fusion_.order[node]->inputs) {
    candidates_.push(fusion_.number.at(input.node()));
  }
}

void Grower::grow() {
  int last = -1;
  while (!candidates_.empty()) {
    const int producer = candidates_.top();
    candidates_.pop();
    if (producer == last) continue;
    last = producer;
    if (group().nodes.size() >= kGroupLimit) return;
    const Node* node = fusion_.order[producer];
    if (node->op->form != OpForm::leaf && !group().takes(node)) {
      refuse(node, "the kernel reads as many operands as it may");
    } else if (try_join(producer)) {
      add(producer);
    }
  }
}

bool Grower::operand_axes(const Node* user, int operand, std::vector<int>& axes) const {
  const auto found = group().axes.find(user);
  if (found == group().axes.end()) return false;
  const std::vector<int>& mine = found->second;
  const std::vector<Dim>& shape = fusion_.shapes.of(user->inputs[operand]).shape;
  axes.assign(shape.size(), -1);
  if (user->op->form == OpForm::scalar) {
    const std::size_t skip = mine.size() - shape.size();
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      if (!shape[axis].is(1)) axes[axis] = mine[axis + skip];
    }
  } else if (user->op->name == "dimshuffle") {
    const auto& order = user->attrs().integers("order");
    for (std::size_t axis = 0; axis < order.size(); ++axis) {
      if (order[axis] >= 0) axes[order[axis]] = mine[axis];
    }
  } else if (user->op->fold) {
    // The reduced axes of the domain stand in the order of the fold's own.
    const bool keepdims = user->attrs().integer("keepdims") != 0;
    std::size_t kept = 0;
    std::size_t next_reduced = 0;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      if (!is_reduced(user, static_cast<int>(axis))) {
        axes[axis] = mine[kept++];
        continue;
      }
      if (keepdims) ++kept;
      if (shape[axis].is(1)) continue;
      while (next_reduced < group().domain.size() &&
             (!group().reduced[next_reduced] || group().domain[next_reduced].is(1))) {
        ++next_reduced;
      }
      if (next_reduced == group().domain.size()) return false;
      axes[axis] = static_cast<int>(next_reduced++);
    }
  } else {
    return false;
  }
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (axes[axis] >= 0 && !group().domain[axes[axis]].same(shape[axis])) return false;
    if (axes[axis] < 0 && !shape[axis].is(1)) return false;
  }
  return true;
}

bool Grower::covers_domain(const std::vector<int>& axes) const {
  for (int axis = 0; axis < static_cast<int>(group().domain.size()); ++axis) {
    if (group().domain[axis].is(1)) continue;
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) return false;
  }
  return true;
}

/// Whether a member's users outside could go on before what the group waits for has come.
bool Grower::holds_up_others(int node) const {
  const std::vector<int>& users = fusion_.users[node];
  return std::any_of(users.begin(), users.end(), [&](int user) {
    return fusion_.group_of[user] != id_ && fusion_.awaits[user] < group().awaits;
  });
}

bool Grower::can_be_output(const Node* node, const std::vector<int>& axes) const {
  if (reduces(node, fusion_.shapes) || covers_domain(axes)) return true;
  if (!has_reduced(group())) return false;
  // A value of the kept axes alone is written once a row.
  for (int axis = 0; axis < static_cast<int>(group().domain.size()); ++axis) {
    if (group().domain[axis].is(1)) continue;
    const bool present = std::find(axes.begin(), axes.end(), axis) != axes.end();
    if (present == group().reduced[axis]) return false;
  }
  return true;
}

bool Grower::refuse(const Node* producer, const char* reason) const {
  if (fusion_.explain) fusion_.explain(*producer, *group().nodes.front(), reason);
  return false;
}

bool Grower::try_join(int number) {
  const Node* node = fusion_.order[number];
  if (fusion_.group_of[number] == id_ || node->op->form == OpForm::leaf) return false;
  if (!is_fusible(node)) return refuse(node, "it has a kernel or a library call of its own");
  if (fusion_.group_of[number] >= 0) return refuse(node, "it belongs to another kernel already");
  if (node->context != group().context) return refuse(node, "it runs on another context");

  std::vector<int> axes;
  bool aligned = true;
  bool first = true;
  bool outside = false;
  for (const int user : fusion_.users[number]) {
    if (fusion_.group_of[user] != id_) {
      outside = true;
      continue;
    }
    const Node* member = fusion_.order[user];
    for (int k = 0; k < static_cast<int>(member->inputs.size()); ++k) {
      if (member->inputs[k].node() != node) continue;
      std::vector<int> mine;
      if (!operand_axes(member, k, mine)) {
        aligned = false;
      } else if (first) {
        axes = std::move(mine);
        first = false;
      } else if (mine != axes) {
        aligned = false;
      }
    }
  }
  const bool wanted = outside || fusion_.is_output[number];
  if (!aligned) {
    if (wanted || reduces(node, fusion_.shapes) || node->op->cost >= kExpensive) {
      return refuse(node, "it is read at other places than where it would be computed");
    }
    group().displaced.insert(node);
    return true;
  }
  if (wanted && !can_be_output(node, axes)) {
    return refuse(node, "others need it too, and it does not span the domain");
  }
  if (outside && holds_up_others(number)) {
    return refuse(node, "others need it before what this kernel reads comes from another context");
  }
  if (outside && !order_.bring_together(number, id_)) {
    return refuse(node, "others need it to compute what this kernel reads");
  }
  if (reduces(node, fusion_.shapes)) {
    if (!join_fold(node, axes)) {
      return refuse(node, "its reduction does not run along the rows of this kernel");
    }
  } else if (node->op->cost >= kExpensive && !can_be_output(node, axes) &&
             !follows_fold(node, axes)) {
    return refuse(node, "it would be computed again for each element");
  }
  group().axes.emplace(node, std::move(axes));
  return true;
}

/// Whether the value comes, elementwise, from a reduction over what it lacks of the domain: once
/// that joins, the value is computed once a row.
bool Grower::follows_fold(const Node* node, const std::vector<int>& axes) const {
  constexpr int kDepth = 16;
  std::vector<Dim> rest;
  for (int axis = 0; axis < static_cast<int>(group().domain.size()); ++axis) {
    if (!group().domain[axis].is(1) && std::find(axes.begin(), axes.end(), axis) == axes.end()) {
      rest.push_back(group().domain[axis]);
    }
  }
  std::vector<const Node*> todo{node};
  for (int i = 0; i < kDepth && i < static_cast<int>(todo.size()); ++i) {
    if (todo[i]->op->fold) {
      const std::vector<Dim>& shape = fusion_.shapes.of(todo[i]->inputs[0]).shape;
      std::vector<Dim> sizes;
      for (const int axis : fold_axes(todo[i])) {
        if (!shape[axis].is(1)) sizes.push_back(shape[axis]);
      }
      bool equal = sizes.size() == rest.size() && folds_last_axis(todo[i], fusion_.shapes);
      for (std::size_t k = 0; equal && k < rest.size(); ++k) equal = sizes[k].same(rest[k]);
      if (equal) return true;
      continue;
    }
    if (todo[i]->op->form != OpForm::scalar && todo[i]->op->name != "dimshuffle") continue;
    for (const Variable& input : todo[i]->inputs) {
      if (input.node()->op->form != OpForm::leaf) todo.push_back(input.node());
    }
  }
  return false;
}

/// Whether members compute, from this value, something that a fold of the group reads or that has
/// the reduced axes.
bool Grower::feeds_fold(const Node* node) const {
  std::vector<int> todo{fusion_.number.at(node)};
  std::unordered_set<int> seen;
  while (!todo.empty()) {
    const int number = todo.back();
    todo.pop_back();
    for (const int user : fusion_.users[number]) {
      if (fusion_.group_of[user] != id_ || !seen.insert(user).second) continue;
      const Node* member = fusion_.order[user];
      const auto found = group().axes.find(member);
      if (found == group().axes.end() || reduces(member, fusion_.shapes)) return true;
      for (const int axis : found->second) {
        if (axis >= 0 && group().reduced[axis]) return true;
      }
      todo.push_back(user);
    }
  }
  return false;
}

bool Grower::join_fold(const Node* fold, const std::vector<int>& axes) {
  FusionGroup& g = group();
  std::vector<int> kept = axes;
  kept.erase(std::remove(kept.begin(), kept.end(), -1), kept.end());
  std::vector<int> sorted_kept = kept;
  std::sort(sorted_kept.begin(), sorted_kept.end());
  if (std::adjacent_find(sorted_kept.begin(), sorted_kept.end()) != sorted_kept.end()) return false;

  std::vector<Dim> sizes;  // what the fold reduces
  const std::vector<Dim>& shape = fusion_.shapes.of(fold->inputs[0]).shape;
  for (const int axis : fold_axes(fold)) {
    if (!shape[axis].is(1)) sizes.push_back(shape[axis]);
  }
  std::vector<int> rest;  // domain axes that the fold's result does not have
  for (int axis = 0; axis < static_cast<int>(g.domain.size()); ++axis) {
    if (!g.domain[axis].is(1) && std::find(kept.begin(), kept.end(), axis) == kept.end()) {
      rest.push_back(axis);
    }
  }
  const bool had_reduced = has_reduced(g);
  if (!had_reduced && rest.empty()) {
    // The group so far works on results of the fold: the domain gains the reduced axes.
    if (feeds_fold(fold)) return false;
    for (const Dim& size : sizes) {
      g.domain.push_back(size);
      g.reduced.push_back(true);
    }
    g.kind = folds_last_axis(fold, fusion_.shapes) && keeps_an_axis(g) ? GroupKind::row
                                                                       : GroupKind::reduce;
    return true;
  }
  if (rest.size() != sizes.size()) return false;
  for (std::size_t i = 0; i < rest.size(); ++i) {
    if (!g.domain[rest[i]].same(sizes[i])) return false;
    if (had_reduced && !g.reduced[rest[i]]) return false;
  }
  if (had_reduced) {
    // All folds of a kernel reduce the same axes.
    if (std::any_of(kept.begin(), kept.end(), [&](int axis) { return g.reduced[axis]; })) {
      return false;
    }
    // In a kernel that folds partial results, no fold can use another one's result: all users of
    // this one must come after the folds, on the kept axes alone.
    if (g.kind == GroupKind::row) return folds_last_axis(fold, fusion_.shapes);
    return !feeds_fold(fold);
  }
  if (!folds_last_axis(fold, fusion_.shapes)) return false;
  if (sorted_kept.empty()) return false;  // one row: it would run on one thread
  for (const int axis : rest) g.reduced[axis] = true;
  g.kind = GroupKind::row;
  return true;
}

/// Where a node would stand in another group's domain: as a value of all of it, as one of the kept
/// axes, or as a fold over the reduced ones.
bool Grower::sibling_axes(const Node* node, const FusionGroup& g, std::vector<int>& axes) const {
  const std::vector<Dim>& shape = fusion_.shapes.of(node)[0].shape;
  const bool reduced = has_reduced(g);
  axes.clear();
  if (node->op->fold) {
    const std::vector<Dim>& in = fusion_.shapes.of(node->inputs[0]).shape;
    if (!reduced || in.size() != g.domain.size()) return false;
    const bool keepdims = node->attrs().integer("keepdims") != 0;
    for (int axis = 0; axis < static_cast<int>(in.size()); ++axis) {
      if (!in[axis].same(g.domain[axis])) return false;
      if (!in[axis].is(1) && is_reduced(node, axis) != g.reduced[axis]) return false;
      if (!is_reduced(node, axis)) {
        axes.push_back(in[axis].is(1) ? -1 : axis);
      } else if (keepdims) {
        axes.push_back(-1);
      }
    }
    return true;
  }
  if (shape.size() == g.domain.size()) {
    bool full = true;
    bool kept = reduced;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      full = full && shape[axis].same(g.domain[axis]);
      kept = kept && shape[axis].same(g.reduced[axis] ? Dim(1) : g.domain[axis]);
      axes.push_back(shape[axis].is(1) ? -1 : static_cast<int>(axis));
    }
    // A kernel that folds partial results writes values of the kept axes alone.
    return (full && g.kind != GroupKind::reduce) || kept;
  }
  if (!reduced) return false;
  std::size_t next = 0;
  for (int axis = 0; axis < static_cast<int>(g.domain.size()); ++axis) {
    if (g.reduced[axis]) continue;
    if (next == shape.size() || !shape[next].same(g.domain[axis])) return false;
    axes.push_back(shape[next++].is(1) ? -1 : axis);
  }
  return next == shape.size();
}

bool Grower::join_sibling(int root) {
  const Node* node = fusion_.order[root];
  if (node->op->form != OpForm::scalar && !node->op->fold) return false;
  // Groups that read something that this value, or what would be computed with it, reads, are worth
  // joining.
  std::vector<int> nearby;
  constexpr std::ptrdiff_t kUsers = 64;  // of one value, looked at on either side
  const auto add_users = [&](const Variable& v) {
    const std::vector<int>& users = fusion_.users[fusion_.number.at(v.node())];
    // Groups are made from the outputs down: the latest ones have the users next to this value.
    const auto here = std::upper_bound(users.begin(), users.end(), root);
    const auto last = here + std::min(kUsers, users.end() - here);
    for (auto user = here - std::min(kUsers, here - users.begin()); user != last; ++user) {
      const int of = fusion_.group_of[*user];
      if (of >= 0 && std::find(nearby.begin(), nearby.end(), of) == nearby.end()) {
        nearby.push_back(of);
      }
    }
  };
  constexpr std::size_t kNearby = 8;
  constexpr std::size_t kBelow = 12;  // nodes that would come along, looked at
  std::vector<const Node*> below{node};
  for (std::size_t k = 0; k < below.size() && nearby.size() < kNearby; ++k) {
    for (const Variable& input : below[k]->inputs) {
      if (constant_value(input) != nullptr) continue;
      add_users(input);
      const Node* next = input.node();
      const bool comes = fusion_.group_of[fusion_.number.at(next)] < 0 && is_fusible(next);
      const bool seen = std::find(below.begin(), below.end(), next) != below.end();
      if (comes && !seen && below.size() < kBelow) below.push_back(next);
    }
  }
  if (nearby.size() > kNearby) nearby.resize(kNearby);
  for (const int other : nearby) {
    const FusionGroup& g = groups_[other];
    // A group that reads this value has already refused it as a producer; what reads the group's
    // values may read them elsewhere than it would stand.
    const bool feeds = std::any_of(fusion_.users[root].begin(), fusion_.users[root].end(),
                                   [&](int user) { return fusion_.group_of[user] == other; });
    const bool reads =
        std::any_of(node->inputs.begin(), node->inputs.end(), [&](const Variable& input) {
          return fusion_.group_of[fusion_.number.at(input.node())] == other;
        });
    if (feeds || reads) continue;
    std::vector<int> axes;
    if (g.domain.empty() || g.context != node->context || !g.takes(node) ||
        g.awaits != fusion_.awaits[root] ||
        (g.kind != GroupKind::map && g.kind != GroupKind::row && g.kind != GroupKind::reduce) ||
        !sibling_axes(node, g, axes) || !order_.bring_together(root, other)) {
      continue;
    }
    id_ = other;
    group().axes.emplace(node, std::move(axes));
    add(root);
    grow();
    return true;
  }
  return false;
}

}  // namespace croton
