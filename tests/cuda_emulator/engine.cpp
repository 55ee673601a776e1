// Queues of work and when they run.
#include <unistd.h>

#include <algorithm>

#include "tests/cuda_emulator/driver.h"

namespace emulator {
namespace {

constexpr std::size_t kLongestQueue = 512;

void execute(Node& node) {
  CUcontext context = node.stream->context;
  node.done = true;
  if (context->error == CUDA_SUCCESS) {
    Machine& m = machine();
    const std::string device = "device" + std::to_string(context->device);
    CUresult result = static_cast<CUresult>(injected_failure(device.c_str()));
    for (const Range& range : node.operation.ranges) {
      if (result != CUDA_SUCCESS) break;
      if (!m.access(range.address, range.bytes, range.write, node.id, node.clock)) {
        result = CUDA_ERROR_LAUNCH_FAILED;
      }
    }
    if (result == CUDA_SUCCESS && node.operation.run) result = node.operation.run(node);
    context->error = result;
  }
  node.operation.run = nullptr;
  node.operation.ranges.clear();
  node.after.clear();
}

}  // namespace

Driver& driver() {
  static auto& all = *new Driver;
  return all;
}

std::vector<CUcontext>& context_stack() {
  thread_local std::vector<CUcontext> stack;
  return stack;
}

CUcontext current_context() { return context_stack().empty() ? nullptr : context_stack().back(); }

Call::Call(Needs needs) : lock_(driver().mutex) {
  if (needs == nothing) return;
  if (!driver().initialised || driver().process != getpid()) {
    error = CUDA_ERROR_NOT_INITIALIZED;
    return;
  }
  if (needs == initialised) return;
  CUcontext context = current_context();
  if (!context)
    error = CUDA_ERROR_INVALID_CONTEXT;
  else if (!driver().alive(context))
    error = CUDA_ERROR_CONTEXT_IS_DESTROYED;
  else
    error = context->error;
}

CUresult fail(CUresult code, const std::string& why) {
  report(why);
  return code;
}

CUstream find_stream(CUstream handle) {
  CUcontext context = current_context();
  if (handle == nullptr || handle == CU_STREAM_LEGACY) return context->legacy;
  if (handle == CU_STREAM_PER_THREAD) return context->per_thread;
  return driver().alive(handle) ? handle : nullptr;
}

CUstream make_stream(CUcontext context, unsigned flags, int priority) {
  auto* stream = new CUstream_st;
  stream->context = context;
  stream->flags = flags;
  stream->priority = priority;
  stream->component = order().new_component();
  context->streams.push_back(stream);
  driver().handles.insert(stream);
  return stream;
}

CUcontext make_context(int device, unsigned flags) {
  auto* context = new CUctx_st;
  context->device = device;
  context->flags = flags;
  context->legacy = make_stream(context, CU_STREAM_DEFAULT, 0);
  context->per_thread = make_stream(context, CU_STREAM_DEFAULT, 0);
  driver().handles.insert(context);
  driver().contexts.push_back(context);
  return context;
}

NodePtr enqueue_at(CUstream stream, std::uint32_t component, Clock clock,
                   std::vector<NodePtr> after, Operation operation) {
  auto node = std::make_shared<Node>();
  node->id = order().add(component, clock, operation.name);
  node->clock = std::move(clock);
  node->operation = std::move(operation);
  node->stream = stream;
  node->after = std::move(after);
  stream->last = node;
  stream->queue.push_back(node);
  if (!settings().lazy)
    finish(node);
  else if (stream->queue.size() > kLongestQueue)
    finish(stream->queue.front());
  return node;
}

// The legacy default stream and the blocking streams of its context wait for one another.
NodePtr enqueue(CUstream stream, Operation operation) {
  std::vector<NodePtr> after = std::move(stream->waits);
  stream->waits.clear();
  const auto follow = [&](CUstream other) {
    if (other == stream) return;
    stream->clock.join(other->clock);
    if (other->last) after.push_back(other->last);
  };
  CUcontext context = stream->context;
  if (stream == context->legacy) {
    for (CUstream other : context->streams) {
      if (!(other->flags & CU_STREAM_NON_BLOCKING)) follow(other);
    }
  } else if (!(stream->flags & CU_STREAM_NON_BLOCKING)) {
    follow(context->legacy);
  }
  stream->clock.join(driver().host);
  Clock clock = stream->clock;
  const std::uint32_t component = stream->component;
  NodePtr node =
      enqueue_at(stream, component, std::move(clock), std::move(after), std::move(operation));
  stream->clock = node->clock;
  return node;
}

CUresult submit(CUstream stream, Operation operation) {
  if (Capture* capture = stream->capture) {
    if (!capture->valid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    auto& nodes = capture->graph->nodes;
    nodes.push_back({std::move(operation), stream->context, stream->capture_after, stream->branch});
    stream->capture_after = {nodes.size() - 1};
    return CUDA_SUCCESS;
  }
  enqueue(stream, std::move(operation));
  return CUDA_SUCCESS;
}

void finish(const NodePtr& node) {
  while (!node->done) {
    CUstream stream = node->stream;
    const NodePtr front = stream->queue.front();
    for (const NodePtr& before : std::vector<NodePtr>(front->after)) finish(before);
    stream->queue.pop_front();
    execute(*front);
  }
}

void finish_stream(CUstream stream) {
  if (stream == stream->context->legacy) {
    for (CUstream other : stream->context->streams) {
      if (other == stream || (other->flags & CU_STREAM_NON_BLOCKING)) continue;
      if (other->last) finish(other->last);
      stream->clock.join(other->clock);
    }
  }
  if (stream->last) finish(stream->last);
  for (const NodePtr& node : stream->waits) finish(node);
  driver().host.join(stream->clock);
}

void finish_context(CUcontext context) {
  for (CUstream stream : context->streams) finish_stream(stream);
}

void finish_all() {
  for (CUcontext context : driver().contexts) finish_context(context);
}

void invalidate(Capture& capture) { capture.valid = false; }

CUresult refuse_while_capturing() {
  for (Capture* capture : driver().captures) {
    if (capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED) continue;
    if (capture->mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL &&
        capture->thread != std::this_thread::get_id()) {
      continue;
    }
    invalidate(*capture);
    return fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                "a call that is not allowed while a stream captures");
  }
  return CUDA_SUCCESS;
}

// Of ordinary allocations: the owner, and devices whose context enabled access to it.
std::uint32_t devices_with_access(int owner) {
  std::uint32_t devices = 1u << owner;
  for (CUcontext context : driver().contexts) {
    for (CUcontext peer : context->peers) {
      if (peer->device == owner) devices |= 1u << context->device;
    }
  }
  return devices;
}

}  // namespace emulator
