#include "compiler/graph/op.h"

#include <algorithm>

#include "croton/error.h"

namespace croton {

const OpRegistry& OpRegistry::instance() {
  // Never destroyed: nodes in static variables of the user's may outlive it otherwise.
  static const OpRegistry* const registry = [] {
    auto* made = new OpRegistry();
    register_ops(*made);
    return made;
  }();
  return *registry;
}

const OpDef* OpRegistry::find(std::string_view name) const {
  const auto it = index_.find(name);
  return it == index_.end() ? nullptr : it->second;
}

const OpDef& OpRegistry::at(std::string_view name) const {
  const OpDef* op = find(name);
  if (op == nullptr) throw InternalError("no op is called '" + std::string(name) + "'");
  return *op;
}

std::vector<const OpDef*> OpRegistry::all() const {
  std::vector<const OpDef*> result;
  for (const auto& op : ops_) result.push_back(op.get());
  std::sort(result.begin(), result.end(),
            [](const OpDef* a, const OpDef* b) { return a->name < b->name; });
  return result;
}

void OpRegistry::add(OpDef op) {
  ops_.push_back(std::make_unique<OpDef>(std::move(op)));
  const OpDef* added = ops_.back().get();
  internal_check(index_.emplace(added->name, added).second, "an op is registered twice");
}

}  // namespace croton
