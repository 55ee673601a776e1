// Products that cuBLASLt does not make, by a small kernel of our own: right, not fast.
#include <fmt/format.h>

#include <algorithm>

#include "croton/error.h"
#include "runtime/cuda/gemm.h"
#include "runtime/cuda/gpu_device.h"
#include "runtime/cuda/half_text.h"
#include "runtime/cuda/queue.h"

namespace croton::cuda {
namespace {

using cpu::GemmOperands;
using cpu::GemmProblem;

constexpr int kThreads = 256;

// T is the type of the elements, S that of their values, W that of sums: unsigned for integers,
// whose products wrap. LOAD and STORE take T to S and S to T, ADD is a term of the sum.
constexpr std::string_view kText = R"(
extern "C" __global__ void __launch_bounds__(256) croton_product(
    T* out, const T* a, const T* b, const T* c, const T* bias, long long m, long long n,
    long long k, long long a_row, long long a_term, long long b_term, long long b_column,
    double alpha, double beta, int relu) {
  const long long step = (long long)gridDim.x * 256;
  for (long long e = blockIdx.x * 256ll + threadIdx.x; e < m * n; e += step) {
    const long long i = e / n, j = e % n;
    W sum = 0;
    for (long long p = 0; p < k; ++p) {
      sum = ADD(sum, LOAD(a[i * a_row + p * a_term]), LOAD(b[p * b_term + j * b_column]));
    }
    if (alpha != 1) sum = (W)(sum * (W)(S)alpha);
    if (c) sum = (W)(sum + (W)(S)beta * (W)LOAD(c[e]));
    if (bias) sum = (W)(sum + (W)LOAD(bias[j]));
    const S value = (S)sum;
    out[e] = STORE(relu && value < (S)0 ? (S)0 : value);
  }
}
extern "C" __global__ void __launch_bounds__(256) croton_finish(T* out, const T* bias, long long m,
                                                                long long n, int relu) {
  const long long step = (long long)gridDim.x * 256;
  for (long long e = blockIdx.x * 256ll + threadIdx.x; e < m * n; e += step) {
    W sum = LOAD(out[e]);
    if (bias) sum = (W)(sum + (W)LOAD(bias[e % n]));
    const S value = (S)sum;
    out[e] = STORE(relu && value < (S)0 ? (S)0 : value);
  }
}
)";

/// LOAD and STORE.
std::string access_to(DType dtype) {
  constexpr std::string_view kNames =
      "typedef float f32;\ntypedef unsigned u32;\ntypedef unsigned short f16;\ntypedef f16 bf16;\n";
  switch (dtype) {
    case DType::float16:
      return fmt::format(
          "{}{}{}#define LOAD(x) f32_from_f16(x)\n#define STORE(x) f16_from_f32(x)\n", kNames,
          kF32FromF16, kF16FromF32);
    case DType::bfloat16:
      return fmt::format(
          "{}{}{}#define LOAD(x) f32_from_bf16(x)\n#define STORE(x) bf16_from_f32(x)\n", kNames,
          kF32FromBf16, kBf16FromF32);
    default:
      return "#define LOAD(x) (x)\n#define STORE(x) (x)\n";
  }
}

struct Types {
  std::string_view element, value, sum;
};

Types types_of(DType dtype) {
  switch (dtype) {
    case DType::boolean:
      return {"bool", "bool", "bool"};
    case DType::int8:
      return {"signed char", "signed char", "unsigned"};
    case DType::int16:
      return {"short", "short", "unsigned"};
    case DType::int32:
      return {"int", "int", "unsigned"};
    case DType::int64:
      return {"long long", "long long", "unsigned long long"};
    case DType::uint8:
      return {"unsigned char", "unsigned char", "unsigned"};
    case DType::uint16:
      return {"unsigned short", "unsigned short", "unsigned"};
    case DType::uint32:
      return {"unsigned", "unsigned", "unsigned"};
    case DType::uint64:
      return {"unsigned long long", "unsigned long long", "unsigned long long"};
    case DType::float32:
      return {"float", "float", "float"};
    case DType::float64:
      return {"double", "double", "double"};
    case DType::float16:
      return {"unsigned short", "float", "float"};
    case DType::bfloat16:
      return {"unsigned short", "float", "float"};
  }
  throw InternalError("internal error: a product of an unknown dtype");
}

std::shared_ptr<Module> kernels_for(GpuDevice& device, DType dtype) {
  const auto [element, value, sum] = types_of(dtype);
  const char* add = dtype == DType::boolean ? "((s) || ((x) && (y)))" : "((s) + (W)(x) * (W)(y))";
  return device.own_kernels(
      fmt::format("{}typedef {} T;\ntypedef {} S;\ntypedef {} W;\n#define ADD(s, x, y) {}\n{}",
                  access_to(dtype), element, value, sum, add, kText),
      {"croton_product", "croton_finish"});
}

class PlainGemm : public PreparedCall {
 public:
  PlainGemm(GpuDevice& device, const GemmProblem& problem) : p_(problem) {
    const bool nothing = p_.m == 0 || p_.n == 0 || p_.batch == 0;
    // Zeros need no kernel, and are the same in every dtype.
    zeros_ = !nothing && p_.k == 0 && !p_.has_c() && !p_.bias;
    if (!nothing && !zeros_) module_ = kernels_for(device, p_.dtype);
  }

  std::int64_t work() const override { return p_.flop(); }

  void run(void* const* operands, void*, int, void* queue) const override {
    const auto& place = *static_cast<const LibraryQueue*>(queue);
    const GemmOperands o = cpu::operands_of(p_, operands);
    const auto size = static_cast<std::int64_t>(size_of(p_.dtype));
    if (zeros_) {
      const auto bytes = static_cast<std::size_t>(p_.m * p_.n * p_.batch * size);
      place.gpu.check(place.gpu.api().set_bytes(device_pointer(o.out), 0, bytes, place.stream),
                      "filling with zeros");
    }
    if (!module_) return;
    const auto moved = [&](const void* base, std::int64_t elements) {
      return base == nullptr
                 ? DevicePointer{0}
                 : device_pointer(static_cast<const std::byte*>(base) + elements * size);
    };
    for (std::int64_t i = 0; i < p_.batch; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const std::int64_t done = i * p_.m * p_.n;
      DevicePointer out = moved(o.out, done), a = moved(o.a, p_.a_offset[at]),
                    b = moved(o.b, p_.b_offset[at]), c = moved(o.c, done), bias = moved(o.bias, 0);
      std::int64_t m = p_.m, n = p_.n, k = p_.k;
      std::int64_t a_row = p_.transpose_a ? 1 : k, a_term = p_.transpose_a ? m : 1;
      std::int64_t b_term = p_.transpose_b ? 1 : n, b_column = p_.transpose_b ? k : 1;
      double alpha = p_.alpha, beta = p_.beta;
      int relu = p_.relu ? 1 : 0;
      void* parameters[] = {&out,   &a,      &b,      &c,        &bias,  &m,    &n,   &k,
                            &a_row, &a_term, &b_term, &b_column, &alpha, &beta, &relu};
      launch(place, "croton_product", m * n, parameters);
    }
  }

 protected:
  void launch(const LibraryQueue& place, const char* name, std::int64_t elements,
              void** parameters) const {
    const auto* kernel = static_cast<const GpuKernel*>(module_->kernel(name));
    const std::int64_t blocks = std::min<std::int64_t>((elements + kThreads - 1) / kThreads, 65535);
    place.gpu.check(place.gpu.api().launch(kernel->function, static_cast<unsigned>(blocks), 1, 1,
                                           kThreads, 1, 1, 0, place.stream, parameters, nullptr),
                    "launching a product");
  }

  const GemmProblem p_;
  bool zeros_ = false;
  std::shared_ptr<Module> module_;
};

class FinishGemm final : public PlainGemm {
 public:
  using PlainGemm::PlainGemm;
  void run(void* const* operands, void*, int, void* queue) const override {
    const auto& place = *static_cast<const LibraryQueue*>(queue);
    const GemmOperands o = cpu::operands_of(p_, operands);
    DevicePointer out = device_pointer(o.out);
    DevicePointer bias = o.bias == nullptr ? 0 : device_pointer(o.bias);
    std::int64_t m = p_.m * p_.batch, n = p_.n;
    int relu = p_.relu ? 1 : 0;
    void* parameters[] = {&out, &bias, &m, &n, &relu};
    launch(place, "croton_finish", m * n, parameters);
  }
};

}  // namespace

std::unique_ptr<PreparedCall> plain_gemm(GpuDevice& device, const GemmProblem& problem) {
  return std::make_unique<PlainGemm>(device, problem);
}

std::unique_ptr<PreparedCall> finish_gemm(GpuDevice& device, const GemmProblem& problem) {
  return std::make_unique<FinishGemm>(device, problem);
}

}  // namespace croton::cuda
