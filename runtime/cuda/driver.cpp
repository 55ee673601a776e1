#include "runtime/cuda/driver.h"

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>

#include "config/environment.h"
#include "croton/error.h"

namespace croton::cuda {
namespace {

constexpr std::string_view kSonames[] = {"libcuda.so.1"};
/// The first with graphs made from captures by flags, and pools.
constexpr int kOldest = 11040;

template <auto member>
constexpr Symbol row(const char* name, bool optional = false) {
  return {name, &bind_symbol<member>, optional};
}

using S = DriverSymbols;
constexpr std::array kSymbols = {
    row<&S::init>("cuInit"),
    row<&S::driver_version>("cuDriverGetVersion"),
    row<&S::error_name>("cuGetErrorName"),
    row<&S::error_string>("cuGetErrorString"),
    row<&S::device_count>("cuDeviceGetCount"),
    row<&S::device_get>("cuDeviceGet"),
    row<&S::device_name>("cuDeviceGetName"),
    row<&S::device_attribute>("cuDeviceGetAttribute"),
    row<&S::device_bytes>("cuDeviceTotalMem_v2"),
    row<&S::device_pci_id>("cuDeviceGetPCIBusId"),
    row<&S::device_by_pci_id>("cuDeviceGetByPCIBusId"),
    row<&S::can_access_peer>("cuDeviceCanAccessPeer"),
    row<&S::primary_retain>("cuDevicePrimaryCtxRetain"),
    row<&S::primary_release>("cuDevicePrimaryCtxRelease_v2"),
    row<&S::push_context>("cuCtxPushCurrent_v2"),
    row<&S::pop_context>("cuCtxPopCurrent_v2"),
    row<&S::enable_peer>("cuCtxEnablePeerAccess"),
    row<&S::memory_info>("cuMemGetInfo_v2"),
    row<&S::stream_create>("cuStreamCreate"),
    row<&S::stream_destroy>("cuStreamDestroy_v2"),
    row<&S::stream_synchronize>("cuStreamSynchronize"),
    row<&S::stream_wait_event>("cuStreamWaitEvent"),
    row<&S::stream_begin_capture>("cuStreamBeginCapture_v2"),
    row<&S::stream_end_capture>("cuStreamEndCapture"),
    row<&S::event_create>("cuEventCreate"),
    row<&S::event_destroy>("cuEventDestroy_v2"),
    row<&S::event_record>("cuEventRecord"),
    row<&S::event_query>("cuEventQuery"),
    row<&S::event_synchronize>("cuEventSynchronize"),
    row<&S::memory_allocate>("cuMemAlloc_v2"),
    row<&S::memory_free>("cuMemFree_v2"),
    row<&S::host_allocate>("cuMemHostAlloc"),
    row<&S::host_free>("cuMemFreeHost"),
    row<&S::copy_to_device>("cuMemcpyHtoDAsync_v2"),
    row<&S::copy_to_host>("cuMemcpyDtoHAsync_v2"),
    row<&S::copy_on_device>("cuMemcpyDtoDAsync_v2"),
    row<&S::copy_peer>("cuMemcpyPeerAsync"),
    row<&S::set_bytes>("cuMemsetD8Async"),
    row<&S::pool_create>("cuMemPoolCreate"),
    row<&S::pool_destroy>("cuMemPoolDestroy"),
    row<&S::pool_set_attribute>("cuMemPoolSetAttribute"),
    row<&S::pool_set_access>("cuMemPoolSetAccess"),
    row<&S::pool_trim>("cuMemPoolTrimTo"),
    row<&S::pool_allocate>("cuMemAllocFromPoolAsync"),
    row<&S::free_async>("cuMemFreeAsync"),
    row<&S::module_load>("cuModuleLoadDataEx"),
    row<&S::module_unload>("cuModuleUnload"),
    row<&S::module_function>("cuModuleGetFunction"),
    row<&S::function_attribute>("cuFuncGetAttribute"),
    row<&S::set_function_attribute>("cuFuncSetAttribute"),
    row<&S::launch>("cuLaunchKernel"),
    row<&S::graph_instantiate>("cuGraphInstantiateWithFlags"),
    row<&S::graph_launch>("cuGraphLaunch"),
    row<&S::graph_exec_destroy>("cuGraphExecDestroy"),
    row<&S::graph_destroy>("cuGraphDestroy"),
};

std::atomic<bool> initialised{false};
std::atomic<bool> forked{false};

void note_fork() {
  if (initialised.load(std::memory_order_relaxed)) forked.store(true, std::memory_order_relaxed);
}

std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

}  // namespace

Driver::Driver(const LibrarySearch& search, std::string visible_devices)
    : library_("CUDA driver", kSonames, search), visible_(std::move(visible_devices)) {
  if (library_) {
    open();
  } else {
    library_.report().reason =
        "libcuda.so.1, which comes with NVIDIA's driver, was not found; install the driver, or set "
        "LD_LIBRARY_PATH to where it is";
  }
}

void Driver::open() {
  LibraryReport& report = library_.report();
  const std::string missing = library_.bind(kSymbols, &symbols_);
  if (symbols_.driver_version != nullptr && symbols_.driver_version(&version_) == kSuccess) {
    report.version = "for CUDA " + version_text(version_);
  }
  if (version_ != 0 && version_ < kOldest) {
    return library_.reject(fmt::format(
        "the driver ({}) is too old: it supports CUDA {}, and {} or later is needed; update it",
        report.path, version_text(version_), version_text(kOldest)));
  }
  if (!missing.empty()) {
    return library_.reject(fmt::format("{} lacks {}: a driver for CUDA {} or later is needed",
                                       report.path, missing, version_text(kOldest)));
  }
  pthread_atfork(nullptr, nullptr, note_fork);
  // A fork while it starts is as bad as one later.
  initialised.store(true, std::memory_order_relaxed);
  Result result = symbols_.init(0);
  if (result == kSuccess) result = symbols_.device_count(&devices_);
  if (result == kSuccess && devices_ == 0) result = kNoDevice;
  if (result != kSuccess) {
    // A child is told the same as this process.
    initialised.store(false, std::memory_order_relaxed);
    devices_ = 0;
    library_.reject(why_not(result));
  }
}

std::string Driver::why_not(Result result) const {
  const std::string head =
      fmt::format("the driver ({}, for CUDA {}) ", library_.report().path, version_text(version_));
  const std::string hidden =
      visible_.empty() ? std::string()
                       : fmt::format("; CUDA_VISIBLE_DEVICES={} decides which it shows", visible_);
  // A device file that cannot be opened looks like no device, or like an unknown error.
  if (access("/dev/nvidiactl", F_OK) == 0 && access("/dev/nvidiactl", R_OK | W_OK) != 0 &&
      errno == EACCES) {
    return head + "may not be used: no permission for /dev/nvidiactl; join the group that owns it";
  }
  switch (result) {
    case kNoDevice:
      return head + "finds no GPU" + hidden;
    case kStubLibrary:
      return head +
             "is the toolkit's stub, made for linking, and not a driver: take the folder "
             "\"stubs\" out of LD_LIBRARY_PATH";
    case kSystemDriverMismatch:
      return head + "does not belong to the kernel module that is loaded: reboot after the update";
    case kCompatNotSupported:
      return head +
             "is a compatibility package that this GPU does not support: use the driver "
             "that was installed with the GPU";
    case kSystemNotReady:
      return head + "is not ready yet (does the fabric manager run?)";
    case kNotPermitted:
      return head + "may not be used: no permission";
    default:
      return head + "cannot be initialised: " + error_text(result) + hidden;
  }
}

std::string Driver::error_text(Result result) const {
  const char* name = nullptr;
  const char* text = nullptr;
  if (symbols_.error_name == nullptr || symbols_.error_name(result, &name) != kSuccess || !name) {
    return fmt::format("error {} of the driver", result);
  }
  if (symbols_.error_string(result, &text) != kSuccess || !text) return name;
  return fmt::format("{} ({})", name, text);
}

void Driver::require_usable() const {
  if (forked_from_cuda()) throw DeviceError(std::string(fork_reason()));
  if (!usable()) throw DeviceError(report().text());
}

const Driver& driver() {
  static const Driver* const opened = [] {
    const Environment environment = read_environment();
    LibrarySearch search;
    search.cuda_path = environment.cuda_path;
    return new Driver(search, environment.cuda_visible_devices);
  }();
  return *opened;
}

bool forked_from_cuda() noexcept { return forked.load(std::memory_order_relaxed); }

std::string_view fork_reason() {
  return "this process was forked from one in which CUDA was in use, and CUDA does not survive a "
         "fork: use the GPU in one process only, or fork before it is first used, or start the "
         "child anew (exec; in Python the start method \"spawn\"); CPU functions go on working";
}

}  // namespace croton::cuda
