// Work that nothing orders: within a launch, and between streams, copies and the host.
#include "tests/cuda_emulator/test/scenario.h"

namespace scenario {
namespace {

constexpr const char* kFill = R"(extern "C" __global__ void k(float* x) { x[threadIdx.x] = 2; })";

void missing_barrier() {
  run_on_64_floats(R"(extern "C" __global__ void k(float* x) {
  __shared__ float s[64];
  s[threadIdx.x] = x[threadIdx.x];
  x[threadIdx.x] = s[63 - threadIdx.x];
})",
                   1, 64);
}

void with_barrier() {
  run_on_64_floats(R"(extern "C" __global__ void k(float* x) {
  __shared__ float s[64];
  for (int i = 0; i < 3; ++i) {
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = s[63 - threadIdx.x];
    __syncthreads();
  }
})",
                   1, 64);
}

void shared_reused_too_early() {
  run_on_64_floats(R"(extern "C" __global__ void k(float* x) {
  __shared__ float s[64];
  for (int i = 0; i < 3; ++i) {
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = s[63 - threadIdx.x];
  }
})",
                   1, 64);
}

void warp_without_sync() {
  run_on_64_floats(R"(extern "C" __global__ void k(float* x) {
  __shared__ float s[32];
  s[threadIdx.x] = x[threadIdx.x];
  x[threadIdx.x] = s[threadIdx.x ^ 1];
})",
                   1, 32);
}

void warp_with_sync() {
  run_on_64_floats(R"(extern "C" __global__ void k(float* x) {
  __shared__ float s[32];
  s[threadIdx.x] = x[threadIdx.x];
  __syncwarp();
  x[threadIdx.x] = s[threadIdx.x ^ 1];
})",
                   1, 32);
}

void blocks_write_one_place() {
  run_on_64_floats(R"(extern "C" __global__ void k(float* x) { x[threadIdx.x] = blockIdx.x; })", 2,
                   64);
}

void sum_without_atomic() {
  run_on_64_floats(R"(extern "C" __global__ void k(float* x) { x[0] += 1; })", 4, 1);
}

void block_reads_of_another() {
  run_on_64_floats(R"(extern "C" __global__ void k(float* x) {
  if (blockIdx.x == 0) x[threadIdx.x] = 5;
  else x[32 + threadIdx.x] = x[threadIdx.x];
})",
                   2, 32);
}

// Each thread has a byte of its own, in several turns.
void bytes_of_one_word() {
  run_on_64_floats(R"(extern "C" __global__ void k(float* x) {
  unsigned char* bytes = (unsigned char*)x;
  for (int i = 0; i < 4; ++i) {
    __syncthreads();
    bytes[threadIdx.x] = bytes[threadIdx.x] + 1;
  }
})",
                   1, 64);
}

void last_block(bool fence) {
  use_device();
  const CUfunction f =
      kernel(std::string(R"(extern "C" __global__ void k(float* part, int* done, float* sum) {
  part[blockIdx.x] = blockIdx.x;
)") + (fence ? "  __threadfence();\n" : "") +
             R"(  if (atomicAdd(done, 1) == (int)gridDim.x - 1) {
)" + (fence ? "    __threadfence();\n" : "") +
             R"(    float total = 0;
    for (int i = 0; i < (int)gridDim.x; ++i) total += part[i];
    *sum = total;
  }
})");
  const CUdeviceptr part = to_device(std::vector<float>(8)), done = to_device(std::vector<int>(1)),
                    sum = to_device(std::vector<float>(1));
  launch(f, 8, 1, 0, nullptr, part, done, sum);
  show_error("wait", cuCtxSynchronize());
}
void last_block_with_fence() { last_block(true); }
void last_block_without_fence() { last_block(false); }

void barrier_in_a_branch() {
  run_on_64_floats(R"(extern "C" __global__ void k(float* x) {
  if (threadIdx.x < 32) {
    __syncthreads();
  } else {
    x[threadIdx.x] = 1;
    __syncthreads();
  }
})",
                   1, 64);
}

void barrier_and_shuffle() {
  run_on_64_floats(R"(extern "C" __global__ void k(float* x) {
  if (threadIdx.x == 5) __syncthreads();
  x[threadIdx.x] = __shfl_xor_sync(0xffffffffu, x[threadIdx.x], 1);
  if (threadIdx.x != 5) __syncthreads();
})",
                   1, 32);
}

void shuffle_outside_its_mask() {
  run_on_64_floats(R"(extern "C" __global__ void k(float* x) {
  x[threadIdx.x] = __shfl_sync(0x0000ffffu, x[threadIdx.x], 0);
})",
                   1, 32);
}

void shuffle_from_absent_lane() {
  run_on_64_floats(R"(extern "C" __global__ void k(float* x) {
  if (threadIdx.x < 16) x[threadIdx.x] = __shfl_xor_sync(0x0000ffffu, x[threadIdx.x], 16);
})",
                   1, 32);
}

struct TwoStreams {
  CUstream first = nullptr, second = nullptr;
  CUevent event = nullptr;
  CUdeviceptr x = 0;
  TwoStreams() {
    use_device();
    NEED(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
    NEED(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
    NEED(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    x = to_device(std::vector<float>(64));
  }
};

void two_streams(bool ordered) {
  TwoStreams t;
  const CUfunction f = kernel(kFill);
  launch(f, 1, 64, 0, t.first, t.x);
  if (ordered) {
    NEED(cuEventRecord(t.event, t.first));
    NEED(cuStreamWaitEvent(t.second, t.event, 0));
  }
  launch(f, 1, 64, 0, t.second, t.x);
  show_error("wait", cuCtxSynchronize());
}
void streams_unordered() { two_streams(false); }
void streams_ordered() { two_streams(true); }

// An event that is recorded before the work that matters.
void event_too_early() {
  TwoStreams t;
  const CUfunction f = kernel(kFill);
  NEED(cuEventRecord(t.event, t.first));
  launch(f, 1, 64, 0, t.first, t.x);
  NEED(cuStreamWaitEvent(t.second, t.event, 0));
  launch(f, 1, 64, 0, t.second, t.x);
  show_error("wait", cuCtxSynchronize());
}

// Two streams read; a third writes after one of them.
void write_after_one_reader() {
  TwoStreams t;
  CUstream third = nullptr;
  NEED(cuStreamCreate(&third, CU_STREAM_NON_BLOCKING));
  const CUfunction read = kernel(R"(extern "C" __global__ void k(const float* x, float* y) {
  y[threadIdx.x] = x[threadIdx.x];
})");
  const CUdeviceptr y = to_device(std::vector<float>(64)), z = to_device(std::vector<float>(64));
  launch(read, 1, 64, 0, t.first, t.x, y);
  launch(read, 1, 64, 0, t.second, t.x, z);
  NEED(cuEventRecord(t.event, t.second));
  NEED(cuStreamWaitEvent(third, t.event, 0));
  launch(kernel(kFill), 1, 64, 0, third, t.x);
  show_error("wait", cuCtxSynchronize());
}

void host_waits_for_a_stream() {
  TwoStreams t;
  const CUfunction f = kernel(kFill);
  launch(f, 1, 64, 0, t.first, t.x);
  NEED(cuStreamSynchronize(t.first));
  launch(f, 1, 64, 0, t.second, t.x);
  show_error("wait", cuCtxSynchronize());
  show("value", static_cast<long long>(to_host<float>(t.x, 64)[9]));
}

// A blocking copy goes through the legacy stream, for which non-blocking streams do not wait.
void copy_without_wait() {
  TwoStreams t;
  std::vector<float> y(64);
  launch(kernel(kFill), 1, 64, 0, t.first, t.x);
  show_error("copy", cuMemcpyDtoH(y.data(), t.x, 256));
  show_error("wait", cuCtxSynchronize());
}

void fill_without_wait() {
  TwoStreams t;
  NEED(cuMemsetD32(t.x, 0, 64));
  launch(kernel(kFill), 1, 64, 0, t.first, t.x);
  show_error("wait", cuCtxSynchronize());
}

void free_without_order() {
  TwoStreams t;
  CUdeviceptr y = 0;
  NEED(cuMemAllocAsync(&y, 256, t.first));
  launch(kernel(kFill), 1, 64, 0, t.first, y);
  NEED(cuEventRecord(t.event, t.first));
  NEED(cuStreamWaitEvent(t.second, t.event, 0));
  launch(kernel(kFill), 1, 64, 0, t.second, y);
  NEED(cuMemFreeAsync(y, t.first));
  show_error("wait", cuCtxSynchronize());
}

void use_before_allocation() {
  TwoStreams t;
  CUdeviceptr y = 0;
  NEED(cuMemAllocAsync(&y, 256, t.first));
  launch(kernel(kFill), 1, 64, 0, t.second, y);
  show_error("wait", cuCtxSynchronize());
}

// Page-locked memory is read when the copy runs.
void pinned_reused_too_early() {
  TwoStreams t;
  float* pinned = nullptr;
  NEED(cuMemAllocHost(reinterpret_cast<void**>(&pinned), 256));
  for (int i = 0; i < 64; ++i) pinned[i] = 1;
  NEED(cuMemcpyHtoDAsync(t.x, pinned, 256, t.first));
  for (int i = 0; i < 64; ++i) pinned[i] = 7;
  NEED(cuStreamSynchronize(t.first));
  show("value", static_cast<long long>(to_host<float>(t.x, 64)[9]));
}

}  // namespace

Table race_scenarios() {
  return {{"missing_barrier", missing_barrier},
          {"with_barrier", with_barrier},
          {"shared_reused_too_early", shared_reused_too_early},
          {"warp_without_sync", warp_without_sync},
          {"warp_with_sync", warp_with_sync},
          {"blocks_write_one_place", blocks_write_one_place},
          {"sum_without_atomic", sum_without_atomic},
          {"block_reads_of_another", block_reads_of_another},
          {"bytes_of_one_word", bytes_of_one_word},
          {"last_block_with_fence", last_block_with_fence},
          {"last_block_without_fence", last_block_without_fence},
          {"barrier_in_a_branch", barrier_in_a_branch},
          {"barrier_and_shuffle", barrier_and_shuffle},
          {"shuffle_outside_its_mask", shuffle_outside_its_mask},
          {"shuffle_from_absent_lane", shuffle_from_absent_lane},
          {"streams_unordered", streams_unordered},
          {"streams_ordered", streams_ordered},
          {"event_too_early", event_too_early},
          {"write_after_one_reader", write_after_one_reader},
          {"host_waits_for_a_stream", host_waits_for_a_stream},
          {"copy_without_wait", copy_without_wait},
          {"fill_without_wait", fill_without_wait},
          {"free_without_order", free_without_order},
          {"use_before_allocation", use_before_allocation},
          {"pinned_reused_too_early", pinned_reused_too_early}};
}

}  // namespace scenario
