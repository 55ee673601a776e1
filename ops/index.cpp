// x(...): what the indices mean, and writing to what they select.
#include <fmt/format.h>

#include <algorithm>

#include "croton/indexing.h"
#include "ops/build.h"
#include "ops/registry.h"
#include "ops/slice.h"
#include "ops/take.h"

namespace croton {
namespace {

/// The indices of one x(...), with the ellipsis written out: one entry an axis, and new axes.
struct Indexing {
  Loc loc;
  std::vector<Index::Value> entries;
  bool arrays = false;  ///< an integer Variable is among them
};

void check_array(const Variable& index, const Loc& loc) {
  if (is_integer(index.dtype())) return;
  graph_error(
      "index",
      is_bool(index.dtype())
          ? std::string("a mask of bools is not supported as an index yet; use "
                        "where(mask, a, b), or a reduction with {.where = mask}")
          : fmt::format("an index must be an integer: got {}; cast it", name_of(index.dtype())),
      loc);
}

Indexing written_out(const Variable& x, std::span<const Index> indices) {
  Indexing result;
  result.loc = indices[0].loc().named("index");
  int used = 0;
  int ellipses = 0;
  for (const Index& index : indices) {
    if (std::holds_alternative<Ellipsis>(index.value())) {
      ++ellipses;
    } else if (const auto* array = std::get_if<Variable>(&index.value())) {
      check_array(*array, result.loc);
      result.arrays = true;
      ++used;
    } else if (!std::holds_alternative<NewAxis>(index.value())) {
      ++used;
    }
  }
  if (ellipses > 1) graph_error("index", "only one ellipsis can be given", result.loc);
  if (used > x.ndim()) {
    graph_error("index",
                fmt::format("too many indices: got {} for an operand with {} axes", used, x.ndim()),
                result.loc);
  }
  const auto fill = [&] { result.entries.insert(result.entries.end(), x.ndim() - used, Slice()); };
  for (const Index& index : indices) {
    if (std::holds_alternative<Ellipsis>(index.value())) {
      fill();
    } else {
      result.entries.push_back(index.value());
    }
  }
  if (ellipses == 0) fill();
  return result;
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
  return dimshuffle(apply_slices(x, std::move(builder), 0, indexing.loc), order, indexing.loc);
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
  int below = 0;
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

Variable indexed(const Variable& x, std::initializer_list<Index> list) {
  const Indexing indexing = written_out(x, std::span(list.begin(), list.size()));
  return indexing.arrays ? array_index(x, indexing) : basic_index(x, indexing);
}

/// The value with the axes of the input of a `dimshuffle` node.
Variable order_back(const Node& node, const Variable& value) {
  const std::vector<std::int64_t>& order = node.attrs().integers("order");
  std::vector<int> back(static_cast<std::size_t>(node.inputs[0].ndim()), -1);
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i] >= 0) back[order[i]] = static_cast<int>(i);
  }
  return dimshuffle(value, back, node.loc);
}

/// A write to the result of indexing, as a new value of what was indexed.
struct Write {
  bool add = false;
  std::string_view op;
  Loc loc;

  /// `part` with the value put there, in the value that `part` was taken from; `below` of the nodes
  /// under it belong to the same x(...).
  Variable put(const Variable& part, const Variable& value) const {
    const Node& node = *part.node();
    if (is_op(part, "dimshuffle")) return put(node.inputs[0], order_back(node, value));
    const int below = static_cast<int>(node.attrs().integer_or("below", 0));
    if (is_op(part, "slice")) {
      std::vector<Variable> inputs = node.inputs;
      inputs.insert(inputs.begin() + 1, value);
      Attrs attrs;
      for (const Attrs::Entry& entry : node.attrs()) {
        if (entry.name != "below") attrs.set(entry.name, entry.value);
      }
      const Variable x = apply(add ? "inc_slice" : "set_slice", std::move(inputs), attrs, loc);
      // What is left are new axes, which hold the same elements.
      return below > 0 ? order_back(*node.inputs[0].node(), x) : x;
    }
    if (is_op(part, "take")) {
      const Variable& x = node.inputs[0];
      if (below == 0) return write_entries(node, x, value, add, loc);
      const Variable start = add ? zeros_like(x, loc) : x;
      return put_below(x, write_entries(node, start, value, add, loc));
    }
    graph_error(op,
                fmt::format("the first operand must be the result of indexing, such as x(0): got "
                            "the result of '{}'",
                            place_of(node).op),
                loc);
  }

  Variable put_below(const Variable& part, const Variable& value) const {
    if (is_op(part, "slice")) return put(part, value);
    const Variable x = order_back(*part.node(), value);
    return add ? apply("add", {part.node()->inputs[0], x}, {}, loc) : x;
  }
};

Variable written(std::string_view op, const Operand& operand, const Operand& given, bool add) {
  const Loc loc = operand.loc().named(op);
  const Variable part = operand.variable();
  const DType dtype = part.dtype();
  Variable value = given.is_literal() ? make_scalar(dtype, given.literal(), loc) : given.variable();
  if (value.dtype() != dtype && promote(dtype, value.dtype(), true) != dtype) {
    graph_error(op,
                fmt::format("a value of dtype {} would lose digits in {}: cast it with astype",
                            name_of(value.dtype()), name_of(dtype)),
                loc);
  }
  if (value.ndim() > part.ndim()) {
    graph_error(
        op, fmt::format("a value with {} axes for a part with {}", value.ndim(), part.ndim()), loc);
  }
  value = broadcast_like(cast_to(value, dtype, loc), part, loc);
  return Write{add, op, loc}.put(part, value);
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

Variable set_subtensor(const Operand& part, const Operand& value) {
  return written("set_subtensor", part, value, false);
}

Variable inc_subtensor(const Operand& part, const Operand& value) {
  return written("inc_subtensor", part, value, true);
}

}  // namespace croton
