// Sorting of keys by all the ways there are, against the standard library: what a call takes
// depends on the CPU and on how many keys there are.
#include "runtime/cpu/sort_keys.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "runtime/cpu/sort_wide.h"

using namespace croton::cpu;

namespace {

/// Keys of many kinds: random ones, few different ones, equal ones, in order, in reverse, of which
/// only the lower or the upper bits differ.
template <class Key>
std::vector<std::vector<Key>> many_keys(std::size_t n) {
  std::mt19937_64 random(n);
  const auto made = [&](auto&& f) {
    std::vector<Key> keys;
    for (std::size_t k = 0; k < n; ++k) keys.push_back(static_cast<Key>(f(k)));
    return keys;
  };
  constexpr int kHalf = 4 * sizeof(Key);
  return {made([&](std::size_t) { return random(); }),
          made([&](std::size_t) { return random() % 3; }),
          made([](std::size_t) { return ~std::uint64_t{0}; }),
          made([](std::size_t k) { return k * k; }),
          made([](std::size_t k) { return ~k; }),
          made([&](std::size_t) { return random() % 500 << kHalf; }),
          made([&](std::size_t) { return random() % 5 << kHalf | random() % 1000; })};
}

template <class Key, class Sort>
void check_sort(const Sort& sort) {
  for (const std::size_t n : {1, 2, 15, 16, 17, 33, 64, 65, 100, 700, 9000}) {
    for (std::vector<Key> keys : many_keys<Key>(n)) {
      INFO(n << " keys");
      std::vector<Key> wanted = keys;
      std::sort(wanted.begin(), wanted.end());
      keys.resize(n + kWideSlack);
      std::vector<Key> other(n + kWideSlack);
      const Key* sorted = sort(keys.data(), other.data(), n);
      CHECK(std::equal(wanted.begin(), wanted.end(), sorted));
    }
  }
}

template <class Key>
void check_digits() {
  constexpr int kBits = 8 * sizeof(Key);
  check_sort<Key>(
      [](Key* keys, Key* other, std::size_t n) { return sort_by_bits<kBits>(keys, other, n); });
  check_sort<Key>(
      [](Key* keys, Key* other, std::size_t n) { return sort_digits<kBits, 11>(keys, other, n); });
}

}  // namespace

TEST_CASE("keys are sorted digit by digit", "[sort]") {
  check_digits<std::uint8_t>();
  check_digits<std::uint16_t>();
  check_digits<std::uint32_t>();
  check_digits<std::uint64_t>();
  check_sort<std::uint64_t>(sort_long_keys);
}

TEST_CASE("keys are sorted by wide vectors where the CPU has them", "[sort]") {
  if (!has_wide_sort()) {
    WARN("this CPU has no vectors of 512 bits: not tried");
    return;
  }
  const auto wide = [](auto* keys, auto* other, std::size_t n) {
    sort_wide(keys, other, n);
    return keys;
  };
  check_sort<std::uint32_t>(wide);
  check_sort<std::uint64_t>(wide);
}

TEST_CASE("places of long keys are in order, equal ones in theirs", "[sort]") {
  for (const std::size_t n : {1, 2, 33, 100, 9000}) {
    for (const std::vector<std::uint64_t>& keys : many_keys<std::uint64_t>(n)) {
      INFO(n << " keys");
      std::vector<std::size_t> wanted(n);
      std::iota(wanted.begin(), wanted.end(), 0);
      std::stable_sort(wanted.begin(), wanted.end(),
                       [&](std::size_t a, std::size_t b) { return keys[a] < keys[b]; });
      std::vector<std::uint64_t> items(n), other(n);
      const std::uint64_t* sorted =
          sort_long_places(keys.data(), items.data(), other.data(), n,
                           [](std::uint64_t* x, std::uint64_t* y, std::size_t count) {
                             return sort_by_bits<32>(x, y, count, 32);
                           });
      CHECK(std::equal(wanted.begin(), wanted.end(), sorted, [](std::size_t a, std::uint64_t b) {
        return a == static_cast<std::uint32_t>(b);
      }));
    }
  }
}

TEST_CASE("keys are ordered as their elements", "[sort]") {
  using Real = std::uint32_t;
  const auto key = [](float x) {
    return key_of<Real, NumberKind::real>(std::bit_cast<Real>(x), 0x7F800000u);
  };
  const float rising[] = {-INFINITY, -3, -1e-40f, 0, 1e-45f, 2, INFINITY, NAN};
  for (std::size_t k = 1; k < std::size(rising); ++k) CHECK(key(rising[k - 1]) < key(rising[k]));
  CHECK(key(-0.0f) == key(0.0f));
  CHECK(key(-NAN) == key(NAN));
  for (const float x : {-INFINITY, -3.0f, 0.0f, 1e-45f, INFINITY}) {
    CHECK(std::bit_cast<float>(bits_of<Real, NumberKind::real>(key(x))) == x);
  }
  CHECK(key_of<std::uint8_t, NumberKind::integer>(0x80, 0) == 0);
  CHECK(bits_of<std::uint8_t, NumberKind::integer>(0) == 0x80);
}
