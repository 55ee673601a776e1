#include "compiler/fuse/group_order.h"

#include <algorithm>
#include <numeric>
#include <unordered_set>

namespace croton {
namespace {

constexpr std::size_t kSearchLimit = 2000;

}  // namespace

GroupOrder::GroupOrder(const FusionGraph& fusion, const std::vector<FusionGroup>& groups)
    : fusion_(fusion), groups_(groups), node_place_(fusion.order.size()) {
  std::iota(node_place_.begin(), node_place_.end(), 0);
}

void GroupOrder::add_group(int node) { group_place_.push_back(node_place_[node]); }

GroupOrder::Unit GroupOrder::unit_of(int node) const {
  const int group = fusion_.group_of[node];
  return group >= 0 ? Unit{-1, group} : Unit{node, -1};
}

int& GroupOrder::place(const Unit& unit) {
  return unit.group >= 0 ? group_place_[unit.group] : node_place_[unit.node];
}

template <class Visit>
void GroupOrder::for_each_node(const Unit& unit, const Visit& visit) const {
  if (unit.group < 0) return visit(unit.node);
  for (const Node* member : groups_[unit.group].nodes) visit(fusion_.number.at(member));
}

std::optional<std::vector<GroupOrder::Unit>> GroupOrder::between(const Unit& from, const Unit& to,
                                                                 bool forward) {
  const int end = place(to);
  const int start = place(from);
  std::vector<Unit> found{from};
  std::unordered_set<int> seen;  // places
  bool reached = false;
  for (std::size_t i = 0; i < found.size() && !reached; ++i) {
    const auto visit = [&](int node) {
      const Unit next = unit_of(node);
      const int at = place(next);
      if (at == end && i > 0) reached = true;
      const bool inside = forward ? start < at && at < end : end < at && at < start;
      if (inside && seen.insert(at).second) found.push_back(next);
    };
    const Unit unit = found[i];
    for_each_node(unit, [&](int node) {
      if (forward) {
        for (const int user : fusion_.users[node]) visit(user);
      } else {
        for (const Variable& input : fusion_.order[node]->inputs) {
          visit(fusion_.number.at(input.node()));
        }
      }
    });
    reached = reached || found.size() > kSearchLimit;
  }
  if (reached) return std::nullopt;
  found.erase(found.begin());
  std::sort(found.begin(), found.end(),
            [&](const Unit& a, const Unit& b) { return place(a) < place(b); });
  return found;
}

bool GroupOrder::bring_together(int node, int group) {
  Unit first{node, -1};
  Unit second{-1, group};
  if (place(first) > place(second)) std::swap(first, second);
  const std::optional<std::vector<Unit>> before = between(second, first, false);
  if (!before) return false;
  const std::optional<std::vector<Unit>> after = between(first, second, true);
  if (!after) return false;
  // What the second needs moves in front of both, what needs the first behind them.
  std::vector<Unit> units = *before;
  units.push_back(first);
  units.push_back(second);
  units.insert(units.end(), after->begin(), after->end());
  std::vector<int> places;
  for (const Unit& unit : units) places.push_back(place(unit));
  std::sort(places.begin(), places.end());
  for (std::size_t i = 0; i < units.size(); ++i) place(units[i]) = places[i];
  return true;
}

}  // namespace croton
