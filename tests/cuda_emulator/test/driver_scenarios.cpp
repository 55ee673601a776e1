// The driver's own rules: limits, errors that stay, captures and graphs, injected failures.
#include <atomic>
#include <cstdint>
#include <cstring>
#include <thread>

#include "tests/cuda_emulator/test/scenario.h"

extern "C" void crotonEmulatorWork(std::uint64_t* pieces, std::uint64_t* longest_chain);

namespace scenario {
namespace {

constexpr const char* kAdd =
    R"(extern "C" __global__ void k(float* x, float a) { x[threadIdx.x] += a; })";
constexpr const char* kBad =
    R"(extern "C" __global__ void k(float* x) { x[threadIdx.x + 1] = 1; })";

int attribute(CUdevice_attribute which, int device = 0) {
  int value = 0;
  NEED(cuDeviceGetAttribute(&value, which, device));
  return value;
}

void devices() {
  NEED(cuInit(0));
  int count = 0, version = 0;
  NEED(cuDeviceGetCount(&count));
  NEED(cuDriverGetVersion(&version));
  show("count", count);
  show("version", version);
  char name[100], pci[32];
  NEED(cuDeviceGetName(name, sizeof name, 0));
  NEED(cuDeviceGetPCIBusId(pci, sizeof pci, 0));
  std::printf("%s, %s\n", name, pci);
  CUdevice device = -1;
  NEED(cuDeviceGetByPCIBusId(&device, pci));
  show("device", device);
  show("major", attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
  std::size_t bytes = 0;
  NEED(cuDeviceTotalMem(&bytes, 0));
  show("memory", static_cast<long long>(bytes));
  show_error("beyond", cuDeviceGet(&device, count));
}

void errors_stay() {
  CUcontext other = use_device(1);
  const CUdeviceptr y = to_device(std::vector<float>(64));
  use_device(0);
  const CUdeviceptr x = to_device(std::vector<float>(64));
  show_error("launch", launch(kernel(kBad), 1, 64, 0, nullptr, x));
  show_error("synchronize", cuCtxSynchronize());
  CUdeviceptr more = 0;
  show_error("allocate", cuMemAlloc(&more, 4));
  float value = 0;
  show_error("copy", cuMemcpyDtoH(&value, x, 4));
  NEED(cuCtxSetCurrent(other));
  show_error("other", cuMemcpyDtoH(&value, y, 4));
  show_error("release", cuDevicePrimaryCtxRelease(0));
  use_device(0);
  show_error("again", cuMemAlloc(&more, 4));
}

void out_of_memory() {
  use_device();
  CUdeviceptr x = 0, y = 0;
  show_error("half", cuMemAlloc(&x, 600 << 10));
  show_error("too much", cuMemAlloc(&y, 600 << 10));
  std::size_t available = 0, total = 0;
  NEED(cuMemGetInfo(&available, &total));
  show("available", static_cast<long long>(available));
  NEED(cuMemFree(x));
  show_error("after", cuMemAlloc(&y, 600 << 10));
  NEED(cuMemFree(y));
  CUmemoryPool pool = nullptr;
  NEED(cuDeviceGetDefaultMemPool(&pool, 0));
  show_error("pool", cuMemAllocAsync(&x, 600 << 10, nullptr));
  NEED(cuMemFreeAsync(x, nullptr));
  cuuint64_t reserved = 0;
  NEED(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &reserved));
  show("high", static_cast<long long>(reserved));
  NEED(cuCtxSynchronize());
  NEED(cuMemPoolTrimTo(pool, 0));
  NEED(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved));
  show("trimmed", static_cast<long long>(reserved));
}

void injected() {
  use_device();
  CUdeviceptr x = 0;
  for (int i = 0; i < 3; ++i) show_error("allocate", cuMemAlloc(&x, 256));
  NEED(cuMemsetD8(x, 0, 256));
  const CUfunction f = kernel(kAdd);
  for (int i = 0; i < 3; ++i) show_error("launch", launch(f, 1, 64, 0, nullptr, x, 1.0f));
  show_error("wait", cuCtxSynchronize());
}

void launch_limits() {
  use_device();
  const CUdeviceptr x = to_device(std::vector<float>(64));
  const CUfunction f = kernel(R"(extern "C" __global__ void __launch_bounds__(128) k(float* x) {
  extern __shared__ float s[];
  if (threadIdx.x == 0) s[0] = 1, x[0] = s[0];
})");
  show_error("empty", launch(f, 0, 32, 0, nullptr, x));
  show_error("bound", launch(f, 1, 129, 0, nullptr, x));
  show_error("shared", launch(f, 1, 32, 50000, nullptr, x));
  NEED(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000));
  show_error("raised", launch(f, 1, 32, 100000, nullptr, x));
  show_error("beyond",
             cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 300000));
  void* arguments[] = {nullptr};
  show_error("null", cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr));
  show_error("tall", cuLaunchKernel(f, 1, 65536, 1, 1, 1, 1, 0, nullptr, arguments, nullptr));
  int blocks = 0, threads = 0;
  NEED(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 128, 0));
  NEED(cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f));
  show("resident", blocks);
  show("threads", threads);
  show_error("wait", cuCtxSynchronize());
}

// Each kernel is charged for what it declares, not for the rest of its module.
void declared_shared() {
  use_device();
  const CUmodule module = compile(R"(extern "C" __global__ void __launch_bounds__(256) small(
    float* x) {
  extern __shared__ float more[];
  __shared__ float s[1024];
  s[threadIdx.x] = more[threadIdx.x] = x[threadIdx.x] + 1;
  __syncthreads();
  x[threadIdx.x] = s[63 - threadIdx.x] + more[threadIdx.x];
}
extern "C" __global__ void __launch_bounds__(256) large(float* x) {
  __shared__ float s[10240];
  s[threadIdx.x] = x[threadIdx.x] * 2;
  __syncthreads();
  x[threadIdx.x] = s[63 - threadIdx.x];
})");
  CUfunction small = nullptr, large = nullptr;
  NEED(cuModuleGetFunction(&small, module, "small"));
  NEED(cuModuleGetFunction(&large, module, "large"));
  for (const CUfunction f : {small, large}) {
    int bytes = 0, most = 0, blocks = 0;
    NEED(cuFuncGetAttribute(&bytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, f));
    NEED(cuFuncGetAttribute(&most, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, f));
    NEED(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 256, 0));
    show("declared", bytes);
    show("dynamic", most);
    show("resident", blocks);
  }
  const CUdeviceptr x = to_device(std::vector<float>(64, 1.0f));
  show_error("fits", launch(small, 1, 64, 45056, nullptr, x));
  show_error("beyond", launch(small, 1, 64, 45060, nullptr, x));
  show_error("large", launch(large, 1, 64, 8192, nullptr, x));
  show("value", static_cast<long long>(to_host<float>(x, 64)[5]));  // 2 ((1 + 1) + (1 + 1))
}

// A kernel that holds 96 values at a barrier has no registers for 1024 threads.
void declared_registers() {
  use_device();
  const CUmodule module = compile(R"(extern "C" __global__ void light(float* x) {
  x[threadIdx.x] = 2;
}
extern "C" __global__ void heavy(float* x) {
  float v[96];
#pragma unroll
  for (int i = 0; i < 96; ++i) v[i] = x[i];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 96; ++i) if (threadIdx.x == 0) x[95 - i] = v[i];
})");
  CUfunction light = nullptr, heavy = nullptr;
  NEED(cuModuleGetFunction(&light, module, "light"));
  NEED(cuModuleGetFunction(&heavy, module, "heavy"));
  int few = 0, many = 0, most = 0, blocks = 0;
  NEED(cuFuncGetAttribute(&few, CU_FUNC_ATTRIBUTE_NUM_REGS, light));
  NEED(cuFuncGetAttribute(&many, CU_FUNC_ATTRIBUTE_NUM_REGS, heavy));
  NEED(cuFuncGetAttribute(&most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, heavy));
  NEED(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, heavy, 128, 0));
  show("few", few < 32);
  show("many", many > 96 && many <= 128);
  show("most", most);
  show("resident", blocks);
  const CUdeviceptr x = to_device(std::vector<float>(1024, 1.0f));
  show_error("light", launch(light, 1, 1024, 0, nullptr, x));
  show_error("heavy", launch(heavy, 1, 512, 0, nullptr, x));
  show_error("beyond", launch(heavy, 1, 1024, 0, nullptr, x));
}

void wrong_images() {
  use_device();
  CUmodule module = nullptr;
  show_error("rubbish", cuModuleLoadData(&module, "rubbish"));
  nvrtcProgram program = nullptr;
  nvrtcCreateProgram(&program, kAdd, "scenario.cu", 0, nullptr, nullptr);
  const char* options[] = {"--gpu-architecture=sm_100"};
  nvrtcCompileProgram(program, 1, options);
  std::size_t size = 0;
  nvrtcGetCUBINSize(program, &size);
  std::string image(size, 0);
  nvrtcGetCUBIN(program, image.data());
  show_error("newer", cuModuleLoadData(&module, image.data()));
  const char* ptx_options[] = {"--gpu-architecture=compute_80"};
  nvrtcCompileProgram(program, 1, ptx_options);
  nvrtcGetPTXSize(program, &size);
  image.assign(size, 0);
  nvrtcGetPTX(program, image.data());
  show("readable", image.find(".entry k") != std::string::npos);
  show_error("PTX", cuModuleLoadData(&module, image.data()));
}

void compile_error() { compile(R"(extern "C" __global__ void k(float* x) { x[0] = y; })"); }
void only_real_refuses() {
  use_device();
  compile(R"(extern "C" __global__ void k(long long* x) { atomicAdd(x, 1ll); })");
}

struct Captured {
  CUstream stream = nullptr, side = nullptr;
  CUevent fork = nullptr, join = nullptr;
  CUdeviceptr x = 0, y = 0;
  CUfunction add = nullptr;
  Captured() {
    use_device();
    NEED(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    NEED(cuStreamCreate(&side, CU_STREAM_NON_BLOCKING));
    NEED(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
    NEED(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
    add = kernel(kAdd);
    x = to_device(std::vector<float>(64));
    y = to_device(std::vector<float>(64));
  }
  /// x += a on one branch, y += b on the other, then x += c.
  CUgraph capture(float a, float b, float c, bool joined = true) {
    CUgraph graph = nullptr;
    NEED(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    NEED(cuEventRecord(fork, stream));
    NEED(cuStreamWaitEvent(side, fork, 0));
    NEED(launch(add, 1, 64, 0, stream, x, a));
    NEED(launch(add, 1, 64, 0, side, y, b));
    NEED(cuEventRecord(join, side));
    if (joined) NEED(cuStreamWaitEvent(stream, join, 0));
    NEED(launch(add, 1, 64, 0, stream, x, c));
    show_error("capture", cuStreamEndCapture(stream, &graph));
    return graph;
  }
};

void graphs() {
  Captured t;
  const CUgraph graph = t.capture(1, 10, 2);
  std::size_t nodes = 0;
  NEED(cuGraphGetNodes(graph, nullptr, &nodes));
  show("nodes", static_cast<long long>(nodes));
  CUgraphExec exec = nullptr;
  NEED(cuGraphInstantiateWithFlags(&exec, graph, 0));
  show("before", static_cast<long long>(to_host<float>(t.x, 64)[1]));
  for (int i = 0; i < 3; ++i) NEED(cuGraphLaunch(exec, t.stream));
  NEED(cuStreamSynchronize(t.stream));
  show("x", static_cast<long long>(to_host<float>(t.x, 64)[63]));
  show("y", static_cast<long long>(to_host<float>(t.y, 64)[63]));
  const CUgraph other = t.capture(100, 0, 0);
  CUgraphExecUpdateResultInfo info;
  show_error("update", cuGraphExecUpdate(exec, other, &info));
  NEED(cuGraphLaunch(exec, t.stream));
  NEED(cuStreamSynchronize(t.stream));
  show("updated", static_cast<long long>(to_host<float>(t.x, 64)[63]));
  NEED(cuGraphExecDestroy(exec));
  NEED(cuGraphDestroy(graph));
}

void capture_mistakes() {
  Captured t;
  t.capture(1, 2, 3, false);
  CUgraph graph = nullptr;
  NEED(cuStreamBeginCapture(t.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  show_error("wait", cuStreamSynchronize(t.stream));
  show_error("then", launch(t.add, 1, 64, 0, t.stream, t.x, 1.0f));
  show_error("end", cuStreamEndCapture(t.stream, &graph));
  NEED(cuStreamBeginCapture(t.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CUdeviceptr more = 0;
  show_error("allocate", cuMemAlloc(&more, 4));
  show_error("end", cuStreamEndCapture(t.stream, &graph));
  show_error("legacy", cuStreamBeginCapture(nullptr, CU_STREAM_CAPTURE_MODE_GLOBAL));
}

// A branch of a graph that writes what another reads.
void race_in_graph() {
  Captured t;
  CUgraph graph = nullptr;
  NEED(cuStreamBeginCapture(t.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  NEED(cuEventRecord(t.fork, t.stream));
  NEED(cuStreamWaitEvent(t.side, t.fork, 0));
  NEED(launch(t.add, 1, 64, 0, t.stream, t.x, 1.0f));
  NEED(launch(t.add, 1, 64, 0, t.side, t.x, 2.0f));
  NEED(cuEventRecord(t.join, t.side));
  NEED(cuStreamWaitEvent(t.stream, t.join, 0));
  show_error("capture", cuStreamEndCapture(t.stream, &graph));
  CUgraphExec exec = nullptr;
  NEED(cuGraphInstantiateWithFlags(&exec, graph, 0));
  NEED(cuGraphLaunch(exec, t.stream));
  show_error("wait", cuCtxSynchronize());
}

void peer_copies() {
  CUcontext other = use_device(1);
  const CUdeviceptr y = to_device(std::vector<float>(64, 3.0f));
  CUcontext own = use_device(0);
  const CUdeviceptr x = to_device(std::vector<float>(64));
  show_error("plain", cuMemcpyDtoD(x, y, 256));
  show_error("peer", cuMemcpyPeer(x, own, y, other, 256));
  show("value", static_cast<long long>(to_host<float>(x, 64)[5]));
}

void pool_peers() {
  use_device(1);
  CUdeviceptr y = 0;
  CUmemoryPool pool = nullptr;
  NEED(cuDeviceGetDefaultMemPool(&pool, 1));
  NEED(cuMemAllocAsync(&y, 256, nullptr));
  NEED(cuMemsetD8(y, 0, 256));
  NEED(cuCtxSynchronize());
  use_device(0);
  CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, {0}}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  NEED(cuMemPoolSetAccess(pool, &access, 1));
  launch(kernel(kAdd), 1, 64, 0, nullptr, y, 1.0f);
  show_error("wait", cuCtxSynchronize());
}

void queries() {
  use_device();
  CUstream stream = nullptr;
  CUevent event = nullptr;
  NEED(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  NEED(cuEventCreate(&event, 0));
  const CUdeviceptr x = to_device(std::vector<float>(64));
  const CUfunction add = kernel(kAdd);
  for (int i = 0; i < 5; ++i) NEED(launch(add, 1, 64, 0, stream, x, 1.0f));
  NEED(cuEventRecord(event, stream));
  CUresult result = CUDA_ERROR_NOT_READY;
  for (int i = 0; i < 100 && result == CUDA_ERROR_NOT_READY; ++i) result = cuEventQuery(event);
  show_error("query", result);
  show_error("stream", cuStreamQuery(stream));
  show("value", static_cast<long long>(to_host<float>(x, 64)[5]));
  void* function = nullptr;
  CUdriverProcAddressQueryResult found;
  show_error("symbol", cuGetProcAddress("cuMemAlloc", &function, 12000, 0, &found));
  show("newest", function == reinterpret_cast<void*>(&cuMemAlloc));
}

/// Three kernels on a stream, two on another, which the host or an event orders or not.
void chains() {
  const CUcontext context = use_device();
  const CUfunction add = kernel(kAdd);
  const CUdeviceptr x = to_device(std::vector<float>(64)), y = to_device(std::vector<float>(64));
  CUstream streams[2];
  CUevent event = nullptr;
  for (CUstream& stream : streams) NEED(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  NEED(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  NEED(cuCtxSynchronize());
  std::uint64_t pieces = 0, chain = 0;
  const auto run = [&](const char* name, auto&& between) {
    std::uint64_t pieces_before = 0, chain_before = 0;
    crotonEmulatorWork(&pieces_before, &chain_before);
    for (int i = 0; i < 3; ++i) NEED(launch(add, 1, 64, 0, streams[0], x, 1.0f));
    between();
    for (int i = 0; i < 2; ++i) NEED(launch(add, 1, 64, 0, streams[1], y, 1.0f));
    NEED(cuCtxSynchronize());
    crotonEmulatorWork(&pieces, &chain);
    std::printf("%s: %d, %d\n", name, static_cast<int>(pieces - pieces_before),
                static_cast<int>(chain - chain_before));
  };
  run("free", [] {});
  run("host", [&] { NEED(cuStreamSynchronize(streams[0])); });
  run("event", [&] {
    NEED(cuEventRecord(event, streams[0]));
    NEED(cuStreamWaitEvent(streams[1], event, 0));
  });
  // Beside a thread that waits.
  std::atomic<bool> waits = false;
  std::thread other;
  run("thread", [&] {
    other = std::thread([&] {
      NEED(cuCtxSetCurrent(context));
      waits = true;
      NEED(cuStreamSynchronize(streams[0]));
    });
    while (!waits) std::this_thread::yield();
  });
  other.join();
}

}  // namespace

Table driver_scenarios() {
  return {{"devices", devices},
          {"errors_stay", errors_stay},
          {"out_of_memory", out_of_memory},
          {"injected", injected},
          {"launch_limits", launch_limits},
          {"declared_shared", declared_shared},
          {"declared_registers", declared_registers},
          {"wrong_images", wrong_images},
          {"compile_error", compile_error},
          {"only_real_refuses", only_real_refuses},
          {"chains", chains},
          {"graphs", graphs},
          {"capture_mistakes", capture_mistakes},
          {"race_in_graph", race_in_graph},
          {"peer_copies", peer_copies},
          {"pool_peers", pool_peers},
          {"queries", queries}};
}

}  // namespace scenario
