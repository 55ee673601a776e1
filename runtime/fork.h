// Making fork safe: whoever holds locks or threads hears of forks.
#pragma once

#include <mutex>

namespace croton {

/// The order in which locks are taken: one of a later level may be taken while one of an earlier
/// level is held, never the other way round, and never two of one level.
enum class ForkLevel { executable, runtime, kernel_cache, context, device, pool };
inline constexpr int kForkLevels = 6;

/// Registers itself while it lives. Before a fork all are called, level by level, so that no other
/// thread holds their locks; after it, in parent and child, in the opposite order.
class ForkAware {
 public:
  explicit ForkAware(ForkLevel level);
  ForkAware(const ForkAware&) = delete;
  ForkAware& operator=(const ForkAware&) = delete;

  virtual void before_fork() noexcept = 0;
  virtual void after_fork(bool child) noexcept = 0;

 protected:
  ~ForkAware();

 private:
  friend class ForkRegistry;
  const ForkLevel level_;
  ForkAware* previous_ = nullptr;
  ForkAware* next_ = nullptr;
};

/// Of libraries without locks of their own: a fork waits until nobody holds them. They are there
/// from the start, because making a ForkAware may wait for a fork, which waits for whoever needs
/// one. OpenBLAS keeps work areas for one team of threads; of the log, the line that is being
/// written; of names, the table of all.
std::mutex& blas_mutex() noexcept;
std::mutex& log_mutex() noexcept;
std::mutex& names_mutex() noexcept;

/// No fork happens while it lives. To be taken before any lock that is held while a ForkAware is
/// made.
class NoFork {
 public:
  NoFork();
  ~NoFork();
  NoFork(const NoFork&) = delete;
  NoFork& operator=(const NoFork&) = delete;
};

/// Says that threads of the OpenMP runtime may exist from now on.
void note_threads() noexcept;

/// Whether this process is the child of a fork that left threads of the OpenMP runtime behind: new
/// regions would wait for them for ever, so everything runs on one thread.
bool lost_threads() noexcept;

}  // namespace croton
