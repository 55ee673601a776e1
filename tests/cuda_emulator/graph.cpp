// The driver API: capture of streams into graphs, and graphs.
#include <algorithm>

#include "tests/cuda_emulator/driver.h"

using namespace emulator;

namespace {

// Whether every node comes before one of `last`.
bool joined(const CUgraph_st& graph, const std::vector<std::size_t>& last) {
  std::vector<bool> reached(graph.nodes.size());
  std::vector<std::size_t> work = last;
  while (!work.empty()) {
    const std::size_t node = work.back();
    work.pop_back();
    if (reached[node]) continue;
    reached[node] = true;
    for (const std::size_t before : graph.nodes[node].after) work.push_back(before);
  }
  return std::find(reached.begin(), reached.end(), false) == reached.end();
}

void end_capture(Capture* capture) {
  for (CUstream stream : capture->streams) {
    stream->capture = nullptr;
    stream->capture_after.clear();
  }
  for (CUevent event : capture->events) {
    if (event->capture == capture) event->capture = nullptr;
  }
  std::erase(driver().captures, capture);
  delete capture;
}

CUresult instantiate(CUgraphExec* exec, CUgraph graph) {
  if (!driver().alive(graph)) return CUDA_ERROR_INVALID_VALUE;
  if (!exec) return CUDA_ERROR_INVALID_VALUE;
  *exec = new CUgraphExec_st;
  (*exec)->graph = *graph;
  for (std::size_t i = 0; i < graph->branches; ++i) {
    (*exec)->components.push_back(order().new_component());
  }
  driver().handles.insert(*exec);
  return CUDA_SUCCESS;
}

}  // namespace

EMULATOR_API CUresult cuStreamBeginCapture(CUstream handle, CUstreamCaptureMode mode) {
  const Call call(Call::context);
  if (call.error) return call.error;
  CUstream stream = find_stream(handle);
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  if (stream->capture) return CUDA_ERROR_ILLEGAL_STATE;
  if (stream == stream->context->legacy) {
    return fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                "cuStreamBeginCapture: the legacy stream cannot capture");
  }
  auto* capture = new Capture;
  capture->graph = new CUgraph_st;
  capture->graph->branches = 1;
  capture->origin = stream;
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->streams.push_back(stream);
  driver().captures.push_back(capture);
  stream->capture = capture;
  stream->capture_after.clear();
  stream->branch = 0;
  return CUDA_SUCCESS;
}

EMULATOR_API CUresult cuStreamEndCapture(CUstream handle, CUgraph* graph) {
  const Call call(Call::context);
  if (call.error) return call.error;
  CUstream stream = find_stream(handle);
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  Capture* capture = stream->capture;
  if (!capture) return CUDA_ERROR_ILLEGAL_STATE;
  if (graph) *graph = nullptr;
  if (stream != capture->origin) {
    invalidate(*capture);
    return fail(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED,
                "cuStreamEndCapture: the capture began in another stream");
  }
  if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
      capture->thread != std::this_thread::get_id()) {
    return fail(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD,
                "cuStreamEndCapture: another thread began the capture");
  }
  CUresult result = capture->valid ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (!result && !joined(*capture->graph, stream->capture_after)) {
    result = fail(CUDA_ERROR_STREAM_CAPTURE_UNJOINED,
                  "cuStreamEndCapture: work of another stream was not joined");
  }
  CUgraph made = capture->graph;
  end_capture(capture);
  if (result || !graph) {
    delete made;
    return result;
  }
  driver().handles.insert(made);
  *graph = made;
  return CUDA_SUCCESS;
}

EMULATOR_API CUresult cuGraphDestroy(CUgraph graph) {
  const Call call(Call::initialised);
  if (call.error) return call.error;
  if (!driver().alive(graph)) return CUDA_ERROR_INVALID_VALUE;
  driver().handles.erase(graph);
  delete graph;
  return CUDA_SUCCESS;
}

EMULATOR_API CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, std::size_t* count) {
  const Call call(Call::initialised);
  if (call.error) return call.error;
  if (!driver().alive(graph) || !count) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; nodes && i < std::min(*count, graph->nodes.size()); ++i) {
    nodes[i] = &graph->nodes[i];
  }
  *count = graph->nodes.size();
  return CUDA_SUCCESS;
}

EMULATOR_API CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph,
                                                  unsigned long long) {
  const Call call(Call::initialised);
  if (call.error) return call.error;
  return instantiate(exec, graph);
}

EMULATOR_API CUresult cuGraphExecDestroy(CUgraphExec exec) {
  const Call call(Call::initialised);
  if (call.error) return call.error;
  if (!driver().alive(exec)) return CUDA_ERROR_INVALID_VALUE;
  if (exec->last) finish(exec->last);
  driver().handles.erase(exec);
  delete exec;
  return CUDA_SUCCESS;
}

// Work of the same kinds in the same order may take new values.
EMULATOR_API CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph,
                                        CUgraphExecUpdateResultInfo* info) {
  const Call call(Call::initialised);
  if (call.error) return call.error;
  if (!driver().alive(exec) || !driver().alive(graph)) return CUDA_ERROR_INVALID_VALUE;
  const auto refuse = [&](CUgraphExecUpdateResult why, std::size_t node) {
    if (info) *info = {why, node < graph->nodes.size() ? &graph->nodes[node] : nullptr, nullptr};
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  };
  auto& old = exec->graph.nodes;
  if (old.size() != graph->nodes.size() || exec->graph.branches != graph->branches) {
    return refuse(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, 0);
  }
  for (std::size_t i = 0; i < old.size(); ++i) {
    const CUgraphNode_st& node = graph->nodes[i];
    if (node.after != old[i].after) return refuse(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, i);
    if (std::string(node.operation.kind) != old[i].operation.kind) {
      return refuse(CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, i);
    }
    if (node.context != old[i].context)
      return refuse(CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED, i);
  }
  old = graph->nodes;
  if (info) *info = {CU_GRAPH_EXEC_UPDATE_SUCCESS, nullptr, nullptr};
  return CUDA_SUCCESS;
}

// Each branch of the graph orders its own work; branches are ordered by edges alone.
EMULATOR_API CUresult cuGraphLaunch(CUgraphExec exec, CUstream handle) {
  const Call call(Call::context);
  if (call.error) return call.error;
  CUstream stream = find_stream(handle);
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  if (!driver().alive(exec)) return CUDA_ERROR_INVALID_VALUE;
  if (stream->capture) {
    invalidate(*stream->capture);
    return fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                "cuGraphLaunch while the stream captures is not emulated");
  }
  if (const int code = injected_failure("graph")) return static_cast<CUresult>(code);
  if (exec->last) {
    stream->clock.join(exec->last->clock);
    stream->waits.push_back(exec->last);
  }
  const NodePtr begin = enqueue(stream, {"graph", "the begin of a graph", {}, nullptr});
  std::vector<Clock> clocks;
  for (const CUgraphNode_st& node : exec->graph.nodes) {
    Clock clock = begin->clock;
    for (const std::size_t before : node.after) clock.join(clocks[before]);
    const NodePtr made =
        enqueue_at(stream, exec->components[node.branch], clock, {}, node.operation);
    clocks.push_back(made->clock);
  }
  for (const Clock& clock : clocks) stream->clock.join(clock);
  exec->last = enqueue(stream, {"graph", "the end of a graph", {}, nullptr});
  return CUDA_SUCCESS;
}
