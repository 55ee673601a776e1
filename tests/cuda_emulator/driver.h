// The objects behind the handles of the driver API, and the queue of work.
#pragma once

#include <cuda.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

#include "tests/cuda_emulator/block.h"
#include "tests/cuda_emulator/library_call.h"
#include "tests/cuda_emulator/report.h"
#include "tests/cuda_emulator/settings.h"

#define EMULATOR_API extern "C" __attribute__((visibility("default")))

namespace emulator {

struct Range {
  std::uintptr_t address = 0;
  std::uint64_t bytes = 0;
  bool write = false;
};

struct Node;
using NodePtr = std::shared_ptr<Node>;

/// A piece of work of a stream. Its ranges are checked before it runs.
struct Operation {
  const char* kind = "";  // "kernel", "copy", "event", ...
  const char* name = "";
  std::vector<Range> ranges;
  std::function<CUresult(Node&)> run;
  std::shared_ptr<Meeting> meeting =
      nullptr;  // instead of `run`, for work that runs with that of others
};

struct Node {
  std::uint32_t id = 0;
  Clock clock;
  Operation operation;
  CUstream stream = nullptr;
  std::vector<NodePtr> after;
  bool done = false;
  bool meeting_runs = false;
};

/// A graph under construction from the work of streams.
struct Capture {
  CUgraph graph = nullptr;
  CUstream origin = nullptr;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::thread::id thread;
  bool valid = true;
  std::vector<CUstream> streams;
  std::vector<CUevent> events;
};

}  // namespace emulator

struct CUmemPoolHandle_st {
  int device = 0;
  std::uint64_t used = 0, reserved = 0, used_high = 0, reserved_high = 0, threshold = 0;
  std::uint64_t limit = 0;    // 0: none
  std::uint32_t devices = 0;  // that may use its memory
};

struct CUctx_st {
  int device = 0;
  unsigned flags = 0;
  int references = 0;  // of a primary context
  bool primary = false;
  CUresult error = CUDA_SUCCESS;  // sticky
  CUstream legacy = nullptr, per_thread = nullptr;
  std::vector<CUstream> streams;  // alive, with the two above
  std::set<CUcontext> peers;      // whose memory it may use
};

struct CUstream_st {
  CUcontext context = nullptr;
  unsigned flags = 0;
  int priority = 0;
  std::uint32_t component = 0;
  emulator::Clock clock;
  std::vector<emulator::NodePtr> waits;
  std::deque<emulator::NodePtr> queue;
  emulator::NodePtr last;
  emulator::Capture* capture = nullptr;
  std::vector<std::size_t> capture_after;
  std::size_t branch = 0;
};

struct CUevent_st {
  CUcontext context = nullptr;
  unsigned flags = 0;
  bool recorded = false;
  emulator::NodePtr node;
  emulator::Clock clock;
  double time = 0;
  emulator::Capture* capture = nullptr;
  std::vector<std::size_t> capture_after;
};

struct CUfunc_st {
  CUmodule module = nullptr;
  const emulator::Kernel* kernel = nullptr;
  std::string name;
  int registers = 32;
  std::uint32_t static_shared = 0;  // that it declares
  std::uint32_t module_shared = 0;  // that all kernels of its module declare, each in a place
  int dynamic_shared_limit = 0;     // set by an attribute, else 0
  int carveout = -1;
};

struct CUmod_st {
  CUcontext context = nullptr;
  void* library = nullptr;
  std::uintptr_t data = 0;
  std::vector<std::unique_ptr<CUfunc_st>> functions;
};

struct CUgraphNode_st {
  emulator::Operation operation;
  CUcontext context = nullptr;
  std::vector<std::size_t> after;
  std::size_t branch = 0;
};

struct CUgraph_st {
  std::vector<CUgraphNode_st> nodes;
  std::size_t branches = 0;
};

struct CUgraphExec_st {
  CUgraph_st graph;
  std::vector<std::uint32_t> components;  // of the branches
  emulator::NodePtr last;
};

namespace emulator {

struct Device {
  int physical = 0;
  int capability = 90;
  CUcontext primary = nullptr;
  std::uint64_t used = 0;  // by allocations outside of pools
  CUmemoryPool default_pool = nullptr, pool = nullptr;
};

/// All state of the driver, under one lock.
struct Driver {
  std::recursive_mutex mutex;
  bool initialised = false;
  int process = 0;
  std::vector<Device> devices;
  std::vector<CUmemoryPool> pools;
  std::unordered_set<const void*> handles;  // all that are alive
  std::vector<CUcontext> contexts;
  std::vector<Capture*> captures;
  Clock host;                                   // what the host has waited for
  std::uint64_t pieces = 0, longest_chain = 0;  // of all work so far
  std::condition_variable_any queued;           // work that others may wait for

  bool alive(const void* handle) const { return handles.contains(handle); }
};

Driver& driver();

/// The calling thread's stack of contexts.
std::vector<CUcontext>& context_stack();
CUcontext current_context();

/// Holds the lock for a call, and says whether it may go on.
class Call {
 public:
  enum Needs { nothing, initialised, context };
  explicit Call(Needs needs);
  CUresult error = CUDA_SUCCESS;

 private:
  std::lock_guard<std::recursive_mutex> lock_;
};

/// The stream behind a handle of the current context (0, legacy, per thread); null when there is
/// none.
CUstream find_stream(CUstream handle);

CUcontext make_context(int device, unsigned flags);
CUstream make_stream(CUcontext context, unsigned flags, int priority);

/// Queues work, or adds it to a graph if the stream captures.
CUresult submit(CUstream stream, Operation operation);
NodePtr enqueue(CUstream stream, Operation operation);
NodePtr enqueue_at(CUstream stream, std::uint32_t component, Clock clock,
                   std::vector<NodePtr> after, Operation operation);

/// Runs what a node waits for, and the node. False when that needs work of another rank that is not
/// queued.
bool try_finish(NodePtr node);
/// Waits for other threads to queue that work.
void finish(NodePtr node);
void finish_stream(CUstream stream);
void finish_context(CUcontext context);
void finish_all();

/// What pools do when the host has waited: they give back what is unused above their threshold.
void release_unused();

/// For calls that may not be made while a stream captures: 900 where one does, which then fails.
CUresult refuse_while_capturing();
void invalidate(Capture& capture);

/// Whether a call may use a range as memory of a device; reported with its name and the role of the
/// range if not.
CUresult check_device_memory(std::uintptr_t address, std::uint64_t bytes, int device,
                             const char* api, const char* role);

std::uint32_t devices_with_access(int owner);
CUresult fail(CUresult code, const std::string& why);

}  // namespace emulator
