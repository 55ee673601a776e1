// What the tests of functions on several contexts share. The contexts are dev0 to dev7; the flag
// `contexts` says on which devices.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "croton/croton.h"

namespace croton::test {

inline std::vector<std::string> first_contexts(int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.push_back("dev" + std::to_string(i));
  return names;
}

/// Numbers that do not repeat soon, from [-1, 1).
inline Array numbers(const Shape& shape, unsigned seed, DType dtype = DType::float32) {
  return random_uniform(shape, {.seed = seed, .low = -1, .high = 1}).astype(dtype);
}

/// Small integers as floats: their sums are exact, in any order.
inline Array whole_numbers(const Shape& shape, unsigned seed, DType dtype = DType::float32) {
  std::vector<double> values(static_cast<std::size_t>(shape.numel()));
  std::uint32_t state = 2654435761u * (seed + 1);
  for (double& v : values) {
    state = 1664525u * state + 1013904223u;
    v = static_cast<double>(state >> 24) - 128;
    v = std::fmod(v, 4);
  }
  return Array::from<double>(values, shape).astype(dtype);
}

/// |got - wanted| <= bound * (1 + the largest |wanted|) everywhere.
inline bool within(const Array& got, const Array& wanted, double bound) {
  if (got.shape() != wanted.shape() || got.dtype() != wanted.dtype()) return false;
  const std::vector<double> a = got.astype(DType::float64).to_vector<double>();
  const std::vector<double> b = wanted.astype(DType::float64).to_vector<double>();
  double largest = 0;
  for (const double v : b) largest = std::max(largest, std::abs(v));
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) != std::isnan(b[i])) return false;
    if (!std::isnan(a[i]) && !(std::abs(a[i] - b[i]) <= bound * (1 + largest))) return false;
  }
  return true;
}

}  // namespace croton::test
