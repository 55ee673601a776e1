#pragma once

#include <string>
#include <string_view>

#include "croton/export.h"

namespace croton {

/// How unlike two names are: the number of letters to insert, delete, replace or swap with a
/// neighbour; letters that differ in case alone count nothing.
CROTON_API int name_distance(std::string_view a, std::string_view b);

/// The largest distance at which `wanted` may still be a misspelling of another name.
CROTON_API int largest_name_distance(std::string_view wanted);

/// The one of `names` (a range of strings) that `wanted` most likely stands for: the nearest, else
/// the first that begins with it; empty if none is near. The earlier one wins a tie.
template <class Names>
std::string nearest_name(std::string_view wanted, const Names& names) {
  std::string_view best;
  std::string_view longer;
  int least = largest_name_distance(wanted) + 1;
  for (const auto& name : names) {
    std::string_view candidate = name;
    int distance = name_distance(wanted, candidate);
    if (distance < least) {
      least = distance;
      best = candidate;
    }
    if (longer.empty() && wanted.size() >= 3 && candidate.starts_with(wanted)) longer = candidate;
  }
  return std::string(best.empty() ? longer : best);
}

/// `; did you mean 'X'?` for the end of a message, or nothing where no name is near.
template <class Names>
std::string did_you_mean(std::string_view wanted, const Names& names) {
  std::string near = nearest_name(wanted, names);
  return near.empty() ? near : "; did you mean '" + near + "'?";
}

}  // namespace croton
