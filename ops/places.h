// What reading and writing at computed places share.
#pragma once

#include <string_view>
#include <vector>

#include "croton/variable.h"

namespace croton {

/// x without what lies beyond the sizes of `indices` along axes other than `axis`; x itself where
/// that is nothing.
Variable cut_to(const Variable& x, const Variable& indices, int axis, const Loc& loc);

/// The parts of the last axis of `indices`, one index an axis; GraphError when they are not known
/// to be 1 to `most`.
std::vector<Variable> index_parts(std::string_view op, const Variable& indices, int most,
                                  const Loc& loc);

/// 0, 1, ..
std::vector<int> first_axes(std::size_t count);

}  // namespace croton
