#pragma once

#include <memory>
#include <mutex>

namespace croton {

/// Work for a worker. Lives in the working memory of the call that queued it.
class Job {
 public:
  /// On the worker's thread; must not throw.
  virtual void run() noexcept = 0;

 protected:
  ~Job() = default;

 private:
  friend class Worker;
  Job* next_ = nullptr;
};

/// A thread that runs jobs in the order in which they were posted. It starts with its first job.
class Worker {
 public:
  Worker();
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void post(Job* job);

  /// For its owner to call around a fork.
  void before_fork() noexcept;
  void after_fork(bool child) noexcept;

 private:
  struct Thread;

  std::mutex mutex_;
  std::unique_ptr<Thread> thread_;
};

}  // namespace croton
