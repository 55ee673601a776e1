// Places of entries that are not 0, entries there, and what else has sizes that follow from values.
#include "ops/nonzero.h"

#include <fmt/format.h>

#include <algorithm>

#include "croton/cumulative.h"
#include "croton/math.h"
#include "croton/sort.h"
#include "croton/tensor.h"
#include "ops/axes.h"
#include "ops/build.h"
#include "ops/places.h"
#include "ops/reference.h"
#include "ops/registry.h"
#include "ops/size_arithmetic.h"
#include "ops/sizes.h"

namespace croton {
namespace {

using kernel::Expr;

void infer_true_places(Infer& infer) {
  infer.expect_inputs(3);
  if (!is_bool(infer.dtype(0)) || infer.ndim(0) != 1) infer.fail("a vector of bools is expected");
  if (infer.dtype(1) != DType::int64 || infer.ndim(1) != 1) infer.fail("running totals expected");
  infer.equal(infer.shape(0)[0], infer.shape(1)[0], "one running total an entry is expected");
  infer.out(DType::int64, {infer.value(2)});
}

/// Each true entry knows from the running total where it stands in the result.
void true_places_kernel(KernelLowering& low) {
  constexpr std::int64_t kAtOnce = 2048;
  constexpr int kResult = 0, kMask = 1, kRunning = 2;
  kernel::Builder& b = low.b;
  const Dim length = low.in[0].shape[0];
  low.blocks = floor_div(length + Dim(kAtOnce - 1), Dim(kAtOnce));
  low.work = length;
  const Expr start = b.bounded(b.block() * kAtOnce);
  const Expr count = b.binary(kernel::Binary::min, b.i64(kAtOnce), low.value(length) - start);
  const Expr lane = b.begin_lanes(count);
  const Expr one = b.i64(1);
  const Expr here = b.load(kMask, start, one);
  const Expr to = b.load(kRunning, start, one) - 1;
  // The count was read before; should it be too small for the mask, nothing is written beyond it.
  b.scatter(kResult, to, start + lane, here & (to < low.value(low.out[0].shape[0])));
  b.end(lane);
}

std::vector<Array> true_places_reference(const Node&, std::span<const Array> inputs) {
  std::vector<std::int64_t> places;
  std::int64_t place = 0;
  for (const bool wanted : reference::values<bool>(inputs[0])) {
    if (wanted) places.push_back(place);
    ++place;
  }
  return {Array::from<std::int64_t>(places, {places.size()})};
}

Variable constant_indices(const std::vector<std::int64_t>& places, const Loc& loc) {
  return make_constant(Array::from<std::int64_t>(places, {places.size()}), loc);
}

/// Where entries are not 0, in a constant: a vector for each axis.
std::vector<Variable> constant_places(const Array& known, const Loc& loc) {
  std::vector<std::vector<std::int64_t>> places(known.ndim());
  std::vector<std::int64_t> at(known.ndim());
  for (const bool wanted : known.contiguous().to_vector<bool>()) {
    for (std::size_t k = 0; wanted && k < at.size(); ++k) places[k].push_back(at[k]);
    for (std::size_t k = at.size(); k-- > 0;) {
      if (++at[k] < known.shape()[k]) break;
      at[k] = 0;
    }
  }
  std::vector<Variable> result;
  for (const std::vector<std::int64_t>& list : places) {
    result.push_back(constant_indices(list, loc));
  }
  return result;
}

Variable truth_of(const Variable& x, const Loc& loc) {
  return is_bool(x.dtype()) ? x : ne(Operand(x, loc), 0);
}

/// How many entries of a mask are true.
Variable count_of(const Variable& mask, const Loc& loc) {
  const Variable ones = cast_to(mask, DType::int64, loc);
  return sum_axes(ones, first_axes(static_cast<std::size_t>(mask.ndim())), false, loc);
}

/// Where a vector of bools is true; `count` of them are.
Variable places_of(const Variable& mask, const Variable& count, const Loc& loc) {
  const Variable running = cumsum(Operand(cast_to(mask, DType::int64, loc), loc), 0);
  return apply("true_places", {mask, running, count}, {}, loc);
}

}  // namespace

Variable masked_entries(const Variable& x, const Variable& mask, const Loc& loc) {
  if (mask.ndim() > x.ndim()) {
    graph_error("index",
                fmt::format("a mask with {} axes for an operand with {}", mask.ndim(), x.ndim()),
                loc);
  }
  return apply("masked", {x, mask, count_of(mask, loc)}, {}, loc);
}

Variable taken_masked(const Node& masked) {
  const Loc loc = place_of(masked);
  const int axes = masked.inputs[1].ndim();
  const Variable mask = merge_axes(masked.inputs[1], 0, axes, loc);
  return take_entries(merge_axes(masked.inputs[0], 0, axes, loc), {0},
                      {places_of(mask, masked.inputs[2], loc)}, 0, loc);
}

std::vector<Variable> nonzero(const Operand& operand) {
  const Loc loc = operand.loc().named("nonzero");
  const Variable x = operand.variable();
  if (x.ndim() == 0) graph_error("nonzero", "a scalar has no places", loc);
  if (const Array* known = constant_value(x)) {
    return constant_places(known->astype(DType::boolean), loc);
  }
  const Variable flat = flatnonzero(Operand(x, loc));
  if (x.ndim() == 1) return {flat};
  return unravel_index(Operand(flat, loc), x.shape());
}

Variable flatnonzero(const Operand& operand) {
  const Loc loc = operand.loc().named("flatnonzero");
  const Variable x = operand.variable();
  if (const Array* known = constant_value(x)) {
    return constant_places(known->astype(DType::boolean).contiguous().reshape({known->size()}),
                           loc)[0];
  }
  const Variable mask = merge_axes(truth_of(x, loc), 0, x.ndim(), loc);
  return places_of(mask, count_of(mask, loc), loc);
}

Variable argwhere(const Operand& operand) {
  const Loc loc = operand.loc().named("argwhere");
  const std::vector<Variable> places = nonzero(Operand(operand.variable(), loc));
  return stack(Parts(places, loc), 1);
}

Variable nonzero_values(const Operand& operand) {
  const Loc loc = operand.loc().named("nonzero_values");
  const Variable x = operand.variable();
  return take(Operand(x, loc), Operand(flatnonzero(Operand(x, loc)), loc));
}

Variable compress(const Operand& condition, const Operand& operand, const Axis& axis) {
  const Loc loc = operand.loc().named("compress");
  const Variable wanted = condition.variable();
  if (wanted.ndim() != 1) graph_error("compress", "a vector of conditions is expected", loc);
  return take(Operand(operand.variable(), loc), flatnonzero(Operand(wanted, loc)), axis);
}

Variable extract(const Operand& condition, const Operand& operand) {
  const Loc loc = operand.loc().named("extract");
  const Variable wanted = condition.variable();
  const Variable flat = merge_axes(wanted, 0, wanted.ndim(), loc);
  return compress(Operand(flat, loc), Operand(operand.variable(), loc));
}

UniqueResult unique(const Operand& operand) {
  const Loc loc = operand.loc().named("unique");
  const std::uint64_t since = next_node_id();
  const Variable given = operand.variable();
  const Variable x = merge_axes(given, 0, given.ndim(), loc);
  const Variable order = argsort(Operand(x, loc), 0);
  const Variable sorted = take(Operand(x, loc), order, 0);
  const Variable place = iota_like(Operand(sorted, loc), 0);
  // NaN equals NaN, as in NumPy. The first entry has none before it.
  const Variable before = roll(Operand(sorted, loc), 1, 0);
  Variable differs = ne(sorted, before);
  if (is_float(x.dtype())) {
    differs = differs & logical_not(isnan(Operand(sorted, loc)) & isnan(Operand(before, loc)));
  }
  const Variable begins = differs | eq(place, 0);
  const Variable starts = flatnonzero(Operand(begins, loc));
  const Variable number = cumsum(Operand(cast_to(begins, DType::int64, loc), loc), 0) - 1;
  UniqueResult result;
  result.values = take(Operand(sorted, loc), starts, 0);
  result.index = take(Operand(order, loc), starts, 0);
  result.inverse =
      reshape_sizes(set_subtensor(zeros_like(number)(order), number), sizes_of(given, loc), loc);
  const Size total[] = {sizes_of(x, loc)[0]};
  const Variable ends[] = {
      starts, broadcast_sizes(size_variable(total[0], loc), std::vector<Size>{Size(1)}, loc)};
  result.counts = diff(Operand(concatenate(Parts({ends[0], ends[1]}, loc), 0), loc));
  for (const Variable& v : {result.values, result.index, result.inverse, result.counts}) {
    relocate(v, since, loc);
  }
  return result;
}

void register_nonzero_ops(OpRegistry& registry) {
  registry.add({.name = "true_places",
                .doc = "Where a vector of bools is true; with its running totals, and the last of "
                       "them.",
                .form = OpForm::loops,
                .infer = infer_true_places,
                .kernel = true_places_kernel,
                .reference = true_places_reference});
}

}  // namespace croton
