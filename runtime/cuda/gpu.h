// One GPU of this process: its primary context, what it is, its memory, and whether it still works.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/cuda/driver.h"
#include "runtime/target.h"

namespace croton::cuda {

class Pinned;

/// Shared by the device, its queues, events and modules; goes when the last of them does. Nothing
/// here throws once the GPU failed but DeviceErrors that say so.
class Gpu {
 public:
  /// Takes the primary context. `memory_limit` is the most bytes that are taken, 0 for no limit.
  /// DeviceError when there is no such device or it may not be used.
  Gpu(const Driver& driver, int index, std::int64_t memory_limit);
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  const DriverSymbols& api() const { return *driver_.operator->(); }
  const Driver& driver() const { return driver_; }
  const std::string& name() const { return name_; }    ///< "cuda0"
  const std::string& model() const { return model_; }  ///< as the driver calls it
  const std::string& pci_id() const { return pci_id_; }
  int index() const { return index_; }
  std::int64_t total_bytes() const { return total_bytes_; }
  ContextHandle context() const { return context_; }
  const TargetInfo& target() const { return target_; }

  /// Throws unless `result` is a success: OutOfMemory, else DeviceError with `what` was tried. An
  /// error that lasts declares the GPU dead.
  void check(Result result, std::string_view what);
  /// Throws when the GPU failed before, or this process is a fork of the one that opened it.
  void require_alive() const;
  /// Calls of the driver make sense: to be asked before anything is given back.
  bool alive() const noexcept {
    return !dead_.load(std::memory_order_acquire) && !forked_from_cuda();
  }
  bool dead() const noexcept { return dead_.load(std::memory_order_acquire); }
  /// What went wrong and when; empty while it works.
  std::string failure() const;
  const std::atomic<bool>& dead_flag() const { return dead_; }

  /// Whether kernels and copies of this GPU reach the memory of the other directly. Enables it on
  /// first use.
  bool reaches(Gpu& peer);

  /// nullptr when there is none left, or the limit is reached.
  void* allocate(std::size_t bytes);
  /// Any work that is queued so far may still use the memory.
  void release(void* memory, std::size_t bytes) noexcept;
  /// Gives what the driver's pool keeps back to the GPU.
  void trim() noexcept;
  std::int64_t free_bytes();

  /// Streams whose work `release` waits for.
  void add_stream(StreamHandle stream);
  void remove_stream(StreamHandle stream) noexcept;

  Pinned& pinned() { return *pinned_; }
  /// The most shared memory of a block.
  std::int64_t shared_bytes_opt_in() const { return shared_bytes_opt_in_; }

  /// What cuBLASLt keeps for this GPU, made and destroyed with its context current.
  std::mutex blas_mutex;
  std::shared_ptr<void> blas;

 private:
  void read_properties();
  void make_pool();
  void declare_dead(Result result, std::string_view what);
  int attribute(Attribute which) const;
  std::string open_error(Result result) const;

  const Driver& driver_;
  const int index_;
  const std::string name_;
  const std::int64_t memory_limit_;
  DeviceNumber device_ = 0;
  ContextHandle context_ = nullptr;
  std::string model_;
  std::string pci_id_;
  std::int64_t total_bytes_ = 0;
  TargetInfo target_;
  std::int64_t shared_bytes_opt_in_ = 0;

  std::atomic<bool> dead_{false};
  mutable std::mutex failure_mutex_;
  std::string failure_;

  std::mutex memory_mutex_;
  MemoryPoolHandle pool_ = nullptr;  ///< null where the device has none: plain allocation then
  StreamHandle memory_stream_ = nullptr;
  EventHandle fence_ = nullptr;
  std::vector<StreamHandle> streams_;
  std::int64_t taken_bytes_ = 0;
  std::vector<std::pair<const Gpu*, bool>> peers_;
  std::unique_ptr<Pinned> pinned_;
};

/// Makes the context of a GPU current on this thread for a while.
class Current {
 public:
  explicit Current(Gpu& gpu);
  ~Current();
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

 private:
  Gpu& gpu_;
};

inline DevicePointer device_pointer(const void* memory) {
  return static_cast<DevicePointer>(reinterpret_cast<std::uintptr_t>(memory));
}

}  // namespace croton::cuda
