#include "runtime/arena.h"

#include <catch2/catch.hpp>
#include <random>

using namespace croton;

namespace {

/// Most bytes that are live at one step: no layout needs fewer.
std::int64_t least(const std::vector<ArenaItem>& items) {
  std::int64_t most = 0;
  for (const ArenaItem& at : items) {
    std::int64_t live = 0;
    for (const ArenaItem& item : items) {
      if (item.first <= at.first && at.first <= item.last) live += (item.bytes + 63) / 64 * 64;
    }
    most = std::max(most, live);
  }
  return most;
}

}  // namespace

TEST_CASE("what lives at once does not overlap") {
  std::mt19937 random(3);
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  std::int64_t total = 0, needed = 0;
  for (int round = 0; round < 100; ++round) {
    std::vector<ArenaItem> items(static_cast<std::size_t>(1 + pick(60)));
    for (ArenaItem& item : items) {
      item.first = pick(40);
      item.last = item.first + pick(8);
      item.bytes = pick(4) == 0 ? pick(100000) : 64 * (1 + pick(16));
    }
    const std::int64_t bytes = lay_out(items, 64);
    for (std::size_t i = 0; i < items.size(); ++i) {
      const ArenaItem& a = items[i];
      REQUIRE(a.offset % 64 == 0);
      REQUIRE(a.offset + a.bytes <= bytes);
      for (std::size_t j = 0; j < i; ++j) {
        const ArenaItem& b = items[j];
        const bool together = a.first <= b.last && b.first <= a.last;
        const bool apart = a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset;
        REQUIRE((!together || apart));
      }
    }
    total += bytes;
    needed += least(items);
  }
  CHECK(static_cast<double>(total) < 1.25 * static_cast<double>(needed));
}

TEST_CASE("a chain needs two places, however long it is") {
  std::vector<ArenaItem> items(100000);
  for (std::size_t i = 0; i < items.size(); ++i) {
    items[i] = {1000, static_cast<std::int32_t>(i), static_cast<std::int32_t>(i + 1), 0};
  }
  CHECK(lay_out(items, 64) == 2 * 1024);
}

TEST_CASE("nothing needs nothing") {
  std::vector<ArenaItem> none;
  CHECK(lay_out(none, 64) == 0);
}
