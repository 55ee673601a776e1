// Reading at computed places: functions that are made of take and take_along_axis.
#include <fmt/format.h>

#include <algorithm>

#include "croton/indexing.h"
#include "croton/math.h"
#include "croton/tensor.h"
#include "ops/axes.h"
#include "ops/build.h"
#include "ops/places.h"
#include "ops/size_arithmetic.h"
#include "ops/sizes.h"
#include "ops/take.h"

namespace croton {
namespace {

/// The index as one in bounds of an axis of length n; as it is where that is to be an error.
Variable bounded_index(const Variable& given, const Size& n, IndexMode mode, const Loc& loc) {
  if (mode == IndexMode::raise) return given;
  const Variable index = cast_to(given, DType::int64, loc);
  const auto op = [&](std::string_view name, const Variable& a, const Size& b) {
    return apply(name, {a, size_variable(b, loc)}, {}, loc);
  };
  if (mode == IndexMode::wrap) return op("mod", index, n);
  return op("minimum", op("maximum", index, Size(0)), size_sub(n, Size(1), loc));
}

}  // namespace

Variable take(const Operand& operand, const Operand& indices, const Axis& axis, IndexMode mode) {
  Variable x = operand.variable();
  const Loc loc = operand.loc().named("take");
  int along = 0;
  if (!axis.axes) {
    x = merge_axes(x, 0, x.ndim(), loc);
  } else {
    if (axis.axes->size() != 1) graph_error("take", "one axis is expected", loc);
    along = checked_axis("take", (*axis.axes)[0], x.ndim(), loc);
  }
  const Variable index =
      bounded_index(index_variable("take", indices), sizes_of(x, loc)[along], mode, loc);
  return take_entries(x, {along}, {index}, 0, loc);
}

Variable gather(const Operand& operand, const Operand& indices, int axis) {
  const Variable x = operand.variable();
  const Loc loc = operand.loc().named("gather");
  const Variable index = index_variable("gather", indices);
  const int along = checked_axis("gather", axis, x.ndim(), loc);
  if (index.ndim() != x.ndim()) {
    graph_error("gather",
                fmt::format("indices with as many axes as the operand are expected: got {} and {}",
                            index.ndim(), x.ndim()),
                loc);
  }
  return apply("take_along_axis", {cut_to(x, index, along, loc), index},
               {{"axis", std::int64_t{along}}}, loc);
}

Variable gather_nd(const Operand& operand, const Operand& indices, int batch) {
  const Variable x = operand.variable();
  const Loc loc = operand.loc().named("gather_nd");
  const Variable index = index_variable("gather_nd", indices);
  if (batch < 0 || batch >= x.ndim() || batch >= index.ndim()) {
    graph_error("gather_nd", fmt::format("{} axes of batches of {}", batch, x.ndim()), loc);
  }
  const std::vector<Variable> parts = index_parts("gather_nd", index, x.ndim() - batch, loc);
  std::vector<Variable> all;
  const std::vector<Size> sizes = sizes_of(x, loc);
  for (int k = 0; k < batch; ++k) all.push_back(positions(sizes[k], k, index.ndim() - 1, loc));
  all.insert(all.end(), parts.begin(), parts.end());
  return take_entries(x, first_axes(all.size()), all, 0, loc);
}

Variable choose(const Operand& operand, const Parts& choices, IndexMode mode) {
  const Loc loc = operand.loc().named("choose");
  if (choices.list.empty()) graph_error("choose", "at least one choice is expected", loc);
  const Variable given = index_variable("choose", operand);
  std::vector<Operand> all = choices.list;
  all.push_back(Operand(given, loc));
  std::vector<Variable> wide = broadcast_arrays(Parts(all));
  const auto count = static_cast<std::int64_t>(choices.list.size());
  const Variable index = bounded_index(wide.back(), Size(count), mode, loc);
  wide.pop_back();
  const Variable picked = take_along_axis(Operand(stack(Parts(wide, loc)), loc),
                                          Operand(insert_axes(index, {0}, loc), loc), 0);
  std::vector<int> order;
  for (int k = 1; k < picked.ndim(); ++k) order.push_back(k);
  return dimshuffle(picked, order, loc);
}

std::vector<Variable> unravel_index(const Operand& operand, const Sizes& given) {
  const Loc loc = operand.loc().named("unravel_index");
  const std::vector<Size> sizes = whole_numbers("unravel_index", given, loc);
  Size total = std::int64_t{1};
  for (const Size& size : sizes) total = size_mul(total, size, loc);
  const Size all[] = {total};
  const SizeList list = size_list("unravel_index", all, loc);
  std::vector<Variable> inputs{index_variable("unravel_index", operand)};
  inputs.insert(inputs.end(), list.symbols.begin(), list.symbols.end());
  Variable rest = apply("flat_index", std::move(inputs),
                        {{"sizes", list.numbers}, {"from_front", std::int64_t{1}}}, loc);
  std::vector<Variable> result(sizes.size());
  for (std::size_t k = sizes.size(); k-- > 0;) {
    const Variable size = size_variable(sizes[k], loc);
    result[k] = k == 0 ? rest : apply("mod", {rest, size}, {}, loc);
    if (k > 0) rest = apply("floor_divide", {rest, size}, {}, loc);
  }
  return result;
}

Variable ravel_multi_index(const Parts& indices, const Sizes& given, IndexMode mode) {
  if (indices.list.empty()) graph_error("ravel_multi_index", "an index is expected", Loc());
  const Loc loc = indices.list[0].loc().named("ravel_multi_index");
  const std::vector<Size> sizes = whole_numbers("ravel_multi_index", given, loc);
  if (sizes.size() != indices.list.size()) {
    graph_error("ravel_multi_index",
                fmt::format("{} indices for {} sizes", indices.list.size(), sizes.size()), loc);
  }
  std::vector<Variable> inputs;
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    inputs.push_back(
        bounded_index(index_variable("ravel_multi_index", indices.list[k]), sizes[k], mode, loc));
  }
  const SizeList list = size_list("ravel_multi_index", std::span(sizes), loc);
  inputs.insert(inputs.end(), list.symbols.begin(), list.symbols.end());
  return apply("flat_index", std::move(inputs), {{"sizes", list.numbers}}, loc);
}

Variable inverse_permutation(const Operand& operand) {
  const Loc loc = operand.loc().named("inverse_permutation");
  const Variable order = index_variable("inverse_permutation", operand);
  if (order.ndim() == 0) graph_error("inverse_permutation", "a scalar is no permutation", loc);
  const int last = order.ndim() - 1;
  const Variable place = iota_like(Operand(order, loc), last, order.dtype());
  return apply(op_name(WriteMode::set, true), {zeros_like(order, loc), place, order},
               {{"axis", std::int64_t{last}}}, loc);
}

Variable permute_row_elements(const Operand& operand, const Operand& permutation, bool inverse) {
  const Loc loc = operand.loc().named("permute_row_elements");
  Variable x = operand.variable();
  Variable order = index_variable("permute_row_elements", permutation);
  if (x.ndim() == 0 || order.ndim() == 0) {
    graph_error("permute_row_elements", "at least one axis is expected", loc);
  }
  if (inverse) order = inverse_permutation(Operand(order, loc));
  const int rank = std::max(x.ndim(), order.ndim());
  x = shape_padleft(Operand(x, loc), rank - x.ndim());
  order = shape_padleft(Operand(order, loc), rank - order.ndim());
  return take_along_axis(Operand(x, loc), order, -1);
}

}  // namespace croton
