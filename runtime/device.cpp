#include "runtime/device.h"

namespace croton {

PreparedCall::~PreparedCall() = default;
Module::~Module() = default;
Event::~Event() = default;
Queue::~Queue() = default;
Device::~Device() = default;

const LibraryFunction* find_function(std::span<const LibraryFunction> table,
                                     std::string_view name) {
  for (const LibraryFunction& function : table) {
    if (function.name == name) return &function;
  }
  return nullptr;
}

}  // namespace croton
