#pragma once

#include <atomic>
#include <cstdint>

namespace croton {

/// A reader-writer lock of one word, a few nanoseconds when nobody waits. A waiting writer keeps
/// new readers out. `reset` frees it whoever holds it, for the child of a fork.
class RwLock {
 public:
  void lock_shared() noexcept {
    std::uint32_t s = state_.load(std::memory_order_relaxed);
    for (;;) {
      if (s & (kWriter | kWaiting)) {
        state_.wait(s, std::memory_order_relaxed);
        s = state_.load(std::memory_order_relaxed);
      } else if (state_.compare_exchange_weak(s, s + 1, std::memory_order_acquire,
                                              std::memory_order_relaxed)) {
        return;
      }
    }
  }
  void unlock_shared() noexcept {
    const std::uint32_t before = state_.fetch_sub(1, std::memory_order_release);
    if ((before & kReaders) == 1 && (before & kWaiting)) state_.notify_all();
  }
  void lock() noexcept {
    std::uint32_t s = state_.load(std::memory_order_relaxed);
    for (;;) {
      if ((s & (kWriter | kReaders)) == 0) {
        // Other waiting writers set the mark again when they wake.
        if (state_.compare_exchange_weak(s, kWriter, std::memory_order_acquire,
                                         std::memory_order_relaxed)) {
          return;
        }
      } else if ((s & kWaiting) ||
                 state_.compare_exchange_weak(s, s | kWaiting, std::memory_order_relaxed)) {
        state_.wait(s | kWaiting, std::memory_order_relaxed);
        s = state_.load(std::memory_order_relaxed);
      }
    }
  }
  void unlock() noexcept {
    // Readers and writers that came meanwhile wait on the word; all look again.
    state_.store(0, std::memory_order_release);
    state_.notify_all();
  }
  /// From holding it alone to holding it with other readers.
  void downgrade() noexcept {
    state_.store(1, std::memory_order_release);
    state_.notify_all();
  }
  bool held_alone() const noexcept { return state_.load(std::memory_order_relaxed) & kWriter; }
  void reset() noexcept { state_.store(0, std::memory_order_relaxed); }

 private:
  static constexpr std::uint32_t kWriter = 1u << 31;
  static constexpr std::uint32_t kWaiting = 1u << 30;
  static constexpr std::uint32_t kReaders = kWaiting - 1;
  std::atomic<std::uint32_t> state_{0};
};

}  // namespace croton
