// The CUDA driver (libcuda.so.1), opened on first use. The few types, constants and prototypes that
// are used stand here, so that no header of the toolkit is needed; a test compares the constants
// and layouts with cuda.h where there is one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/cuda/library.h"

namespace croton::cuda {

// Handles of the driver.
using Result = int;        // CUresult
using DeviceNumber = int;  // CUdevice
using DevicePointer = unsigned long long;
using ContextHandle = struct CUctx_st*;
using ModuleHandle = struct CUmod_st*;
using FunctionHandle = struct CUfunc_st*;
using StreamHandle = struct CUstream_st*;
using EventHandle = struct CUevent_st*;
using GraphHandle = struct CUgraph_st*;
using GraphExecHandle = struct CUgraphExec_st*;
using MemoryPoolHandle = struct CUmemPoolHandle_st*;

// CUresult.
inline constexpr Result kSuccess = 0;
inline constexpr Result kOutOfMemory = 2;
inline constexpr Result kStubLibrary = 34;
inline constexpr Result kDeviceUnavailable = 46;
inline constexpr Result kNoDevice = 100;
inline constexpr Result kInvalidImage = 200;
inline constexpr Result kNoBinaryForGpu = 209;
inline constexpr Result kEccUncorrectable = 214;
inline constexpr Result kInvalidPtx = 218;
inline constexpr Result kNvlinkUncorrectable = 220;
inline constexpr Result kUnsupportedPtxVersion = 222;
inline constexpr Result kOperatingSystem = 304;
inline constexpr Result kNotReady = 600;
inline constexpr Result kIllegalAddress = 700;
inline constexpr Result kLaunchTimeout = 702;
inline constexpr Result kPeerAccessAlreadyEnabled = 704;
inline constexpr Result kContextIsDestroyed = 709;
inline constexpr Result kAssert = 710;
inline constexpr Result kHardwareStackError = 714;
inline constexpr Result kLaunchFailed = 719;
inline constexpr Result kTensorMemoryLeak = 721;
inline constexpr Result kNotPermitted = 800;
inline constexpr Result kSystemNotReady = 802;
inline constexpr Result kSystemDriverMismatch = 803;
inline constexpr Result kCompatNotSupported = 804;
inline constexpr Result kExternalDevice = 911;
inline constexpr Result kUnknown = 999;

/// Whether the context of the device is beyond use after `result`.
constexpr bool is_sticky(Result result) {
  return result == kEccUncorrectable || result == kNvlinkUncorrectable ||
         result == kIllegalAddress || result == kLaunchTimeout || result == kContextIsDestroyed ||
         result == kAssert || (result >= kHardwareStackError && result <= kLaunchFailed) ||
         result == kTensorMemoryLeak || result == kExternalDevice || result == kUnknown;
}

/// CUdevice_attribute.
enum class Attribute : int {
  max_threads_per_block = 1,
  shared_bytes_per_block = 8,
  warp_size = 10,
  multiprocessors = 16,
  l2_bytes = 38,
  capability_major = 75,
  capability_minor = 76,
  shared_bytes_opt_in = 97,
  memory_pools = 115,
};

/// CUfunction_attribute.
enum class FunctionAttribute : int {
  shared_bytes = 1,
  max_dynamic_shared_bytes = 8,
};

/// CUmemPool_attribute.
enum class PoolAttribute : int { release_threshold = 4 };

// Flags.
inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventDisableTiming = 2;
inline constexpr unsigned kHostAllocPortable = 1;
inline constexpr int kCaptureRelaxed = 2;

/// CUmemLocation, of type CU_MEM_LOCATION_TYPE_DEVICE.
struct MemoryLocation {
  int type = 1;
  int id = 0;
};
/// CUmemPoolProps.
struct MemoryPoolProperties {
  int allocation_type = 1;  // pinned
  int handle_types = 0;
  MemoryLocation location;
  void* security = nullptr;
  std::size_t max_bytes = 0;
  unsigned short usage = 0;
  unsigned char reserved[54] = {};
};
/// CUmemAccessDesc.
struct MemoryAccess {
  MemoryLocation location;
  int flags = 3;  // read and write
};

/// The functions of the driver that are used.
struct DriverSymbols {
  Result (*init)(unsigned flags);
  Result (*driver_version)(int*);
  Result (*error_name)(Result, const char**);
  Result (*error_string)(Result, const char**);
  Result (*device_count)(int*);
  Result (*device_get)(DeviceNumber*, int ordinal);
  Result (*device_name)(char*, int size, DeviceNumber);
  Result (*device_attribute)(int*, int attribute, DeviceNumber);
  Result (*device_bytes)(std::size_t*, DeviceNumber);
  Result (*device_pci_id)(char*, int size, DeviceNumber);
  Result (*device_by_pci_id)(DeviceNumber*, const char*);
  Result (*can_access_peer)(int*, DeviceNumber, DeviceNumber peer);
  Result (*primary_retain)(ContextHandle*, DeviceNumber);
  Result (*primary_release)(DeviceNumber);
  Result (*push_context)(ContextHandle);
  Result (*pop_context)(ContextHandle*);
  Result (*enable_peer)(ContextHandle peer, unsigned flags);
  Result (*memory_info)(std::size_t* free, std::size_t* total);
  Result (*stream_create)(StreamHandle*, unsigned flags);
  Result (*stream_destroy)(StreamHandle);
  Result (*stream_synchronize)(StreamHandle);
  Result (*stream_wait_event)(StreamHandle, EventHandle, unsigned flags);
  Result (*stream_begin_capture)(StreamHandle, int mode);
  Result (*stream_end_capture)(StreamHandle, GraphHandle*);
  Result (*event_create)(EventHandle*, unsigned flags);
  Result (*event_destroy)(EventHandle);
  Result (*event_record)(EventHandle, StreamHandle);
  Result (*event_query)(EventHandle);
  Result (*event_synchronize)(EventHandle);
  Result (*memory_allocate)(DevicePointer*, std::size_t);
  Result (*memory_free)(DevicePointer);
  Result (*host_allocate)(void**, std::size_t, unsigned flags);
  Result (*host_free)(void*);
  Result (*copy_to_device)(DevicePointer, const void*, std::size_t, StreamHandle);
  Result (*copy_to_host)(void*, DevicePointer, std::size_t, StreamHandle);
  Result (*copy_on_device)(DevicePointer, DevicePointer, std::size_t, StreamHandle);
  Result (*copy_peer)(DevicePointer, ContextHandle, DevicePointer, ContextHandle, std::size_t,
                      StreamHandle);
  Result (*set_bytes)(DevicePointer, unsigned char, std::size_t, StreamHandle);
  Result (*pool_create)(MemoryPoolHandle*, const MemoryPoolProperties*);
  Result (*pool_destroy)(MemoryPoolHandle);
  Result (*pool_set_attribute)(MemoryPoolHandle, int attribute, void*);
  Result (*pool_set_access)(MemoryPoolHandle, const MemoryAccess*, std::size_t count);
  Result (*pool_trim)(MemoryPoolHandle, std::size_t keep);
  Result (*pool_allocate)(DevicePointer*, std::size_t, MemoryPoolHandle, StreamHandle);
  Result (*free_async)(DevicePointer, StreamHandle);
  Result (*module_load)(ModuleHandle*, const void* image, unsigned options, int* names, void**);
  Result (*module_unload)(ModuleHandle);
  Result (*module_function)(FunctionHandle*, ModuleHandle, const char* name);
  Result (*function_attribute)(int*, int attribute, FunctionHandle);
  Result (*set_function_attribute)(FunctionHandle, int attribute, int value);
  Result (*launch)(FunctionHandle, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                   StreamHandle, void** parameters, void** extra);
  Result (*graph_instantiate)(GraphExecHandle*, GraphHandle, unsigned long long flags);
  Result (*graph_launch)(GraphExecHandle, StreamHandle);
  Result (*graph_exec_destroy)(GraphExecHandle);
  Result (*graph_destroy)(GraphHandle);
};

/// An open driver, initialised.
class Driver {
 public:
  explicit Driver(const LibrarySearch& search, std::string visible_devices = {});

  bool usable() const { return library_.report().usable; }
  const LibraryReport& report() const { return library_.report(); }
  const DriverSymbols* operator->() const { return &symbols_; }
  /// 13000 for CUDA 13.0: the newest that it supports.
  int version() const { return version_; }
  /// How many devices there are: those of CUDA_VISIBLE_DEVICES where it is set.
  int device_count() const { return devices_; }
  /// What CUDA_VISIBLE_DEVICES says, for messages.
  const std::string& visible_devices() const { return visible_; }

  /// "CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)"
  std::string error_text(Result result) const;

  /// DeviceError with the reason unless it can be used, in this very process.
  void require_usable() const;

 private:
  void open();
  std::string why_not(Result result) const;

  Library library_;
  DriverSymbols symbols_{};
  std::string visible_;
  int version_ = 0;
  int devices_ = 0;
};

/// The driver of the process, opened by the first call, with the places that the environment names.
const Driver& driver();

/// Whether this process is a child, forked after the driver was initialised: nothing of CUDA works
/// here any more.
bool forked_from_cuda() noexcept;

/// Why, for people.
std::string_view fork_reason();

}  // namespace croton::cuda
