#pragma once

#include <cstdint>
#include <random>
#include <string_view>

namespace croton::test {

/// Random numbers of an op's own, so that its tests do not change with the ops that there are.
inline std::mt19937 random_for(std::string_view op, std::uint32_t seed) {
  for (const char c : op) seed = (seed ^ static_cast<unsigned char>(c)) * 16777619u;
  return std::mt19937(seed);
}

}  // namespace croton::test
