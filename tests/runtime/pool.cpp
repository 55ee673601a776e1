#include "runtime/pool.h"

#include <catch2/catch.hpp>
#include <thread>

#include "tests/runtime/fake_device.h"

using namespace croton;
using namespace croton::test;

namespace {

struct PoolHolder {
  std::shared_ptr<FakeState> state = std::make_shared<FakeState>();
  Pool* pool;
  explicit PoolHolder(std::int64_t limit = 0)
      : pool(Pool::make(std::make_shared<FakeDevice>(state), "dev0", limit)) {}
  ~PoolHolder() { pool->retire(); }
};

}  // namespace

TEST_CASE("size classes are an eighth apart") {
  for (std::size_t n :
       {1ul, 64ul, 65ul, 512ul, 513ul, 1000ul, 4097ul, 1ul << 20, (1ul << 20) + 1}) {
    const std::size_t c = Pool::class_bytes(n);
    INFO(n);
    CHECK(c >= n);
    CHECK(c <= n + n / 8 + 64);
    CHECK(c % 64 == 0);
    CHECK(Pool::class_bytes(c) == c);
  }
}

TEST_CASE("blocks come back and are used again") {
  PoolHolder h;
  const std::byte* first;
  {
    const BlockRef a = h.pool->allocate(1000);
    first = a->data;
    CHECK(reinterpret_cast<std::uintptr_t>(first) % 64 == 0);
    CHECK(h.pool->statistics().live_bytes == 1024);
    CHECK(h.pool->statistics().live_blocks == 1);
  }
  CHECK(h.pool->statistics().live_bytes == 0);
  CHECK(h.pool->statistics().cached_bytes == 1024);
  CHECK(h.pool->allocate(970)->data == first);
  CHECK(h.pool->statistics().device_allocations == 1);
  CHECK(h.pool->allocate(2000)->data != first);
  CHECK(h.pool->statistics().peak_bytes == 2048);
  h.pool->trim();
  CHECK(h.pool->statistics().cached_bytes == 0);
  CHECK(h.state->used == 0);
}

TEST_CASE("small host blocks are none of the pool's business") {
  PoolHolder h;
  const BlockRef a = h.pool->allocate(40), b = h.pool->allocate(0);
  CHECK(a->data != nullptr);
  CHECK(b->data != nullptr);
  CHECK(h.pool->statistics().device_allocations == 0);
}

TEST_CASE("the pool keeps no more than its limit") {
  PoolHolder h(3000);
  { const BlockRef a = h.pool->allocate(2048), b = h.pool->allocate(2048); }
  CHECK(h.pool->statistics().cached_bytes == 2048);
  CHECK(h.state->used == 2048);
}

TEST_CASE("a device that is full gets its cached memory back first") {
  PoolHolder h;
  h.state->limit = 10000;
  { const BlockRef a = h.pool->allocate(8000); }
  CHECK(h.pool->statistics().cached_bytes > 0);
  const BlockRef b = h.pool->allocate(5000);
  CHECK(h.pool->statistics().cached_bytes == 0);
  try {
    h.pool->allocate(9000);
    FAIL("no error");
  } catch (const OutOfMemory& e) {
    CHECK(
        std::string(e.what()) ==
        "[dev0] out of memory on cpu0: asked for 9000 bytes, 5120 bytes in use by this context (at "
        "most 8192 bytes so far), 4880 bytes free on the device; the largest in use: 1 x 5120 "
        "bytes; "
        "use smaller batches, or delete "
        "arrays and functions that are not needed");
  }
  CHECK(h.pool->statistics().live_blocks == 1);
  CHECK_THROWS_AS(h.pool->allocate(std::size_t{1} << 62), OutOfMemory);
}

TEST_CASE("blocks outlive the owner of their pool") {
  BlockRef last;
  auto state = std::make_shared<FakeState>();
  {
    Pool* pool = Pool::make(std::make_shared<FakeDevice>(state), "dev0", 0);
    last = pool->allocate(1000);
    pool->retire();
  }
  last->data[999] = std::byte{1};
  CHECK(state->used == 1024);
  last.reset();
  CHECK(state->used == 0);
}

TEST_CASE("any thread may take and give back") {
  PoolHolder h;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < 2000; ++i) {
        const BlockRef a = h.pool->allocate(100 + (i * 37 + static_cast<std::size_t>(t)) % 5000);
        a->data[99] = std::byte(t);
      }
    });
  }
  for (std::thread& t : threads) t.join();
  CHECK(h.pool->statistics().live_blocks == 0);
  CHECK(h.pool->statistics().live_bytes == 0);
  CHECK(h.pool->statistics().allocations == 8000);
}

TEST_CASE("a device that is lost leaves the counts of its pool right") {
  PoolHolder h;
  const BlockRef a = h.pool->allocate(1000);
  h.state->dead = true;
  CHECK_THROWS_WITH(h.pool->allocate(2000), "the device was lost");
  CHECK(h.pool->statistics().live_blocks == 1);
  CHECK(h.pool->statistics().live_bytes == 1024);
}

TEST_CASE("uploads get blocks that the latest work does not use") {
  const auto state = std::make_shared<FakeState>();
  struct Points final : FakeQueue {
    using FakeQueue::FakeQueue;
    std::uint64_t last = 0;
    std::uint64_t next_point() const override { return last + 1; }
    std::uint64_t last_point() const override { return last; }
  } queue(*state);
  Pool* pool = Pool::make(std::make_shared<FakeDevice>(state), "dev0", 0, &queue);
  const std::byte* first = pool->allocate_idle(1000)->data;
  // Used by work behind the last point.
  BlockRef other = pool->allocate_idle(1000);
  CHECK(other->data != first);
  CHECK(other->free_behind == 0);
  CHECK(pool->allocate(1000)->data == first);
  ++queue.last;
  BlockRef again = pool->allocate_idle(1000);
  CHECK(again->data == first);
  CHECK(again->free_behind == 1);
  // The latest that may be taken, not the latest of all.
  again.reset();
  ++queue.last;
  other.reset();
  CHECK(pool->allocate_idle(1000)->data == first);
  CHECK(pool->statistics().device_allocations == 2);
  other = pool->allocate(1000);
  other.reset();
  // Where the device has no more, a block that is not idle.
  state->limit = state->used.load();
  other = pool->allocate_idle(1000);
  CHECK(pool->statistics().device_allocations == 2);
  state->limit = std::int64_t{1} << 40;
  // Many that are not idle: no more of them from call to call.
  std::vector<BlockRef> many;
  for (int turn = 0; turn < 3; ++turn) {
    for (int i = 0; i < 100; ++i) many.push_back(pool->allocate(1000));
    many.push_back(pool->allocate_idle(1000));
    many.clear();
    ++queue.last;
    if (turn == 0) CHECK(pool->statistics().device_allocations <= 103);
  }
  CHECK(pool->statistics().device_allocations <= 103);
  pool->retire();  // the queue may go now
  other.reset();
}
