#include "runtime/device.h"

#include "runtime/pool.h"

namespace croton {

PreparedCall::~PreparedCall() = default;
Module::~Module() = default;
Event::~Event() = default;
Recording::~Recording() = default;
Queue::~Queue() = default;
Device::~Device() = default;

void Device::add_pool(Pool* pool) {
  const std::lock_guard hold(pools_mutex_);
  pools_.push_back(pool);
}

void Device::remove_pool(Pool* pool) noexcept {
  const std::lock_guard hold(pools_mutex_);
  std::erase(pools_, pool);
}

void Device::trim_pools() noexcept {
  const std::lock_guard hold(pools_mutex_);
  for (Pool* pool : pools_) pool->trim();
  trim();
}

const LibraryFunction* find_function(std::span<const LibraryFunction> table,
                                     std::string_view name) {
  for (const LibraryFunction& function : table) {
    if (function.name == name) return &function;
  }
  return nullptr;
}

}  // namespace croton
