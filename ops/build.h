// What op entries and gradients are written with: nodes for common needs. The public functions of
// croton/tensor.h and croton/reduce.h do the same for users; these take the place of the user's
// line, and no options.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/graph/node.h"

namespace croton {

/// Throws a GraphError: "[op] message; at file:line". An op that `loc` names takes the place of
/// `op`.
[[noreturn]] void graph_error(std::string_view op, const std::string& message, const Loc& loc);

/// Whether it is a float that nothing accumulates in: float16 or bfloat16.
inline bool is_narrow(DType dtype) { return dtype == DType::float16 || dtype == DType::bfloat16; }

/// The value in another dtype; itself when it has that one.
Variable cast_to(const Variable& x, DType dtype, const Loc& loc);

/// Sum over axes (not negative, any order); itself when there are none. The dtype stays: float16
/// and bfloat16 are summed in float32 and rounded once.
Variable sum_axes(const Variable& x, std::vector<int> axes, bool keepdims, const Loc& loc);
/// The gradient of a value that broadcasting stretched: `g` summed over the axes that `like` does
/// not have or where it has size 1, so that the result has like's shape. The dtype is that of `g`.
Variable sum_like(const Variable& g, const Variable& like, const Loc& loc);

/// New order of axes, -1 for a new one of size 1; left out ones must have size 1. Itself when the
/// order changes nothing.
Variable dimshuffle(const Variable& x, const std::vector<int>& order, const Loc& loc);
/// Inserts axes of size 1 at these places of the result (sorted, not negative).
Variable insert_axes(const Variable& x, const std::vector<int>& axes, const Loc& loc);
/// Repeats along axes of size 1, and along new ones in front, to like's shape; itself when static
/// shapes say that nothing changes.
Variable broadcast_like(const Variable& x, const Variable& like, const Loc& loc);

/// A 0-d constant of x's dtype.
Variable scalar_like(const Variable& x, double value, const Loc& loc);
/// x's shape and dtype, all elements `value`.
Variable full_like(const Variable& x, double value, const Loc& loc);
Variable zeros_like(const Variable& x, const Loc& loc);
Variable ones_like(const Variable& x, const Loc& loc);

/// One size as an int64 scalar; a constant where it is known.
Variable size_of_axis(const Variable& x, int axis, const Loc& loc);
/// The product of the sizes of these axes as a 0-d `dtype`; a constant where they are known.
Variable count_elements(const Variable& x, const std::vector<int>& axes, DType dtype,
                        const Loc& loc);
/// The same elements in another shape.
Variable reshape_sizes(const Variable& x, std::span<const Size> sizes, const Loc& loc);
/// `count` axes from `first` on as one; with none of them a new one of size 1.
Variable merge_axes(const Variable& x, int first, int count, const Loc& loc);
/// x's shape as sizes for `reshape`, `broadcast_to` and the like: numbers where known.
std::vector<Size> sizes_of(const Variable& x, const Loc& loc);

}  // namespace croton
