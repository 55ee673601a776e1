#include "runtime/context.h"

#include <cstring>
#include <new>

#include "runtime/array_access.h"

namespace croton {

struct Context::Worker {
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

Context::Context(std::string name, std::shared_ptr<Device> device, std::int64_t pool_limit,
                 bool host)
    : ForkAware(ForkLevel::context),
      name_(std::move(name)),
      device_(std::move(device)),
      host_(host),
      queue_(device_->new_queue()),
      pool_(Pool::make(device_, name_, pool_limit, queue_.get())) {}

Context::~Context() {
  if (worker_) {
    {
      const std::lock_guard hold(worker_->mutex);
      worker_->stop = true;
    }
    worker_->wake.notify_one();
    worker_->thread.join();
  }
  pool_->retire();
}

void Context::wait() {
  if (device_->immediate()) return;
  const std::lock_guard hold(queue_mutex_);
  const QueueUse use(*queue_);
  queue_->synchronize();
}

void Context::copy_to_host(void* target, const void* source, std::size_t bytes) {
  if (device_->host_memory()) {
    wait();
    std::memcpy(target, source, bytes);
    return;
  }
  const std::lock_guard hold(queue_mutex_);
  const QueueUse use(*queue_);
  queue_->copy_to_host(target, source, bytes);
  queue_->synchronize();
}

Array Context::bring(const Array& host) {
  BlockRef block = pool_->allocate_idle(host.nbytes());
  queue_->upload(block->data, host.raw_data(), host.nbytes(), block->free_behind);
  return ArrayAccess::wrap(host.dtype(), host.shape(), std::move(block), nullptr, array_home());
}

Array Context::bring_over(const Array& from) {
  const ArrayImpl& impl = *ArrayAccess::impl(from);
  auto* there = dynamic_cast<Context*>(impl.home);
  if (there == nullptr || !impl.contiguous || there->device().host_memory()) return {};
  if (device_->target().backend != there->device().target().backend) return {};
  BlockRef block = pool_->allocate(from.nbytes());
  {
    const std::lock_guard hold(there->queue_mutex());
    const QueueUse use(there->queue());
    there->queue().copy_to(*queue_, block->data, impl.data, from.nbytes());
  }
  return ArrayAccess::wrap(impl.dtype, impl.shape, std::move(block), nullptr, array_home());
}

Array Context::bring_from(const Array& from) {
  const ArrayImpl& impl = *ArrayAccess::impl(from);
  const bool on_host = impl.home == nullptr || impl.home->host_accessible();
  if (on_host && device_->host_memory()) {
    if (impl.home != nullptr) impl.home->wait();
    return ArrayAccess::wrap(impl.dtype, impl.shape, impl.block, impl.data, array_home());
  }
  Array here = bring_over(from);
  return here.has_value() ? here : bring(from.to_host());
}

void Context::post(Job* job) {
  const std::lock_guard start(worker_mutex_);
  if (!worker_) {
    // The system may have no thread to give: then there is no worker either.
    auto worker = std::make_unique<Worker>();
    worker->thread = std::thread([w = worker.get()] { w->loop(); });
    worker_ = std::move(worker);
  }
  {
    const std::lock_guard hold(worker_->mutex);
    job->next_ = nullptr;
    (worker_->first != nullptr ? worker_->last->next_ : worker_->first) = job;
    worker_->last = job;
  }
  worker_->wake.notify_one();
}

void Context::before_fork() noexcept {
  worker_mutex_.lock();
  if (worker_) worker_->mutex.lock();
}

void Context::after_fork(bool child) noexcept {
  if (worker_) worker_->mutex.unlock();
  if (child && worker_) {
    // The thread is not in this process, nor are the calls whose jobs were queued. Its handle must
    // not be joined, and its condition variable counts a waiter that never comes back.
    worker_.release();
  }
  // Another thread may have held it; it is not in this process.
  if (child) new (&queue_mutex_) std::mutex;
  worker_mutex_.unlock();
}

}  // namespace croton
