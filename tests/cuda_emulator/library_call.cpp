#include "tests/cuda_emulator/library_call.h"

#include "tests/cuda_emulator/driver.h"

namespace emulator {

namespace {

CUresult queue(CUstream handle, const char* name, const std::vector<LibraryRange>& ranges,
               Operation operation) {
  CUstream stream = find_stream(handle);
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  if (stream->capture && operation.meeting) {
    invalidate(*stream->capture);
    return fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                std::string(name) + " while the stream captures is not emulated");
  }
  for (const LibraryRange& range : ranges) {
    const auto address = reinterpret_cast<std::uintptr_t>(range.address);
    if (range.bytes == 0) continue;
    if (const CUresult wrong =
            check_device_memory(address, range.bytes, stream->context->device, name, range.role)) {
      return wrong;
    }
    operation.ranges.push_back({address, range.bytes, range.write});
  }
  return submit(stream, std::move(operation));
}

}  // namespace

CUresult library_call(CUstream stream, const char* name, const std::vector<LibraryRange>& ranges,
                      std::function<void()> run) {
  const Call call(Call::context);
  if (call.error) return call.error;
  const auto work = [run = std::move(run)](Node&) {
    const Memory::Open open(memory());
    run();
    return CUDA_SUCCESS;
  };
  return queue(stream, name, ranges, {"library", order().keep(name), {}, work, nullptr});
}

CUresult library_meet(CUcontext context, CUstream stream, const char* name,
                      const std::vector<LibraryRange>& ranges, std::shared_ptr<Meeting> meeting) {
  const Call call(Call::initialised);
  if (call.error) return call.error;
  if (!driver().alive(context)) return CUDA_ERROR_INVALID_CONTEXT;
  if (context->error) return context->error;
  context_stack().push_back(context);
  const CUresult result = queue(
      stream, name, ranges, {"collective", order().keep(name), {}, nullptr, std::move(meeting)});
  context_stack().pop_back();
  return result;
}

CUcontext current_context_of_thread() {
  const Call call(Call::context);
  return call.error ? nullptr : current_context();
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
