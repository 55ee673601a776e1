#include "runtime/fork.h"

#include <pthread.h>

#include <array>
#include <atomic>
#include <mutex>

namespace croton {
namespace {

constinit std::mutex of_blas, of_log, of_names;
std::atomic<bool> started{false};
std::atomic<bool> lost{false};

}  // namespace

class ForkRegistry {
 public:
  /// Never destroyed: objects of the process unregister whenever they like.
  static ForkRegistry& get() {
    static ForkRegistry* const registry = [] {
      pthread_atfork(before, after_in_parent, after_in_child);
      return new ForkRegistry;
    }();
    return *registry;
  }

  void add(ForkAware* who) {
    const NoFork hold;
    ForkAware*& first = first_[static_cast<std::size_t>(who->level_)];
    who->next_ = first;
    if (first != nullptr) first->previous_ = who;
    first = who;
  }

  void remove(ForkAware* who) {
    const NoFork hold;
    ForkAware*& first = first_[static_cast<std::size_t>(who->level_)];
    (who->previous_ != nullptr ? who->previous_->next_ : first) = who->next_;
    if (who->next_ != nullptr) who->next_->previous_ = who->previous_;
  }

  void lock() {
    if (depth_++ == 0) mutex_.lock();
  }
  void unlock() {
    if (--depth_ == 0) mutex_.unlock();
  }

 private:
  static void before() {
    ForkRegistry& r = get();
    r.lock();
    for (ForkAware* first : r.first_) {
      for (ForkAware* w = first; w != nullptr; w = w->next_) w->before_fork();
    }
    of_blas.lock();
    of_log.lock();
    of_names.lock();
  }
  void after(bool child) {
    of_names.unlock();
    of_log.unlock();
    of_blas.unlock();
    for (auto first = first_.rbegin(); first != first_.rend(); ++first) {
      for (ForkAware* w = *first; w != nullptr; w = w->next_) w->after_fork(child);
    }
    unlock();
  }
  static void after_in_parent() { get().after(false); }
  static void after_in_child() {
    lost.store(started.load(std::memory_order_relaxed), std::memory_order_relaxed);
    get().after(true);
  }

  // Not a recursive mutex, which the child could not unlock: its thread has another id there.
  std::mutex mutex_;
  static thread_local int depth_;
  std::array<ForkAware*, kForkLevels> first_{};
};

thread_local int ForkRegistry::depth_ = 0;

ForkAware::ForkAware(ForkLevel level) : level_(level) { ForkRegistry::get().add(this); }
ForkAware::~ForkAware() { ForkRegistry::get().remove(this); }

NoFork::NoFork() { ForkRegistry::get().lock(); }
NoFork::~NoFork() { ForkRegistry::get().unlock(); }

std::mutex& blas_mutex() noexcept { return of_blas; }
std::mutex& log_mutex() noexcept { return of_log; }
std::mutex& names_mutex() noexcept {
  ForkRegistry::get();  // graphs may be all that a program has so far
  return of_names;
}

void note_threads() noexcept { started.store(true, std::memory_order_relaxed); }
bool lost_threads() noexcept { return lost.load(std::memory_order_relaxed); }

}  // namespace croton
