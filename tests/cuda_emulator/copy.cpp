// The driver API: copies and fills.
#include <algorithm>
#include <cstring>

#include "tests/cuda_emulator/driver.h"

using namespace emulator;

namespace {

enum class Side { device, host, any };

struct Place {
  std::uintptr_t address;
  Side side;
  int device;  // whose memory it must be, or which must be able to use it; -1: that of the stream
};

// Whether all bytes are there, on the side that the call names.
CUresult check_place(const Place& place, std::uint64_t bytes, int device, const char* api,
                     const char* role) {
  Memory& m = memory();
  const bool is_device = m.is_device(place.address) || m.in_module(place.address, 1);
  const bool mapped = !is_device && m.find_pinned(place.address, bytes);
  const auto reject = [&](const char* what) {
    return fail(CUDA_ERROR_INVALID_VALUE,
                format("%s: the %s is %s, %s", api, role, m.describe(place.address).c_str(), what));
  };
  if (place.side == Side::device && !is_device && !mapped) {
    return reject("where memory of a device is expected");
  }
  if (place.side == Side::host && is_device) return reject("where memory of the host is expected");
  if (!m.is_device(place.address)) return CUDA_SUCCESS;
  const std::uint32_t id = m.nearest(place.address);
  const Allocation& range = m.range(id);
  if (id == 0 || place.address + bytes > range.end) {
    return reject(format("out of bounds: it has %zu bytes, and %zu are used",
                         static_cast<std::size_t>(range.end - std::min(range.end, place.address)),
                         static_cast<std::size_t>(bytes))
                      .c_str());
  }
  if (!m.info(id).live) return reject("use after free");
  const int by = place.device >= 0 ? place.device : device;
  if (!(range.devices >> by & 1)) {
    return reject(format("wrong device: device %d has no access to it", by).c_str());
  }
  return CUDA_SUCCESS;
}

struct Copy {
  Place to, from;
  std::uint64_t bytes;
  bool asynchronous;
  const char* api;
};

// One row or several: a copy of `rows` rows whose begins are a pitch apart.
struct Rows {
  std::uint64_t count = 1, to_pitch = 0, from_pitch = 0;
};

bool pageable(std::uintptr_t address, std::uint64_t bytes) {
  Memory& m = memory();
  return !m.is_device(address) && !m.in_module(address, 1) && !m.find_pinned(address, bytes);
}

// Pageable memory is read at the call, and written before the call returns; page-locked memory is
// read and written when the work runs.
CUresult copy(CUstream handle, const Copy& c, Rows rows = {}) {
  CUstream stream = find_stream(handle);
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  if (c.bytes == 0 || rows.count == 0) return CUDA_SUCCESS;
  if (!c.asynchronous) {
    if (const CUresult refused = refuse_while_capturing()) return refused;
  }
  const int code = injected_failure("copy");
  if (code && code < 700) return static_cast<CUresult>(code);
  const int device = stream->context->device;
  const std::uint64_t to_extent = (rows.count - 1) * rows.to_pitch + c.bytes;
  const std::uint64_t from_extent = (rows.count - 1) * rows.from_pitch + c.bytes;
  if (const CUresult e = check_place(c.to, to_extent, device, c.api, "destination")) return e;
  if (const CUresult e = check_place(c.from, from_extent, device, c.api, "source")) return e;
  Operation operation{"copy", c.api, {}, nullptr};
  for (std::uint64_t i = 0; i < rows.count; ++i) {
    operation.ranges.push_back({c.from.address + i * rows.from_pitch, c.bytes, false});
    operation.ranges.push_back({c.to.address + i * rows.to_pitch, c.bytes, true});
  }
  const bool capturing = stream->capture != nullptr;
  std::shared_ptr<std::vector<char>> staged;
  if (!capturing && pageable(c.from.address, from_extent)) {
    const auto* begin = reinterpret_cast<const char*>(c.from.address);
    staged = std::make_shared<std::vector<char>>(begin, begin + from_extent);
  }
  operation.run = [c, rows, staged, code](Node&) {
    const Memory::Open open(memory());
    auto* to = reinterpret_cast<char*>(c.to.address);
    const char* from = staged ? staged->data() : reinterpret_cast<const char*>(c.from.address);
    for (std::uint64_t i = 0; i < rows.count; ++i) {
      std::memmove(to + i * rows.to_pitch, from + i * rows.from_pitch, c.bytes);
    }
    return static_cast<CUresult>(code);
  };
  const CUresult submitted = submit(stream, std::move(operation));
  if (submitted || capturing) return submitted;
  const bool wait = !c.asynchronous || pageable(c.to.address, to_extent);
  if (!wait) return CUDA_SUCCESS;
  finish_stream(stream);
  return stream->context->error;
}

template <class T>
std::uintptr_t at(const T* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

template <class T>
CUresult fill(CUstream handle, CUdeviceptr to, T value, std::size_t count, const char* api) {
  const Call call(Call::context);
  if (call.error) return call.error;
  CUstream stream = find_stream(handle);
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  if (count == 0) return CUDA_SUCCESS;
  if (to % sizeof(T) != 0) {
    return fail(CUDA_ERROR_INVALID_VALUE, std::string(api) + ": misaligned destination");
  }
  const std::uint64_t bytes = count * sizeof(T);
  if (const CUresult e =
          check_place({to, Side::device, -1}, bytes, stream->context->device, api, "destination")) {
    return e;
  }
  const auto run = [to, value, count](Node&) {
    const Memory::Open open(memory());
    std::fill_n(reinterpret_cast<T*>(to), count, value);
    return CUDA_SUCCESS;
  };
  // Those without a stream do not wait either.
  return submit(stream, {"fill", api, {{to, bytes, true}}, run});
}

CUresult copy_peer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                   std::size_t bytes, CUstream stream, bool asynchronous, const char* api) {
  const Call call(Call::context);
  if (call.error) return call.error;
  if (!driver().alive(to_context) || !driver().alive(from_context))
    return CUDA_ERROR_INVALID_CONTEXT;
  return copy(stream, {{to, Side::device, to_context->device},
                       {from, Side::device, from_context->device},
                       bytes,
                       asynchronous,
                       api});
}

CUresult copy_sides(CUstream stream, std::uintptr_t to, Side to_side, std::uintptr_t from,
                    Side from_side, std::size_t bytes, bool asynchronous, const char* api) {
  const Call call(Call::context);
  if (call.error) return call.error;
  return copy(stream, {{to, to_side, -1}, {from, from_side, -1}, bytes, asynchronous, api});
}

}  // namespace

CUresult emulator::check_device_memory(std::uintptr_t address, std::uint64_t bytes, int device,
                                       const char* api, const char* role) {
  return check_place({address, Side::device, -1}, bytes, device, api, role);
}

EMULATOR_API CUresult cuMemcpyHtoD(CUdeviceptr to, const void* from, std::size_t bytes) {
  return copy_sides(nullptr, to, Side::device, at(from), Side::host, bytes, false, "cuMemcpyHtoD");
}
EMULATOR_API CUresult cuMemcpyDtoH(void* to, CUdeviceptr from, std::size_t bytes) {
  return copy_sides(nullptr, at(to), Side::host, from, Side::device, bytes, false, "cuMemcpyDtoH");
}
// Does not wait, as on hardware.
EMULATOR_API CUresult cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  return copy_sides(nullptr, to, Side::device, from, Side::device, bytes, true, "cuMemcpyDtoD");
}
EMULATOR_API CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, std::size_t bytes,
                                        CUstream stream) {
  return copy_sides(stream, to, Side::device, at(from), Side::host, bytes, true,
                    "cuMemcpyHtoDAsync");
}
EMULATOR_API CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, std::size_t bytes,
                                        CUstream stream) {
  return copy_sides(stream, at(to), Side::host, from, Side::device, bytes, true,
                    "cuMemcpyDtoHAsync");
}
EMULATOR_API CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes,
                                        CUstream stream) {
  return copy_sides(stream, to, Side::device, from, Side::device, bytes, true, "cuMemcpyDtoDAsync");
}
EMULATOR_API CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                                   CUcontext from_context, std::size_t bytes) {
  return copy_peer(to, to_context, from, from_context, bytes, nullptr, false, "cuMemcpyPeer");
}
EMULATOR_API CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                                        CUcontext from_context, std::size_t bytes,
                                        CUstream stream) {
  return copy_peer(to, to_context, from, from_context, bytes, stream, true, "cuMemcpyPeerAsync");
}
EMULATOR_API CUresult cuMemsetD8(CUdeviceptr to, unsigned char value, std::size_t count) {
  return fill(nullptr, to, value, count, "cuMemsetD8");
}
EMULATOR_API CUresult cuMemsetD32(CUdeviceptr to, unsigned value, std::size_t count) {
  return fill(nullptr, to, value, count, "cuMemsetD32");
}
EMULATOR_API CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, std::size_t count,
                                      CUstream stream) {
  return fill(stream, to, value, count, "cuMemsetD8Async");
}
