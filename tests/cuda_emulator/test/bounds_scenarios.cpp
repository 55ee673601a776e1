// Accesses that no kernel and no copy may make.
#include <cstring>

#include "tests/cuda_emulator/test/scenario.h"

namespace scenario {
namespace {

void past_the_end() {
  run_on_64_floats(R"(extern "C" __global__ void k(float* x) {
  x[threadIdx.x + 3] = 1;
})",
                   1, 64);
}

void before_the_begin() {
  run_on_64_floats(R"(extern "C" __global__ void k(float* x) {
  x[(int)threadIdx.x - 1] = 1;
})",
                   1, 64);
}

void read_past_the_end() {
  run_on_64_floats(R"(extern "C" __global__ void k(float* x) {
  float y = x[threadIdx.x * 2];
  if (y == 3) x[0] = y;
})",
                   1, 64);
}

void wide_access_over_the_end() {
  run_on_64_floats(R"(extern "C" __global__ void k(float* x) {
  float4* v = (float4*)(x + 64);
  *v = make_float4(1, 2, 3, 4);
})",
                   1, 1);
}

void misaligned() {
  run_on_64_floats(R"(extern "C" __global__ void k(float* x) {
  float4* v = (float4*)(x + 1);
  *v = make_float4(1, 2, 3, 4);
})",
                   1, 1);
}

void null_pointer() {
  use_device();
  const CUfunction f = kernel(R"(extern "C" __global__ void k(int* x) { x[threadIdx.x] = 1; })");
  launch(f, 1, 1, 0, nullptr, CUdeviceptr{0});
  show_error("wait", cuCtxSynchronize());
}

void host_pointer() {
  use_device();
  static int memory[4];
  const CUfunction f = kernel(R"(extern "C" __global__ void k(int* x) { x[threadIdx.x] = 1; })");
  launch(f, 1, 1, 0, nullptr, static_cast<int*>(memory));
  show_error("wait", cuCtxSynchronize());
}

void use_after_free() {
  use_device();
  const CUdeviceptr x = to_device(std::vector<float>(64));
  const CUfunction f = kernel(R"(extern "C" __global__ void k(float* x) { x[threadIdx.x] = 1; })");
  NEED(cuMemFree(x));
  launch(f, 1, 64, 0, nullptr, x);
  show_error("wait", cuCtxSynchronize());
}

void wrong_device() {
  use_device(1);
  const CUdeviceptr x = to_device(std::vector<float>(64));
  use_device(0);
  const CUfunction f = kernel(R"(extern "C" __global__ void k(float* x) { x[threadIdx.x] = 1; })");
  launch(f, 1, 64, 0, nullptr, x);
  show_error("wait", cuCtxSynchronize());
}

void peer_access() {
  CUcontext other = use_device(1);
  const CUdeviceptr x = to_device(std::vector<float>(64));
  use_device(0);
  NEED(cuCtxEnablePeerAccess(other, 0));
  const CUfunction f = kernel(R"(extern "C" __global__ void k(float* x) { x[threadIdx.x] = 1; })");
  launch(f, 1, 64, 0, nullptr, x);
  show_error("wait", cuCtxSynchronize());
}

void shared_dynamic() {
  run_on_64_floats(R"(extern "C" __global__ void k(float* x) {
  extern __shared__ __align__(16) float s[];
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = s[63 - threadIdx.x];
})",
                   1, 64, 63 * 4);
}

void shared_declared() {
  run_on_64_floats(R"(extern "C" __global__ void k(float* x) {
  __shared__ float s[8][8];
  s[threadIdx.x / 7][threadIdx.x % 8] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = s[0][0];
})",
                   1, 64);
}

void division_by_zero() {
  run_on_64_floats(R"(extern "C" __global__ void k(int* x) {
  x[threadIdx.x] = x[0] / (int)threadIdx.x;
})",
                   1, 64);
}

void endless_recursion() {
  run_on_64_floats(R"(__device__ __noinline__ float f(volatile float* x, int n) {
  float own[64];
  for (int i = 0; i < 64; ++i) own[i] = x[i] + n;
  return n == 0 ? own[3] : f(x, n - 1) + own[(n + 5) % 64];
}
extern "C" __global__ void k(float* x) { x[threadIdx.x] = f(x, 10000); })",
                   1, 1);
}

void host_touches_device() {
  use_device();
  const CUdeviceptr x = to_device(std::vector<float>(64));
  std::fflush(stdout);
  *reinterpret_cast<volatile float*>(x) = 1;
}

void copy_past_the_end() {
  use_device();
  const CUdeviceptr x = to_device(std::vector<float>(64));
  std::vector<float> y(65);
  show_error("copy", cuMemcpyDtoH(y.data(), x, 65 * 4));
}

void copy_sides_swapped() {
  use_device();
  const CUdeviceptr x = to_device(std::vector<float>(64));
  std::vector<float> y(64);
  show_error("to the host", cuMemcpyDtoH(reinterpret_cast<void*>(x), x, 4));
  show_error("to a device", cuMemcpyHtoD(reinterpret_cast<CUdeviceptr>(y.data()), y.data(), 4));
}

void copy_after_free() {
  use_device();
  const CUdeviceptr x = to_device(std::vector<float>(64));
  NEED(cuMemFree(x));
  std::vector<float> y(64);
  show_error("copy", cuMemcpyDtoH(y.data(), x, 4));
  show_error("free", cuMemFree(x));
}

}  // namespace

Table bounds_scenarios() {
  return {{"past_the_end", past_the_end},
          {"before_the_begin", before_the_begin},
          {"read_past_the_end", read_past_the_end},
          {"wide_access_over_the_end", wide_access_over_the_end},
          {"misaligned", misaligned},
          {"null_pointer", null_pointer},
          {"host_pointer", host_pointer},
          {"use_after_free", use_after_free},
          {"wrong_device", wrong_device},
          {"peer_access", peer_access},
          {"shared_dynamic", shared_dynamic},
          {"shared_declared", shared_declared},
          {"division_by_zero", division_by_zero},
          {"endless_recursion", endless_recursion},
          {"host_touches_device", host_touches_device},
          {"copy_past_the_end", copy_past_the_end},
          {"copy_sides_swapped", copy_sides_swapped},
          {"copy_after_free", copy_after_free}};
}

}  // namespace scenario
