#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "croton/config.h"
#include "runtime/device.h"

namespace croton {

/// The processor: memory of the host, kernels compiled by the LLVM plug-in, oneDNN and OpenBLAS.
/// `threads` 0 takes one per core.
std::shared_ptr<Device> make_cpu_device(int threads);

/// Names and versions of the libraries that work on CPUs, a line each.
std::string cpu_library_report();

/// The library functions of CPUs.
std::span<const LibraryFunction> cpu_library();

/// Text of everything in a TargetInfo that decides what is generated.
std::string target_text(const TargetInfo& target);

}  // namespace croton
