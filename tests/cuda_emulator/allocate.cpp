// The driver API: memory of devices, pools, page-locked memory of the host.
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "tests/cuda_emulator/driver.h"

using namespace emulator;

namespace {

Device& device_of(int index) { return driver().devices[static_cast<std::size_t>(index)]; }

std::uint64_t rounded(std::uint64_t bytes) { return (bytes + 511) / 512 * 512; }

std::uint64_t bytes_of(std::uint32_t id) {
  return rounded(memory().range(id).end - memory().range(id).begin);
}

std::uint64_t used_on(int device) {
  std::uint64_t used = device_of(device).used;
  for (CUmemoryPool pool : driver().pools) used += pool->device == device ? pool->reserved : 0;
  return used;
}

CUresult pool_allocate(CUdeviceptr* pointer, std::size_t bytes, CUmemoryPool pool, CUstream handle,
                       const char* api) {
  CUstream stream = find_stream(handle);
  if (!stream || !driver().alive(pool)) return CUDA_ERROR_INVALID_HANDLE;
  if (!pointer) return CUDA_ERROR_INVALID_VALUE;
  if (stream->context->device != pool->device) {
    return fail(CUDA_ERROR_INVALID_VALUE,
                std::string(api) + ": a pool of another device than the stream");
  }
  if (stream->capture) {
    invalidate(*stream->capture);
    return fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                std::string(api) + " while the stream captures is not emulated");
  }
  if (bytes == 0) return *pointer = 0, CUDA_SUCCESS;
  if (const int code = injected_failure("alloc")) return static_cast<CUresult>(code);
  const std::uint64_t size = rounded(bytes);
  const std::uint64_t grown = std::max(pool->reserved, pool->used + size);
  const bool over_limit = pool->limit && pool->used + size > pool->limit;
  if (over_limit || used_on(pool->device) - pool->reserved + grown > settings().memory) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  AllocationInfo info;
  info.device = pool->device;
  info.stream_ordered = true;
  info.pool = pool;
  info.api = api;
  Operation operation{"allocation", order().keep(api), {}, nullptr};
  const NodePtr node = enqueue(stream, std::move(operation));
  info.made = node->id;
  *pointer = memory().allocate(info, bytes, pool->devices);
  if (!*pointer) return CUDA_ERROR_OUT_OF_MEMORY;
  pool->used += size;
  pool->reserved = grown;
  pool->used_high = std::max(pool->used_high, pool->used);
  pool->reserved_high = std::max(pool->reserved_high, pool->reserved);
  return CUDA_SUCCESS;
}

void forget(std::uint32_t id, std::uint32_t node, const char* api) {
  AllocationInfo& info = memory().info(id);
  const std::uint64_t bytes = bytes_of(id);
  if (auto* pool = static_cast<CUmemoryPool>(info.pool))
    pool->used -= bytes;
  else
    device_of(info.device).used -= bytes;
  memory().release(id, node, api);
}

CUresult host_allocate(void** pointer, std::size_t bytes, unsigned flags) {
  if (!pointer || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (const int code = injected_failure("host")) return static_cast<CUresult>(code);
  if (const CUresult refused = refuse_while_capturing()) return refused;
  *pointer = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (!*pointer) return CUDA_ERROR_OUT_OF_MEMORY;
  const auto begin = reinterpret_cast<std::uintptr_t>(*pointer);
  std::memset(*pointer, 0xff, bytes);
  memory().pinned[begin] = {begin, begin + bytes, flags, false};
  return CUDA_SUCCESS;
}

// Memory in use stays; what is above `keep` goes back.
void trim(CUmemoryPool pool, std::uint64_t keep) {
  pool->reserved = std::max(pool->used, std::min(pool->reserved, keep));
}

}  // namespace

void emulator::release_unused() {
  for (CUmemoryPool pool : driver().pools) trim(pool, pool->threshold);
}

EMULATOR_API CUresult cuMemGetInfo(std::size_t* available, std::size_t* total) {
  const Call call(Call::context);
  if (call.error) return call.error;
  if (available) *available = settings().memory - used_on(current_context()->device);
  if (total) *total = settings().memory;
  return CUDA_SUCCESS;
}

EMULATOR_API CUresult cuMemAlloc(CUdeviceptr* pointer, std::size_t bytes) {
  const Call call(Call::context);
  if (call.error) return call.error;
  if (!pointer || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult refused = refuse_while_capturing()) return refused;
  if (const int code = injected_failure("alloc")) return static_cast<CUresult>(code);
  const int device = current_context()->device;
  if (bytes > settings().memory || used_on(device) + rounded(bytes) > settings().memory) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  AllocationInfo info;
  info.device = device;
  info.api = "cuMemAlloc";
  *pointer = memory().allocate(info, bytes, devices_with_access(device));
  if (!*pointer) return CUDA_ERROR_OUT_OF_MEMORY;
  device_of(device).used += rounded(bytes);
  return CUDA_SUCCESS;
}

EMULATOR_API CUresult cuMemFree(CUdeviceptr pointer) {
  const Call call(Call::context);
  if (call.error) return call.error;
  if (pointer == 0) return CUDA_SUCCESS;
  if (const CUresult refused = refuse_while_capturing()) return refused;
  const std::uint32_t id = memory().beginning_at(pointer);
  if (!id) {
    return fail(CUDA_ERROR_INVALID_VALUE,
                "cuMemFree: not the begin of an allocation: " + memory().describe(pointer));
  }
  finish_all();
  forget(id, 0, "cuMemFree");
  return current_context()->error;
}

EMULATOR_API CUresult cuMemAllocAsync(CUdeviceptr* pointer, std::size_t bytes, CUstream stream) {
  const Call call(Call::context);
  if (call.error) return call.error;
  CUstream found = find_stream(stream);
  if (!found) return CUDA_ERROR_INVALID_HANDLE;
  return pool_allocate(pointer, bytes, device_of(found->context->device).pool, stream,
                       "cuMemAllocAsync");
}

EMULATOR_API CUresult cuMemAllocFromPoolAsync(CUdeviceptr* pointer, std::size_t bytes,
                                              CUmemoryPool pool, CUstream stream) {
  const Call call(Call::context);
  if (call.error) return call.error;
  return pool_allocate(pointer, bytes, pool, stream, "cuMemAllocFromPoolAsync");
}

EMULATOR_API CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream handle) {
  const Call call(Call::context);
  if (call.error) return call.error;
  CUstream stream = find_stream(handle);
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  if (pointer == 0) return CUDA_SUCCESS;
  const std::uint32_t id = memory().beginning_at(pointer);
  if (!id || !memory().info(id).stream_ordered) {
    return fail(CUDA_ERROR_INVALID_VALUE,
                "cuMemFreeAsync: not the begin of a stream-ordered allocation: " +
                    memory().describe(pointer));
  }
  if (stream->capture) {
    invalidate(*stream->capture);
    return fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                "cuMemFreeAsync while the stream captures is not emulated");
  }
  const auto free = [id](Node& node) {
    AllocationInfo& info = memory().info(id);
    if (!info.live) return fail(CUDA_ERROR_INVALID_VALUE, "cuMemFreeAsync: freed twice");
    for (const std::uint32_t user : info.users) {
      if (order().after(node.clock, user)) continue;
      return fail(CUDA_ERROR_LAUNCH_FAILED,
                  format("missing synchronisation: cuMemFreeAsync frees memory that %s uses, with "
                         "which it is not ordered",
                         order().name(user)));
    }
    forget(id, node.id, "cuMemFreeAsync");
    return CUDA_SUCCESS;
  };
  return submit(stream, {"free", "cuMemFreeAsync", {}, free});
}

EMULATOR_API CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) {
  const Call call(Call::initialised);
  if (call.error) return call.error;
  if (device < 0 || static_cast<std::size_t>(device) >= driver().devices.size()) {
    return CUDA_ERROR_INVALID_DEVICE;
  }
  *pool = device_of(device).default_pool;
  return CUDA_SUCCESS;
}

EMULATOR_API CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* properties) {
  const Call call(Call::initialised);
  if (call.error) return call.error;
  if (!pool || !properties || properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
      properties->allocType != CU_MEM_ALLOCATION_TYPE_PINNED) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const int device = properties->location.id;
  if (device < 0 || static_cast<std::size_t>(device) >= driver().devices.size()) {
    return CUDA_ERROR_INVALID_DEVICE;
  }
  *pool = new CUmemPoolHandle_st;
  (*pool)->device = device;
  (*pool)->devices = 1u << device;
  (*pool)->limit = properties->maxSize;
  driver().pools.push_back(*pool);
  driver().handles.insert(*pool);
  return CUDA_SUCCESS;
}

EMULATOR_API CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  const Call call(Call::initialised);
  if (call.error) return call.error;
  if (!driver().alive(pool)) return CUDA_ERROR_INVALID_VALUE;
  if (pool == device_of(pool->device).default_pool) return CUDA_ERROR_INVALID_VALUE;
  if (device_of(pool->device).pool == pool) {
    device_of(pool->device).pool = device_of(pool->device).default_pool;
  }
  finish_all();
  trim(pool, 0);
  driver().handles.erase(pool);
  return CUDA_SUCCESS;
}

EMULATOR_API CUresult cuMemPoolTrimTo(CUmemoryPool pool, std::size_t keep) {
  const Call call(Call::initialised);
  if (call.error) return call.error;
  if (!driver().alive(pool)) return CUDA_ERROR_INVALID_VALUE;
  trim(pool, keep);
  return CUDA_SUCCESS;
}

EMULATOR_API CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute,
                                            void* value) {
  const Call call(Call::initialised);
  if (call.error) return call.error;
  if (!driver().alive(pool) || !value) return CUDA_ERROR_INVALID_VALUE;
  const std::uint64_t number = *static_cast<cuuint64_t*>(value);
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      return pool->threshold = number, CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      return number ? CUDA_ERROR_INVALID_VALUE
                    : (pool->reserved_high = pool->reserved, CUDA_SUCCESS);
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      return number ? CUDA_ERROR_INVALID_VALUE : (pool->used_high = pool->used, CUDA_SUCCESS);
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

EMULATOR_API CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute,
                                            void* value) {
  const Call call(Call::initialised);
  if (call.error) return call.error;
  if (!driver().alive(pool) || !value) return CUDA_ERROR_INVALID_VALUE;
  auto* number = static_cast<cuuint64_t*>(value);
  switch (attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      return *number = pool->threshold, CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
      return *number = pool->reserved, CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      return *number = pool->reserved_high, CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      return *number = pool->used, CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      return *number = pool->used_high, CUDA_SUCCESS;
    default:
      return *static_cast<int*>(value) = 1, CUDA_SUCCESS;
  }
}

EMULATOR_API CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* list,
                                         std::size_t count) {
  const Call call(Call::initialised);
  if (call.error) return call.error;
  if (!driver().alive(pool) || !list) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < count; ++i) {
    const int device = list[i].location.id;
    if (list[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || device < 0 ||
        static_cast<std::size_t>(device) >= driver().devices.size()) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (device != pool->device && !settings().peers) return CUDA_ERROR_INVALID_DEVICE;
    if (list[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
      pool->devices |= 1u << device;
    else if (device == pool->device)
      return CUDA_ERROR_INVALID_VALUE;
    else
      pool->devices &= ~(1u << device);
  }
  memory().set_devices(pool->device, true, pool, pool->devices);
  return CUDA_SUCCESS;
}

EMULATOR_API CUresult cuMemHostAlloc(void** pointer, std::size_t bytes, unsigned flags) {
  const Call call(Call::context);
  return call.error ? call.error : host_allocate(pointer, bytes, flags);
}

EMULATOR_API CUresult cuMemAllocHost(void** pointer, std::size_t bytes) {
  const Call call(Call::context);
  return call.error ? call.error : host_allocate(pointer, bytes, 0);
}

EMULATOR_API CUresult cuMemFreeHost(void* pointer) {
  const Call call(Call::context);
  if (call.error) return call.error;
  const auto at = memory().pinned.find(reinterpret_cast<std::uintptr_t>(pointer));
  if (at == memory().pinned.end() || at->second.registered) {
    return fail(CUDA_ERROR_INVALID_VALUE, "cuMemFreeHost: not made by cuMemHostAlloc");
  }
  finish_all();
  memory().pinned.erase(at);
  std::free(pointer);
  return CUDA_SUCCESS;
}
