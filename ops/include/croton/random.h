#pragma once

#include <cstdint>
#include <optional>

#include "croton/export.h"
#include "croton/variable.h"

namespace croton {

struct PhiloxOptions {
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;
  /// A float; floatX when not given.
  std::optional<DType> dtype = {};
};

/// Random numbers, uniform on [0, 1): those that the stream of that seed holds from number `offset`
/// (an int64 scalar) on, in row-major order. Equal operands give equal numbers, on every device;
/// they are those of random_uniform(shape, {.seed, .stream}) from that number on. See RandomStream
/// for numbers that are fresh in each call.
CROTON_API Variable philox_uniform(const Operand& offset, const Sizes& sizes,
                                   const PhiloxOptions& options = {});
/// The same with normally distributed numbers of mean 0 and variance 1.
CROTON_API Variable philox_normal(const Operand& offset, const Sizes& sizes,
                                  const PhiloxOptions& options = {});

}  // namespace croton
