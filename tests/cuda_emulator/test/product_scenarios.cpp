// Products of cuBLASLt, against sums in double.
#include <cublasLt.h>

#include <cmath>
#include <cstdint>
#include <functional>

#include "tests/cuda_emulator/test/scenario.h"

namespace scenario {
namespace {

float bfloat(std::uint16_t bits) {
  return __builtin_bit_cast(float, static_cast<std::uint32_t>(bits) << 16);
}
std::uint16_t to_bfloat(float x) { return __builtin_bit_cast(std::uint32_t, x) >> 16; }

void need_lt(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  std::printf("%s = %d\n", what, static_cast<int>(status));
  std::fflush(stdout);
  std::_Exit(1);
}
#define NEED_LT(call) need_lt(call, #call)

/// op(A) m x k, op(B) k x n, all column-major and dense.
struct Product {
  int m = 5, n = 7, k = 70, batch = 1;
  cudaDataType_t in = CUDA_R_32F, out = CUDA_R_32F;
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cudaDataType_t scale = CUDA_R_32F;
  bool transpose_a = false, transpose_b = false;
  int epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  CUdeviceptr bias = 0;
  double alpha = 1, beta = 0;

  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDesc_t description = nullptr;
  cublasLtMatrixLayout_t a_layout = nullptr, b_layout = nullptr, c_layout = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;
  cublasLtMatmulHeuristicResult_t found{};

  template <class T>
  void set(cublasLtMatmulDescAttributes_t attribute, T value) {
    NEED_LT(cublasLtMatmulDescSetAttribute(description, attribute, &value, sizeof value));
  }

  void layout(cublasLtMatrixLayout_t& made, cudaDataType_t type, int rows, int columns) {
    NEED_LT(cublasLtMatrixLayoutCreate(&made, type, rows, columns, rows));
    const std::int32_t count = batch;
    const std::int64_t step = static_cast<std::int64_t>(rows) * columns;
    NEED_LT(cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                             sizeof count));
    NEED_LT(cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                             &step, sizeof step));
  }

  cublasStatus_t choose() {
    NEED_LT(cublasLtCreate(&handle));
    NEED_LT(cublasLtMatmulDescCreate(&description, compute, scale));
    const auto op = [](bool t) { return static_cast<std::int32_t>(t ? CUBLAS_OP_T : CUBLAS_OP_N); };
    set(CUBLASLT_MATMUL_DESC_TRANSA, op(transpose_a));
    set(CUBLASLT_MATMUL_DESC_TRANSB, op(transpose_b));
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, static_cast<std::int32_t>(epilogue));
    if (bias) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    layout(a_layout, in, transpose_a ? k : m, transpose_a ? m : k);
    layout(b_layout, in, transpose_b ? n : k, transpose_b ? k : n);
    layout(c_layout, out, m, n);
    NEED_LT(cublasLtMatmulPreferenceCreate(&preference));
    const std::uint64_t bytes = 1 << 20;
    NEED_LT(cublasLtMatmulPreferenceSetAttribute(
        preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof bytes));
    int count = 0;
    return cublasLtMatmulAlgoGetHeuristic(handle, description, a_layout, b_layout, c_layout,
                                          c_layout, preference, 1, &found, &count);
  }

  cublasStatus_t run(CUdeviceptr a, CUdeviceptr b, CUdeviceptr d, CUdeviceptr workspace,
                     std::size_t workspace_bytes) {
    const float narrow[2] = {static_cast<float>(alpha), static_cast<float>(beta)};
    const double wide[2] = {alpha, beta};
    const bool is_wide = scale == CUDA_R_64F;
    const auto pointer = [](CUdeviceptr p) { return reinterpret_cast<void*>(p); };
    return cublasLtMatmul(
        handle, description, is_wide ? (const void*)&wide[0] : &narrow[0], pointer(a), a_layout,
        pointer(b), b_layout, is_wide ? (const void*)&wide[1] : &narrow[1], pointer(d), c_layout,
        pointer(d), c_layout, &found.algo, pointer(workspace), workspace_bytes, nullptr);
  }
};

/// Random operands, and how many results are off by more than `tolerance` of the sum of magnitudes.
template <class T>
void check_product(
    Product p, double tolerance, double (*value)(T), T (*bits)(double),
    double (*activation)(double) = [](double x) { return x; }) {
  use_device();
  std::uint32_t state = 1;
  const auto random = [&](std::size_t count) {
    std::vector<T> values(count);
    for (T& v : values) v = bits(((state = state * 1664525 + 1013904223) >> 8) / 8388608.0 - 1);
    return values;
  };
  const auto a = random(p.m * p.k * p.batch), b = random(p.k * p.n * p.batch),
             c = random(p.m * p.n * p.batch), bias = random(p.m);
  if (p.epilogue & CUBLASLT_EPILOGUE_BIAS) p.bias = to_device(bias);
  NEED_LT(p.choose());
  CUdeviceptr workspace = 0;
  NEED(cuMemAlloc(&workspace, 1 << 20));
  const CUdeviceptr d = to_device(c);
  NEED_LT(p.run(to_device(a), to_device(b), d, workspace, 1 << 20));
  NEED(cuCtxSynchronize());
  const auto got = to_host<T>(d, c.size());
  int wrong = 0;
  for (int g = 0; g < p.batch; ++g) {
    for (int i = 0; i < p.m; ++i) {
      for (int j = 0; j < p.n; ++j) {
        double sum = 0, size = 0;
        for (int l = 0; l < p.k; ++l) {
          const double x = value(a[g * p.m * p.k + (p.transpose_a ? i * p.k + l : l * p.m + i)]);
          const double y = value(b[g * p.k * p.n + (p.transpose_b ? l * p.n + j : j * p.k + l)]);
          sum += x * y, size += std::fabs(x * y);
        }
        const std::size_t at = g * p.m * p.n + j * p.m + i;
        double right = p.alpha * sum + p.beta * value(c[at]);
        if (p.bias) right += value(bias[i]);
        wrong += !(std::fabs(value(got[at]) - activation(right)) <= tolerance * (size + 1));
      }
    }
  }
  show("wrong", wrong);
}

double from_float(float x) { return x; }
float as_float(double x) { return static_cast<float>(x); }
double from_double(double x) { return x; }
double from_bfloat(std::uint16_t x) { return bfloat(x); }
std::uint16_t as_bfloat(double x) { return to_bfloat(static_cast<float>(x)); }
double from_half(std::uint16_t x) {
  return static_cast<double>(static_cast<float>(__builtin_bit_cast(_Float16, x)));
}
std::uint16_t as_half(double x) {
  return __builtin_bit_cast(std::uint16_t, static_cast<_Float16>(static_cast<float>(x)));
}

void product_float() {
  Product p;
  p.transpose_a = true;
  p.batch = 3;
  p.alpha = 0.5, p.beta = 2;
  check_product<float>(p, 1e-6, from_float, as_float);
}
void product_tf32() {
  Product p;
  p.compute = CUBLAS_COMPUTE_32F_FAST_TF32;
  check_product<float>(p, 1e-3, from_float, as_float);
  check_product<float>(p, 1e-6, from_float, as_float);  // must be off: this is not float32
}
void product_double() {
  Product p;
  p.in = p.out = p.scale = CUDA_R_64F;
  p.compute = CUBLAS_COMPUTE_64F;
  p.transpose_b = true;
  check_product<double>(p, 1e-14, from_double, from_double);
}
void product_halves() {
  Product p;
  p.in = p.out = CUDA_R_16F;
  check_product<std::uint16_t>(p, 1e-3, from_half, as_half);
  p.in = p.out = CUDA_R_16BF;
  check_product<std::uint16_t>(p, 8e-3, from_bfloat, as_bfloat);
}
void product_epilogues() {
  Product p;
  p.epilogue = CUBLASLT_EPILOGUE_RELU_BIAS;
  check_product<float>(p, 1e-6, from_float, as_float, [](double x) { return x > 0 ? x : 0; });
  p.epilogue = CUBLASLT_EPILOGUE_BIAS;
  check_product<float>(p, 1e-6, from_float, as_float);
  p.epilogue = CUBLASLT_EPILOGUE_GELU_BIAS;
  check_product<float>(p, 1e-3, from_float, as_float,
                       [](double x) { return 0.5 * x * std::erfc(-x * 0.7071067811865476); });
}

void product_mistakes() {
  use_device();
  Product types;
  types.in = CUDA_R_16F, types.out = CUDA_R_16BF;
  show("types", types.choose());
  Product narrow;
  narrow.in = narrow.out = narrow.scale = CUDA_R_16F;
  narrow.compute = CUBLAS_COMPUTE_16F;
  show("sums in float16", narrow.choose());
  for (const auto compute : {CUBLAS_COMPUTE_32F_FAST_16F, CUBLAS_COMPUTE_32F_FAST_16BF}) {
    Product fast;
    fast.compute = compute;
    show("factors in 16 bits", fast.choose());
  }
  Product p;
  NEED_LT(p.choose());
  show("needs workspace", p.found.workspaceSize > 0);
  CUdeviceptr workspace = 0;
  NEED(cuMemAlloc(&workspace, 1 << 20));
  const CUdeviceptr a = to_device(std::vector<float>(350)), b = to_device(std::vector<float>(490)),
                    d = to_device(std::vector<float>(35));
  show("no workspace", p.run(a, b, d, 0, 0));
  show("misaligned", p.run(a + 4, b, d, workspace, 1 << 20));
  show("too small", p.run(b, a, d, workspace, 1 << 20));
  alignas(256) static float host[350];
  show("host", p.run(reinterpret_cast<CUdeviceptr>(+host), b, d, workspace, 1 << 20));
  show("right", p.run(a, b, d, workspace, 1 << 20));
  const std::int32_t wrong_size = 1;
  show("attribute", cublasLtMatmulDescSetAttribute(p.description, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                                   &wrong_size, sizeof wrong_size));
  show_error("wait", cuCtxSynchronize());
}

}  // namespace

Table product_scenarios() {
  return {{"product_float", product_float},         {"product_tf32", product_tf32},
          {"product_double", product_double},       {"product_halves", product_halves},
          {"product_epilogues", product_epilogues}, {"product_mistakes", product_mistakes}};
}

}  // namespace scenario
