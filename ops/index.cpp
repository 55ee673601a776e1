// x(...): what the indices mean. What they select is written to in ops/index_write.cpp.
#include <fmt/format.h>

#include <algorithm>

#include "croton/indexing.h"
#include "ops/build.h"
#include "ops/checked_size.h"
#include "ops/nonzero.h"
#include "ops/size_arithmetic.h"
#include "ops/slice.h"
#include "ops/take.h"

namespace croton {
namespace {

/// The indices of one x(...), with the ellipsis written out: one entry an axis, and new axes.
struct Indexing {
  Loc loc;
  std::vector<Index::Value> entries;
  bool arrays = false;  ///< an integer Variable is among them
  int below = 0;        ///< nodes that were made for it so far
};

void check_mask(const Variable& x, int axis, const Variable& mask, const Loc& loc) {
  for (int k = 0; k < mask.ndim(); ++k) {
    const std::int64_t size = mask.static_shape()[k];
    if (axis + k >= x.ndim()) break;
    const std::int64_t own = x.static_shape()[axis + k];
    if (size == kAnyDim || own == kAnyDim || size == own) continue;
    graph_error("index",
                fmt::format("a mask of shape {} does not fit: axis {} has size {}",
                            mask.static_shape().to_string(), axis + k, own),
                loc);
  }
}

int axes_used(const Index::Value& index, const Loc& loc) {
  if (std::holds_alternative<NewAxis>(index) || std::holds_alternative<Ellipsis>(index)) return 0;
  const auto* array = std::get_if<Variable>(&index);
  if (array == nullptr) return 1;
  if (is_integer(array->dtype())) return 1;
  if (!is_bool(array->dtype())) {
    graph_error(
        "index",
        fmt::format("an index must be an integer: got {}; cast it", name_of(array->dtype())), loc);
  }
  if (array->ndim() == 0) {
    graph_error("index", "a single bool is no index; use where, or newaxis", loc);
  }
  return array->ndim();
}

Indexing written_out(const Variable& x, std::span<const Index> indices) {
  Indexing result;
  result.loc = indices[0].loc().named("index");
  int used = 0;
  int ellipses = 0;
  for (const Index& index : indices) {
    ellipses += std::holds_alternative<Ellipsis>(index.value());
    result.arrays |= std::holds_alternative<Variable>(index.value());
    used += axes_used(index.value(), result.loc);
  }
  if (ellipses > 1) graph_error("index", "only one ellipsis can be given", result.loc);
  if (used > x.ndim()) {
    graph_error("index",
                fmt::format("too many indices: got {} for an operand with {} axes", used, x.ndim()),
                result.loc);
  }
  int axis = 0;
  const auto fill = [&] {
    result.entries.insert(result.entries.end(), x.ndim() - used, Slice());
    axis += x.ndim() - used;
  };
  for (const Index& index : indices) {
    const auto* array = std::get_if<Variable>(&index.value());
    if (std::holds_alternative<Ellipsis>(index.value())) {
      fill();
    } else if (array != nullptr && is_bool(array->dtype())) {
      check_mask(x, axis, *array, result.loc);
      for (const Variable& places : nonzero(Operand(*array, result.loc))) {
        result.entries.emplace_back(places);
      }
    } else {
      result.entries.push_back(index.value());
    }
    axis += axes_used(index.value(), result.loc);
  }
  if (ellipses == 0) fill();
  return result;
}

/// 1 where the size is negative, else 0.
Size is_negative(const Size& size, const Loc& loc) {
  return size_min(size_max(size_sub(Size(0), size, loc), Size(0), loc), Size(1), loc);
}

/// The places that start:stop:step takes of an axis of length n, for a step of either sign that is
/// known in the call only.
Variable stepped_places(const Slice& slice, const Size& n, const Loc& loc) {
  const Size step = checked_step("slice", Size(*slice.step.variable()), loc);
  const Size back = is_negative(step, loc);
  const auto clamped = [&](const Bound& bound) {
    const Size given = whole_number(
        "slice", bound.number() ? Size(*bound.number()) : Size(*bound.variable()), loc);
    const Size own = size_add(given, size_mul(is_negative(given, loc), n, loc), loc);
    return size_min(size_max(own, size_sub(Size(0), back, loc), loc), size_sub(n, back, loc), loc);
  };
  const Size first =
      slice.start.is_none() ? size_mul(back, size_sub(n, Size(1), loc), loc) : clamped(slice.start);
  const Size last = slice.stop.is_none()
                        ? size_sub(n, size_mul(back, size_add(n, Size(1), loc), loc), loc)
                        : clamped(slice.stop);
  const Size count = size_max(
      size_sub(Size(0), size_divide(size_sub(first, last, loc), step, loc), loc), Size(0), loc);
  const Variable scaled = apply("mul", {positions(count, loc), size_variable(step, loc)}, {}, loc);
  return apply("add", {scaled, size_variable(first, loc)}, {}, loc);
}

/// Slices with symbolic steps first, as entries at computed places; full slices are left of them.
Variable without_symbolic_steps(const Variable& operand, Indexing& indexing) {
  Variable x = operand;
  int axis = 0;
  for (Index::Value& entry : indexing.entries) {
    if (std::holds_alternative<NewAxis>(entry)) continue;
    auto* slice = std::get_if<Slice>(&entry);
    const Variable* step = slice ? slice->step.variable() : nullptr;
    if (step != nullptr && constant_value(*step) == nullptr) {
      const Variable places = stepped_places(*slice, sizes_of(x, indexing.loc)[axis], indexing.loc);
      x = take_entries(x, {axis}, {places}, indexing.below++, indexing.loc);
      *slice = Slice();
    }
    ++axis;
  }
  return x;
}

Variable apply_slices(const Variable& x, SliceBuilder builder, int below, const Loc& loc) {
  std::vector<Variable> inputs{x};
  inputs.insert(inputs.end(), builder.symbols.begin(), builder.symbols.end());
  Attrs attrs = builder.attrs();
  if (below > 0) attrs.set("below", std::int64_t{below});
  return apply("slice", std::move(inputs), std::move(attrs), loc);
}

/// Integers, slices and new axes: a slice, then an order of axes that drops and inserts.
Variable basic_index(const Variable& x, const Indexing& indexing) {
  SliceBuilder builder;
  std::vector<int> order;
  int axis = 0;
  for (const Index::Value& entry : indexing.entries) {
    if (std::holds_alternative<NewAxis>(entry)) {
      order.push_back(-1);
    } else if (const auto* number = std::get_if<std::int64_t>(&entry)) {
      builder.add_entry(*number);
      ++axis;
    } else {
      builder.add_range(std::get<Slice>(entry), indexing.loc);
      order.push_back(axis++);
    }
  }
  return dimshuffle(apply_slices(x, std::move(builder), indexing.below, indexing.loc), order,
                    indexing.loc);
}

/// With arrays of indices among them: new axes, then slices, then entries. Integers count as arrays
/// of no axes, as in NumPy.
Variable array_index(const Variable& operand, const Indexing& indexing) {
  SliceBuilder builder;
  std::vector<int> fresh;
  std::vector<int> axes;
  std::vector<Variable> arrays;
  bool sliced = false;
  int axis = 0;
  for (const Index::Value& entry : indexing.entries) {
    if (const auto* slice = std::get_if<Slice>(&entry)) {
      builder.add_range(*slice, indexing.loc);
      sliced |= builder.kind.back() != static_cast<std::int64_t>(SliceKind::full);
    } else {
      builder.add_full();
      if (std::holds_alternative<NewAxis>(entry)) {
        fresh.push_back(axis);
      } else {
        axes.push_back(axis);
        const auto* number = std::get_if<std::int64_t>(&entry);
        arrays.push_back(number ? make_scalar(DType::int64, *number, indexing.loc)
                                : std::get<Variable>(entry));
      }
    }
    ++axis;
  }
  int below = indexing.below;
  Variable x = operand;
  if (!fresh.empty()) {
    x = insert_axes(x, fresh, indexing.loc);
    ++below;
  }
  if (sliced) {
    x = apply_slices(x, std::move(builder), below, indexing.loc);
    ++below;
  }
  return take_entries(x, axes, std::move(arrays), below, indexing.loc);
}

Variable indexed(const Variable& operand, std::initializer_list<Index> list) {
  if (list.size() == 1) {
    const auto* mask = std::get_if<Variable>(&list.begin()->value());
    if (mask != nullptr && is_bool(mask->dtype()) && mask->ndim() > 0 &&
        constant_value(*mask) == nullptr) {
      const Loc loc = list.begin()->loc().named("index");
      check_mask(operand, 0, *mask, loc);
      return masked_entries(operand, *mask, loc);
    }
  }
  Indexing indexing = written_out(operand, std::span(list.begin(), list.size()));
  const Variable x = without_symbolic_steps(operand, indexing);
  return indexing.arrays ? array_index(x, indexing) : basic_index(x, indexing);
}

}  // namespace

Variable Variable::operator()(Index a) const { return indexed(*this, {a}); }
Variable Variable::operator()(Index a, Index b) const { return indexed(*this, {a, b}); }
Variable Variable::operator()(Index a, Index b, Index c) const { return indexed(*this, {a, b, c}); }
Variable Variable::operator()(Index a, Index b, Index c, Index d) const {
  return indexed(*this, {a, b, c, d});
}
Variable Variable::operator()(Index a, Index b, Index c, Index d, Index e) const {
  return indexed(*this, {a, b, c, d, e});
}
Variable Variable::operator()(Index a, Index b, Index c, Index d, Index e, Index f) const {
  return indexed(*this, {a, b, c, d, e, f});
}

Variable Variable::operator()(Index a, Index b, Index c, Index d, Index e, Index f, Index g) const {
  return indexed(*this, {a, b, c, d, e, f, g});
}
Variable Variable::operator()(Index a, Index b, Index c, Index d, Index e, Index f, Index g,
                              Index h) const {
  return indexed(*this, {a, b, c, d, e, f, g, h});
}

}  // namespace croton
