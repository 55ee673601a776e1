#pragma once

#include <array>
#include <cstdint>

namespace croton {

// Philox4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3"
// (2011), and how Croton turns its words into numbers. Every random op follows these definitions,
// so numbers depend on seed, stream and element index alone:
//
// - Key: the 64-bit seed (low word first). Counter: words 0 and 1 hold the 64-bit block number (low
//   first), words 2 and 3 the 64-bit stream (low first).
// - Element e (counted over the whole array, plus the call's offset) of a 32-bit or narrower float
//   is made from block e / 4; of a float64 from block e / 2.
// - Uniform on [0, 1): float32 is the top 24 bits of word e % 4, times 2^-24; float16 its top 11
//   bits, times 2^-11; bfloat16 its top 8 bits, times 2^-8; float64 is the top 53 bits of
//   w[2 * (e % 2)] (low) and w[2 * (e % 2) + 1] (high), times 2^-53.
// - Normal: Box-Muller on pairs of elements. With u1 in (0, 1] and u2 in [0, 1),
//   r = sqrt(-2 log(u1)): the even element is r cos(2 pi u2), the odd one r sin(2 pi u2). float32
//   and narrower: for words (a, b) = (0, 1) or (2, 3) of the block, u1 = ((a >> 8) + 1) 2^-24 and
//   u2 = (b >> 8) 2^-24. float64: words 0 and 1 give u1 = (53 bits + 1) 2^-53, words 2 and 3 u2.

using PhiloxBlock = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

inline constexpr std::uint32_t kPhiloxMultiplier0 = 0xD2511F53;
inline constexpr std::uint32_t kPhiloxMultiplier1 = 0xCD9E8D57;
inline constexpr std::uint32_t kPhiloxWeyl0 = 0x9E3779B9;
inline constexpr std::uint32_t kPhiloxWeyl1 = 0xBB67AE85;
inline constexpr int kPhiloxRounds = 10;

/// Ten rounds of Philox4x32.
constexpr PhiloxBlock philox4x32(PhiloxBlock c, PhiloxKey k) {
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const std::uint64_t p0 = std::uint64_t{kPhiloxMultiplier0} * c[0];
    const std::uint64_t p1 = std::uint64_t{kPhiloxMultiplier1} * c[2];
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ k[0], static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ k[1], static_cast<std::uint32_t>(p0)};
    k[0] += kPhiloxWeyl0;
    k[1] += kPhiloxWeyl1;
  }
  return c;
}

/// Block number `block` of a stream.
constexpr PhiloxBlock philox_block(std::uint64_t seed, std::uint64_t stream, std::uint64_t block) {
  return philox4x32({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
                     static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32)},
                    {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
}

/// The top 53 bits of two words.
constexpr std::uint64_t philox_bits53(std::uint32_t low, std::uint32_t high) {
  return (std::uint64_t{high} << 32 | low) >> 11;
}

}  // namespace croton
