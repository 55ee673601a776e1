// The declarations in runtime/cuda against the headers of the toolkit, where there are any.
#if __has_include(<cuda.h>) && __has_include(<cublasLt.h>)
#include <cublasLt.h>
#include <cuda.h>

#include "runtime/cuda/cublaslt.h"
#include "runtime/cuda/driver.h"

namespace mine = croton::cuda;

static_assert(mine::kSuccess == CUDA_SUCCESS);
static_assert(mine::kOutOfMemory == CUDA_ERROR_OUT_OF_MEMORY);
static_assert(mine::kStubLibrary == CUDA_ERROR_STUB_LIBRARY);
static_assert(mine::kDeviceUnavailable == CUDA_ERROR_DEVICE_UNAVAILABLE);
static_assert(mine::kNoDevice == CUDA_ERROR_NO_DEVICE);
static_assert(mine::kInvalidImage == CUDA_ERROR_INVALID_IMAGE);
static_assert(mine::kNoBinaryForGpu == CUDA_ERROR_NO_BINARY_FOR_GPU);
static_assert(mine::kEccUncorrectable == CUDA_ERROR_ECC_UNCORRECTABLE);
static_assert(mine::kInvalidPtx == CUDA_ERROR_INVALID_PTX);
static_assert(mine::kNvlinkUncorrectable == CUDA_ERROR_NVLINK_UNCORRECTABLE);
static_assert(mine::kUnsupportedPtxVersion == CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
static_assert(mine::kOperatingSystem == CUDA_ERROR_OPERATING_SYSTEM);
static_assert(mine::kNotReady == CUDA_ERROR_NOT_READY);
static_assert(mine::kIllegalAddress == CUDA_ERROR_ILLEGAL_ADDRESS);
static_assert(mine::kLaunchTimeout == CUDA_ERROR_LAUNCH_TIMEOUT);
static_assert(mine::kPeerAccessAlreadyEnabled == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
static_assert(mine::kContextIsDestroyed == CUDA_ERROR_CONTEXT_IS_DESTROYED);
static_assert(mine::kAssert == CUDA_ERROR_ASSERT);
static_assert(mine::kHardwareStackError == CUDA_ERROR_HARDWARE_STACK_ERROR);
static_assert(mine::kLaunchFailed == CUDA_ERROR_LAUNCH_FAILED);
static_assert(mine::kNotPermitted == CUDA_ERROR_NOT_PERMITTED);
static_assert(mine::kSystemNotReady == CUDA_ERROR_SYSTEM_NOT_READY);
static_assert(mine::kSystemDriverMismatch == CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
static_assert(mine::kCompatNotSupported == CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE);
static_assert(mine::kExternalDevice == CUDA_ERROR_EXTERNAL_DEVICE);
static_assert(mine::kUnknown == CUDA_ERROR_UNKNOWN);

static_assert(int(mine::Attribute::max_threads_per_block) ==
              CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
static_assert(int(mine::Attribute::shared_bytes_per_block) ==
              CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
static_assert(int(mine::Attribute::warp_size) == CU_DEVICE_ATTRIBUTE_WARP_SIZE);
static_assert(int(mine::Attribute::capability_major) ==
              CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
static_assert(int(mine::FunctionAttribute::shared_bytes) == CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
static_assert(int(mine::Attribute::multiprocessors) == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
static_assert(int(mine::Attribute::l2_bytes) == CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
static_assert(int(mine::Attribute::capability_minor) ==
              CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
static_assert(int(mine::Attribute::shared_bytes_opt_in) ==
              CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
static_assert(int(mine::Attribute::memory_pools) == CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
static_assert(int(mine::FunctionAttribute::max_dynamic_shared_bytes) ==
              CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
static_assert(int(mine::PoolAttribute::release_threshold) == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
static_assert(mine::kStreamNonBlocking == CU_STREAM_NON_BLOCKING);
static_assert(mine::kEventDisableTiming == CU_EVENT_DISABLE_TIMING);
static_assert(mine::kHostAllocPortable == CU_MEMHOSTALLOC_PORTABLE);
static_assert(mine::kCaptureRelaxed == CU_STREAM_CAPTURE_MODE_RELAXED);
static_assert(sizeof(mine::MemoryPoolProperties) == sizeof(CUmemPoolProps));
static_assert(offsetof(mine::MemoryPoolProperties, location) == offsetof(CUmemPoolProps, location));
static_assert(offsetof(mine::MemoryPoolProperties, security) ==
              offsetof(CUmemPoolProps, win32SecurityAttributes));
static_assert(sizeof(mine::MemoryAccess) == sizeof(CUmemAccessDesc));

static_assert(sizeof(mine::LtHeuristic) == sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(offsetof(mine::LtHeuristic, workspace) ==
              offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
static_assert(int(mine::LtCompute::float32) == CUBLAS_COMPUTE_32F);
static_assert(int(mine::LtCompute::float32_tf32) == CUBLAS_COMPUTE_32F_FAST_TF32);
static_assert(int(mine::LtCompute::float64) == CUBLAS_COMPUTE_64F);
static_assert(int(mine::LtType::bfloat16) == CUDA_R_16BF &&
              int(mine::LtType::float16) == CUDA_R_16F);
static_assert(int(mine::LtDescriptionAttribute::bias) == CUBLASLT_MATMUL_DESC_BIAS_POINTER);
static_assert(int(mine::LtLayoutAttribute::batch_step) ==
              CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
static_assert(int(mine::LtPreferenceAttribute::workspace) ==
              CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
static_assert(int(mine::LtPreferenceAttribute::reductions) ==
              CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
static_assert(int(mine::LtPreferenceAttribute::alignment_d) ==
              CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
static_assert(mine::kLtNotSupported == CUBLAS_STATUS_NOT_SUPPORTED);
static_assert(mine::kLtEpilogueBias == CUBLASLT_EPILOGUE_BIAS &&
              mine::kLtEpilogueNone == CUBLASLT_EPILOGUE_DEFAULT);
#endif
