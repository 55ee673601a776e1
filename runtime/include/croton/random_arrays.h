#pragma once

#include <cstdint>
#include <optional>

#include "croton/array.h"
#include "croton/export.h"

namespace croton {

/// The same seed and stream give the same numbers everywhere; without a seed they differ from run
/// to run.
struct UniformOptions {
  std::optional<std::uint64_t> seed = {};
  std::optional<DType> dtype = {};  // a float; floatX when not given
  double low = 0;
  double high = 1;
  std::uint64_t stream = 0;
};

struct NormalOptions {
  std::optional<std::uint64_t> seed = {};
  std::optional<DType> dtype = {};  // a float; floatX when not given
  double mean = 0;
  double stddev = 1;
  std::uint64_t stream = 0;
};

/// A host array of random numbers, uniform on [low, high) up to the rounding of
/// low + u * (high - low); Philox4x32-10.
CROTON_API Array random_uniform(const Shape& shape, const UniformOptions& options = {});

/// A host array of normally distributed random numbers (Box-Muller on Philox4x32-10).
CROTON_API Array random_normal(const Shape& shape, const NormalOptions& options = {});

}  // namespace croton
