// CUDA C++ text from kernels: one program for the kernels of a module, without headers.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "compiler/kernel/kernel.h"
#include "runtime/dim.h"

namespace croton::codegen {

/// A program with an `extern "C" __global__` function for each kernel, of that kernel's name: first
/// the buffers that are arguments, then `long long` sizes, then `long long* error` if the kernel
/// has checks. A launch has one block of the grid for each block of the kernel and
/// `Kernel::threads` threads a block, a power of two from 32 to 1024, or, where the kernel is
/// elastic, any multiple of 32 up to that. Where it is packed, a block of the launch is (threads,
/// several), one row of threads for each block of the kernel, 256 threads (elastic: `threads`) at
/// most, and the number of the kernel's blocks follows the sizes as a `long long`. Buffers begin
/// at multiples of 16 bytes. Names must differ.
///
/// The text computes indices in 32 bits. With `#define CROTON_WIDE` in front of it they have 64,
/// which a launch needs with a size, a grid, a span or the elements of a buffer of kWideFrom
/// (runtime/plan.h) or more. All kernels take the number of their blocks then, and the grid may
/// have three dimensions: as many blocks of the launch as are needed or more.
std::string emit_cuda(std::span<const kernel::Kernel* const> kernels);

/// The options of NVRTC under which the text means what kernel.h says.
std::span<const std::string_view> cuda_options();

/// The bytes of dynamic shared memory that a launch of `kernel` with these sizes needs: those of
/// the block-local arrays whose size is not a constant (of all, where they exceed what a kernel may
/// declare).
std::int64_t cuda_shared_bytes(const kernel::Kernel& kernel, std::span<const std::int64_t> sizes);

/// The same as a term over the sizes of any call.
Dim cuda_shared_term(const kernel::Kernel& kernel, std::span<const Dim> sizes);

}  // namespace croton::codegen
