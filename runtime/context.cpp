#include "runtime/context.h"

#include <cstring>
#include <new>

#include "runtime/array_access.h"

namespace croton {

Context::Context(std::string name, std::shared_ptr<Device> device, std::int64_t pool_limit,
                 bool host)
    : ForkAware(ForkLevel::context),
      name_(std::move(name)),
      device_(std::move(device)),
      host_(host),
      queue_(device_->new_queue()),
      pool_(Pool::make(device_, name_, pool_limit, queue_.get())) {}

Context::~Context() { pool_->retire(); }

Link& Context::link() {
  const std::lock_guard hold(link_mutex_);
  if (!link_) link_ = std::make_unique<Link>(*device_);
  return *link_;
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

void Context::before_fork() noexcept {
  link_mutex_.lock();
  if (link_) link_->worker().before_fork();
  worker_.before_fork();
}

void Context::after_fork(bool child) noexcept {
  worker_.after_fork(child);
  // Another thread may have held it; it is not in this process.
  if (child) new (&queue_mutex_) std::mutex;
  if (link_) {
    link_->worker().after_fork(child);
    if (child) new (&link_->queue_mutex()) std::mutex;
  }
  link_mutex_.unlock();
}

}  // namespace croton
