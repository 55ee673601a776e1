#include "tests/cuda_emulator/library_call.h"

#include "tests/cuda_emulator/driver.h"

namespace emulator {

CUresult library_call(CUstream handle, const char* name, const std::vector<LibraryRange>& ranges,
                      std::function<void()> run) {
  const Call call(Call::context);
  if (call.error) return call.error;
  CUstream stream = find_stream(handle);
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  Operation operation{"library", order().keep(name), {}, nullptr};
  for (const LibraryRange& range : ranges) {
    const auto address = reinterpret_cast<std::uintptr_t>(range.address);
    if (range.bytes == 0) continue;
    if (const CUresult wrong =
            check_device_memory(address, range.bytes, stream->context->device, name, range.role)) {
      return wrong;
    }
    operation.ranges.push_back({address, range.bytes, range.write});
  }
  operation.run = [work = std::move(run)](Node&) {
    const Memory::Open open(memory());
    work();
    return CUDA_SUCCESS;
  };
  return submit(stream, std::move(operation));
}

void library_report(const char* text) { report(text); }

int current_device() {
  const Call call(Call::context);
  return call.error ? -1 : current_context()->device;
}

int device_of_stream(CUstream handle) {
  const Call call(Call::context);
  CUstream stream = call.error ? nullptr : find_stream(handle);
  return stream ? stream->context->device : -1;
}

}  // namespace emulator
