// Sorting by vectors of 512 bits.
#pragma once

#include <cstddef>
#include <cstdint>

namespace croton::cpu {

/// Whether this CPU has them.
bool has_wide_sort();

/// Elements by which `other` must be longer than the keys.
inline constexpr std::size_t kWideSlack = 16;

/// Sorts keys in place, with memory for as many and kWideSlack more; only where has_wide_sort().
/// For a range on which it makes no headway it falls back on sort_digits.
void sort_wide(std::uint32_t* keys, std::uint32_t* other, std::size_t n);
void sort_wide(std::uint64_t* keys, std::uint64_t* other, std::size_t n);

/// write_keys and write_elements of floats by such vectors.
int write_keys_wide(const std::uint32_t* x, std::uint32_t* keys, std::size_t n,
                    std::uint32_t infinity, std::uint32_t flip);
int write_keys_wide(const std::uint64_t* x, std::uint64_t* keys, std::size_t n,
                    std::uint64_t infinity, std::uint64_t flip);
void write_elements_wide(const std::uint32_t* keys, std::uint32_t* result, std::size_t n,
                         std::uint32_t flip);
void write_elements_wide(const std::uint64_t* keys, std::uint64_t* result, std::size_t n,
                         std::uint64_t flip);

}  // namespace croton::cpu
