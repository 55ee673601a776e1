// Queues of work and when they run.
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "tests/cuda_emulator/driver.h"

namespace emulator {
namespace {

constexpr std::size_t kLongestQueue = 512;

bool is_work(const Operation& operation) {
  constexpr std::string_view kinds[] = {"kernel", "copy", "fill", "library", "collective"};
  return std::find(std::begin(kinds), std::end(kinds), operation.kind) != std::end(kinds);
}

// What a node does before its work: checks.
CUresult begin(Node& node) {
  CUcontext context = node.stream->context;
  if (context->error != CUDA_SUCCESS) return context->error;
  const std::string device = "device" + std::to_string(context->device);
  if (const int code = injected_failure(device.c_str())) return static_cast<CUresult>(code);
  for (const Range& range : node.operation.ranges) {
    if (!machine().access(range.address, range.bytes, range.write, node.id, node.clock)) {
      return CUDA_ERROR_LAUNCH_FAILED;
    }
  }
  return CUDA_SUCCESS;
}

void end(Node& node, CUresult result) {
  node.done = true;
  if (node.stream->context->error == CUDA_SUCCESS) node.stream->context->error = result;
  node.operation.run = nullptr;
  node.operation.meeting = nullptr;
  node.operation.ranges.clear();
  node.after.clear();
}

void execute(Node& node) {
  CUresult result = begin(node);
  if (result == CUDA_SUCCESS && node.operation.run) result = node.operation.run(node);
  end(node, result);
}

NodePtr node_of(const Meeting& meeting) {
  return std::static_pointer_cast<Node>(meeting.node.lock());
}

bool try_before(NodePtr node);

// All nodes that have to run with `first`; empty while some are not queued or not at the front.
std::vector<NodePtr> gather(const NodePtr& first) {
  std::vector<NodePtr> all = {first};
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::vector<std::shared_ptr<Meeting>> partners;
    if (!all[i]->operation.meeting->partners(partners)) return {};
    for (const auto& partner : partners) {
      const NodePtr node = node_of(*partner);
      if (!node) return {};
      if (std::find(all.begin(), all.end(), node) == all.end()) all.push_back(node);
    }
  }
  for (std::size_t i = 1; i < all.size(); ++i) {
    if (!try_before(all[i])) return {};
  }
  return all;
}

// Runs a node that has come to the front of its stream.
bool execute_together(NodePtr first) {
  if (first->stream->context->error != CUDA_SUCCESS) {
    first->stream->queue.pop_front();
    end(*first, CUDA_SUCCESS);
    return true;
  }
  if (first->meeting_runs) return false;  // a partner stands behind this very node
  first->meeting_runs = true;
  const std::vector<NodePtr> all = gather(first);
  first->meeting_runs = false;
  if (all.empty()) return false;
  const Memory::Open open(memory());
  std::vector<CUresult> results;
  bool good = true;
  for (const NodePtr& node : all) {
    results.push_back(begin(*node));
    good = good && results.back() == CUDA_SUCCESS;
  }
  for (const NodePtr& node : all) {
    if (good) node->operation.meeting->stage();
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (good) all[i]->operation.meeting->run();
    all[i]->stream->queue.pop_front();
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    end(*all[i], good || results[i] ? results[i] : CUDA_ERROR_LAUNCH_FAILED);
  }
  if (settings().lazy) return true;
  for (const NodePtr& node : all) {
    if (node->stream->last) try_finish(node->stream->last);
  }
  return true;
}

// Brings a node to the front of its stream, and what it waits for to an end.
bool try_before(NodePtr node) {
  while (!node->done) {
    const NodePtr front = node->stream->queue.front();
    for (const NodePtr& before : std::vector<NodePtr>(front->after)) {
      if (!try_finish(before)) return false;
    }
    if (front->done) continue;
    if (front == node) return true;
    if (front->operation.meeting) {
      if (!execute_together(front)) return false;
      continue;
    }
    node->stream->queue.pop_front();
    execute(*front);
  }
  return true;
}

}  // namespace

Driver& driver() {
  static auto& all = *new Driver;
  return all;
}

std::vector<CUcontext>& context_stack() {
  // Static objects of the program still come here when thread_local ones are gone.
  thread_local auto* const stack = new std::vector<CUcontext>;
  return *stack;
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
  if (is_work(operation)) {
    ++driver().pieces;
    driver().longest_chain = std::max(driver().longest_chain, ++clock.chain);
  }
  node->id = order().add(component, clock, operation.name);
  node->clock = std::move(clock);
  node->operation = std::move(operation);
  node->stream = stream;
  node->after = std::move(after);
  stream->last = node;
  stream->queue.push_back(node);
  if (node->operation.meeting) {
    node->operation.meeting->node = node;
    driver().queued.notify_all();
  }
  if (!settings().lazy) {
    try_finish(node);
  } else if (stream->queue.size() > kLongestQueue) {
    try_finish(stream->queue.front());
  }
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

bool try_finish(NodePtr node) {
  if (!try_before(node)) return false;
  if (node->done) return true;
  if (node->operation.meeting) return execute_together(node);
  node->stream->queue.pop_front();
  execute(*node);
  return true;
}

void finish(NodePtr node) {
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::seconds(settings().longest_wait);
  while (!try_finish(node)) {
    if (driver().queued.wait_until(driver().mutex, deadline) != std::cv_status::timeout) continue;
    report(
        format("deadlock: the host waits for %s, which waits for other ranks, and they do not come",
               order().name(node->id)));
    // Nothing that stands in the queue runs any more, and nothing may wait for it.
    auto abandoned = std::move(node->stream->queue);
    node->stream->queue.clear();
    for (const NodePtr& each : abandoned) end(*each, CUDA_ERROR_LAUNCH_TIMEOUT);
    return;
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
