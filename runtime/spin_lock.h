#pragma once

#include <sched.h>

#include <atomic>

namespace croton {

/// For sections of a few dozen instructions: free lists, counters.
class SpinLock {
 public:
  void lock() noexcept {
    for (int i = 0; locked_.exchange(true, std::memory_order_acquire); ++i) {
      if (i > 64) sched_yield();
    }
  }
  void unlock() noexcept { locked_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> locked_{false};
};

}  // namespace croton
