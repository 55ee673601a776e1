#pragma once

#include <string>
#include <string_view>

#include "runtime/cpu/jit.h"

namespace croton {

/// The functions `load`, `kernel` and `unload` of LlvmPlugin. Loading links object bytes into
/// memory of their own, executable and no longer writable; it fails when the bytes are no object or
/// need a function that the process does not have.
void* load_object(std::string_view object, std::string& error);
CpuKernel find_kernel(void* module, const std::string& name);
void unload_object(void* module);

}  // namespace croton
