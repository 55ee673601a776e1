// Slices of all axes at once. The ops slice, set_slice and inc_slice have the attributes "kind",
// "start", "stop" and "step", a number an axis; kSymbolBound stands for the next of the node's
// symbolic inputs (int64 scalars; first all starts and stops of axis 0, and so on).
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "compiler/graph/op.h"

namespace croton {

inline constexpr std::int64_t kOpenBound = std::numeric_limits<std::int64_t>::min();
inline constexpr std::int64_t kSymbolBound = kOpenBound + 1;

enum class SliceKind : std::int64_t {
  full,   ///< the axis as it is
  range,  ///< start:stop:step
  entry,  ///< the one entry `start`, as an axis of size 1
};

/// Which part of an axis a slice takes: positions start + step * k for 0 <= k < count.
struct AxisPart {
  Dim start = 0;
  Dim count;
  std::int64_t step = 1;
  int start_symbol = -1;  ///< number of the symbolic input that `start` comes from
};

/// The parts of all axes, from the attributes, the sizes, and the values of symbolic bounds.
std::vector<AxisPart> slice_parts(const Attrs& attrs, std::span<const Dim> shape,
                                  const std::function<Dim(int)>& symbol);

/// Checks attributes and bounds, and gives the parts; symbols are the inputs from `first` on.
std::vector<AxisPart> infer_slice_parts(Infer& infer, int first);

/// Where a part starts, as a position; reads a symbolic start. `first` as above.
Position start_position(Lowering& low, const AxisPart& part, Dim size, int first);

/// A slice under construction.
struct SliceBuilder {
  std::vector<std::int64_t> kind;
  std::vector<std::int64_t> start;
  std::vector<std::int64_t> stop;
  std::vector<std::int64_t> step;
  std::vector<Variable> symbols;

  void add_full();
  void add_entry(std::int64_t index);
  void add_range(const Slice& slice, const Loc& loc);
  Attrs attrs() const;
};

/// start:stop:step along one axis.
Variable slice_axis(const Variable& x, int axis, const Slice& slice, const Loc& loc);

}  // namespace croton
