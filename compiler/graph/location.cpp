#include "compiler/graph/location.h"

#include <algorithm>

#include "compiler/graph/op.h"

namespace croton {

double static_bytes(const Variable& v) {
  double bytes = static_cast<double>(size_of(v.dtype()));
  for (const std::int64_t size : v.static_shape()) {
    bytes *= size == kAnyDim ? 1024 : static_cast<double>(size);
  }
  return bytes;
}

bool is_everywhere(const Variable& v) {
  return is_op(v, "input") || is_op(v, "constant") ||
         (v.node()->inputs.empty() && v.node()->op->form != OpForm::leaf && v.context().empty());
}

void ContextVote::add(const std::string* where, double bytes) {
  all_ += bytes;
  if (where == nullptr || where->empty()) return;
  const auto found = std::find_if(votes_.begin(), votes_.end(),
                                  [&](const auto& vote) { return vote.first == where; });
  if (found == votes_.end()) {
    votes_.emplace_back(where, bytes);
  } else {
    found->second += bytes;
  }
}

const std::string* ContextVote::winner() const {
  const std::string* best = nullptr;
  double most = -1;
  for (const auto& [where, bytes] : votes_) {
    if (bytes > most) {
      best = where;
      most = bytes;
    }
  }
  return best;
}

double ContextVote::bytes_at(const std::string* where) const {
  for (const auto& vote : votes_) {
    if (vote.first == where) return vote.second;
  }
  return 0;
}

namespace {

/// What a node itself says of its context; null when it is left open.
const std::string* asked_of(const Node& node) {
  if (!node.context->empty()) return node.context;
  return node.beside;
}

}  // namespace

bool on_several_contexts(std::span<const Node* const> order) {
  const std::string* first = nullptr;
  for (const Node* node : order) {
    const std::string* where = asked_of(*node);
    if (where == nullptr) continue;
    if (first != nullptr && where != first) return true;
    first = where;
  }
  return false;
}

Locations::Locations(std::span<const Node* const> order) : several_(on_several_contexts(order)) {
  if (!several_) return;
  for (const Node* node : order) {
    if (asked_of(*node) != nullptr || node->op->form == OpForm::leaf) continue;
    ContextVote vote;
    for (const Variable& input : node->inputs) {
      if (!is_everywhere(input)) vote.add(found(*input.node()), static_bytes(input));
    }
    if (const std::string* where = vote.winner()) inferred_.emplace(node, where);
  }
}

const std::string* Locations::found(const Node& node) const {
  if (const std::string* asked = asked_of(node)) return asked;
  const auto it = inferred_.find(&node);
  return it == inferred_.end() ? nullptr : it->second;
}

const std::string* Locations::of(const Node& node) const {
  return several_ ? found(node) : nullptr;
}

}  // namespace croton
