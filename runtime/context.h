// A context: a name bound to a device, with a queue, an allocator and a worker of its own.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "croton/array.h"
#include "runtime/device.h"
#include "runtime/fork.h"
#include "runtime/link.h"
#include "runtime/pool.h"
#include "runtime/worker.h"

namespace croton {

class Context final : public ArrayHome, private ForkAware {
 public:
  /// `host` is the context "cpu", whose arrays are plain host memory.
  Context(std::string name, std::shared_ptr<Device> device, std::int64_t pool_limit, bool host);
  ~Context();

  std::string_view name() const override { return name_; }
  bool host_accessible() const override { return device_->host_memory(); }
  /// Returns when the queue is empty.
  void wait() override;
  void copy_to_host(void* target, const void* source, std::size_t bytes) override;

  Device& device() const { return *device_; }
  Queue& queue() const { return *queue_; }
  Pool& pool() const { return *pool_; }
  /// What arrays on this context have as their home; nullptr on the host.
  ArrayHome* array_home() { return host_ ? nullptr : this; }
  bool is_host() const { return host_; }

  /// A copy of a contiguous array of the host in new memory of this context. Work queued later sees
  /// it; it waits for no other work.
  Array bring(const Array& host);

  /// A copy of an array of another context of the same backend, where that has memory of its own,
  /// without the host in between; no array where this is not so.
  Array bring_over(const Array& from);
  /// The value of a contiguous array in memory of this context, wherever it is; shared with it
  /// where both are memory of the host. Work queued later sees it.
  Array bring_from(const Array& from);

  /// Held while a run of steps uses the queue of a device that is not immediate.
  std::mutex& queue_mutex() { return queue_mutex_; }

  /// Has the worker run `job` after those before it. The worker starts with its first job.
  void post(Job* job) { worker_.post(job); }

  /// For copies that leave the context; made when it is first wanted.
  Link& link();

 private:
  void before_fork() noexcept override;
  void after_fork(bool child) noexcept override;

  const std::string name_;
  const std::shared_ptr<Device> device_;
  const bool host_;
  std::unique_ptr<Queue> queue_;
  Pool* pool_;
  std::mutex queue_mutex_;
  std::mutex link_mutex_;
  std::unique_ptr<Link> link_;
  Worker worker_;  // ends first
};

}  // namespace croton
