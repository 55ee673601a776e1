// Writing at an index for each value, or at places of several axes.
#include <fmt/format.h>

#include "croton/indexing.h"
#include "ops/axes.h"
#include "ops/build.h"
#include "ops/places.h"
#include "ops/sizes.h"
#include "ops/take.h"

namespace croton {

Variable scatter(const Operand& operand, const Operand& indices, const Operand& values, int axis,
                 WriteMode mode) {
  const Loc loc = operand.loc().named("scatter");
  const Variable x = operand.variable();
  const Variable index = index_variable("scatter", indices);
  const int along = checked_axis("scatter", axis, x.ndim(), loc);
  if (index.ndim() != x.ndim()) {
    graph_error("scatter",
                fmt::format("indices with as many axes as the operand are expected: got {} and {}",
                            index.ndim(), x.ndim()),
                loc);
  }
  Variable value =
      values.is_literal() ? make_scalar(x.dtype(), values.literal(), loc) : values.variable();
  if (value.dtype() != x.dtype() && promote(x.dtype(), value.dtype(), true) != x.dtype()) {
    graph_error("scatter",
                fmt::format("values of dtype {} would lose digits in {}: cast them with astype",
                            name_of(value.dtype()), name_of(x.dtype())),
                loc);
  }
  value = broadcast_like(cast_to(value, x.dtype(), loc), index, loc);
  const Variable part = cut_to(x, index, along, loc);
  const Variable y =
      apply(op_name(mode, true), {part, value, index}, {{"axis", std::int64_t{along}}}, loc);
  return part.same(x) ? y : written_part("scatter", Operand(part, loc), y, WriteMode::set);
}

Variable scatter_nd(const Operand& operand, const Operand& indices, const Operand& values,
                    WriteMode mode) {
  const Loc loc = operand.loc().named("scatter_nd");
  const Variable x = operand.variable();
  const Variable index = index_variable("scatter_nd", indices);
  if (x.ndim() == 0) graph_error("scatter_nd", "a scalar has no places", loc);
  const std::vector<Variable> parts = index_parts("scatter_nd", index, x.ndim(), loc);
  const Variable part = take_entries(x, first_axes(parts.size()), parts, 0, loc);
  return written_part("scatter_nd", Operand(part, loc), values, mode);
}

Variable put_along_axis(const Operand& operand, const Operand& indices, const Operand& values,
                        int axis) {
  const Loc loc = operand.loc().named("put_along_axis");
  const Variable x = operand.variable();
  Variable index = index_variable("put_along_axis", indices);
  const int along = checked_axis("put_along_axis", axis, x.ndim(), loc);
  if (index.ndim() == x.ndim()) {
    std::vector<Size> places = sizes_of(index, loc);
    const std::vector<Size> sizes = sizes_of(x, loc);
    for (int k = 0; k < x.ndim(); ++k) {
      if (k != along && index.static_shape()[k] == 1) places[k] = sizes[k];
    }
    index = broadcast_sizes(index, places, loc);
  }
  return scatter(Operand(x, loc), Operand(index, loc), values, along);
}

}  // namespace croton
