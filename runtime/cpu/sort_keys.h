// The keys of elements, unsigned numbers, and sorting them digit by digit.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace croton::cpu {

/// What an element's bits mean.
enum class NumberKind : std::uint8_t { real, integer, natural };

/// A number that is ordered as the element is, ascending: NaN is the largest, -0 equals 0.
template <class Bits, NumberKind kKind>
Bits key_of(Bits bits, Bits infinity) {
  constexpr Bits kSign = static_cast<Bits>(Bits(1) << (8 * sizeof(Bits) - 1));
  if constexpr (kKind == NumberKind::real) {
    const Bits magnitude = static_cast<Bits>(bits & static_cast<Bits>(~kSign));
    const Bits negative = static_cast<Bits>(bits & kSign ? ~Bits(0) : 0);
    const Bits key = static_cast<Bits>(magnitude == 0 ? kSign : bits ^ (negative | kSign));
    return magnitude > infinity ? static_cast<Bits>(~Bits(0)) : key;
  }
  return kKind == NumberKind::integer ? static_cast<Bits>(bits ^ kSign) : bits;
}

/// The element of a key that is not that of NaN; 0 for -0.
template <class Bits, NumberKind kKind>
Bits bits_of(Bits key) {
  constexpr Bits kSign = static_cast<Bits>(Bits(1) << (8 * sizeof(Bits) - 1));
  if constexpr (kKind == NumberKind::real) {
    return static_cast<Bits>(key & kSign ? key ^ kSign : ~key);
  }
  return kKind == NumberKind::integer ? static_cast<Bits>(key ^ kSign) : key;
}

/// What keys do not tell: bits of the result of write_keys.
inline constexpr int kHasNan = 1;
inline constexpr int kHasNegativeZero = 2;

/// The keys of elements, all bits flipped where `flip` has them; gives what there is that they do
/// not tell. Inline, so that it is compiled for the vectors of its caller.
template <class Bits, NumberKind kKind>
[[gnu::always_inline]] inline int write_keys(const Bits* x, Bits* keys, std::size_t n,
                                             Bits infinity, Bits flip) {
  constexpr Bits kSign = static_cast<Bits>(Bits(1) << (8 * sizeof(Bits) - 1));
  Bits nan = 0, negative_zero = 0;
  for (std::size_t k = 0; k < n; ++k) {
    if constexpr (kKind == NumberKind::real) {
      nan |= static_cast<Bits>(static_cast<Bits>(x[k] & static_cast<Bits>(~kSign)) > infinity);
      negative_zero |= static_cast<Bits>(x[k] == kSign);
    }
    keys[k] = static_cast<Bits>(key_of<Bits, kKind>(x[k], infinity) ^ flip);
  }
  return (nan != 0 ? kHasNan : 0) | (negative_zero != 0 ? kHasNegativeZero : 0);
}

/// The elements of such keys.
template <class Bits, NumberKind kKind>
[[gnu::always_inline]] inline void write_elements(const Bits* keys, Bits* result, std::size_t n,
                                                  Bits flip) {
  for (std::size_t k = 0; k < n; ++k) {
    result[k] = bits_of<Bits, kKind>(static_cast<Bits>(keys[k] ^ flip));
  }
}

/// Sorts by kBits bits of keys from `from` on, equal ones in their order, kDigit bits after the
/// other from the lowest, leaving out those that are the same everywhere. Gives the one of both
/// arrays that holds the result.
template <int kBits, int kDigit, class Key>
Key* sort_digits(Key* keys, Key* other, std::size_t n, int from = 0) {
  constexpr int kPasses = (kBits + kDigit - 1) / kDigit;
  constexpr std::size_t kValues = std::size_t{1} << kDigit;
  const auto digit = [from](Key key, int pass) {
    return static_cast<std::size_t>(key >> (from + kDigit * pass)) & (kValues - 1);
  };
  std::array<std::array<std::uint32_t, kValues>, kPasses> counts{};
  for (std::size_t k = 0; k < n; ++k) {
    for (int pass = 0; pass < kPasses; ++pass) {
      ++counts[static_cast<std::size_t>(pass)][digit(keys[k], pass)];
    }
  }
  for (int pass = 0; pass < kPasses; ++pass) {
    auto& next = counts[static_cast<std::size_t>(pass)];
    if (next[digit(keys[0], pass)] == n) continue;
    std::uint32_t sum = 0;
    for (std::uint32_t& count : next) sum += std::exchange(count, sum);
    for (std::size_t k = 0; k < n; ++k) other[next[digit(keys[k], pass)]++] = keys[k];
    std::swap(keys, other);
  }
  return keys;
}

/// Whether a comes before b, for sort_few.
struct ByKey {
  template <class Key>
  bool operator()(Key a, Key b) const {
    return a < b;
  }
};

/// Equal keys stay in their order.
template <class Key, class Before = ByKey>
void sort_few(Key* keys, std::size_t n, const Before& before = {}) {
  for (std::size_t k = 1; k < n; ++k) {
    const Key key = keys[k];
    std::size_t to = k;
    for (; to > 0 && before(key, keys[to - 1]); --to) keys[to] = keys[to - 1];
    keys[to] = key;
  }
}

/// Up to so many keys are sorted by moving each to its place.
inline constexpr std::size_t kFewKeys = 32;

/// Sorts by all kBits bits from `from` on, the digits as long as is fastest for so many keys.
template <int kBits, class Key>
Key* sort_by_bits(Key* keys, Key* other, std::size_t n, int from = 0) {
  if constexpr (kBits > 16) {
    if (n >= 8192) return sort_digits<kBits, 11>(keys, other, n, from);
  }
  return sort_digits<kBits, 8>(keys, other, n, from);
}

/// The least `from` so that the 32 bits from there on reach up to the highest in which keys differ.
template <class Key>
int upper_half(const Key* keys, std::size_t n) {
  Key differing = 0;
  for (std::size_t k = 0; k < n; ++k) differing |= keys[k] ^ keys[0];
  return std::max(static_cast<int>(std::bit_width(differing)) - 32, 0);
}

/// Calls use(first, end) for each range of equal values of `upper` that is longer than 1.
template <class Upper, class Use>
void for_each_run(std::size_t n, const Upper& upper, const Use& use) {
  for (std::size_t first = 0; first < n;) {
    const auto value = upper(first);
    std::size_t end = first + 1;
    while (end < n && upper(end) == value) ++end;
    if (end - first > 1) use(first, end);
    first = end;
  }
}

/// Sorts keys of 64 bits: by 32 bits first, which leaves few that are equal so far, then these.
inline std::uint64_t* sort_long_keys(std::uint64_t* keys, std::uint64_t* other, std::size_t n) {
  const int from = upper_half(keys, n);
  std::uint64_t* const sorted = sort_by_bits<32>(keys, other, n, from);
  if (from == 0) return sorted;
  std::uint64_t* const spare = sorted == keys ? other : keys;
  for_each_run(
      n, [&](std::size_t k) { return sorted[k] >> from; },
      [&](std::size_t first, std::size_t end) {
        if (end - first <= kFewKeys) return sort_few(sorted + first, end - first);
        const std::uint64_t* run = sort_by_bits<32>(sorted + first, spare, end - first);
        if (run == spare) std::copy(spare, spare + (end - first), sorted + first);
      });
  return sorted;
}

/// Where keys of 64 bits are in order: the lower halves of the result. `items` and `other` are
/// memory; sort(items, other, n) sorts numbers by their upper halves, equal ones in their order.
template <class Sort>
std::uint64_t* sort_long_places(const std::uint64_t* keys, std::uint64_t* items,
                                std::uint64_t* other, std::size_t n, const Sort& sort) {
  const int from = upper_half(keys, n);
  const auto place = [](std::uint64_t item) { return static_cast<std::uint32_t>(item); };
  for (std::size_t k = 0; k < n; ++k) items[k] = keys[k] >> from << 32 | k;
  std::uint64_t* const sorted = sort(items, other, n);
  if (from == 0) return sorted;
  std::uint64_t* const spare = sorted == items ? other : items;
  for_each_run(
      n, [&](std::size_t k) { return sorted[k] >> 32; },
      [&](std::size_t first, std::size_t end) {
        const std::size_t count = end - first;
        if (count <= kFewKeys) {
          return sort_few(sorted + first, count, [&](std::uint64_t a, std::uint64_t b) {
            return keys[place(a)] < keys[place(b)];
          });
        }
        for (std::size_t k = 0; k < count; ++k) {
          const std::uint32_t at = place(sorted[first + k]);
          sorted[first + k] = keys[at] << 32 | at;
        }
        const std::uint64_t* run = sort(sorted + first, spare, count);
        if (run == spare) std::copy(spare, spare + count, sorted + first);
      });
  return sorted;
}

}  // namespace croton::cpu
