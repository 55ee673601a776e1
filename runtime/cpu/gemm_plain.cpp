#include <algorithm>
#include <cstring>
#include <type_traits>

#include "croton/error.h"
#include "runtime/cpu/gemm.h"
#include "runtime/parallel.h"

namespace croton::cpu {
namespace {

/// Products of integers wrap, as NumPy's do; unsigned arithmetic says so to the compiler.
template <class T>
struct Plain {
  static T multiply_add(T sum, T a, T b) {
    if constexpr (std::is_same_v<T, bool>) {
      return sum || (a && b);
    } else if constexpr (std::is_integral_v<T>) {
      using U = std::make_unsigned_t<T>;
      using W = std::conditional_t<(sizeof(T) < 4), std::uint32_t, U>;
      return static_cast<T>(static_cast<W>(sum) + static_cast<W>(a) * static_cast<W>(b));
    } else {
      return sum + a * b;
    }
  }
};

template <class T>
class PlainGemm final : public PreparedCall {
 public:
  explicit PlainGemm(const GemmProblem& problem) : p_(problem) {}

  std::int64_t work() const override { return p_.flop() * (sizeof(T) >= 4 ? 2 : 1); }

  void run(void* const* operands, void*, int threads, void*) const override {
    const GemmOperands o = operands_of(p_, operands);
    const std::int64_t rows = p_.m * p_.batch;
    if (p_.flop() < 200'000) threads = 1;
    parallel_for(rows, threads, [&](std::int64_t first, std::int64_t last) {
      while (first < last) {
        const std::int64_t member = first / p_.m, row = first % p_.m;
        const std::int64_t count = std::min(last - first, p_.m - row);
        run_rows(o, member, row, count);
        first += count;
      }
    });
  }

 private:
  void run_rows(const GemmOperands& o, std::int64_t member, std::int64_t row,
                std::int64_t count) const {
    const auto i = static_cast<std::size_t>(member);
    const T* a = static_cast<const T*>(o.a) + p_.a_offset[i];
    const T* b = static_cast<const T*>(o.b) + p_.b_offset[i];
    const std::int64_t place = (member * p_.m + row) * p_.n;
    T* out = static_cast<T*>(o.out) + place;
    const T* c = o.c != nullptr ? static_cast<const T*>(o.c) + place : nullptr;
    for (std::int64_t r = 0; r < count; ++r) product_row(a, b, row + r, out + r * p_.n);
    if (p_.alpha != 1) {
      const T alpha = static_cast<T>(p_.alpha);
      for (std::int64_t e = 0; e < count * p_.n; ++e) out[e] = static_cast<T>(out[e] * alpha);
    }
    finish_rows(p_, out, c, static_cast<const T*>(o.bias), count);
  }

  void product_row(const T* a, const T* b, std::int64_t row, T* out) const {
    // Columns in blocks, so that a long row of the output stays in the first cache.
    constexpr std::int64_t kColumns = 1024;
    for (std::int64_t j0 = 0; j0 < p_.n; j0 += kColumns) {
      const std::int64_t columns = std::min(kColumns, p_.n - j0);
      T* o = out + j0;
      std::fill_n(o, columns, T(0));
      for (std::int64_t p = 0; p < p_.k; ++p) {
        const T x = p_.transpose_a ? a[p * p_.m + row] : a[row * p_.k + p];
        if (p_.transpose_b) {
          const T* y = b + j0 * p_.k + p;
          for (std::int64_t j = 0; j < columns; ++j) {
            o[j] = Plain<T>::multiply_add(o[j], x, y[j * p_.k]);
          }
        } else {
          const T* y = b + p * p_.n + j0;
          for (std::int64_t j = 0; j < columns; ++j) {
            o[j] = Plain<T>::multiply_add(o[j], x, y[j]);
          }
        }
      }
    }
  }

  const GemmProblem p_;
};

/// Rounds operands up to float32, and the result down.
template <class T>
class WidenedGemm final : public PreparedCall {
 public:
  explicit WidenedGemm(const GemmProblem& problem) : p_(problem) {
    GemmProblem wide = p_;
    wide.dtype = DType::float32;
    const bool empty = p_.m == 0 || p_.n == 0 || p_.k == 0 || p_.batch == 0;
    inner_ = empty ? plain_gemm(wide) : onednn_gemm(wide);
    const auto extent = [](const std::vector<std::int64_t>& offsets, std::int64_t matrix) {
      return offsets.empty() ? 0 : *std::max_element(offsets.begin(), offsets.end()) + matrix;
    };
    const std::int64_t out = p_.batch * p_.m * p_.n;
    counts_ = {out, extent(p_.a_offset, p_.m * p_.k), extent(p_.b_offset, p_.k * p_.n)};
    if (p_.has_c()) counts_.push_back(out);
    if (p_.bias) counts_.push_back(p_.n);
    for (const std::int64_t n : counts_) floats_ += (static_cast<std::size_t>(n) + 15) / 16 * 16;
  }

  std::size_t workspace() const override { return floats_ * sizeof(float) + inner_->workspace(); }
  std::int64_t work() const override { return inner_->work(); }

  void run(void* const* operands, void* workspace, int threads, void* queue) const override {
    auto* next = static_cast<float*>(workspace);
    void* wide[5];
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      wide[i] = next;
      if (i > 0) {
        const T* source = static_cast<const T*>(operands[i]);
        for (std::int64_t e = 0; e < counts_[i]; ++e) next[e] = static_cast<float>(source[e]);
      }
      next += (static_cast<std::size_t>(counts_[i]) + 15) / 16 * 16;
    }
    inner_->run(wide, next, threads, queue);
    const float* result = static_cast<const float*>(wide[0]);
    T* out = static_cast<T*>(operands[0]);
    for (std::int64_t e = 0; e < counts_[0]; ++e) out[e] = T(result[e]);
  }

 private:
  const GemmProblem p_;
  std::unique_ptr<PreparedCall> inner_;
  std::vector<std::int64_t> counts_;
  std::size_t floats_ = 0;
};

}  // namespace

std::unique_ptr<PreparedCall> plain_gemm(const GemmProblem& p) {
  switch (p.dtype) {
    case DType::boolean:
      return std::make_unique<PlainGemm<bool>>(p);
    case DType::int8:
      return std::make_unique<PlainGemm<std::int8_t>>(p);
    case DType::int16:
      return std::make_unique<PlainGemm<std::int16_t>>(p);
    case DType::int32:
      return std::make_unique<PlainGemm<std::int32_t>>(p);
    case DType::int64:
      return std::make_unique<PlainGemm<std::int64_t>>(p);
    case DType::uint8:
      return std::make_unique<PlainGemm<std::uint8_t>>(p);
    case DType::uint16:
      return std::make_unique<PlainGemm<std::uint16_t>>(p);
    case DType::uint32:
      return std::make_unique<PlainGemm<std::uint32_t>>(p);
    case DType::uint64:
      return std::make_unique<PlainGemm<std::uint64_t>>(p);
    case DType::float32:
      return std::make_unique<PlainGemm<float>>(p);
    case DType::float64:
      return std::make_unique<PlainGemm<double>>(p);
    case DType::float16:
    case DType::bfloat16:
      break;
  }
  throw InternalError("internal error: half precision has no plain product");
}

std::unique_ptr<PreparedCall> widened_gemm(const GemmProblem& p) {
  if (p.dtype == DType::float16) return std::make_unique<WidenedGemm<float16>>(p);
  return std::make_unique<WidenedGemm<bfloat16>>(p);
}

}  // namespace croton::cpu
