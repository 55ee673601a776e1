#include "runtime/cuda/pinned.h"

#include <memory>

#include "croton/error.h"
#include "runtime/cuda/gpu.h"

namespace croton::cuda {

Pinned::~Pinned() { trim(); }

std::size_t Pinned::class_of(std::size_t bytes) {
  std::size_t c = 0;
  while (c + 1 < kClasses && (kSmallest << c) < bytes) ++c;
  return c;
}

/// The block of the class that was given back first, if the copy that used it is done.
PinnedBlock* Pinned::reusable(std::size_t size_class, bool wait) {
  std::vector<PinnedBlock*>& list = free_[size_class];
  if (list.empty()) return nullptr;
  for (std::size_t i = 0; i < list.size(); ++i) {
    PinnedBlock* block = list[i];
    if (block->busy && gpu_.api().event_query(block->last) == kNotReady) continue;
    block->busy = false;
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
    return block;
  }
  if (!wait) return nullptr;
  PinnedBlock* block = list.front();
  gpu_.check(gpu_.api().event_synchronize(block->last), "waiting for a copy");
  block->busy = false;
  list.erase(list.begin());
  return block;
}

PinnedBlock* Pinned::take(std::size_t bytes) {
  const std::size_t c = class_of(bytes);
  const std::lock_guard hold(mutex_);
  const std::size_t size = kSmallest << c;
  if (PinnedBlock* block = reusable(c, total_ + size > kMost)) return block;
  auto block = std::make_unique<PinnedBlock>();
  // Giving it back asks for no memory.
  free_[c].reserve(made_[c] + 1);
  void* memory = nullptr;
  gpu_.check(gpu_.api().host_allocate(&memory, size, kHostAllocPortable),
             "allocating pinned memory of the host");
  block->data = static_cast<std::byte*>(memory);
  block->bytes = size;
  const Result made = gpu_.api().event_create(&block->last, kEventDisableTiming);
  if (made != kSuccess) {
    gpu_.api().host_free(memory);
    gpu_.check(made, "making an event");
  }
  ++made_[c];
  total_ += size;
  return block.release();
}

void Pinned::give_after(PinnedBlock* block, StreamHandle stream) {
  const Result result = gpu_.api().event_record(block->last, stream);
  block->busy = result == kSuccess;
  // Nobody else may have it while a copy uses it, and no event tells when that ends.
  if (!block->busy) gpu_.api().stream_synchronize(stream);
  const std::lock_guard hold(mutex_);
  free_[class_of(block->bytes)].push_back(block);
  gpu_.check(result, "recording an event");
}

void Pinned::give(PinnedBlock* block) noexcept {
  block->busy = false;
  const std::lock_guard hold(mutex_);
  free_[class_of(block->bytes)].push_back(block);
}

void Pinned::free(PinnedBlock* block) noexcept {
  if (block->busy) gpu_.api().event_synchronize(block->last);
  gpu_.api().event_destroy(block->last);
  gpu_.api().host_free(block->data);
  total_ -= block->bytes;
  --made_[class_of(block->bytes)];
  delete block;
}

void Pinned::trim() noexcept {
  const std::lock_guard hold(mutex_);
  for (std::vector<PinnedBlock*>& list : free_) {
    for (PinnedBlock* block : list) free(block);
    list.clear();
  }
}

}  // namespace croton::cuda
