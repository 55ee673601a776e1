#include "runtime/arena.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <queue>
#include <set>

namespace croton {
namespace {

/// The free ranges below `end`, by offset and by size.
class Holes {
 public:
  std::int64_t take(std::int64_t bytes) {
    const auto fit = by_size_.lower_bound({bytes, 0});
    if (fit != by_size_.end()) {
      const auto [size, offset] = *fit;
      remove(offset, size);
      if (size > bytes) add(offset + bytes, size - bytes);
      return offset;
    }
    // The last hole, if it reaches the end, grows.
    std::int64_t offset = end_;
    if (!by_offset_.empty()) {
      const auto [start, size] = *by_offset_.rbegin();
      if (start + size == end_) {
        remove(start, size);
        offset = start;
      }
    }
    end_ = offset + bytes;
    return offset;
  }

  void give(std::int64_t offset, std::int64_t bytes) {
    auto next = by_offset_.lower_bound(offset);
    if (next != by_offset_.end() && next->first == offset + bytes) {
      const auto [start, size] = *next;
      remove(start, size);
      bytes += size;
    }
    auto before = by_offset_.lower_bound(offset);
    if (before != by_offset_.begin()) {
      --before;
      const auto [start, size] = *before;
      if (start + size == offset) {
        remove(start, size);
        offset = start;
        bytes += size;
      }
    }
    add(offset, bytes);
  }

  std::int64_t end() const { return end_; }

 private:
  void add(std::int64_t offset, std::int64_t size) {
    by_offset_.emplace(offset, size);
    by_size_.emplace(size, offset);
  }
  void remove(std::int64_t offset, std::int64_t size) {
    by_offset_.erase(offset);
    by_size_.erase({size, offset});
  }

  std::map<std::int64_t, std::int64_t> by_offset_;
  std::set<std::pair<std::int64_t, std::int64_t>> by_size_;
  std::int64_t end_ = 0;
};

}  // namespace

std::int64_t lay_out(std::vector<ArenaItem>& items, std::int64_t alignment) {
  std::vector<std::size_t> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  // Larger ones first among those that begin together: what is left over fits small ones.
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (items[a].first != items[b].first) return items[a].first < items[b].first;
    if (items[a].bytes != items[b].bytes) return items[a].bytes > items[b].bytes;
    return a < b;
  });
  const auto later = [&](std::size_t a, std::size_t b) {
    return items[a].last != items[b].last ? items[a].last > items[b].last : a > b;
  };
  std::priority_queue<std::size_t, std::vector<std::size_t>, decltype(later)> live(later);
  const auto rounded = [&](const ArenaItem& item) {
    return std::max((item.bytes + alignment - 1) / alignment * alignment, alignment);
  };
  Holes holes;
  for (const std::size_t i : order) {
    while (!live.empty() && items[live.top()].last < items[i].first) {
      holes.give(items[live.top()].offset, rounded(items[live.top()]));
      live.pop();
    }
    items[i].offset = holes.take(rounded(items[i]));
    live.push(i);
  }
  return holes.end();
}

}  // namespace croton
