// The driver API: start, devices, symbols.
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>

#include "tests/cuda_emulator/driver.h"
#include "tests/cuda_emulator/signals.h"

using namespace emulator;

namespace {

// Indices and UUID prefixes, as CUDA_VISIBLE_DEVICES has them; an unknown one ends the list.
std::vector<int> visible_devices(int count) {
  std::vector<int> devices;
  const char* list = std::getenv("CUDA_VISIBLE_DEVICES");
  if (!list) {
    for (int i = 0; i < count; ++i) devices.push_back(i);
    return devices;
  }
  for (std::string text = list; !text.empty();) {
    const std::string item = text.substr(0, text.find(','));
    text.erase(0, item.size() + 1);
    char* end = nullptr;
    const long index = std::strtol(item.c_str(), &end, 10);
    if (item.empty() || *end || index < 0 || index >= count) break;
    devices.push_back(static_cast<int>(index));
  }
  return devices;
}

CUmemoryPool make_pool(int device) {
  auto* pool = new CUmemPoolHandle_st;
  pool->device = device;
  pool->devices = 1u << device;
  driver().pools.push_back(pool);
  driver().handles.insert(pool);
  return pool;
}

void open_devices() {
  Driver& d = driver();
  d.process = getpid();
  const auto& capabilities = settings().capabilities;
  for (const int physical : visible_devices(settings().devices)) {
    const auto known =
        std::min<std::size_t>(static_cast<std::size_t>(physical), capabilities.size() - 1);
    Device device;
    device.physical = physical;
    device.capability = capabilities[known];
    device.default_pool = device.pool = make_pool(static_cast<int>(d.devices.size()));
    d.devices.push_back(device);
  }
  machine();
  catch_signals();
}

bool known(CUdevice device) {
  return device >= 0 && static_cast<std::size_t>(device) < driver().devices.size();
}

std::string pci_text(int device) {
  return format("0000:%02X:00.0", driver().devices[static_cast<std::size_t>(device)].physical + 1);
}

int shared_per_multiprocessor(int capability) {
  switch (capability) {
    case 75:
      return 64;
    case 80:
    case 87:
      return 164;
    case 90:
    case 100:
    case 103:
      return 228;
    default:
      return 100;
  }
}

int threads_per_multiprocessor(int capability) {
  if (capability == 75) return 1024;
  const bool small =
      capability / 10 == 12 || capability == 86 || capability == 87 || capability == 89;
  return small ? 1536 : 2048;
}

const std::map<CUdevice_attribute, int>& fixed_attributes() {
  static const std::map<CUdevice_attribute, int> all = {
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
      {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1024},
      {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536},
      {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
      {CU_DEVICE_ATTRIBUTE_MAX_PITCH, 2147483647},
      {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
      {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
      {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1000000},
      {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 1000000},
      {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 5120},
      {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512},
      {CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, 1},
      {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 3},
      {CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT, 0},
      {CU_DEVICE_ATTRIBUTE_INTEGRATED, 0},
      {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, CU_COMPUTEMODE_DEFAULT},
      {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
      {CU_DEVICE_ATTRIBUTE_ECC_ENABLED, 0},
      {CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 0},
      {CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 0},
      {CU_DEVICE_ATTRIBUTE_TCC_DRIVER, 0},
      {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
      {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 52428800},
      {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 32},
      {CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1},
      {CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1},
      {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
      {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 0},
      {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 0},
      {CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 0},
      {CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, 0},
      {CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 2},
  };
  return all;
}

struct ErrorName {
  CUresult code;
  const char *name, *text;
};
constexpr ErrorName kErrors[] = {
#define ERROR(name, text) \
  ErrorName { name, #name, text }
    ERROR(CUDA_SUCCESS, "no error"),
    ERROR(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
    ERROR(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
    ERROR(CUDA_ERROR_NOT_INITIALIZED, "initialization error"),
    ERROR(CUDA_ERROR_DEINITIALIZED, "driver shutting down"),
    ERROR(CUDA_ERROR_STUB_LIBRARY, "CUDA driver is a stub library"),
    ERROR(CUDA_ERROR_DEVICE_UNAVAILABLE, "CUDA-capable device(s) is/are busy or unavailable"),
    ERROR(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
    ERROR(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
    ERROR(CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid"),
    ERROR(CUDA_ERROR_INVALID_CONTEXT, "invalid device context"),
    ERROR(CUDA_ERROR_NO_BINARY_FOR_GPU, "no kernel image is available for execution on the device"),
    ERROR(CUDA_ERROR_ECC_UNCORRECTABLE, "uncorrectable ECC error encountered"),
    ERROR(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED,
          "peer access is not supported between these two devices"),
    ERROR(CUDA_ERROR_INVALID_PTX, "a PTX JIT compilation failed"),
    ERROR(CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
          "the provided PTX was compiled with an unsupported toolchain."),
    ERROR(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"),
    ERROR(CUDA_ERROR_ILLEGAL_STATE, "the operation cannot be performed in the present state"),
    ERROR(CUDA_ERROR_NOT_FOUND, "named symbol not found"),
    ERROR(CUDA_ERROR_NOT_READY, "device not ready"),
    ERROR(CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
    ERROR(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch"),
    ERROR(CUDA_ERROR_LAUNCH_TIMEOUT, "the launch timed out and was terminated"),
    ERROR(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, "peer access is already enabled"),
    ERROR(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, "peer access has not been enabled"),
    ERROR(CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE, "cannot set while device is active in this process"),
    ERROR(CUDA_ERROR_CONTEXT_IS_DESTROYED, "context is destroyed"),
    ERROR(CUDA_ERROR_ASSERT, "device-side assert triggered"),
    ERROR(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
          "part or all of the requested memory range is already mapped"),
    ERROR(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED,
          "pointer does not correspond to a registered memory region"),
    ERROR(CUDA_ERROR_HARDWARE_STACK_ERROR, "hardware stack error"),
    ERROR(CUDA_ERROR_ILLEGAL_INSTRUCTION, "an illegal instruction was encountered"),
    ERROR(CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned address"),
    ERROR(CUDA_ERROR_INVALID_ADDRESS_SPACE,
          "operation not supported on global/shared address space"),
    ERROR(CUDA_ERROR_INVALID_PC, "invalid program counter"),
    ERROR(CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"),
    ERROR(CUDA_ERROR_NOT_PERMITTED, "operation not permitted"),
    ERROR(CUDA_ERROR_NOT_SUPPORTED, "operation not supported"),
    ERROR(CUDA_ERROR_SYSTEM_NOT_READY, "system not yet initialized"),
    ERROR(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH,
          "system has unsupported display driver / cuda driver combination"),
    ERROR(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
          "operation not permitted when stream is capturing"),
    ERROR(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
          "operation failed due to a previous error during capture"),
    ERROR(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED,
          "capture was not ended in the same stream as it began"),
    ERROR(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "capturing stream has unjoined work"),
    ERROR(CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
          "dependency created on uncaptured work in another stream"),
    ERROR(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
          "operation would make the legacy stream depend on a capturing blocking stream"),
    ERROR(CUDA_ERROR_CAPTURED_EVENT,
          "operation not permitted on an event last recorded in a capturing stream"),
    ERROR(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD,
          "attempt to terminate a thread-local capture sequence from another thread"),
    ERROR(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE,
          "the graph update was not performed because it included changes which violated "
          "constraints specific to instantiated graph update"),
    ERROR(CUDA_ERROR_UNKNOWN, "unknown error"),
#undef ERROR
};

const ErrorName* find_error(CUresult code) {
  const auto* found = std::find_if(std::begin(kErrors), std::end(kErrors),
                                   [&](const ErrorName& e) { return e.code == code; });
  return found == std::end(kErrors) ? nullptr : found;
}

}  // namespace

EMULATOR_API CUresult cuInit(unsigned flags) {
  const Call call(Call::nothing);
  Driver& d = driver();
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (d.initialised) return d.process == getpid() ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
  announce("libcuda");
  if (const int code = injected_failure("init")) return static_cast<CUresult>(code);
  open_devices();
  if (d.devices.empty()) return CUDA_ERROR_NO_DEVICE;
  d.initialised = true;
  return CUDA_SUCCESS;
}

EMULATOR_API CUresult cuDriverGetVersion(int* version) {
  if (!version) return CUDA_ERROR_INVALID_VALUE;
  *version = settings().driver_version ? settings().driver_version : CUDA_VERSION;
  return CUDA_SUCCESS;
}

EMULATOR_API CUresult cuDeviceGetCount(int* count) {
  const Call call(Call::initialised);
  if (call.error) return call.error;
  if (!count) return CUDA_ERROR_INVALID_VALUE;
  *count = static_cast<int>(driver().devices.size());
  return CUDA_SUCCESS;
}

EMULATOR_API CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  const Call call(Call::initialised);
  if (call.error) return call.error;
  if (!device) return CUDA_ERROR_INVALID_VALUE;
  if (!known(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

EMULATOR_API CUresult cuDeviceGetName(char* name, int size, CUdevice device) {
  const Call call(Call::initialised);
  if (call.error) return call.error;
  if (!name || size <= 0) return CUDA_ERROR_INVALID_VALUE;
  if (!known(device)) return CUDA_ERROR_INVALID_DEVICE;
  const int capability = driver().devices[static_cast<std::size_t>(device)].capability;
  std::snprintf(name, static_cast<std::size_t>(size), "Croton CUDA emulator (no GPU, sm_%d)",
                capability);
  return CUDA_SUCCESS;
}

EMULATOR_API CUresult cuDeviceTotalMem(std::size_t* bytes, CUdevice device) {
  const Call call(Call::initialised);
  if (call.error) return call.error;
  if (!bytes) return CUDA_ERROR_INVALID_VALUE;
  if (!known(device)) return CUDA_ERROR_INVALID_DEVICE;
  *bytes = settings().memory;
  return CUDA_SUCCESS;
}

EMULATOR_API CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute,
                                           CUdevice device) {
  const Call call(Call::initialised);
  if (call.error) return call.error;
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  if (!known(device)) return CUDA_ERROR_INVALID_DEVICE;
  const Device& d = driver().devices[static_cast<std::size_t>(device)];
  const int shared = shared_per_multiprocessor(d.capability) * 1024;
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      return *value = d.capability / 10, CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      return *value = d.capability % 10, CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      return *value = settings().multiprocessors, CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
      return *value = d.physical + 1, CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
      return *value = threads_per_multiprocessor(d.capability), CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
      return *value = shared, CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      return *value = d.capability == 75 ? shared : shared - 1024, CUDA_SUCCESS;
    default:
      break;
  }
  const auto at = fixed_attributes().find(attribute);
  if (at == fixed_attributes().end()) {
    *value = 0;
    return attribute > 0 && attribute < CU_DEVICE_ATTRIBUTE_MAX ? CUDA_SUCCESS
                                                                : CUDA_ERROR_INVALID_VALUE;
  }
  *value = at->second;
  return CUDA_SUCCESS;
}

EMULATOR_API CUresult cuDeviceGetPCIBusId(char* text, int size, CUdevice device) {
  const Call call(Call::initialised);
  if (call.error) return call.error;
  if (!text || size < 13) return CUDA_ERROR_INVALID_VALUE;
  if (!known(device)) return CUDA_ERROR_INVALID_DEVICE;
  std::snprintf(text, static_cast<std::size_t>(size), "%s", pci_text(device).c_str());
  return CUDA_SUCCESS;
}

EMULATOR_API CUresult cuDeviceGetByPCIBusId(CUdevice* device, const char* text) {
  const Call call(Call::initialised);
  if (call.error) return call.error;
  if (!device || !text) return CUDA_ERROR_INVALID_VALUE;
  std::string wanted = text;
  std::transform(wanted.begin(), wanted.end(), wanted.begin(), ::toupper);
  for (int i = 0; known(i); ++i) {
    const std::string id = pci_text(i);
    if (wanted == id || wanted == id.substr(5)) return *device = i, CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_DEVICE;
}

EMULATOR_API CUresult cuGetErrorName(CUresult error, const char** text) {
  if (!text) return CUDA_ERROR_INVALID_VALUE;
  const ErrorName* found = find_error(error);
  *text = found ? found->name : nullptr;
  return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EMULATOR_API CUresult cuGetErrorString(CUresult error, const char** text) {
  if (!text) return CUDA_ERROR_INVALID_VALUE;
  const ErrorName* found = find_error(error);
  *text = found ? found->text : nullptr;
  return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EMULATOR_API CUresult cuGetExportTable(const void** table, const CUuuid*) {
  if (table) *table = nullptr;
  return CUDA_ERROR_NOT_FOUND;
}

// The newest version of a name.
EMULATOR_API CUresult cuGetProcAddress_v2(const char* symbol, void** function, int, cuuint64_t,
                                          CUdriverProcAddressQueryResult* status) {
  if (!symbol || !function) return CUDA_ERROR_INVALID_VALUE;
  Dl_info self;
  dladdr(reinterpret_cast<void*>(&cuInit), &self);
  static void* const library = dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  *function = nullptr;
  for (const char* suffix : {"_v4", "_v3", "_v2", ""}) {
    if (*function) break;
    *function = dlsym(library, (std::string(symbol) + suffix).c_str());
  }
  if (status) {
    *status = *function ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  }
  if (!*function) return CUDA_ERROR_NOT_FOUND;
  return CUDA_SUCCESS;
}

#undef cuGetProcAddress
EMULATOR_API CUresult cuGetProcAddress(const char* symbol, void** function, int version,
                                       cuuint64_t flags) {
  return cuGetProcAddress_v2(symbol, function, version, flags, nullptr);
}
