// Quicksort: a vector is split by a comparison with the pivot into lanes that go to the left and
// lanes that go to the right. Few keys are sorted in registers, by a bitonic network.
#include "runtime/cpu/sort_wide.h"

#include "croton/error.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "runtime/cpu/sort_keys.h"

#define CROTON_WIDE __attribute__((target("avx512f")))

namespace croton::cpu {
namespace {

/// 16 keys of 32 bits.
struct Vector32 {
  using Key = std::uint32_t;
  using Mask = __mmask16;
  using Value = __m512i;
  static constexpr std::size_t kLanes = 16;
  /// Forms with masks leave nothing undefined, which GCC 12 warns of.
  static constexpr Mask kAll = 0xFFFF;

  CROTON_WIDE static Value load(const Key* p) { return _mm512_loadu_si512(p); }
  /// Lanes that the mask leaves out are the largest key.
  CROTON_WIDE static Value load(const Key* p, Mask mask) {
    return _mm512_mask_loadu_epi32(_mm512_set1_epi32(-1), mask, p);
  }
  CROTON_WIDE static Value all(Key key) { return _mm512_set1_epi32(static_cast<int>(key)); }
  CROTON_WIDE static Mask less(Value a, Value b) { return _mm512_cmplt_epu32_mask(a, b); }
  CROTON_WIDE static Mask less_equal(Value a, Value b) { return _mm512_cmple_epu32_mask(a, b); }
  CROTON_WIDE static Value least(Value a, Value b) { return _mm512_maskz_min_epu32(kAll, a, b); }
  CROTON_WIDE static Value most(Value a, Value b) { return _mm512_maskz_max_epu32(kAll, a, b); }
  /// The larger ones in the lanes of the mask, what `else_` has in the others.
  CROTON_WIDE static Value most(Value else_, Mask mask, Value a, Value b) {
    return _mm512_mask_max_epu32(else_, mask, a, b);
  }
  /// Lanes whose numbers differ in that bit change places.
  template <int kBit>
  CROTON_WIDE static Value swapped(Value v) {
    return _mm512_maskz_permutexvar_epi32(
        kAll,
        _mm512_set_epi32(15 ^ kBit, 14 ^ kBit, 13 ^ kBit, 12 ^ kBit, 11 ^ kBit, 10 ^ kBit, 9 ^ kBit,
                         8 ^ kBit, 7 ^ kBit, 6 ^ kBit, 5 ^ kBit, 4 ^ kBit, 3 ^ kBit, 2 ^ kBit,
                         1 ^ kBit, kBit),
        v);
  }
  CROTON_WIDE static Value packed(Mask mask, Value v) {
    return _mm512_maskz_compress_epi32(mask, v);
  }
  CROTON_WIDE static void store(Key* p, Value v) { _mm512_storeu_si512(p, v); }
  CROTON_WIDE static void store(Key* p, Mask mask, Value v) {
    _mm512_mask_storeu_epi32(p, mask, v);
  }
};

/// 8 keys of 64 bits.
struct Vector64 {
  using Key = std::uint64_t;
  using Mask = __mmask8;
  using Value = __m512i;
  static constexpr std::size_t kLanes = 8;
  static constexpr Mask kAll = 0xFF;

  CROTON_WIDE static Value load(const Key* p) { return _mm512_loadu_si512(p); }
  CROTON_WIDE static Value load(const Key* p, Mask mask) {
    return _mm512_mask_loadu_epi64(_mm512_set1_epi64(-1), mask, p);
  }
  CROTON_WIDE static Value all(Key key) { return _mm512_set1_epi64(static_cast<long long>(key)); }
  CROTON_WIDE static Mask less(Value a, Value b) { return _mm512_cmplt_epu64_mask(a, b); }
  CROTON_WIDE static Mask less_equal(Value a, Value b) { return _mm512_cmple_epu64_mask(a, b); }
  CROTON_WIDE static Value least(Value a, Value b) { return _mm512_maskz_min_epu64(kAll, a, b); }
  CROTON_WIDE static Value most(Value a, Value b) { return _mm512_maskz_max_epu64(kAll, a, b); }
  /// The larger ones in the lanes of the mask, what `else_` has in the others.
  CROTON_WIDE static Value most(Value else_, Mask mask, Value a, Value b) {
    return _mm512_mask_max_epu64(else_, mask, a, b);
  }
  /// Lanes whose numbers differ in that bit change places.
  template <int kBit>
  CROTON_WIDE static Value swapped(Value v) {
    return _mm512_maskz_permutexvar_epi64(kAll,
                                          _mm512_set_epi64(7 ^ kBit, 6 ^ kBit, 5 ^ kBit, 4 ^ kBit,
                                                           3 ^ kBit, 2 ^ kBit, 1 ^ kBit, kBit),
                                          v);
  }
  CROTON_WIDE static Value packed(Mask mask, Value v) {
    return _mm512_maskz_compress_epi64(mask, v);
  }
  CROTON_WIDE static void store(Key* p, Value v) { _mm512_storeu_si512(p, v); }
  CROTON_WIDE static void store(Key* p, Mask mask, Value v) {
    _mm512_mask_storeu_epi64(p, mask, v);
  }
};

template <class V>
constexpr typename V::Mask first_lanes(std::size_t n) {
  return static_cast<typename V::Mask>(n >= V::kLanes ? ~0u : (1u << n) - 1);
}

/// The lanes of register `i` that get the larger key where keys kStep apart are compared, in ranges
/// of kRange by turns up and down.
template <class V>
constexpr typename V::Mask larger_lanes(std::size_t i, std::size_t range, std::size_t step) {
  unsigned mask = 0;
  for (std::size_t lane = 0; lane < V::kLanes; ++lane) {
    const std::size_t at = i * V::kLanes + lane;
    if (((at & step) != 0) != ((at & range) != 0)) mask |= 1u << lane;
  }
  return static_cast<typename V::Mask>(mask);
}

/// The stages of the network from this one on.
template <class V, std::size_t kRegisters, std::size_t kRange, std::size_t kStep>
CROTON_WIDE [[gnu::always_inline]] inline void network(typename V::Value* r) {
  if constexpr (kStep >= V::kLanes) {
    constexpr std::size_t kApart = kStep / V::kLanes;
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kRegisters; ++i) {
      if ((i & kApart) != 0) continue;
      const typename V::Value low = V::least(r[i], r[i + kApart]);
      const typename V::Value high = V::most(r[i], r[i + kApart]);
      const bool up = (i * V::kLanes & kRange) == 0;
      r[i] = up ? low : high;
      r[i + kApart] = up ? high : low;
    }
  } else {
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kRegisters; ++i) {
      const typename V::Value other = V::template swapped<static_cast<int>(kStep)>(r[i]);
      r[i] = V::most(V::least(r[i], other), larger_lanes<V>(i, kRange, kStep), r[i], other);
    }
  }
  if constexpr (kStep > 1) {
    network<V, kRegisters, kRange, kStep / 2>(r);
  } else if constexpr (kRange < kRegisters * V::kLanes) {
    network<V, kRegisters, 2 * kRange, kRange>(r);
  }
}

template <class V, std::size_t kRegisters>
CROTON_WIDE void sort_registers(typename V::Key* keys, std::size_t n) {
  const auto lanes_of = [n](std::size_t i) {
    return n <= i * V::kLanes ? typename V::Mask{0} : first_lanes<V>(n - i * V::kLanes);
  };
  typename V::Value r[kRegisters];
#pragma GCC unroll 8
  for (std::size_t i = 0; i < kRegisters; ++i) r[i] = V::load(keys + i * V::kLanes, lanes_of(i));
  network<V, kRegisters, 2, 1>(r);
#pragma GCC unroll 8
  for (std::size_t i = 0; i < kRegisters; ++i) V::store(keys + i * V::kLanes, lanes_of(i), r[i]);
}

template <class V>
constexpr std::size_t kFew = 8 * V::kLanes;

template <class V>
CROTON_WIDE void sort_few_wide(typename V::Key* keys, std::size_t n) {
  if (n <= V::kLanes) return sort_registers<V, 1>(keys, n);
  if (n <= 2 * V::kLanes) return sort_registers<V, 2>(keys, n);
  if (n <= 4 * V::kLanes) return sort_registers<V, 4>(keys, n);
  sort_registers<V, 8>(keys, n);
}

/// Moves keys that are less than the pivot (or equal, where kEqual) to the front and gives their
/// number.
template <class V, bool kEqual>
CROTON_WIDE std::size_t split(typename V::Key* keys, typename V::Key* other, std::size_t n,
                              typename V::Key pivot) {
  const typename V::Value limit = V::all(pivot);
  std::size_t left = 0, right = 0, k = 0;
  for (; k + V::kLanes <= n; k += V::kLanes) {
    const typename V::Value v = V::load(keys + k);
    const typename V::Mask mask = kEqual ? V::less_equal(v, limit) : V::less(v, limit);
    const auto count = static_cast<std::size_t>(std::popcount(static_cast<unsigned>(mask)));
    // What is written over has been read.
    V::store(keys + left, V::packed(mask, v));
    V::store(other + right, V::packed(static_cast<typename V::Mask>(~mask), v));
    left += count;
    right += V::kLanes - count;
  }
  if (k < n) {
    const typename V::Mask here = first_lanes<V>(n - k);
    const typename V::Value v = V::load(keys + k, here);
    const auto mask = static_cast<typename V::Mask>(
        (kEqual ? V::less_equal(v, limit) : V::less(v, limit)) & here);
    const auto count = static_cast<std::size_t>(std::popcount(static_cast<unsigned>(mask)));
    V::store(keys + left, first_lanes<V>(count), V::packed(mask, v));
    V::store(other + right, V::packed(static_cast<typename V::Mask>(~mask & here), v));
    left += count;
    right += n - k - count;
  }
  std::memcpy(keys + left, other, right * sizeof(typename V::Key));
  return left;
}

/// The middle one of some.
template <class Key>
Key chosen_pivot(const Key* keys, std::size_t n) {
  constexpr std::size_t kMost = 9;
  const std::size_t count = n < 512 ? 3 : kMost;
  Key some[kMost];
  for (std::size_t k = 0; k < count; ++k) some[k] = keys[(2 * k + 1) * n / (2 * count)];
  sort_few(some, count);
  return some[count / 2];
}

template <class V>
CROTON_WIDE void quicksort(typename V::Key* keys, typename V::Key* other, std::size_t n,
                           int levels) {
  using Key = typename V::Key;
  while (n > kFew<V>) {
    if (levels-- == 0) {
      const Key* sorted = sort_digits<8 * sizeof(Key), 8>(keys, other, n);
      if (sorted != keys) std::memcpy(keys, sorted, n * sizeof(Key));
      return;
    }
    const Key pivot = chosen_pivot(keys, n);
    std::size_t left = split<V, false>(keys, other, n, pivot);
    if (left > 0) {
      quicksort<V>(keys, other, left, levels);
    } else {
      // The pivot is the least key; those that equal it are in place.
      left = split<V, true>(keys, other, n, pivot);
    }
    keys += left;
    n -= left;
  }
  sort_few_wide<V>(keys, n);
}

template <class V>
void sort_all(typename V::Key* keys, typename V::Key* other, std::size_t n) {
  quicksort<V>(keys, other, n, 2 * std::bit_width(n));
}

}  // namespace

bool has_wide_sort() {
  static const bool has = __builtin_cpu_supports("avx512f") != 0;
  return has;
}

void sort_wide(std::uint32_t* keys, std::uint32_t* other, std::size_t n) {
  sort_all<Vector32>(keys, other, n);
}
void sort_wide(std::uint64_t* keys, std::uint64_t* other, std::size_t n) {
  sort_all<Vector64>(keys, other, n);
}

CROTON_WIDE int write_keys_wide(const std::uint32_t* x, std::uint32_t* keys, std::size_t n,
                                std::uint32_t infinity, std::uint32_t flip) {
  return write_keys<std::uint32_t, NumberKind::real>(x, keys, n, infinity, flip);
}
CROTON_WIDE int write_keys_wide(const std::uint64_t* x, std::uint64_t* keys, std::size_t n,
                                std::uint64_t infinity, std::uint64_t flip) {
  return write_keys<std::uint64_t, NumberKind::real>(x, keys, n, infinity, flip);
}
CROTON_WIDE void write_elements_wide(const std::uint32_t* keys, std::uint32_t* result,
                                     std::size_t n, std::uint32_t flip) {
  write_elements<std::uint32_t, NumberKind::real>(keys, result, n, flip);
}
CROTON_WIDE void write_elements_wide(const std::uint64_t* keys, std::uint64_t* result,
                                     std::size_t n, std::uint64_t flip) {
  write_elements<std::uint64_t, NumberKind::real>(keys, result, n, flip);
}

}  // namespace croton::cpu

#else

namespace croton::cpu {
namespace {

[[noreturn]] void refuse() { throw InternalError("this CPU has no vectors of 512 bits"); }

}  // namespace

bool has_wide_sort() { return false; }
void sort_wide(std::uint32_t*, std::uint32_t*, std::size_t) { refuse(); }
void sort_wide(std::uint64_t*, std::uint64_t*, std::size_t) { refuse(); }
int write_keys_wide(const std::uint32_t*, std::uint32_t*, std::size_t, std::uint32_t,
                    std::uint32_t) {
  refuse();
}
int write_keys_wide(const std::uint64_t*, std::uint64_t*, std::size_t, std::uint64_t,
                    std::uint64_t) {
  refuse();
}
void write_elements_wide(const std::uint32_t*, std::uint32_t*, std::size_t, std::uint32_t) {
  refuse();
}
void write_elements_wide(const std::uint64_t*, std::uint64_t*, std::size_t, std::uint64_t) {
  refuse();
}

}  // namespace croton::cpu

#endif
