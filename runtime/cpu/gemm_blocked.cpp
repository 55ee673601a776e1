// Products of float32 and float64 by our own blocks: without a library's fixed cost on tiny
// matrices, and on large ones of float64 where there is AVX-512 as fast as OpenBLAS, without the
// lock under which OpenBLAS runs.
#include <algorithm>
#include <memory>

#include "runtime/cpu/gemm.h"
#include "runtime/parallel.h"
#include "runtime/per_thread.h"

namespace croton::cpu {
namespace {

#define CROTON_INLINE inline __attribute__((always_inline))

// A block of A (rows x kDepth) stays in the second cache, a panel of B (kDepth x tile) in the
// first, all of B's block (kDepth x kColumns) in the third.
constexpr std::int64_t kDepth = 256;
constexpr std::int64_t kRows = 192;
constexpr std::int64_t kColumns = 2048;
constexpr std::int64_t kMostTileRows = 12;
constexpr std::int64_t kMostTileBytes = kMostTileRows * 2 * 64;

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
CROTON_INLINE void pack(View<T> m, std::int64_t count, std::int64_t depth, std::int64_t width,
                        T* out) {
  for (std::int64_t first = 0; first < count; first += width) {
    const std::int64_t rows = std::min(width, count - first);
    const T* source = m.data + first * m.row;
    if (m.row == 1) {
      for (std::int64_t p = 0; p < depth; ++p) {
        T* to = out + p * width;
        for (std::int64_t r = 0; r < rows; ++r) to[r] = source[p * m.column + r];
        for (std::int64_t r = rows; r < width; ++r) to[r] = T(0);
      }
    } else {
      // In squares of a cache line, so that both sides are used whole.
      constexpr std::int64_t kLine = 64 / static_cast<std::int64_t>(sizeof(T));
      for (std::int64_t p0 = 0; p0 < depth; p0 += kLine) {
        const std::int64_t stop = std::min(p0 + kLine, depth);
        for (std::int64_t r = 0; r < rows; ++r) {
          const T* from = source + r * m.row;
          for (std::int64_t p = p0; p < stop; ++p) out[p * width + r] = from[p * m.column];
        }
        for (std::int64_t r = rows; r < width; ++r) {
          for (std::int64_t p = p0; p < stop; ++p) out[p * width + r] = T(0);
        }
      }
    }
    out += width * depth;
  }
}

/// The product of a panel of A (depth x rows) and one of B (depth x vectors of columns), both
/// packed, into `out`, row-major.
template <class T, int kBytes, int kTileRows>
CROTON_INLINE void multiply_tile(std::int64_t depth, const T* a, const T* b, T* out) {
  typedef T Vector __attribute__((vector_size(kBytes), aligned(alignof(T)), may_alias));
  constexpr int kLanes = kBytes / static_cast<int>(sizeof(T));
  Vector left[kTileRows] = {}, right[kTileRows] = {};
  for (std::int64_t p = 0; p < depth; ++p) {
    const Vector y = *reinterpret_cast<const Vector*>(b);
    const Vector z = *reinterpret_cast<const Vector*>(b + kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < kTileRows; ++r) {
      const Vector x = a[r] - Vector{};
      left[r] += x * y;
      right[r] += x * z;
    }
    a += kTileRows;
    b += 2 * kLanes;
  }
#pragma GCC unroll 16
  for (int r = 0; r < kTileRows; ++r) {
    *reinterpret_cast<Vector*>(out + 2 * r * kLanes) = left[r];
    *reinterpret_cast<Vector*>(out + (2 * r + 1) * kLanes) = right[r];
  }
}

/// A block of rows of the output, over some columns and a part of the depth.
template <class T>
struct RowBlock {
  View<T> a;  ///< rows of A from the first of the block
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t depth;
  const T* packed_b;
  T* packed_a;          ///< room
  T* out;               ///< first row and column of the block
  const T* c;           ///< the same in C, or null
  const T* bias;        ///< from the first column, or null
  std::int64_t stride;  ///< of rows of out and C
  T alpha, beta;
  bool first, last;  ///< part of the depth
  bool relu;
};

/// Adds a tile to the output: the first part of the depth starts it, the last ends it.
template <class T>
CROTON_INLINE void finish(const RowBlock<T>& k, const T* tile, std::int64_t width, std::int64_t i0,
                          std::int64_t rows, std::int64_t j0, std::int64_t columns) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const T* t = tile + r * width;
    const std::int64_t place = (i0 + r) * k.stride + j0;
    T* out = k.out + place;
    if (!k.first) {
      for (std::int64_t j = 0; j < columns; ++j) out[j] += k.alpha * t[j];
    } else if (k.c != nullptr) {
      for (std::int64_t j = 0; j < columns; ++j) out[j] = k.alpha * t[j] + k.beta * k.c[place + j];
    } else {
      for (std::int64_t j = 0; j < columns; ++j) out[j] = k.alpha * t[j];
    }
    if (!k.last) continue;
    if (k.bias != nullptr) {
      for (std::int64_t j = 0; j < columns; ++j) out[j] += k.bias[j0 + j];
    }
    if (k.relu) {
      for (std::int64_t j = 0; j < columns; ++j) out[j] = out[j] < T(0) ? T(0) : out[j];
    }
  }
}

/// Fetches the part of the output that a tile goes to, while the tile is computed: rows of large
/// matrices lie in pages and cache sets of their own, where no hardware foresees them.
template <class T>
CROTON_INLINE void expect(const RowBlock<T>& k, std::int64_t i0, std::int64_t rows, std::int64_t j0,
                          std::int64_t width) {
  constexpr std::int64_t kLine = 64 / static_cast<std::int64_t>(sizeof(T));
  for (std::int64_t r = 0; r < rows; ++r) {
    const T* row = k.out + (i0 + r) * k.stride + j0;
    for (std::int64_t j = 0; j < width; j += kLine) __builtin_prefetch(row + j, 1);
  }
}

/// Fetches a share of B's next panel into the second cache.
template <class T>
CROTON_INLINE void expect_panel(const T* panel, std::int64_t elements, std::int64_t tile,
                                std::int64_t tiles) {
  constexpr std::int64_t kLine = 64 / static_cast<std::int64_t>(sizeof(T));
  const std::int64_t share = (elements / kLine + tiles - 1) / tiles * kLine;
  for (std::int64_t i = 0; i < share; i += kLine)
    __builtin_prefetch(panel + tile * share + i, 0, 2);
}

template <class T, int kBytes, int kTileRows>
CROTON_INLINE void row_block(const RowBlock<T>& k) {
  constexpr std::int64_t kWidth = 2 * kBytes / static_cast<std::int64_t>(sizeof(T));
  pack(k.a, k.rows, k.depth, kTileRows, k.packed_a);
  alignas(64) std::byte buffer[kMostTileBytes];
  T* tile = reinterpret_cast<T*>(buffer);
  for (std::int64_t j = 0; j < k.columns; j += kWidth) {
    for (std::int64_t i = 0; i < k.rows; i += kTileRows) {
      const std::int64_t rows = std::min<std::int64_t>(kTileRows, k.rows - i);
      expect(k, i, rows, j, std::min(kWidth, k.columns - j));
      expect_panel(k.packed_b + (j + kWidth) * k.depth, kWidth * k.depth, i / kTileRows,
                   (k.rows + kTileRows - 1) / kTileRows);
      multiply_tile<T, kBytes, kTileRows>(k.depth, k.packed_a + i * k.depth,
                                          k.packed_b + j * k.depth, tile);
      // Full tiles, of a width that the compiler knows, are most of the work.
      if (k.columns - j >= kWidth) {
        finish(k, tile, kWidth, i, rows, j, kWidth);
      } else {
        finish(k, tile, kWidth, i, rows, j, k.columns - j);
      }
    }
  }
}

/// How one kind of processor does it.
template <class T>
struct Way {
  std::int64_t rows;     ///< of a tile
  std::int64_t columns;  ///< of a tile
  void (*block)(const RowBlock<T>&);
  void (*pack_b)(View<T>, std::int64_t count, std::int64_t depth, std::int64_t width, T* out);
};

#define CROTON_WAY(name, bytes, rows, ...)                                             \
  template <class T>                                                                   \
  __VA_ARGS__ void block_##name(const RowBlock<T>& k) {                                \
    row_block<T, bytes, rows>(k);                                                      \
  }                                                                                    \
  template <class T>                                                                   \
  __VA_ARGS__ void pack_##name(View<T> m, std::int64_t count, std::int64_t depth,      \
                               std::int64_t width, T* out) {                           \
    pack(m, count, depth, width, out);                                                 \
  }                                                                                    \
  template <class T>                                                                   \
  constexpr Way<T> kWay_##name{rows, 2 * bytes / static_cast<std::int64_t>(sizeof(T)), \
                               block_##name<T>, pack_##name<T>};

#if defined(__x86_64__)
CROTON_WAY(avx512, 64, 12, __attribute__((target("avx512f,fma,prefer-vector-width=512"))))
CROTON_WAY(avx2, 32, 6, __attribute__((target("avx2,fma"))))
#endif
CROTON_WAY(plain, 16, 4)

template <class T>
Way<T> best_way() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return kWay_avx512<T>;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return kWay_avx2<T>;
#endif
  return kWay_plain<T>;
}

std::int64_t rounded(std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit * unit; }

template <class T>
class BlockedGemm final : public PreparedCall {
 public:
  explicit BlockedGemm(const GemmProblem& problem) : p_(problem), way_(best_way<T>()) {
    depth_ = std::min(kDepth, p_.k);
    b_elements_ = depth_ * rounded(std::min(kColumns, p_.n), way_.columns);
  }

  std::int64_t work() const override { return p_.flop() / (sizeof(T) == 8 ? 8 : 15); }
  std::size_t workspace() const override {
    return static_cast<std::size_t>(b_elements_ + depth_ * (kRows + kMostTileRows)) * sizeof(T);
  }

  void run(void* const* operands, void* workspace, int threads, void*) const override {
    const GemmOperands o = operands_of(p_, operands);
    if (2 * p_.m * p_.n * p_.k < 2 * 96 * 96 * 96) threads = 1;
    for (std::int64_t i = 0; i < p_.batch; ++i) {
      multiply(o, i, static_cast<T*>(workspace), threads);
    }
  }

 private:
  void multiply(const GemmOperands& o, std::int64_t index, T* packed_b, int threads) const {
    const auto i = static_cast<std::size_t>(index);
    const T* a = static_cast<const T*>(o.a) + p_.a_offset[i];
    const T* b = static_cast<const T*>(o.b) + p_.b_offset[i];
    const std::int64_t place = index * p_.m * p_.n;
    const View<T> rows = p_.transpose_a ? View<T>{a, 1, p_.m} : View<T>{a, p_.k, 1};
    const View<T> columns = p_.transpose_b ? View<T>{b, p_.k, 1} : View<T>{b, 1, p_.n};
    for (std::int64_t j = 0; j < p_.n; j += kColumns) {
      for (std::int64_t p = 0; p < p_.k; p += kDepth) {
        RowBlock<T> block{};
        block.a = {rows.data + p * rows.column, rows.row, rows.column};
        block.columns = std::min(kColumns, p_.n - j);
        block.depth = std::min(kDepth, p_.k - p);
        block.packed_b = packed_b;
        block.out = static_cast<T*>(o.out) + place + j;
        block.c = o.c != nullptr ? static_cast<const T*>(o.c) + place + j : nullptr;
        block.bias = o.bias != nullptr ? static_cast<const T*>(o.bias) + j : nullptr;
        block.stride = p_.n;
        block.alpha = static_cast<T>(p_.alpha);
        block.beta = static_cast<T>(p_.beta);
        block.first = p == 0;
        block.last = p + block.depth == p_.k;
        block.relu = p_.relu;
        const View<T> from{columns.data + j * columns.row + p * columns.column, columns.row,
                           columns.column};
        run_block(block, from, packed_b, threads);
      }
    }
  }

  void run_block(const RowBlock<T>& block, View<T> b, T* packed_b, int threads) const {
    const std::int64_t width = way_.columns;
    const auto pack_panels = [&](std::int64_t first, std::int64_t last) {
      const View<T> from{b.data + first * width * b.row, b.row, b.column};
      way_.pack_b(from, std::min(last * width, block.columns) - first * width, block.depth, width,
                  packed_b + first * width * block.depth);
    };
    const std::int64_t panels = (block.columns + width - 1) / width;
    // As many blocks for each thread, and no bigger than fits the cache.
    const std::int64_t blocks = rounded((p_.m + kRows - 1) / kRows, std::max(threads, 1));
    const std::int64_t rows = rounded((p_.m + blocks - 1) / blocks, way_.rows);
    const auto run_rows = [&](std::int64_t index, T* room) {
      RowBlock<T> mine = block;
      const std::int64_t i = index * rows;
      if (i >= p_.m) return;
      mine.rows = std::min(rows, p_.m - i);
      mine.a.data += i * mine.a.row;
      mine.packed_a = room;
      mine.out += i * mine.stride;
      if (mine.c != nullptr) mine.c += i * mine.stride;
      way_.block(mine);
    };
    if (threads <= 1) {
      pack_panels(0, panels);
      for (std::int64_t i = 0; i < blocks; ++i) run_rows(i, packed_b + b_elements_);
      return;
    }
    parallel_for(panels, threads, pack_panels);
    parallel_for(blocks, threads, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) run_rows(i, own_room());
    });
  }

  /// Room for a block of A; kept by each thread that helped once.
  static T* own_room() {
    constexpr auto size = static_cast<std::size_t>((kRows + kMostTileRows) * kDepth);
    auto& memory = per_thread<std::unique_ptr<T[]>, struct Room>();
    if (!memory) memory.reset(new T[size]);
    return memory.get();
  }

  const GemmProblem p_;
  const Way<T> way_;
  std::int64_t depth_ = 0, b_elements_ = 0;
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
