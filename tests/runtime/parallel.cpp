#include "runtime/parallel.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <thread>
#include <vector>

#include "runtime/rw_lock.h"

using namespace croton;

TEST_CASE("each index is taken once") {
  for (const std::int64_t n : {0, 1, 2, 7, 16, 17, 1000, 12345}) {
    for (const int threads : {1, 2, 3, 8}) {
      std::vector<int> seen(static_cast<std::size_t>(n));
      parallel_for(n, threads, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t i = first; i < last; ++i) ++seen[static_cast<std::size_t>(i)];
      });
      CHECK(std::count(seen.begin(), seen.end(), 1) == n);
    }
  }
}

TEST_CASE("a region inside a region runs on its thread") {
  std::atomic<int> sum{0};
  parallel_for(4, 2, [&](std::int64_t first, std::int64_t last) {
    const auto outer = std::this_thread::get_id();
    for (std::int64_t i = first; i < last; ++i) {
      parallel_for(10, 4, [&](std::int64_t a, std::int64_t b) {
        if (std::this_thread::get_id() == outer) sum += static_cast<int>(b - a);
      });
    }
  });
  CHECK(sum == 40);
}

TEST_CASE("library threads are set for a while") {
  const int before = omp_get_max_threads();
  {
    const LibraryThreads one(1);
    CHECK(omp_get_max_threads() == 1);
    std::thread([&] { CHECK(omp_get_max_threads() == before); }).join();
  }
  CHECK(omp_get_max_threads() == before);
}

TEST_CASE("a reader-writer lock keeps writers apart and lets readers in together") {
  RwLock lock;
  lock.lock_shared();
  lock.lock_shared();
  lock.unlock_shared();
  lock.unlock_shared();
  std::int64_t value = 0, mirror = 0;
  std::atomic<int> torn{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 3000; ++i) {
        if (t % 2 == 0) {
          lock.lock();
          ++value;
          ++mirror;
          lock.unlock();
        } else {
          lock.lock_shared();
          if (value != mirror) ++torn;
          lock.unlock_shared();
        }
      }
    });
  }
  for (std::thread& t : threads) t.join();
  CHECK(torn == 0);
  CHECK(value == 9000);
}
