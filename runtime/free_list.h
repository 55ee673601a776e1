#pragma once

#include <atomic>
#include <cstddef>
#include <new>

namespace croton {

/// Memory for small objects of one type that come and go with every call: a few dozen per thread
/// without any lock, more in a list that all threads share, so that the steady state does not
/// malloc. Under the address sanitizer it is plain new and delete, which see more mistakes.
template <class T>
class FreeList {
 public:
  /// Uninitialised memory for one T.
  static void* take() {
#ifndef __SANITIZE_ADDRESS__
    ThreadCache& cache = cache_;
    if (cache.head == nullptr) refill(cache);
    if (Node* node = cache.head) {
      cache.head = node->next;
      --cache.count;
      return node;
    }
#endif
    return ::operator new(sizeof(T), std::align_val_t(alignof(T)));
  }

  static void give(void* memory) noexcept {
#ifndef __SANITIZE_ADDRESS__
    ThreadCache& cache = cache_;
    if (cache.state == State::fresh) attach(cache);
    if (cache.state == State::attached) {
      if (cache.count >= 2 * kBatch) spill(cache, kBatch);
      cache.head = new (memory) Node{cache.head};
      ++cache.count;
      return;
    }
#endif
    ::operator delete(memory, std::align_val_t(alignof(T)));
  }

 private:
  static constexpr int kBatch = 32;
  static constexpr int kMostShared = 1 << 14;

  struct Node {
    Node* next;
  };
  enum class State { fresh, attached, gone };
  // Trivial, so that touching it costs no guard and stays legal while the thread ends.
  struct ThreadCache {
    Node* head;
    int count;
    State state;
  };
  struct Drain {
    ~Drain() {
      spill(cache_, cache_.count);
      cache_.state = State::gone;
    }
  };
  // A lock that is only ever tried: whoever finds it taken (by a thread that a fork left behind,
  // say) goes to new and delete instead.
  struct Shared {
    std::atomic<bool> locked{false};
    Node* head = nullptr;
    int count = 0;

    bool try_lock() {
      for (int i = 0; i < 1000; ++i) {
        if (!locked.load(std::memory_order_relaxed) &&
            !locked.exchange(true, std::memory_order_acquire)) {
          return true;
        }
      }
      return false;
    }
    void unlock() { locked.store(false, std::memory_order_release); }
  };

  static void attach(ThreadCache& cache) {
    static thread_local Drain drain;
    (void)&drain;
    cache.state = State::attached;
  }

  static void refill(ThreadCache& cache) {
    if (cache.state == State::fresh) attach(cache);
    if (cache.state == State::gone || !shared_.try_lock()) return;
    while (shared_.head != nullptr && cache.count < kBatch) {
      Node* node = shared_.head;
      shared_.head = node->next;
      --shared_.count;
      node->next = cache.head;
      cache.head = node;
      ++cache.count;
    }
    shared_.unlock();
  }

  static void spill(ThreadCache& cache, int count) noexcept {
    const bool locked = shared_.try_lock();
    for (; count > 0; --count) {
      Node* node = cache.head;
      cache.head = node->next;
      --cache.count;
      if (locked && shared_.count < kMostShared) {
        node->next = shared_.head;
        shared_.head = node;
        ++shared_.count;
      } else {
        ::operator delete(node, std::align_val_t(alignof(T)));
      }
    }
    if (locked) shared_.unlock();
  }

  // Initial-exec saves a call per access; 24 bytes fit what the loader keeps for opened libraries.
  [[gnu::tls_model("initial-exec")]] static inline thread_local constinit ThreadCache cache_{
      nullptr, 0, State::fresh};
  static inline constinit Shared shared_{};
};

}  // namespace croton
