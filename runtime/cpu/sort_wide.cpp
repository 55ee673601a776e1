// Quicksort: a vector is split by a comparison with the pivot into lanes that go to the left and
// lanes that go to the right. Few keys are sorted by counting, for each, those that come before it.
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

constexpr std::size_t kFew = 64;

/// 16 keys of 32 bits.
struct Vector32 {
  using Key = std::uint32_t;
  using Mask = __mmask16;
  using Value = __m512i;
  static constexpr std::size_t kLanes = 16;

  CROTON_WIDE static Value load(const Key* p) { return _mm512_loadu_si512(p); }
  /// Lanes that the mask leaves out are the largest key.
  CROTON_WIDE static Value load(const Key* p, Mask mask) {
    return _mm512_mask_loadu_epi32(_mm512_set1_epi32(-1), mask, p);
  }
  CROTON_WIDE static Value all(Key key) { return _mm512_set1_epi32(static_cast<int>(key)); }
  CROTON_WIDE static Mask less(Value a, Value b) { return _mm512_cmplt_epu32_mask(a, b); }
  CROTON_WIDE static Mask less_equal(Value a, Value b) { return _mm512_cmple_epu32_mask(a, b); }
  CROTON_WIDE static Value count(Value n, Mask mask) {
    return _mm512_mask_add_epi32(n, mask, n, _mm512_set1_epi32(1));
  }
  CROTON_WIDE static Value packed(Mask mask, Value v) {
    return _mm512_maskz_compress_epi32(mask, v);
  }
  CROTON_WIDE static void store(Key* p, Value v) { _mm512_storeu_si512(p, v); }
  CROTON_WIDE static void store(Key* p, Mask mask, Value v) {
    _mm512_mask_storeu_epi32(p, mask, v);
  }
  CROTON_WIDE static void scatter(Key* p, Mask mask, Value place, Value v) {
    _mm512_mask_i32scatter_epi32(p, mask, place, v, 4);
  }
};

/// 8 keys of 64 bits.
struct Vector64 {
  using Key = std::uint64_t;
  using Mask = __mmask8;
  using Value = __m512i;
  static constexpr std::size_t kLanes = 8;

  CROTON_WIDE static Value load(const Key* p) { return _mm512_loadu_si512(p); }
  CROTON_WIDE static Value load(const Key* p, Mask mask) {
    return _mm512_mask_loadu_epi64(_mm512_set1_epi64(-1), mask, p);
  }
  CROTON_WIDE static Value all(Key key) { return _mm512_set1_epi64(static_cast<long long>(key)); }
  CROTON_WIDE static Mask less(Value a, Value b) { return _mm512_cmplt_epu64_mask(a, b); }
  CROTON_WIDE static Mask less_equal(Value a, Value b) { return _mm512_cmple_epu64_mask(a, b); }
  CROTON_WIDE static Value count(Value n, Mask mask) {
    return _mm512_mask_add_epi64(n, mask, n, _mm512_set1_epi64(1));
  }
  CROTON_WIDE static Value packed(Mask mask, Value v) {
    return _mm512_maskz_compress_epi64(mask, v);
  }
  CROTON_WIDE static void store(Key* p, Value v) { _mm512_storeu_si512(p, v); }
  CROTON_WIDE static void store(Key* p, Mask mask, Value v) {
    _mm512_mask_storeu_epi64(p, mask, v);
  }
  CROTON_WIDE static void scatter(Key* p, Mask mask, Value place, Value v) {
    _mm512_mask_i64scatter_epi64(p, mask, place, v, 8);
  }
};

template <class V>
constexpr typename V::Mask first_lanes(std::size_t n) {
  return static_cast<typename V::Mask>(n >= V::kLanes ? ~0u : (1u << n) - 1);
}

template <class V>
CROTON_WIDE void sort_few_wide(typename V::Key* keys, typename V::Key* other, std::size_t n) {
  using Mask = typename V::Mask;
  for (std::size_t first = 0; first < n; first += V::kLanes) {
    const std::size_t end = std::min(first + V::kLanes, n);
    const Mask mask = first_lanes<V>(end - first);
    const typename V::Value own = V::load(keys + first, mask);
    typename V::Value place = V::all(0);
    // Of equal keys the earlier one comes first.
    for (std::size_t k = 0; k < first; ++k) {
      place = V::count(place, V::less_equal(V::all(keys[k]), own));
    }
    for (std::size_t k = first; k < end; ++k) {
      const typename V::Value theirs = V::all(keys[k]);
      const auto later = static_cast<Mask>(~first_lanes<V>(k - first + 1));
      place = V::count(
          place, static_cast<Mask>(V::less(theirs, own) | (V::less_equal(theirs, own) & later)));
    }
    for (std::size_t k = end; k < n; ++k) {
      place = V::count(place, V::less(V::all(keys[k]), own));
    }
    V::scatter(other, mask, place, own);
  }
  std::memcpy(keys, other, n * sizeof(typename V::Key));
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
  while (n > kFew) {
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
  sort_few_wide<V>(keys, other, n);
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

}  // namespace croton::cpu

#else

namespace croton::cpu {

bool has_wide_sort() { return false; }
void sort_wide(std::uint32_t*, std::uint32_t*, std::size_t) {
  throw InternalError("this CPU has no vectors of 512 bits");
}
void sort_wide(std::uint64_t*, std::uint64_t*, std::size_t) {
  throw InternalError("this CPU has no vectors of 512 bits");
}

}  // namespace croton::cpu

#endif
