// The driver API: attributes of functions, occupancy, launches.
#include <algorithm>
#include <cstring>

#include "tests/cuda_emulator/driver.h"

using namespace emulator;

namespace {

constexpr unsigned kDeclarable = 48 * 1024;

int attribute_of(CUfunction function, CUdevice_attribute attribute) {
  int value = 0;
  cuDeviceGetAttribute(&value, attribute, function->module->context->device);
  return value;
}

// Registers are given out to warps, in units of 256, by four parts of a multiprocessor.
int warps_by_registers(CUfunction function) {
  const int of_warp = (std::max(function->registers, 1) * 32 + 255) / 256 * 256;
  return 65536 / 4 / of_warp * 4;
}

int bound_of(CUfunction function) {
  return function->kernel->launch_bound ? static_cast<int>(function->kernel->launch_bound) : 1024;
}

int most_threads(CUfunction function) {
  return std::min({1024, bound_of(function), warps_by_registers(function) * 32});
}

int blocks_per_multiprocessor(CUfunction function, int threads, std::size_t dynamic) {
  if (threads <= 0 || threads > most_threads(function)) return 0;
  const int warps = (threads + 31) / 32;
  const std::size_t shared = function->static_shared + dynamic +
                             static_cast<std::size_t>(attribute_of(
                                 function, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK));
  const int by_threads =
      attribute_of(function, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR) / (warps * 32);
  const int by_shared =
      static_cast<int>(static_cast<std::size_t>(attribute_of(
                           function, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)) /
                       shared);
  const int most = attribute_of(function, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
  return std::min({by_threads, by_shared, most, warps_by_registers(function) / warps});
}

struct Request {
  CUfunction function;
  unsigned grid[3], block[3], shared;
};

CUresult reject(CUresult code, const Request& r, const std::string& why) {
  return fail(code, "launch of " + r.function->name + ": " + why);
}

CUresult check(const Request& r) {
  const unsigned grid_limits[3] = {2147483647u, 65535u, 65535u}, block_limits[3] = {1024, 1024, 64};
  for (int i = 0; i < 3; ++i) {
    if (r.grid[i] == 0) return reject(CUDA_ERROR_INVALID_VALUE, r, "an empty grid");
    if (r.block[i] == 0) return reject(CUDA_ERROR_INVALID_VALUE, r, "an empty block");
    if (r.grid[i] > grid_limits[i]) return reject(CUDA_ERROR_INVALID_VALUE, r, "too many blocks");
    if (r.block[i] > block_limits[i])
      return reject(CUDA_ERROR_INVALID_VALUE, r, "too many threads");
  }
  const std::uint64_t threads = std::uint64_t{r.block[0]} * r.block[1] * r.block[2];
  if (threads > 1024) return reject(CUDA_ERROR_INVALID_VALUE, r, "more than 1024 threads");
  if (threads > static_cast<unsigned>(bound_of(r.function))) {
    return reject(CUDA_ERROR_INVALID_VALUE, r,
                  format("%u threads a block, its launch bound allows %d",
                         static_cast<unsigned>(threads), bound_of(r.function)));
  }
  if (threads > static_cast<unsigned>(most_threads(r.function))) {
    return reject(
        CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, r,
        format("%u threads a block, its %d registers allow %d", static_cast<unsigned>(threads),
               r.function->registers, most_threads(r.function)));
  }
  const std::uint64_t allowed =
      std::max<std::uint64_t>(kDeclarable - std::min(kDeclarable, r.function->static_shared),
                              static_cast<unsigned>(r.function->dynamic_shared_limit));
  if (r.shared > allowed) {
    return reject(CUDA_ERROR_INVALID_VALUE, r,
                  format("%u bytes of dynamic shared memory, allowed are %u "
                         "(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES raises it)",
                         r.shared, static_cast<unsigned>(allowed)));
  }
  return CUDA_SUCCESS;
}

// A copy of the arguments: pointers into one block of bytes.
struct Arguments {
  std::vector<char> bytes;
  std::vector<std::size_t> offsets;
};

CUresult read_arguments(const Request& r, void** parameters, void** extra, Arguments& into) {
  const Kernel& kernel = *r.function->kernel;
  std::size_t end = 0;
  for (unsigned i = 0; i < kernel.parameter_count; ++i) {
    const Parameter& p = kernel.parameters[i];
    end = (end + p.alignment - 1) / p.alignment * p.alignment;
    into.offsets.push_back(end);
    end += p.size;
  }
  into.bytes.resize(end + 16);
  if (kernel.parameter_count == 0) return CUDA_SUCCESS;
  if (parameters) {
    for (unsigned i = 0; i < kernel.parameter_count; ++i) {
      if (!parameters[i])
        return reject(CUDA_ERROR_INVALID_VALUE, r, format("argument %u is null", i));
      std::memcpy(into.bytes.data() + into.offsets[i], parameters[i], kernel.parameters[i].size);
    }
    return CUDA_SUCCESS;
  }
  const void* buffer = nullptr;
  std::size_t size = 0;
  for (; extra && *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
      buffer = extra[1];
    else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
      size = *static_cast<std::size_t*>(extra[1]);
    else
      return CUDA_ERROR_INVALID_VALUE;
  }
  if (!buffer || size < end)
    return reject(CUDA_ERROR_INVALID_VALUE, r, "too few bytes of arguments");
  std::memcpy(into.bytes.data(), buffer, end);
  return CUDA_SUCCESS;
}

CUresult run(const Request& r, Arguments& arguments, int code, Node& node) {
  std::vector<void*> pointers;
  for (const std::size_t offset : arguments.offsets)
    pointers.push_back(arguments.bytes.data() + offset);
  Launch launch;
  launch.kernel = r.function->kernel;
  launch.name = r.function->name.c_str();
  launch.arguments = pointers.data();
  std::copy_n(r.grid, 3, launch.grid);
  std::copy_n(r.block, 3, launch.block);
  launch.static_shared = r.function->module_shared;
  launch.dynamic_shared = r.shared;
  launch.device = r.function->module->context->device;
  const int wrong = machine().run(launch, node.id, node.clock);
  return static_cast<CUresult>(wrong ? wrong : code);
}

CUresult launch(const Request& request, CUstream handle, void** parameters, void** extra) {
  const Call call(Call::context);
  if (call.error) return call.error;
  CUstream stream = find_stream(handle);
  if (!stream || !driver().alive(request.function)) return CUDA_ERROR_INVALID_HANDLE;
  if (request.function->module->context != stream->context) {
    return reject(CUDA_ERROR_INVALID_HANDLE, request,
                  "its module and the stream are of different contexts");
  }
  if (const CUresult wrong = check(request)) return wrong;
  const int code = injected_failure("launch");
  if (code && code < 700) return static_cast<CUresult>(code);
  auto arguments = std::make_shared<Arguments>();
  if (const CUresult wrong = read_arguments(request, parameters, extra, *arguments)) return wrong;
  const auto work = [request, arguments, code](Node& node) {
    return run(request, *arguments, code, node);
  };
  const char* name = order().keep("kernel " + request.function->name);
  return submit(stream, {"kernel", name, {}, work});
}

}  // namespace

EMULATOR_API CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                     unsigned grid_z, unsigned block_x, unsigned block_y,
                                     unsigned block_z, unsigned shared, CUstream stream,
                                     void** parameters, void** extra) {
  return launch({function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared}, stream,
                parameters, extra);
}

EMULATOR_API CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute,
                                         CUfunction function) {
  const Call call(Call::context);
  if (call.error) return call.error;
  if (!driver().alive(function)) return CUDA_ERROR_INVALID_HANDLE;
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      return *value = most_threads(function), CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      return *value = static_cast<int>(function->static_shared), CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      return *value = function->registers, CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value =
          std::max(function->dynamic_shared_limit,
                   static_cast<int>(kDeclarable - std::min(kDeclarable, function->static_shared)));
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      *value =
          driver().devices[static_cast<std::size_t>(function->module->context->device)].capability;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      return *value = function->carveout, CUDA_SUCCESS;
    default:
      return *value = 0, CUDA_SUCCESS;
  }
}

EMULATOR_API CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute,
                                         int value) {
  const Call call(Call::context);
  if (call.error) return call.error;
  if (!driver().alive(function)) return CUDA_ERROR_INVALID_HANDLE;
  if (attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) {
    return function->carveout = value, CUDA_SUCCESS;
  }
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) return CUDA_ERROR_INVALID_VALUE;
  const int most = attribute_of(function, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  if (value < 0 || value + static_cast<int>(function->static_shared) > most) {
    return fail(CUDA_ERROR_INVALID_VALUE,
                format("cuFuncSetAttribute: %d bytes of dynamic shared memory, "
                       "the device has %d a block",
                       value, most));
  }
  function->dynamic_shared_limit = value;
  return CUDA_SUCCESS;
}

EMULATOR_API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function,
                                                                  int threads,
                                                                  std::size_t dynamic) {
  const Call call(Call::context);
  if (call.error) return call.error;
  if (!driver().alive(function)) return CUDA_ERROR_INVALID_HANDLE;
  if (!blocks || threads <= 0) return CUDA_ERROR_INVALID_VALUE;
  *blocks = blocks_per_multiprocessor(function, threads, dynamic);
  return CUDA_SUCCESS;
}
