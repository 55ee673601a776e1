#pragma once

#include <bit>
#include <cstdint>
#include <deque>
#include <vector>

#include "compiler/graph/node.h"

namespace croton {

/// A map from nodes that is fast on graphs of any size. References to values stay valid; nothing
/// can be taken out. The nodes must live as long as the map.
template <class T>
class NodeMap {
 public:
  explicit NodeMap(std::size_t expected = 0) {
    if (expected != 0) resize(std::bit_ceil(2 * expected));
  }

  std::size_t size() const { return values_.size(); }
  bool contains(const Node* node) const { return find(node) != nullptr; }

  T* find(const Node* node) {
    return const_cast<T*>(static_cast<const NodeMap*>(this)->find(node));
  }
  const T* find(const Node* node) const {
    if (slots_.empty()) return nullptr;
    const Slot& slot = slots_[place_of(node)];
    return slot.node == nullptr ? nullptr : &values_[slot.index];
  }

  /// The value of the node, a new one the first time.
  T& operator[](const Node* node) {
    if (2 * (values_.size() + 1) > slots_.size()) {
      resize(slots_.empty() ? 16 : 2 * slots_.size());
    }
    Slot& slot = slots_[place_of(node)];
    if (slot.node == nullptr) {
      slot = {node, static_cast<std::uint32_t>(values_.size())};
      values_.emplace_back();
    }
    return values_[slot.index];
  }

 private:
  struct Slot {
    const Node* node = nullptr;
    std::uint32_t index = 0;
  };

  /// Where the node is, or the free slot where it would go.
  std::size_t place_of(const Node* node) const {
    const std::size_t mask = slots_.size() - 1;
    // Mixed, since graphs hold several runs of numbers, which would pile up behind one another.
    std::size_t place = (node->id * 0x9E3779B97F4A7C15u >> 32) & mask;
    while (slots_[place].node != nullptr && slots_[place].node != node) place = (place + 1) & mask;
    return place;
  }

  void resize(std::size_t size) {
    std::vector<Slot> old(size);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.node != nullptr) slots_[place_of(slot.node)] = slot;
    }
  }

  std::vector<Slot> slots_;
  std::deque<T> values_;
};

}  // namespace croton
