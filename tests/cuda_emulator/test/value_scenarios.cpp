// Kernels whose results are known.
#include <cmath>

#include "tests/cuda_emulator/test/scenario.h"

namespace scenario {
namespace {

void axpy() {
  use_device();
  const CUfunction f = kernel(R"(extern "C" __global__ void __launch_bounds__(256) k(
    const float* __restrict__ x, float* __restrict__ y, float a, long long n) {
  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
})");
  std::vector<float> x(1000), y(1000);
  for (int i = 0; i < 1000; ++i) x[i] = i, y[i] = 2 * i;
  const CUdeviceptr dx = to_device(x), dy = to_device(y);
  NEED(launch(f, 4, 256, 0, nullptr, dx, dy, 3.0f, 1000ll));
  const auto got = to_host<float>(dy, 1000);
  int wrong = 0;
  for (int i = 0; i < 1000; ++i) wrong += got[i] != 5.0f * i;
  show("wrong", wrong);
}

// A row a block: warps by shuffles, then one warp through shared memory; dynamic shared memory
// holds the row.
void softmax() {
  use_device();
  const CUfunction f = kernel(R"(
__device__ float fold(float v, bool largest) {
  __shared__ float part[8];
  for (int d = 16; d > 0; d >>= 1) {
    const float o = __shfl_xor_sync(0xffffffffu, v, d);
    v = largest ? fmaxf(v, o) : v + o;
  }
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  v = part[threadIdx.x % 8];
  for (int d = 4; d > 0; d >>= 1) {
    const float o = __shfl_xor_sync(0xffffffffu, v, d);
    v = largest ? fmaxf(v, o) : v + o;
  }
  __syncthreads();
  return v;
}
extern "C" __global__ void k(const float* x, float* y, int n) {
  extern __shared__ __align__(16) unsigned char row_bytes[];
  float* row = (float*)row_bytes;
  float top = -3e38f, sum = 0;
  for (int i = threadIdx.x; i < n; i += 256) top = fmaxf(top, row[i] = x[blockIdx.x * n + i]);
  top = fold(top, true);
  for (int i = threadIdx.x; i < n; i += 256) sum += row[i] = expf(row[i] - top);
  sum = fold(sum, false);
  for (int i = threadIdx.x; i < n; i += 256) y[blockIdx.x * n + i] = row[i] / sum;
})");
  const int rows = 5, n = 700;
  std::vector<float> x(rows * n);
  for (int i = 0; i < rows * n; ++i) x[i] = std::sin(0.1f * i) * 4;
  const CUdeviceptr dx = to_device(x), dy = to_device(std::vector<float>(rows * n));
  NEED(launch(f, rows, 256, n * 4, nullptr, dx, dy, n));
  const auto got = to_host<float>(dy, rows * n);
  int wrong = 0;
  for (int r = 0; r < rows; ++r) {
    double sum = 0;
    for (int i = 0; i < n; ++i) sum += std::exp(static_cast<double>(x[r * n + i]));
    for (int i = 0; i < n; ++i) {
      const double right = std::exp(static_cast<double>(x[r * n + i])) / sum;
      wrong += !(std::fabs(got[r * n + i] - right) <= 1e-5 * right);
    }
  }
  show("wrong", wrong);
}

void atomics() {
  use_device();
  const CUfunction f = kernel(R"(extern "C" __global__ void k(int* count, float* sum,
    unsigned long long* most) {
  __shared__ int mine[4];
  if (threadIdx.x < 4) mine[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(&mine[threadIdx.x % 4], 1);
  __syncthreads();
  if (threadIdx.x < 4) atomicAdd(&count[threadIdx.x], mine[threadIdx.x]);
  atomicAdd(sum, 0.5f);
  atomicMax(most, (unsigned long long)(blockIdx.x * blockDim.x + threadIdx.x));
  atomicCAS((unsigned long long*)most, 1023ull, 5000ull);
})");
  const CUdeviceptr count = to_device(std::vector<int>(4)), sum = to_device(std::vector<float>(1)),
                    most = to_device(std::vector<unsigned long long>(1));
  NEED(launch(f, 8, 128, 0, nullptr, count, sum, most));
  const auto counts = to_host<int>(count, 4);
  show("counts", counts[0] == 256 && counts[1] == 256 && counts[2] == 256 && counts[3] == 256);
  show("sum", static_cast<long long>(to_host<float>(sum, 1)[0]));
  show("most", static_cast<long long>(to_host<unsigned long long>(most, 1)[0]));
}

void votes() {
  use_device();
  const CUfunction f = kernel(R"(extern "C" __global__ void k(unsigned* r) {
  const unsigned lane = threadIdx.x;
  const unsigned odd = __ballot_sync(0xffffffffu, lane & 1);
  const unsigned up = __shfl_up_sync(0xffffffffu, lane, 1);
  const unsigned down = __shfl_down_sync(0xffffffffu, lane, 2, 8);
  const unsigned sum = __reduce_add_sync(0xffffffffu, lane);
  unsigned half = 0;
  if (lane < 16) half = __shfl_sync(0x0000ffffu, lane, 3);
  else half = __shfl_sync(0xffff0000u, lane, 20);
  const unsigned equal = __match_any_sync(0xffffffffu, lane / 8);
  const int all = __all_sync(0xffffffffu, lane < 32), any = __any_sync(0xffffffffu, lane == 40);
  const int count = __syncthreads_count(lane < 5);
  unsigned* mine = r + lane * 8;
  mine[0] = odd, mine[1] = up, mine[2] = down, mine[3] = sum;
  mine[4] = half, mine[5] = equal, mine[6] = all * 2 + any, mine[7] = count;
})");
  const CUdeviceptr r = to_device(std::vector<unsigned>(256));
  NEED(launch(f, 1, 32, 0, nullptr, r));
  const auto got = to_host<unsigned>(r, 256);
  int wrong = 0;
  for (unsigned lane = 0; lane < 32; ++lane) {
    const unsigned* mine = &got[lane * 8];
    wrong += mine[0] != 0xaaaaaaaau || mine[1] != (lane ? lane - 1 : 0);
    wrong += mine[2] != (lane % 8 < 6 ? lane + 2 : lane) || mine[3] != 496;
    wrong += mine[4] != (lane < 16 ? 3 : 20) || mine[5] != 0xffu << (lane / 8 * 8);
    wrong += mine[6] != 2 || mine[7] != 5;
  }
  show("wrong", wrong);
}

void wide_and_half() {
  use_device();
  const CUfunction f = kernel(R"(
#ifdef __CUDACC__
__device__ float f32_from_f16(unsigned short x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
  return y;
}
__device__ unsigned short f16_from_f32(float x) {
  unsigned short y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
}
#endif
struct Pair { long long a; short b; };
extern "C" __global__ void k(const float4* x, float4* y, unsigned short* h, Pair p) {
  float4 v = x[threadIdx.x];
  v.x += 1, v.w = (float)(p.a + p.b);
  __stcs(&y[threadIdx.x], v);
  h[threadIdx.x] = f16_from_f32(f32_from_f16(h[threadIdx.x]) * 2.0f);
})");
  struct Pair {
    long long a;
    short b;
  };
  std::vector<float> x(64);
  for (int i = 0; i < 64; ++i) x[i] = i;
  std::vector<unsigned short> h(16, 0x3e00);  // 1.5
  const CUdeviceptr dx = to_device(x), dy = to_device(x), dh = to_device(h);
  NEED(launch(f, 1, 16, 0, nullptr, dx, dy, dh, Pair{40, 2}));
  const auto y = to_host<float>(dy, 64);
  int wrong = 0;
  for (int i = 0; i < 64; ++i) wrong += y[i] != (i % 4 == 0 ? i + 1 : i % 4 == 3 ? 42 : i);
  for (const auto v : to_host<unsigned short>(dh, 16)) wrong += v != 0x4200;
  show("wrong", wrong);
}

void globals() {
  use_device();
  const CUmodule module = compile(R"(__device__ int counter = 7;
__constant__ float table[3];
extern "C" __global__ void k(float* x) {
  atomicAdd(&counter, 1);
  x[threadIdx.x] = table[threadIdx.x];
})");
  CUdeviceptr counter = 0, table = 0;
  std::size_t bytes = 0;
  NEED(cuModuleGetGlobal(&counter, &bytes, module, "counter"));
  NEED(cuModuleGetGlobal(&table, &bytes, module, "table"));
  show("bytes", static_cast<long long>(bytes));
  const float values[3] = {1, 2, 4};
  NEED(cuMemcpyHtoD(table, values, sizeof values));
  CUfunction f = nullptr;
  NEED(cuModuleGetFunction(&f, module, "k"));
  const CUdeviceptr x = to_device(std::vector<float>(3));
  NEED(launch(f, 1, 3, 0, nullptr, x));
  show("counter", to_host<int>(counter, 1)[0]);
  show("last", static_cast<long long>(to_host<float>(x, 3)[2]));
  show_error("unknown", cuModuleGetGlobal(&counter, &bytes, module, "nothing"));
  show_error("function", cuModuleGetFunction(&f, module, "nothing"));
}

// Threads and blocks of three dimensions.
void dimensions() {
  use_device();
  const CUfunction f = kernel(R"(extern "C" __global__ void k(int* x) {
  const int b = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const int t = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  x[b * blockDim.x * blockDim.y * blockDim.z + t] = b * 1000 + t;
})");
  CUdeviceptr x = to_device(std::vector<int>(24 * 30));
  void* arguments[] = {&x};
  NEED(cuLaunchKernel(f, 2, 3, 4, 5, 3, 2, 0, nullptr, arguments, nullptr));
  const auto got = to_host<int>(x, 24 * 30);
  int wrong = 0;
  for (int i = 0; i < 24 * 30; ++i) wrong += got[i] != i / 30 * 1000 + i % 30;
  show("wrong", wrong);
}

}  // namespace

Table value_scenarios() {
  return {{"axpy", axpy},
          {"softmax", softmax},
          {"atomics", atomics},
          {"votes", votes},
          {"globals", globals},
          {"wide_and_half", wide_and_half},
          {"dimensions", dimensions}};
}

}  // namespace scenario
