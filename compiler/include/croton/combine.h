#pragma once

#include <cstdint>

namespace croton {

/// What an output of a function is made of when several contexts compute it, each from some rows.
enum class Combine : std::uint8_t {
  /// The value itself, as one device would compute it from all rows.
  whole,
  /// What each context computes from its own rows alone, averaged with the numbers of rows as
  /// weights. Floats only.
  mean,
  /// Likewise added up, in the order of the contexts.
  sum,
  max,
  min,
  prod,
  /// Likewise one behind the other along axis 0; scalars give a vector.
  gather,
  /// That of the first context.
  first,
};

}  // namespace croton
