// cuBLASLt: matrix products with epilogues. Opened on first use; the few types and constants that
// are used stand here, as in cublasLt.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/cuda/more_libraries.h"

namespace croton::cuda {

using LtHandle = struct cublasLtContext*;
using LtDescription = void*;  // cublasLtMatmulDesc_t
using LtLayout = void*;       // cublasLtMatrixLayout_t
using LtPreference = void*;   // cublasLtMatmulPreference_t

/// cublasLtMatmulAlgo_t.
struct LtAlgorithm {
  std::uint64_t data[8] = {};
};

/// cublasLtMatmulHeuristicResult_t.
struct LtHeuristic {
  LtAlgorithm algorithm;
  std::size_t workspace = 0;
  int state = 0;
  float waves = 0;
  int reserved[4] = {};
};

// cublasStatus_t.
inline constexpr int kLtSuccess = 0;
inline constexpr int kLtNotSupported = 15;
inline constexpr int kLtAllocationFailed = 3;

/// cublasComputeType_t.
enum class LtCompute : int { float32 = 68, float32_tf32 = 77, float64 = 70 };
/// cudaDataType.
enum class LtType : int { float32 = 0, float64 = 1, float16 = 2, bfloat16 = 14 };
/// cublasLtMatmulDescAttributes_t.
enum class LtDescriptionAttribute : int {
  transpose_a = 3,
  transpose_b = 4,
  epilogue = 7,
  bias = 8
};
/// cublasLtMatrixLayoutAttribute_t.
enum class LtLayoutAttribute : int { batch = 5, batch_step = 6 };
/// cublasLtMatmulPreferenceAttributes_t.
enum class LtPreferenceAttribute : int {
  workspace = 1,
  reductions = 3,
  alignment_a = 5,
  alignment_b = 6,
  alignment_c = 7,
  alignment_d = 8,
};
/// cublasLtEpilogue_t.
inline constexpr int kLtEpilogueNone = 1;
inline constexpr int kLtEpilogueBias = 4;
/// cublasLtReductionScheme_t: all but the one with atomics.
inline constexpr std::uint32_t kLtDeterministicReductions = 2 | 4;

struct LtSymbols {
  std::size_t (*version)();
  const char* (*status_string)(int status);
  int (*create)(LtHandle*);
  int (*destroy)(LtHandle);
  int (*matmul)(LtHandle, LtDescription, const void* alpha, const void* a, LtLayout, const void* b,
                LtLayout, const void* beta, const void* c, LtLayout, void* d, LtLayout,
                const LtAlgorithm*, void* workspace, std::size_t workspace_bytes, void* stream);
  int (*heuristic)(LtHandle, LtDescription, LtLayout a, LtLayout b, LtLayout c, LtLayout d,
                   LtPreference, int wanted, LtHeuristic* results, int* count);
  int (*description_create)(LtDescription*, int compute, int scale);
  int (*description_destroy)(LtDescription);
  int (*description_set)(LtDescription, int attribute, const void*, std::size_t);
  int (*layout_create)(LtLayout*, int type, std::uint64_t rows, std::uint64_t columns,
                       std::int64_t leading);
  int (*layout_destroy)(LtLayout);
  int (*layout_set)(LtLayout, int attribute, const void*, std::size_t);
  int (*preference_create)(LtPreference*);
  int (*preference_destroy)(LtPreference);
  int (*preference_set)(LtPreference, int attribute, const void*, std::size_t);
};

/// The cuBLASLt of the process, opened by the first call.
const Opened<LtSymbols>& cublaslt();

}  // namespace croton::cuda
