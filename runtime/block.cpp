#include "runtime/block.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cstdlib>
#include <new>

#include "croton/error.h"
#include "runtime/free_list.h"

namespace croton {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kAddressSpace = std::size_t{1} << 47;

class HostHeap final : public BlockOwner {
 public:
  void release(Block* block) noexcept override {
    if (block->data != block->small) std::free(block->data);
    free_block_header(block);
  }
};

class Borrowed final : public BlockOwner {
 public:
  void release(Block* block) noexcept override { free_block_header(block); }
};

constinit HostHeap host_heap;
constinit Borrowed borrowed;

std::byte* allocate(std::size_t bytes) {
  const std::size_t alignment = bytes >= kHugePage ? kHugePage : kAlignment;
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* p = bytes >= kAddressSpace ? nullptr : std::aligned_alloc(alignment, rounded);
  if (p == nullptr) {
    throw OutOfMemory(fmt::format("[Array] the host has no memory for {} bytes", bytes));
  }
  if (bytes >= kHugePage) madvise(p, rounded, MADV_HUGEPAGE);
  return static_cast<std::byte*>(p);
}

}  // namespace

Block* new_block_header(std::byte* data, std::size_t bytes, BlockOwner* owner) {
  Block* block = new (FreeList<Block>::take()) Block;
  block->data = data;
  block->bytes = bytes;
  block->owner = owner;
  return block;
}

void free_block_header(Block* block) noexcept {
  block->~Block();
  FreeList<Block>::give(block);
}

BlockRef host_block(std::size_t bytes) {
  std::byte* data = bytes <= Block::kInlineBytes ? nullptr : allocate(bytes);
  Block* block;
  try {
    block = new_block_header(data, bytes, &host_heap);
  } catch (...) {
    std::free(data);
    throw;
  }
  if (data == nullptr) block->data = block->small;
  return BlockRef(block);
}

BlockRef borrowed_block(void* data, std::size_t bytes, bool read_only) {
  Block* block = new_block_header(static_cast<std::byte*>(data), bytes, &borrowed);
  block->read_only = read_only;
  return BlockRef(block);
}

}  // namespace croton
