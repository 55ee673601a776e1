#include "runtime/block.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "croton/array.h"
#include "runtime/array_access.h"

using namespace croton;

namespace {

class CountingOwner final : public BlockOwner {
 public:
  std::atomic<int> released{0};
  void release(Block* block) noexcept override {
    ++released;
    free_block_header(block);
  }
};

}  // namespace

TEST_CASE("a block goes back to its owner with the last handle", "[block]") {
  CountingOwner owner;
  std::byte memory[16];
  {
    BlockRef a(new_block_header(memory, sizeof memory, &owner));
    CHECK(a.unique());
    BlockRef b = a;
    CHECK_FALSE(a.unique());
    BlockRef c = std::move(a);
    CHECK_FALSE(a);
    b.reset();
    CHECK(owner.released == 0);
    CHECK(c.unique());
    c = c;
    CHECK(c->data == memory);
  }
  CHECK(owner.released == 1);
}

TEST_CASE("host blocks are aligned, small ones inline", "[block]") {
  for (std::size_t bytes : {0u, 1u, 64u, 65u, 4096u, 3u << 20}) {
    const BlockRef b = host_block(bytes);
    CAPTURE(bytes);
    REQUIRE(b->data != nullptr);
    CHECK(reinterpret_cast<std::uintptr_t>(b->data) % 64 == 0);
    CHECK((b->data == b->small) == (bytes <= Block::kInlineBytes));
    std::memset(b->data, 1, bytes);
  }
  CHECK(reinterpret_cast<std::uintptr_t>(host_block(3u << 20)->data) % (2u << 20) == 0);
}

TEST_CASE("scalars and headers come from free lists", "[block]") {
  const auto addresses = [] {
    std::vector<Array> keep(20);
    for (Array& a : keep) a = Array(1.5f);
    std::set<const void*> seen;
    for (const Array& a : keep) seen.insert(a.raw_data());
    for (const Array& a : keep) seen.insert(ArrayAccess::impl(a));
    return seen;
  };
  const auto first = addresses();
  CHECK(first.size() == 40);
#ifndef __SANITIZE_ADDRESS__
  CHECK(addresses() == first);
#endif
}

TEST_CASE("handles may die on other threads than the one that made them", "[block]") {
  CountingOwner owner;
  constexpr int kRounds = 2000;
  static std::byte memory[8];
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&owner] {
      std::vector<BlockRef> handles;
      for (int i = 0; i < kRounds; ++i) {
        handles.emplace_back(new_block_header(memory, sizeof memory, &owner));
        if (handles.size() == 100)
          std::thread([h = std::move(handles)]() mutable { h.clear(); }).join();
        if (handles.size() == 100) handles.clear();
      }
    });
  }
  for (std::thread& t : threads) t.join();
  CHECK(owner.released == 4 * kRounds);
}

TEST_CASE("one array read and copied by many threads", "[block]") {
  const Array a = Array::arange(1000);
  std::atomic<std::int64_t> sum{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        Array copy = a;
        Array part = copy.slice(0, i, i + 1);
        copy = Array();
        sum += part.item<std::int64_t>();
      }
    });
  }
  for (std::thread& t : threads) t.join();
  CHECK(sum == 4 * 499500);
  CHECK(ArrayAccess::unique(a));
}
