// Matrix products on CPUs: out = epilogue(alpha * A @ B + beta * C).
//
// Attributes: transpose_a, transpose_b (integers), alpha (default 1), beta (default 0), epilogue
// ("", "bias", "relu", "bias_relu"). Operands: out [.., m, n], A [.., m, k] ([.., k, m] when
// transposed), B [.., k, n] ([.., n, k]), then C, of the shape of out, when beta is not 0, then the
// bias [n]. Leading axes of A and B broadcast to those of out.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/library.h"

namespace croton::cpu {

struct GemmProblem {
  DType dtype = DType::float32;
  std::int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  double alpha = 1, beta = 0;
  bool bias = false, relu = false;
  std::int64_t batch = 1;
  std::vector<std::int64_t> a_offset, b_offset;  ///< in elements, for each member of the batch

  std::int64_t flop() const { return 2 * m * n * k * batch; }
  bool has_c() const { return beta != 0; }
  /// Distance between members of the batch where it is constant (0: all the same), else -1.
  static std::int64_t step(std::span<const std::int64_t> offsets);
};

/// Reads attributes and shapes; `reason` says why they make no sense.
GemmProblem read_gemm(const Attrs& attrs, std::span<const OperandType> operands,
                      std::string& reason);

/// Where the operands are.
struct GemmOperands {
  void* out;
  const void* a;
  const void* b;
  const void* c;
  const void* bias;
};
GemmOperands operands_of(const GemmProblem& problem, void* const* operands);

/// Loops of our own, for any dtype but half precision: integers and bool (and, or).
std::unique_ptr<PreparedCall> plain_gemm(const GemmProblem& problem);
/// oneDNN, for float32 and bfloat16; nullptr when it has nothing fast for the latter.
std::unique_ptr<PreparedCall> onednn_gemm(const GemmProblem& problem);
/// OpenBLAS, for float64.
std::unique_ptr<PreparedCall> blas_gemm(const GemmProblem& problem);
/// Blocks of our own, for float32 and float64.
std::unique_ptr<PreparedCall> blocked_gemm(const GemmProblem& problem);
/// Whether these beat OpenBLAS on this processor.
bool blocks_are_fast();
/// In float32, for float16 and bfloat16.
std::unique_ptr<PreparedCall> widened_gemm(const GemmProblem& problem);

/// The entry of the library table.
extern const LibraryFunction kGemm;

/// beta * C, bias and relu over rows of an output that holds the product, or over zeros when there
/// is none.
template <class T>
void finish_rows(const GemmProblem& p, T* out, const T* c, const T* bias, std::int64_t rows) {
  for (std::int64_t i = 0; i < rows; ++i) {
    T* row = out + i * p.n;
    if (c != nullptr) {
      const T beta = static_cast<T>(p.beta);
      for (std::int64_t j = 0; j < p.n; ++j)
        row[j] = static_cast<T>(row[j] + beta * c[i * p.n + j]);
    }
    if (bias != nullptr) {
      for (std::int64_t j = 0; j < p.n; ++j) row[j] = static_cast<T>(row[j] + bias[j]);
    }
    if (p.relu) {
      // NaN stays: it is not less than 0.
      for (std::int64_t j = 0; j < p.n; ++j) row[j] = row[j] < T(0) ? T(0) : row[j];
    }
  }
}

}  // namespace croton::cpu
