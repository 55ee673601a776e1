#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "croton/export.h"
#include "croton/shared.h"
#include "croton/variable.h"

namespace croton {

struct UniformDraw {
  Operand low = 0;
  Operand high = 1;
  /// A float; floatX when not given.
  std::optional<DType> dtype = {};
};

struct NormalDraw {
  Operand mean = 0;
  Operand stddev = 1;
  /// A float; floatX when not given.
  std::optional<DType> dtype = {};
};

/// Random numbers that are fresh in each call of a function. Each draw made here has a Philox
/// stream of its own (0, 1, 2 ... of the seed) and a shared counter, which calls of functions that
/// use the draw advance. So numbers depend on the seed, on which draw it is and on how many numbers
/// it has given before; not on devices, contexts or threads. Where a draw is used twice in one
/// function, both see the same numbers.
class CROTON_API RandomStream {
 public:
  /// Counters live on the context `target` (ConfigError when it is not bound), which draws follow;
  /// empty: on that of the ContextScope at the draw, else the default device.
  explicit RandomStream(std::uint64_t seed, std::string target = {});
  RandomStream(RandomStream&&) = default;
  RandomStream& operator=(RandomStream&&) = default;
  RandomStream(const RandomStream&) = delete;
  RandomStream& operator=(const RandomStream&) = delete;

  // Sizes mix numbers and integer Variables. Parameters broadcast against the numbers and may be
  // symbolic; gradients flow to them.
  /// low + u * (high - low) with u uniform on [0, 1). The first draw of a new stream gives, in its
  /// first call, the u of random_uniform(sizes, {.seed = seed}).
  Variable uniform(const Sizes& sizes, const UniformDraw& draw = {}, Loc loc = Loc::current());
  /// mean + stddev * z with z of mean 0 and variance 1.
  Variable normal(const Sizes& sizes, const NormalDraw& draw = {}, Loc loc = Loc::current());
  /// true with probability p.
  Variable bernoulli(const Sizes& sizes, const Operand& p = 0.5, Loc loc = Loc::current());
  /// Integers in [low, high), equally likely; int64 unless another dtype is given.
  Variable integers(const Sizes& sizes, const Operand& low, const Operand& high,
                    std::optional<DType> dtype = {}, Loc loc = Loc::current());

  std::uint64_t seed() const { return seed_; }
  /// The counters of the draws so far, in order: how many numbers each has given. Setting them
  /// repeats or skips numbers; saving and setting them resumes a run.
  const std::vector<Shared>& states() const { return states_; }
  /// Sets all counters to 0, so that the numbers come again.
  void reset() const;

 private:
  Variable numbers(const char* op, const Sizes& sizes, std::optional<DType> dtype, const Loc& loc);

  std::uint64_t seed_;
  std::string target_;
  std::vector<Shared> states_;
};

}  // namespace croton
