// Matrix products on GPUs: the same attributes and operands as on CPUs (runtime/cpu/gemm.h).
#pragma once

#include <memory>
#include <span>

#include "runtime/cpu/gemm.h"
#include "runtime/library.h"

namespace croton::cuda {

class GpuDevice;

/// The library functions of GPUs.
std::span<const LibraryFunction> gpu_library();

/// How cuBLASLt is asked.
struct BlasOptions {
  bool tf32 = false;
  bool deterministic = false;
};

/// cuBLASLt, for floats. DeviceError when it is not there or has no way.
std::unique_ptr<PreparedCall> blas_gemm(GpuDevice& device, const cpu::GemmProblem& problem,
                                        BlasOptions options);

/// A kernel of our own, for integers, bool, and products without terms.
std::unique_ptr<PreparedCall> plain_gemm(GpuDevice& device, const cpu::GemmProblem& problem);

/// Bias and relu, as `problem` has them, over a product; NaN stays.
std::unique_ptr<PreparedCall> finish_gemm(GpuDevice& device, const cpu::GemmProblem& problem);

}  // namespace croton::cuda
