#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/fuse/group.h"
#include "compiler/fuse/group_order.h"
#include "compiler/fuse/own_kernels.h"
#include "compiler/fuse/step_order.h"
#include "compiler/graph/op.h"
#include "croton/error.h"

namespace croton {

namespace {

/// Nodes in an order in which what only one user needs stands right before it, so that a group
/// grows into all that a value needs before it turns to the next. Age does not do for that: rules
/// make a whole chain of sums anew, behind all its terms.
std::vector<const Node*> depth_first(const Graph& graph) {
  std::vector<const Node*> order;
  std::unordered_set<const Node*> seen;
  std::vector<std::pair<const Node*, std::size_t>> path;  // with the input to look at next
  const auto enter = [&](const Node* node) {
    if (seen.insert(node).second) path.emplace_back(node, 0);
  };
  for (const Variable& output : graph.outputs) {
    enter(output.node());
    while (!path.empty()) {
      const auto [node, next] = path.back();
      if (next == node->inputs.size()) {
        order.push_back(node);
        path.pop_back();
      } else {
        ++path.back().second;
        enter(node->inputs[next].node());
      }
    }
  }
  return order;
}

}  // namespace

FusionGraph::FusionGraph(const Graph& graph, const Shapes& shapes) : shapes(shapes) {
  order = depth_first(graph);
  for (std::size_t i = 0; i < order.size(); ++i) number.emplace(order[i], static_cast<int>(i));
  users.resize(order.size());
  is_output.resize(order.size());
  group_of.assign(order.size(), -1);
  awaits.assign(order.size(), 0);
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (const Variable& input : order[i]->inputs) {
      const int maker = number.at(input.node());
      users[maker].push_back(static_cast<int>(i));
      const bool transfer = order[maker]->op->form == OpForm::move;
      awaits[i] = std::max(awaits[i], transfer ? maker + 1 : awaits[maker]);
    }
  }
  for (const Variable& output : graph.outputs) is_output[number.at(output.node())] = true;
}

bool reduces(const Node* node, const Shapes& shapes) {
  if (!node->op->fold) return false;
  const std::vector<Dim>& shape = shapes.of(node->inputs[0]).shape;
  for (const std::int64_t axis : node->attrs().integers("axes")) {
    if (!shape[axis].is(1)) return true;
  }
  return false;
}

bool is_fusible(const Node* node) {
  const OpDef& op = *node->op;
  return (op.form == OpForm::scalar || op.element != nullptr || op.fold) && !op.view &&
         node->outputs.size() == 1;
}

namespace {

GroupKind kind_of(const Node* node) {
  const OpDef& op = *node->op;
  if (op.view) return GroupKind::view;
  if (op.form == OpForm::move) return GroupKind::copy;
  if (op.form == OpForm::library) return GroupKind::library;
  if (op.kernel != nullptr) return GroupKind::kernel;
  if (!is_fusible(node)) {
    throw InternalError("the op '" + op.name + "' has no lowering");
  }
  return GroupKind::map;
}

/// The values of a group that somebody outside needs.
void set_outputs(FusionGroup& group, int id, const FusionGraph& fusion) {
  for (const Node* node : group.nodes) {
    const int i = fusion.number.at(node);
    bool needed = fusion.is_output[i];
    for (const int user : fusion.users[i]) needed = needed || fusion.group_of[user] != id;
    if (!needed) continue;
    for (std::size_t k = 0; k < node->outputs.size(); ++k) {
      group.outputs.push_back(node->out(static_cast<int>(k)));
    }
  }
}

}  // namespace

std::string to_text(const std::vector<FusionGroup>& groups) {
  static constexpr const char* kKinds[] = {"map",     "row",  "reduce", "kernel",
                                           "library", "copy", "view"};
  std::string text;
  for (const FusionGroup& group : groups) {
    std::vector<std::string> names;
    for (const Node* node : group.nodes) names.push_back(node->op->name);
    text += fmt::format("{} @{}: {} -> {} output{}\n", kKinds[static_cast<int>(group.kind)],
                        *group.context, fmt::join(names, " "), group.outputs.size(),
                        group.outputs.size() == 1 ? "" : "s");
  }
  return text;
}

void use_own_kernels(std::vector<FusionGroup>& groups,
                     const std::function<TargetInfo(const std::string&)>& target) {
  for (FusionGroup& group : groups) {
    const bool own = group.kind == GroupKind::library && group.nodes[0]->op->kernel != nullptr;
    if (own && target(*group.context).gpu()) group.kind = GroupKind::kernel;
  }
}

std::vector<FusionGroup> fuse(const Graph& graph, const Shapes& shapes, bool fuse,
                              const Explain& explain) {
  FusionGraph fusion(graph, shapes);
  fusion.explain = explain;
  std::vector<FusionGroup> groups;
  GroupOrder order(fusion, groups);
  for (int i = static_cast<int>(fusion.order.size()) - 1; i >= 0; --i) {
    const Node* node = fusion.order[i];
    if (node->op->form == OpForm::leaf || fusion.group_of[i] >= 0) continue;
    const GroupKind kind = kind_of(node);
    if (kind == GroupKind::map) {
      Grower grower(fusion, groups, order, fuse);
      if (fuse && grower.join_sibling(i)) continue;
      groups.emplace_back();
      grower.start(static_cast<int>(groups.size()) - 1, i);
      continue;
    }
    fusion.group_of[i] = static_cast<int>(groups.size());
    order.add_group(i);
    FusionGroup& group = groups.emplace_back();
    group.kind = kind;
    group.nodes = {node};
    group.context = node->context;
  }
  for (std::size_t g = 0; g < groups.size(); ++g) {
    std::sort(groups[g].nodes.begin(), groups[g].nodes.end(),
              [](const Node* a, const Node* b) { return a->id < b->id; });
    set_outputs(groups[g], static_cast<int>(g), fusion);
  }
  return in_step_order(std::move(groups), fusion);
}

}  // namespace croton
