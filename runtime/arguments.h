#pragma once

#include <span>
#include <vector>

#include "croton/array.h"
#include "runtime/specialize.h"

namespace croton {

/// Whether `argument` may be used as it is by a plan that was made for `key`.
bool fits(const Array& argument, const ArgumentKey& key);

/// CallError, naming the input, unless count, dtypes, ranks and static sizes fit.
void check_arguments(const BoundPlan& bound, std::span<const Array> arguments);

/// The arguments, contiguous, aligned and in the memory where the plan wants them, then those that
/// it wants in a second one. `copied` says how many had to be copied for that.
void placed_arguments(const BoundPlan& bound, std::span<const Array> arguments, int& copied,
                      std::vector<Array>& placed);

/// Sizes and values that decide which specialised plan is used, into `key`.
void plan_key(const BoundPlan& bound, std::span<const Array> arguments,
              std::vector<std::int64_t>& key);

}  // namespace croton
