// The driver API: streams and events.
#include <algorithm>
#include <chrono>
#include <thread>

#include "tests/cuda_emulator/driver.h"

using namespace emulator;

namespace {

double now() {
  return std::chrono::duration<double, std::milli>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

CUresult captured(Capture& capture, CUresult code, const char* why) {
  invalidate(capture);
  return fail(code, why);
}

// In a capture, a wait joins the capture of the event.
CUresult wait_captured(CUstream stream, CUevent event) {
  Capture* capture = event->capture;
  if (!capture->valid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (stream->capture && stream->capture != capture) {
    return captured(*capture, CUDA_ERROR_STREAM_CAPTURE_MERGE,
                    "cuStreamWaitEvent: the stream and the event belong to different captures");
  }
  if (!stream->capture) {
    if (stream == stream->context->legacy) {
      return captured(*capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
                      "cuStreamWaitEvent: the legacy stream cannot capture");
    }
    stream->capture = capture;
    stream->capture_after.clear();
    stream->branch = capture->graph->branches++;
    capture->streams.push_back(stream);
  }
  for (const std::size_t node : event->capture_after) {
    auto& after = stream->capture_after;
    if (std::find(after.begin(), after.end(), node) == after.end()) after.push_back(node);
  }
  return CUDA_SUCCESS;
}

// What one thread of the host has waited for counts for all: while it waits, other threads must be
// able to queue what they would queue beside it.
void take_time() {
  if (settings().host_wait == 0) return;
  std::this_thread::sleep_for(std::chrono::milliseconds(settings().host_wait));
}

// Looking at a stream makes progress, so that a loop of queries ends in lazy order too.
bool step(CUstream stream) {
  const bool complete = stream->queue.empty();
  if (!complete) try_finish(stream->queue.front());
  return complete;
}

}  // namespace

EMULATOR_API void crotonEmulatorWork(std::uint64_t* pieces, std::uint64_t* longest_chain) {
  const Call call(Call::nothing);
  *pieces = driver().pieces;
  *longest_chain = driver().longest_chain;
}

EMULATOR_API CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) {
  const Call call(Call::context);
  if (call.error) return call.error;
  if (!stream || flags > CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  *stream = make_stream(current_context(), flags, std::clamp(priority, -5, 0));
  return CUDA_SUCCESS;
}

EMULATOR_API CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
  return cuStreamCreateWithPriority(stream, flags, 0);
}

EMULATOR_API CUresult cuStreamDestroy(CUstream stream) {
  const Call call(Call::initialised);
  if (call.error) return call.error;
  if (!driver().alive(stream)) return CUDA_ERROR_INVALID_HANDLE;
  if (stream->capture) invalidate(*stream->capture);
  if (stream->last) finish(stream->last);
  driver().handles.erase(stream);
  std::erase(stream->context->streams, stream);
  return CUDA_SUCCESS;
}

EMULATOR_API CUresult cuStreamSynchronize(CUstream handle) {
  take_time();
  const Call call(Call::context);
  if (call.error) return call.error;
  CUstream stream = find_stream(handle);
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  if (stream->capture) {
    return captured(*stream->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                    "cuStreamSynchronize while the stream captures");
  }
  if (const CUresult refused = refuse_while_capturing()) return refused;
  finish_stream(stream);
  release_unused();
  return stream->context->error;
}

EMULATOR_API CUresult cuStreamQuery(CUstream handle) {
  const Call call(Call::context);
  if (call.error) return call.error;
  CUstream stream = find_stream(handle);
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  if (stream->capture) {
    return captured(*stream->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                    "cuStreamQuery while the stream captures");
  }
  if (!step(stream)) return CUDA_ERROR_NOT_READY;
  finish_stream(stream);
  return stream->context->error;
}

EMULATOR_API CUresult cuStreamWaitEvent(CUstream handle, CUevent event, unsigned) {
  const Call call(Call::context);
  if (call.error) return call.error;
  CUstream stream = find_stream(handle);
  if (!stream || !driver().alive(event)) return CUDA_ERROR_INVALID_HANDLE;
  if (event->capture) return wait_captured(stream, event);
  if (stream->capture) {
    return captured(*stream->capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
                    "cuStreamWaitEvent: a stream that captures waits for an event that does not");
  }
  if (!event->recorded) return CUDA_SUCCESS;
  stream->clock.join(event->clock);
  if (event->node) stream->waits.push_back(event->node);
  return CUDA_SUCCESS;
}

EMULATOR_API CUresult cuEventCreate(CUevent* event, unsigned flags) {
  const Call call(Call::context);
  if (call.error) return call.error;
  if (!event) return CUDA_ERROR_INVALID_VALUE;
  *event = new CUevent_st;
  (*event)->context = current_context();
  (*event)->flags = flags;
  driver().handles.insert(*event);
  return CUDA_SUCCESS;
}

EMULATOR_API CUresult cuEventDestroy(CUevent event) {
  const Call call(Call::initialised);
  if (call.error) return call.error;
  if (!driver().alive(event)) return CUDA_ERROR_INVALID_HANDLE;
  driver().handles.erase(event);
  for (Capture* capture : driver().captures) std::erase(capture->events, event);
  delete event;
  return CUDA_SUCCESS;
}

EMULATOR_API CUresult cuEventRecord(CUevent event, CUstream handle) {
  const Call call(Call::context);
  if (call.error) return call.error;
  CUstream stream = find_stream(handle);
  if (!stream || !driver().alive(event)) return CUDA_ERROR_INVALID_HANDLE;
  if (stream->context != event->context) {
    return fail(CUDA_ERROR_INVALID_HANDLE,
                "cuEventRecord: event and stream are of different contexts");
  }
  event->capture = stream->capture;
  if (Capture* capture = stream->capture) {
    event->capture_after = stream->capture_after;
    capture->events.push_back(event);
    return CUDA_SUCCESS;
  }
  const auto run = [event](Node&) {
    if (driver().alive(event)) event->time = now();
    return CUDA_SUCCESS;
  };
  event->recorded = true;
  event->node = enqueue(stream, {"event", "cuEventRecord", {}, run});
  event->clock = event->node->clock;
  return CUDA_SUCCESS;
}

EMULATOR_API CUresult cuEventSynchronize(CUevent event) {
  take_time();
  const Call call(Call::context);
  if (call.error) return call.error;
  if (!driver().alive(event)) return CUDA_ERROR_INVALID_HANDLE;
  if (event->capture) {
    return captured(*event->capture, CUDA_ERROR_CAPTURED_EVENT,
                    "cuEventSynchronize of an event of a capture");
  }
  if (!event->recorded) return CUDA_SUCCESS;
  finish(event->node);
  driver().host.join(event->clock);
  release_unused();
  return event->context->error;
}

EMULATOR_API CUresult cuEventQuery(CUevent event) {
  const Call call(Call::context);
  if (call.error) return call.error;
  if (!driver().alive(event)) return CUDA_ERROR_INVALID_HANDLE;
  if (event->capture) {
    return captured(*event->capture, CUDA_ERROR_CAPTURED_EVENT,
                    "cuEventQuery of an event of a capture");
  }
  if (!event->recorded) return CUDA_SUCCESS;
  if (!event->node->done) {
    step(event->node->stream);
    return CUDA_ERROR_NOT_READY;
  }
  driver().host.join(event->clock);
  return event->context->error;
}
