// Integers that a call must give within bounds, and sizes that it must agree with.
#pragma once

#include <cstdint>
#include <string_view>

#include "croton/variable.h"

namespace croton {

/// Whether every value of `from` is one of `to`, for integers and bool.
bool keeps_values(DType from, DType to);

/// The integer that the user gave, at least `least`: GraphError where a number is not, CallError in
/// a call in which a symbol is not. `what` names it: "a width".
Size checked_size(std::string_view op, std::string_view what, const Size& given, const Loc& loc,
                  std::int64_t least = 0);
/// The same, not 0.
Size checked_step(std::string_view op, const Size& given, const Loc& loc);

/// x, of which one axis has that size, or the call is an error; x itself where it is known.
Variable with_size(const Variable& x, int axis, const Size& size, const Loc& loc);

}  // namespace croton
