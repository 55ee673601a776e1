// What a backend implements: a device, its queues, and the modules loaded on it. Everything here
// takes and gives plain memory and program text; arrays, contexts and plans are built on top.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/fork.h"
#include "runtime/library.h"
#include "runtime/target.h"

namespace croton {

class KernelCache;
class Pool;

/// A kernel of a loaded module: an address on a CPU, a function handle on a GPU.
using KernelHandle = const void*;

/// Compiled code on a device; kernels stay valid as long as it lives.
class Module {
 public:
  virtual ~Module();
  /// nullptr when the module has no kernel of that name.
  virtual KernelHandle kernel(const std::string& name) const = 0;
};

/// What kernels of devices whose memory the host cannot read expect of addresses: their widest
/// access reads that many bytes at once. Memory from pools is aligned better.
inline constexpr std::size_t kDeviceAlignment = 16;

/// One launch: runs blocks 0 <= b < blocks.
struct Launch {
  KernelHandle kernel = nullptr;
  void* const* buffers = nullptr;
  std::int32_t buffer_count = 0;
  const std::int64_t* sizes = nullptr;
  std::int32_t size_count = 0;
  std::int64_t blocks = 0;        ///< of the kernel
  std::int32_t threads = 256;     ///< GPU: of a block of the kernel
  std::int32_t packed = 1;        ///< GPU: blocks of the kernel that share one of the launch
  bool counted = false;           ///< GPU: the kernel takes `blocks`, behind the sizes
  std::int64_t shared_bytes = 0;  ///< GPU: dynamic shared memory of a block of the launch
  bool parallel = false;          ///< worth more than one thread of a CPU
  bool checks = false;            ///< the kernel has checks
  std::int64_t* error = nullptr;  ///< three words of this launch, in memory of the device
};

/// A point in the work of a queue.
class Event {
 public:
  virtual ~Event();
  /// Returns when the work is done, copies to the host included: for who is no queue of the same
  /// backend. Any thread may call it.
  virtual void wait_on_host() {}
};

/// Launches and library calls, kept to be run again as one with the same arguments.
class Recording {
 public:
  virtual ~Recording();
};

/// Runs work in the order of the calls. One thread at a time uses a queue, unless the device is
/// `immediate`.
class Queue {
 public:
  virtual ~Queue();

  /// Before the first and after the last call of one run of steps, on the thread that makes them.
  /// `what` is the name of the run in profilers, nullptr for none.
  virtual void begin(const char* what = nullptr) { (void)what; }
  virtual void end() noexcept {}

  virtual void launch(const Launch& launch) = 0;
  virtual void call(const PreparedCall& call, void* const* operands, void* workspace) = 0;
  /// Between two places of this device's memory.
  virtual void copy(void* target, const void* source, std::size_t bytes) = 0;
  /// To memory of `other`, the queue of another context of the same backend, whose later work sees
  /// it.
  virtual void copy_to(Queue& other, void* target, const void* source, std::size_t bytes) {
    (void)other;
    copy(target, source, bytes);
  }
  /// The same in no order with what the other queue does: events say when the target may be written
  /// and when it was.
  virtual void send(Queue& other, void* target, const void* source, std::size_t bytes) {
    copy_to(other, target, source, bytes);
  }
  /// `target` is filled in when the queue was synchronised, or an event behind this waited for on
  /// the host; until then neither place may go away.
  virtual void copy_to_host(void* target, const void* source, std::size_t bytes) = 0;
  virtual void zero(void* target, std::size_t bytes) = 0;

  /// An event after the work so far; nullptr when that work is done.
  virtual std::unique_ptr<Event> record() { return nullptr; }
  /// Work from here on runs after `event`, which another queue of the same backend recorded.
  virtual void wait(const Event& event) { (void)event; }
  /// Returns when all work is done; throws DeviceError for what failed.
  virtual void synchronize() {}
  /// The same after a failure: nothing is copied to the host any more, nothing thrown.
  virtual void drain() noexcept {}

  /// Points in the work of the queue, from 1 on, at which uploads may begin: what has been queued
  /// so far comes before the next one. 0 where there are none.
  virtual std::uint64_t next_point() const { return 0; }
  virtual std::uint64_t last_point() const { return 0; }
  static constexpr std::uint64_t kNow = ~std::uint64_t{0};

  /// Copies memory of the host to memory of this queue's device; work queued later sees it. Work
  /// before the point `behind` may still use the target, work behind it does not; kNow: all that is
  /// queued may. The source may change on return. Any thread may call it at any time: another one
  /// may be waiting for this copy while it uses the queue.
  virtual void upload(void* target, const void* source, std::size_t bytes,
                      std::uint64_t behind = kNow) = 0;

  /// Records what `steps` launches and calls instead of running it; nullptr where that cannot be,
  /// which it says in the log.
  virtual std::unique_ptr<Recording> capture(const std::function<void()>& steps) {
    (void)steps;
    return nullptr;
  }
  virtual bool captures() const { return false; }
  /// Queues it, or gives false where it cannot be launched: nothing is queued then.
  virtual bool replay(const Recording& recording) {
    (void)recording;
    return false;
  }
};

/// One run of steps on a queue.
class QueueUse {
 public:
  explicit QueueUse(Queue& queue, const char* what = nullptr) : queue_(queue) {
    queue_.begin(what);
  }
  ~QueueUse() { queue_.end(); }
  QueueUse(const QueueUse&) = delete;
  QueueUse& operator=(const QueueUse&) = delete;

 private:
  Queue& queue_;
};

class Device : private ForkAware {
 public:
  Device() : ForkAware(ForkLevel::device) {}
  virtual ~Device();

  /// "cpu0", "cuda1", "null"
  virtual std::string name() const = 0;
  /// One line for people: model, cores or multiprocessors, memory.
  virtual std::string description() const = 0;
  virtual const TargetInfo& target() const = 0;

  /// The host can read and write this device's memory in place.
  virtual bool host_memory() const = 0;
  /// Queues run their work before a call returns, and may be used by several threads at once.
  virtual bool immediate() const = 0;
  /// The device failed for good: all that it held is lost, and each use throws.
  bool failed() const { return failed_ != nullptr && failed_->load(std::memory_order_acquire); }
  /// What happened, and when.
  virtual std::string failure() const { return {}; }

  /// Steps write nothing at all: results are filled with zeros.
  virtual bool pretends() const { return false; }

  /// Memory aligned to 64 bytes (256 on a GPU); nullptr when there is none left.
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void release(void* memory, std::size_t bytes) noexcept = 0;
  /// Gives back what is kept for reuse below the level of pools.
  virtual void trim() noexcept {}

  /// The pools on this device, so that one that finds no memory can ask the others to let go.
  void add_pool(Pool* pool);
  void remove_pool(Pool* pool) noexcept;
  /// All of them trimmed, and the device after them.
  void trim_pools() noexcept;

  /// Bytes that are free, for messages; negative when unknown.
  virtual std::int64_t free_bytes() const { return -1; }

  virtual std::unique_ptr<Queue> new_queue() = 0;

  /// All that decides what `compile` makes of a text besides the text: target and versions.
  virtual std::string compiler_identity() const = 0;
  /// Program text to object bytes that `load` takes, now or in another process with the same
  /// identity. Called from several threads at once.
  virtual std::string compile(const std::string& text) = 0;
  virtual std::shared_ptr<Module> load(std::string_view object,
                                       const std::vector<std::string>& kernels) = 0;

  /// The library function called `name`; nullptr when this device has none.
  virtual const LibraryFunction* library(std::string_view name) const = 0;

  /// Where library functions find the kernels that they bring along. Whoever opens the device says
  /// so, and keeps it as long as functions are prepared.
  void set_kernel_cache(KernelCache* cache) { kernel_cache_ = cache; }

 protected:
  const std::atomic<bool>* failed_ = nullptr;
  KernelCache* kernel_cache_ = nullptr;

 private:
  void before_fork() noexcept override { pools_mutex_.lock(); }
  void after_fork(bool) noexcept override { pools_mutex_.unlock(); }

  std::mutex pools_mutex_;
  std::vector<Pool*> pools_;
};

}  // namespace croton
