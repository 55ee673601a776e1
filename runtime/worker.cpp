#include "runtime/worker.h"

#include <condition_variable>
#include <thread>

namespace croton {

struct Worker::Thread {
  std::mutex mutex;
  std::condition_variable wake;
  Job* first = nullptr;  // a list through the jobs, so that queueing one does not malloc
  Job* last = nullptr;
  bool stop = false;
  std::thread thread;

  void loop() {
    std::unique_lock hold(mutex);
    for (;;) {
      wake.wait(hold, [&] { return stop || first != nullptr; });
      if (first == nullptr) return;
      Job* job = first;
      first = job->next_;
      hold.unlock();
      job->run();
      hold.lock();
    }
  }
};

Worker::Worker() = default;

Worker::~Worker() {
  if (!thread_) return;
  {
    const std::lock_guard hold(thread_->mutex);
    thread_->stop = true;
  }
  thread_->wake.notify_one();
  thread_->thread.join();
}

void Worker::post(Job* job) {
  const std::lock_guard start(mutex_);
  if (!thread_) {
    // The system may have no thread to give: then there is no worker either.
    auto made = std::make_unique<Thread>();
    made->thread = std::thread([t = made.get()] { t->loop(); });
    thread_ = std::move(made);
  }
  {
    const std::lock_guard hold(thread_->mutex);
    job->next_ = nullptr;
    (thread_->first != nullptr ? thread_->last->next_ : thread_->first) = job;
    thread_->last = job;
  }
  thread_->wake.notify_one();
}

void Worker::before_fork() noexcept {
  mutex_.lock();
  if (thread_) thread_->mutex.lock();
}

void Worker::after_fork(bool child) noexcept {
  if (thread_) thread_->mutex.unlock();
  // The thread is not in the child, nor are the calls whose jobs were queued. Its handle must not
  // be joined, and its condition variable counts a waiter that never comes back.
  if (child && thread_) thread_.release();
  mutex_.unlock();
}

}  // namespace croton
