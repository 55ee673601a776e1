// What a product means.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "tests/cuda_emulator/cublaslt_objects.h"

namespace emulator {
namespace {

float from_half(std::uint16_t bits) {
  return static_cast<float>(__builtin_bit_cast(_Float16, bits));
}
float from_bfloat(std::uint16_t bits) {
  return __builtin_bit_cast(float, static_cast<std::uint32_t>(bits) << 16);
}
std::uint16_t to_bfloat(float x) {
  const auto bits = __builtin_bit_cast(std::uint32_t, x);
  if (x != x) return static_cast<std::uint16_t>(bits >> 16 | 0x40);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// 10 bits of fraction, halves away from zero.
float rounded_to_tf32(float x) {
  if (!std::isfinite(x)) return x;
  return __builtin_bit_cast(float, (__builtin_bit_cast(std::uint32_t, x) + 0x1000) & ~0x1fffu);
}

double load(const void* base, cudaDataType_t type, std::int64_t at) {
  switch (type) {
    case CUDA_R_16F:
      return from_half(static_cast<const std::uint16_t*>(base)[at]);
    case CUDA_R_16BF:
      return from_bfloat(static_cast<const std::uint16_t*>(base)[at]);
    case CUDA_R_64F:
      return static_cast<const double*>(base)[at];
    default:
      return static_cast<const float*>(base)[at];
  }
}

void store(void* base, cudaDataType_t type, std::int64_t at, double value) {
  const auto narrow = static_cast<float>(value);
  switch (type) {
    case CUDA_R_16F:
      static_cast<std::uint16_t*>(base)[at] =
          __builtin_bit_cast(std::uint16_t, static_cast<_Float16>(narrow));
      return;
    case CUDA_R_16BF:
      static_cast<std::uint16_t*>(base)[at] = to_bfloat(narrow);
      return;
    case CUDA_R_64F:
      static_cast<double*>(base)[at] = value;
      return;
    default:
      static_cast<float*>(base)[at] = narrow;
  }
}

// op(A) by rows.
std::vector<double> packed(const LtMatrix& x, const void* base, bool transpose, bool tf32,
                           std::int64_t rows, std::int64_t columns) {
  std::vector<double> values(static_cast<std::size_t>(rows * columns));
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      const double v = load(base, x.type, transpose ? x.at(j, i) : x.at(i, j));
      values[static_cast<std::size_t>(i * columns + j)] =
          tf32 ? rounded_to_tf32(static_cast<float>(v)) : v;
    }
  }
  return values;
}

double activated(double x, int epilogue) {
  // What becomes of NaN is nowhere written: the worst.
  if (epilogue & CUBLASLT_EPILOGUE_RELU) return x > 0 ? x : 0;
  if (epilogue & CUBLASLT_EPILOGUE_GELU) {
    return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
  }
  return x;
}

const char* moved(const void* base, std::int64_t elements, cudaDataType_t type) {
  return static_cast<const char*>(base) + elements * static_cast<std::int64_t>(lt_size(type));
}

void multiply_member(const LtProduct& p, const LtOperands& o, std::int64_t member) {
  const auto a =
      packed(p.a, moved(o.a, member * p.a.step, p.a.type), p.transpose_a, p.tf32, p.m, p.k);
  const auto b =
      packed(p.b, moved(o.b, member * p.b.step, p.b.type), p.transpose_b, p.tf32, p.k, p.n);
  const char* c = moved(o.c, member * p.c.step, p.c.type);
  char* d = const_cast<char*>(moved(o.d, member * p.d.step, p.d.type));
  const char* bias = p.bias ? moved(p.bias, member * p.bias_step, p.bias_type) : nullptr;
  std::vector<double> row(static_cast<std::size_t>(p.n));
  for (std::int64_t i = 0; i < p.m; ++i) {
    std::fill(row.begin(), row.end(), 0.0);
    for (std::int64_t l = 0; l < p.k; ++l) {
      const double factor = a[static_cast<std::size_t>(i * p.k + l)];
      const double* line = b.data() + l * p.n;
      for (std::int64_t j = 0; j < p.n; ++j) row[static_cast<std::size_t>(j)] += factor * line[j];
    }
    for (std::int64_t j = 0; j < p.n; ++j) {
      double value = o.alpha * row[static_cast<std::size_t>(j)];
      if (o.beta != 0) value += o.beta * load(c, p.c.type, p.c.at(i, j));
      if (bias) value += load(bias, p.bias_type, i);
      store(d, p.d.type, p.d.at(i, j), activated(value, p.epilogue));
    }
  }
}

}  // namespace

std::size_t lt_size(cudaDataType_t type) {
  return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2;
}

std::int64_t LtMatrix::extent() const {
  if (rows == 0 || columns == 0) return 0;
  return at(rows - 1, columns - 1) + 1;
}

void multiply(const LtProduct& product, const LtOperands& operands) {
  for (std::int64_t i = 0; i < product.batch; ++i) multiply_member(product, operands, i);
}

}  // namespace emulator
