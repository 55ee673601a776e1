#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace croton {

struct Block;

/// Gets a block back when its last handle dies: frees or pools the memory, then either keeps the
/// header for the next use or gives it to `free_block_header`. Called from any thread; must not
/// throw.
class BlockOwner {
 public:
  virtual void release(Block* block) noexcept = 0;

 protected:
  ~BlockOwner() = default;
};

/// One piece of memory, counted by its handles. `tag` and `link` are the owner's to use.
struct alignas(64) Block {
  static constexpr std::size_t kInlineBytes = 64;

  std::byte* data = nullptr;
  std::size_t bytes = 0;
  BlockOwner* owner = nullptr;
  std::atomic<std::uint32_t> refs{0};
  bool read_only = false;  // borrowed from a const pointer
  std::uint64_t tag = 0;
  void* link = nullptr;
  /// The point of its context's queue behind which nothing queued uses it any more; 0 while it is
  /// new.
  std::uint64_t free_behind = 0;
  /// Memory of small host blocks, so that scalars need no malloc.
  alignas(64) std::byte small[kInlineBytes];
};

/// A counted handle on a Block.
class BlockRef {
 public:
  BlockRef() = default;
  /// Adds a handle.
  explicit BlockRef(Block* block) : block_(block) {
    if (block_) block_->refs.fetch_add(1, std::memory_order_relaxed);
  }
  BlockRef(const BlockRef& other) : BlockRef(other.block_) {}
  BlockRef(BlockRef&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  BlockRef& operator=(BlockRef other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~BlockRef() { reset(); }

  void reset() noexcept {
    Block* b = std::exchange(block_, nullptr);
    if (b == nullptr) return;
    // The only handle needs no atomic read-modify-write: nobody else can add one.
    if (b->refs.load(std::memory_order_acquire) == 1) {
      b->refs.store(0, std::memory_order_relaxed);
      b->owner->release(b);
    } else if (b->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      b->owner->release(b);
    }
  }

  Block* get() const { return block_; }
  Block* operator->() const { return block_; }
  explicit operator bool() const { return block_ != nullptr; }
  /// No other handle shares the memory.
  bool unique() const { return block_ && block_->refs.load(std::memory_order_acquire) == 1; }

 private:
  Block* block_ = nullptr;
};

/// A header for `bytes` at `data`, without handles yet; from a free list, so the steady state does
/// not malloc.
Block* new_block_header(std::byte* data, std::size_t bytes, BlockOwner* owner);

/// Gives a header back to the free list. The memory it named is the owner's business.
void free_block_header(Block* block) noexcept;

/// Host memory, 64-byte aligned, uninitialised; from 2 MiB on aligned for and advised to use huge
/// pages. OutOfMemory when the host has none.
BlockRef host_block(std::size_t bytes);

/// Memory of somebody else, who keeps it alive; nothing is freed.
BlockRef borrowed_block(void* data, std::size_t bytes, bool read_only);

}  // namespace croton
