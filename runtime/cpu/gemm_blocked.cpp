// Products of float32 and float64 by our own blocks: faster than libraries on small matrices, where
// their fixed cost shows, and on float64 with AVX-512.
#include <algorithm>
#include <memory>

#include "runtime/cpu/gemm.h"
#include "runtime/parallel.h"

namespace croton::cpu {
namespace {

// A block of A (kRows x kDepth) stays in the second cache, a panel of B (kDepth x tile) in the
// first, all of B's block (kDepth x kColumns) in the third.
constexpr std::int64_t kDepth = 256;
constexpr std::int64_t kRows = 96;
constexpr std::int64_t kColumns = 2048;

/// The product of a panel of A (depth x rows) and one of B (depth x vectors of columns), both
/// packed, into `out`, row-major.
template <class T>
using Tile = void (*)(std::int64_t depth, const T* a, const T* b, T* out);

template <class T, int kBytes, int kTileRows, int kVectors>
inline __attribute__((always_inline)) void multiply_tile(std::int64_t depth, const T* a, const T* b,
                                                         T* out) {
  typedef T Vector __attribute__((vector_size(kBytes), aligned(alignof(T)), may_alias));
  constexpr int kLanes = kBytes / static_cast<int>(sizeof(T));
  Vector sum[kTileRows][kVectors] = {};
  for (std::int64_t p = 0; p < depth; ++p) {
    Vector y[kVectors];
    for (int v = 0; v < kVectors; ++v) y[v] = *reinterpret_cast<const Vector*>(b + v * kLanes);
    for (int r = 0; r < kTileRows; ++r) {
      const Vector x = a[r] - Vector{};
      for (int v = 0; v < kVectors; ++v) sum[r][v] += x * y[v];
    }
    a += kTileRows;
    b += kVectors * kLanes;
  }
  for (int r = 0; r < kTileRows; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      *reinterpret_cast<Vector*>(out + (r * kVectors + v) * kLanes) = sum[r][v];
    }
  }
}

#if defined(__x86_64__)
template <class T>
__attribute__((target("avx512f,fma"))) void tile_512(std::int64_t depth, const T* a, const T* b,
                                                     T* out) {
  multiply_tile<T, 64, 12, 2>(depth, a, b, out);
}
template <class T>
__attribute__((target("avx2,fma"))) void tile_256(std::int64_t depth, const T* a, const T* b,
                                                  T* out) {
  multiply_tile<T, 32, 6, 2>(depth, a, b, out);
}
#endif
template <class T>
void tile_128(std::int64_t depth, const T* a, const T* b, T* out) {
  multiply_tile<T, 16, 4, 2>(depth, a, b, out);
}

template <class T>
struct Shape2 {
  std::int64_t rows;     ///< of a tile
  std::int64_t columns;  ///< of a tile
  Tile<T> tile;
};

constexpr std::int64_t kMostTile = 12 * 2 * 64;  // bytes

template <class T>
Shape2<T> tile_shape() {
  constexpr auto size = static_cast<std::int64_t>(sizeof(T));
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return {12, 128 / size, tile_512<T>};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return {6, 64 / size, tile_256<T>};
  }
#endif
  return {4, 32 / size, tile_128<T>};
}

std::int64_t rounded(std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit * unit; }

/// A matrix in memory: element (i, j) is at i * row + j * column.
template <class T>
struct View {
  const T* data;
  std::int64_t row;
  std::int64_t column;
};

/// Packs `count` rows of `depth` elements each as panels of `width` rows, element by element; rows
/// that are missing are zeros.
template <class T>
void pack(View<T> m, std::int64_t count, std::int64_t depth, std::int64_t width, T* out) {
  for (std::int64_t first = 0; first < count; first += width) {
    const std::int64_t rows = std::min(width, count - first);
    const T* source = m.data + first * m.row;
    if (m.row == 1 && rows == width) {
      for (std::int64_t p = 0; p < depth; ++p) {
        std::copy_n(source + p * m.column, width, out + p * width);
      }
    } else {
      for (std::int64_t r = 0; r < rows; ++r) {
        const T* from = source + r * m.row;
        for (std::int64_t p = 0; p < depth; ++p) out[p * width + r] = from[p * m.column];
      }
      for (std::int64_t r = rows; r < width; ++r) {
        for (std::int64_t p = 0; p < depth; ++p) out[p * width + r] = T(0);
      }
    }
    out += width * depth;
  }
}

template <class T>
class BlockedGemm final : public PreparedCall {
 public:
  explicit BlockedGemm(const GemmProblem& problem) : p_(problem), shape_(tile_shape<T>()) {
    depth_ = std::min(kDepth, p_.k);
    columns_ = rounded(std::min(kColumns, p_.n), shape_.columns);
    rows_ = rounded(std::min(kRows, p_.m), shape_.rows);
    b_elements_ = depth_ * columns_;
  }

  std::int64_t work() const override { return p_.flop() / (sizeof(T) == 8 ? 8 : 15); }
  std::size_t workspace() const override {
    return static_cast<std::size_t>(b_elements_ + depth_ * rows_) * sizeof(T);
  }

  void run(void* const* operands, void* workspace, int threads, void*) const override {
    const GemmOperands o = operands_of(p_, operands);
    T* packed_b = static_cast<T*>(workspace);
    if (2 * p_.m * p_.n * p_.k < 2 * 96 * 96 * 96) threads = 1;
    for (std::int64_t i = 0; i < p_.batch; ++i) multiply(o, i, packed_b, threads);
  }

 private:
  struct Member {
    View<T> a;  ///< rows of A
    View<T> b;  ///< columns of B
    T* out;
    const T* c;
    const T* bias;
  };

  void multiply(const GemmOperands& o, std::int64_t index, T* packed_b, int threads) const {
    const auto i = static_cast<std::size_t>(index);
    const T* a = static_cast<const T*>(o.a) + p_.a_offset[i];
    const T* b = static_cast<const T*>(o.b) + p_.b_offset[i];
    const std::int64_t place = index * p_.m * p_.n;
    const Member m{p_.transpose_a ? View<T>{a, 1, p_.m} : View<T>{a, p_.k, 1},
                   p_.transpose_b ? View<T>{b, p_.k, 1} : View<T>{b, 1, p_.n},
                   static_cast<T*>(o.out) + place,
                   o.c != nullptr ? static_cast<const T*>(o.c) + place : nullptr,
                   static_cast<const T*>(o.bias)};
    for (std::int64_t j = 0; j < p_.n; j += kColumns) {
      for (std::int64_t p = 0; p < p_.k; p += kDepth) block(m, j, p, packed_b, threads);
    }
  }

  void block(const Member& m, std::int64_t j0, std::int64_t p0, T* packed_b, int threads) const {
    const std::int64_t columns = std::min(kColumns, p_.n - j0);
    const std::int64_t depth = std::min(kDepth, p_.k - p0);
    const std::int64_t panels = (columns + shape_.columns - 1) / shape_.columns;
    const auto pack_b = [&](std::int64_t first, std::int64_t last) {
      const View<T> from{m.b.data + (j0 + first * shape_.columns) * m.b.row + p0 * m.b.column,
                         m.b.row, m.b.column};
      pack(from, std::min(last * shape_.columns, columns) - first * shape_.columns, depth,
           shape_.columns, packed_b + first * shape_.columns * depth);
    };
    const std::int64_t row_blocks = (p_.m + rows_ - 1) / rows_;
    if (threads <= 1) {
      // The workspace has room for one block of A.
      pack_b(0, panels);
      for (std::int64_t r = 0; r < row_blocks; ++r) {
        rows(m, r * rows_, j0, columns, p0, depth, packed_b, packed_b + b_elements_);
      }
      return;
    }
    parallel_for(panels, threads, pack_b);
    parallel_for(row_blocks, threads, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t r = first; r < last; ++r) {
        rows(m, r * rows_, j0, columns, p0, depth, packed_b, own_block());
      }
    });
  }

  /// Room for a block of A; kept by each thread that helped once.
  T* own_block() const {
    constexpr auto size = static_cast<std::size_t>((kRows + 12) * kDepth);
    thread_local std::unique_ptr<T[]> memory(new T[size]);
    return memory.get();
  }

  void rows(const Member& m, std::int64_t i0, std::int64_t j0, std::int64_t columns,
            std::int64_t p0, std::int64_t depth, const T* packed_b, T* packed_a) const {
    const std::int64_t count = std::min(rows_, p_.m - i0);
    pack(View<T>{m.a.data + i0 * m.a.row + p0 * m.a.column, m.a.row, m.a.column}, count, depth,
         shape_.rows, packed_a);
    alignas(64) std::byte buffer[kMostTile];
    T* tile = reinterpret_cast<T*>(buffer);
    for (std::int64_t j = 0; j < columns; j += shape_.columns) {
      for (std::int64_t i = 0; i < count; i += shape_.rows) {
        shape_.tile(depth, packed_a + i * depth, packed_b + j * depth, tile);
        finish(m, tile, i0 + i, std::min(shape_.rows, count - i), j0 + j,
               std::min(shape_.columns, columns - j), p0 == 0, p0 + depth == p_.k);
      }
    }
  }

  /// Adds a tile to the output: the first along the depth starts it, the last ends it.
  void finish(const Member& m, const T* tile, std::int64_t i0, std::int64_t rows, std::int64_t j0,
              std::int64_t columns, bool first, bool last) const {
    const T alpha = static_cast<T>(p_.alpha), beta = static_cast<T>(p_.beta);
    for (std::int64_t r = 0; r < rows; ++r) {
      const T* t = tile + r * shape_.columns;
      const std::int64_t place = (i0 + r) * p_.n + j0;
      T* out = m.out + place;
      if (!first) {
        for (std::int64_t j = 0; j < columns; ++j) out[j] += alpha * t[j];
      } else if (m.c != nullptr) {
        const T* c = m.c + place;
        for (std::int64_t j = 0; j < columns; ++j) out[j] = alpha * t[j] + beta * c[j];
      } else {
        for (std::int64_t j = 0; j < columns; ++j) out[j] = alpha * t[j];
      }
      if (!last) continue;
      if (m.bias != nullptr) {
        for (std::int64_t j = 0; j < columns; ++j) out[j] += m.bias[j0 + j];
      }
      if (p_.relu) {
        for (std::int64_t j = 0; j < columns; ++j) out[j] = out[j] < T(0) ? T(0) : out[j];
      }
    }
  }

  const GemmProblem p_;
  const Shape2<T> shape_;
  std::int64_t depth_ = 0, columns_ = 0, rows_ = 0, b_elements_ = 0;
};

}  // namespace

bool blocks_are_fast() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512f");
#else
  return false;
#endif
}

std::unique_ptr<PreparedCall> blocked_gemm(const GemmProblem& p) {
  if (p.dtype == DType::float32) return std::make_unique<BlockedGemm<float>>(p);
  return std::make_unique<BlockedGemm<double>>(p);
}

}  // namespace croton::cpu
