// Arithmetic on sizes: numbers where both operands are numbers, else nodes on int64 scalars that
// the compiler can work out before a call.
#pragma once

#include <string_view>
#include <vector>

#include "croton/variable.h"

namespace croton {

Size size_add(const Size& a, const Size& b, const Loc& loc);
Size size_sub(const Size& a, const Size& b, const Loc& loc);
Size size_mul(const Size& a, const Size& b, const Loc& loc);
/// Rounds down.
Size size_divide(const Size& a, const Size& b, const Loc& loc);
/// Has the sign of b.
Size size_mod(const Size& a, const Size& b, const Loc& loc);
Size size_max(const Size& a, const Size& b, const Loc& loc);
Size size_min(const Size& a, const Size& b, const Loc& loc);

/// The size as an int64 scalar.
Variable size_variable(const Size& size, const Loc& loc);
/// The size as a bound of a slice.
Bound size_bound(const Size& size);
/// Integers as the user gave them, of any sign: constants become numbers, others int64 scalars.
/// GraphError in the op's name where one is not an integer scalar.
std::vector<Size> whole_numbers(std::string_view op, const Sizes& given, const Loc& loc);
Size whole_number(std::string_view op, const Size& given, const Loc& loc);

/// 0, 1, ... along a vector of that length.
Variable positions(const Size& length, const Loc& loc);
/// The same along one axis of `rank`, the others having size 1.
Variable positions(const Size& length, int axis, int rank, const Loc& loc);
/// The entries of x along an axis from `begin`, `count` of them.
Variable part_of_axis(const Variable& x, int axis, const Size& begin, const Size& count,
                      const Loc& loc);

}  // namespace croton
