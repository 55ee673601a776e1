#include <cblas.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <mutex>

#include "croton/error.h"
#include "runtime/cpu/gemm.h"
#include "runtime/fork.h"
#include "runtime/parallel.h"

namespace croton::cpu {
namespace {

class BlasGemm final : public PreparedCall {
 public:
  explicit BlasGemm(const GemmProblem& problem) : p_(problem) {}

  std::int64_t work() const override { return p_.flop() / 6; }

  void run(void* const* operands, void*, int threads, void*) const override {
    const GemmOperands o = operands_of(p_, operands);
    const bool serial = 2 * p_.m * p_.n * p_.k < 2 * 96 * 96 * 96;
    auto* out = static_cast<double*>(o.out);
    const std::int64_t matrix = p_.m * p_.n;
    const auto elements = static_cast<std::size_t>(matrix * p_.batch);
    if (o.c != nullptr) std::memcpy(out, o.c, elements * sizeof(double));
    {
      const std::lock_guard hold(blas_mutex());
      const LibraryThreads use(serial ? 1 : threads);
      for (std::int64_t i = 0; i < p_.batch; ++i) multiply(o, i, out + i * matrix);
    }
    if (!p_.bias && !p_.relu) return;
    const auto* bias = static_cast<const double*>(o.bias);
    parallel_for(p_.m * p_.batch, serial ? 1 : threads, [&](std::int64_t first, std::int64_t last) {
      finish_rows<double>(p_, out + first * p_.n, nullptr, bias, last - first);
    });
  }

 private:
  void multiply(const GemmOperands& o, std::int64_t member, double* out) const {
    const auto i = static_cast<std::size_t>(member);
    const double* a = static_cast<const double*>(o.a) + p_.a_offset[i];
    const double* b = static_cast<const double*>(o.b) + p_.b_offset[i];
    // beta 0 makes BLAS overwrite what is there, NaN included.
    cblas_dgemm(
        CblasRowMajor, p_.transpose_a ? CblasTrans : CblasNoTrans,
        p_.transpose_b ? CblasTrans : CblasNoTrans, static_cast<int>(p_.m), static_cast<int>(p_.n),
        static_cast<int>(p_.k), p_.alpha, a, static_cast<int>(p_.transpose_a ? p_.m : p_.k), b,
        static_cast<int>(p_.transpose_b ? p_.k : p_.n), p_.beta, out, static_cast<int>(p_.n));
  }

  const GemmProblem p_;
};

}  // namespace

std::unique_ptr<PreparedCall> blas_gemm(const GemmProblem& p) {
  constexpr std::int64_t kMost = std::numeric_limits<int>::max();
  if (std::max({p.m, p.n, p.k}) > kMost) return plain_gemm(p);
  return std::make_unique<BlasGemm>(p);
}

}  // namespace croton::cpu
