// The allocator of a context: blocks come back when their last array dies, and are used again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "runtime/block.h"
#include "runtime/device.h"
#include "runtime/fork.h"
#include "runtime/spin_lock.h"

namespace croton {

struct PoolStatistics {
  std::int64_t live_bytes = 0;    ///< in use
  std::int64_t cached_bytes = 0;  ///< free, kept for reuse
  std::int64_t peak_bytes = 0;    ///< most that was in use at once
  std::int64_t live_blocks = 0;
  std::int64_t device_allocations = 0;  ///< times that the device was asked
  std::int64_t allocations = 0;         ///< times that the pool was asked
};

/// Memory of one device in size classes an eighth of a power of two apart. Blocks of up to 64 bytes
/// of a device with host memory are none of its business: they live in their headers.
class Pool final : public BlockOwner, private ForkAware {
 public:
  /// `context` names it in messages; `limit` is the most bytes that stay cached, 0 for no limit;
  /// `queue`, which lives until `retire`, is what uses its blocks.
  static Pool* make(std::shared_ptr<Device> device, std::string context, std::int64_t limit,
                    const Queue* queue = nullptr) {
    return new Pool(std::move(device), std::move(context), limit, queue);
  }
  /// The owner's goodbye: frees what is cached, and the pool itself once its last block is back.
  void retire() noexcept;

  /// Uninitialised memory. OutOfMemory, with what was asked for and what is in use, when the device
  /// has none even after everything cached was given back.
  /// Where the block at `wanted` is free and among the latest of its class, it is taken.
  BlockRef allocate(std::size_t bytes, const void* wanted = nullptr);
  /// For an upload: a block that the queue's latest work does not use, so that the copy need not
  /// wait for it.
  BlockRef allocate_idle(std::size_t bytes);
  void release(Block* block) noexcept override;

  /// Gives all cached memory back to the device.
  void trim() noexcept;
  PoolStatistics statistics() const;

  /// The size of the class of blocks that hold `bytes`.
  static std::size_t class_bytes(std::size_t bytes);

 private:
  static constexpr int kClasses = 512;

  Pool(std::shared_ptr<Device> device, std::string context, std::int64_t limit, const Queue* queue);
  ~Pool();
  static int class_of(std::size_t bytes);
  static std::size_t bytes_of_class(int size_class);
  std::string largest_live() const;
  template <class Choose>
  Block* take_chosen(int size_class, const Choose& choose);
  template <class Take>
  BlockRef allocate(std::size_t bytes, const Take& take);
  Block* take_any(int size_class);
  Block* fresh_block(std::size_t bytes, int size_class);
  void give_back(Block* chain) noexcept;
  [[noreturn]] void out_of_memory(std::size_t bytes);

  void before_fork() noexcept override { lock_.lock(); }
  void after_fork(bool child) noexcept override {
    (void)child;
    lock_.unlock();
  }

  const std::shared_ptr<Device> device_;
  const std::string context_;
  const std::int64_t limit_;
  const Queue* const queue_;
  const bool host_memory_;
  mutable SpinLock lock_;
  std::array<Block*, kClasses> free_{};
  std::array<std::int32_t, kClasses> live_{};
  PoolStatistics statistics_;
  bool retired_ = false;
};

}  // namespace croton
