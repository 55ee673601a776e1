// Ops along an axis, from its first element to the last or, with "reverse", the other way round:
// attributes "axis" (not negative) and "reverse" (0 or 1).
#pragma once

#include "compiler/graph/op.h"

namespace croton {

/// An axis and the way along it.
struct Way {
  int axis = 0;
  bool reverse = false;

  Way back() const { return {axis, !reverse}; }
  Attrs attrs() const { return {{"axis", std::int64_t{axis}}, {"reverse", std::int64_t{reverse}}}; }
};
Way way_of(const Node& node);

/// y[k] = factor[k] * y[k - 1] + x[k] along an axis; y[0] = x[0].
Variable recurrence(const Variable& x, const Variable& factor, Way way, const Loc& loc);

/// Each element in the place of the one that follows it; `start` in the first.
Variable delayed(const Variable& x, Way way, double start, const Loc& loc);
/// In each place the element that follows; the last one stays.
Variable following(const Variable& x, Way way, const Loc& loc);

/// For references: calls step(place, before) for each element of an array of that shape, those of
/// each line along the axis in order; `before` is -1 for the first one.
template <class Step>
void along_lines(const Shape& shape, Way way, Step&& step) {
  const auto axis = static_cast<std::size_t>(way.axis);
  const std::int64_t count = shape.numel();
  std::int64_t inner = 1;
  for (std::size_t k = axis + 1; k < shape.size(); ++k) inner *= shape[k];
  for (std::int64_t n = 0; n < count; ++n) {
    const std::int64_t e = way.reverse ? count - 1 - n : n;
    const bool first = e / inner % shape[axis] == (way.reverse ? shape[axis] - 1 : 0);
    step(static_cast<std::size_t>(e), first ? -1 : (way.reverse ? e + inner : e - inner));
  }
}

}  // namespace croton
