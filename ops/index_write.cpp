// Writing to what x(...) selected, as a new value of x.
#include <fmt/format.h>

#include <algorithm>

#include "croton/indexing.h"
#include "croton/math.h"
#include "ops/build.h"
#include "ops/nonzero.h"
#include "ops/sizes.h"
#include "ops/take.h"

namespace croton {
namespace {

/// The value with the axes of the input of a `dimshuffle` node.
Variable order_back(const Node& node, const Variable& value) {
  const std::vector<std::int64_t>& order = node.attrs().integers("order");
  std::vector<int> back(static_cast<std::size_t>(node.inputs[0].ndim()), -1);
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i] >= 0) back[order[i]] = static_cast<int>(i);
  }
  return dimshuffle(value, back, node.loc);
}

/// What stands in a place where `old` is and `value` is written.
Variable combined(WriteMode mode, const Variable& old, const Variable& value, const Loc& loc) {
  constexpr std::string_view kOps[] = {"", "add", "mul", "maximum", "minimum"};
  if (mode == WriteMode::set) return value;
  if (is_bool(old.dtype())) {
    const bool either = mode == WriteMode::add || mode == WriteMode::max;
    return apply(either ? "logical_or" : "logical_and", {old, value}, {}, loc);
  }
  return apply(kOps[static_cast<std::size_t>(mode)], {old, value}, {}, loc);
}

struct Write {
  WriteMode mode;
  std::string_view op;
  Loc loc;

  /// The part with the value in it, in the value that it was taken from.
  Variable put(const Variable& part, const Variable& value) const {
    const Node& node = *part.node();
    if (is_op(part, "dimshuffle")) return put(node.inputs[0], order_back(node, value));
    if (is_op(part, "slice") || is_op(part, "take")) {
      return put_into(node, value, mode, static_cast<int>(node.attrs().integer_or("below", 0)));
    }
    graph_error(op,
                fmt::format("the first operand must be the result of indexing, such as x(0): got "
                            "the result of '{}'",
                            place_of(node).op),
                loc);
  }

  /// `below` of the nodes under this one belong to the same x(...). They select no entry twice, so
  /// what was combined on top is set there.
  Variable put_into(const Node& node, const Variable& value, WriteMode how, int below) const {
    const Variable& x = node.inputs[0];
    Variable y;
    if (is_op(node.out(), "dimshuffle")) {
      y = order_back(node, value);
    } else if (is_op(node.out(), "take")) {
      y = write_entries(node, x, value, how, loc);
    } else {
      y = put_slice(node, value, how);
    }
    if (below == 0) return y;
    return put_into(*x.node(), y, WriteMode::set, below - 1);
  }

  Variable put_slice(const Node& node, const Variable& value, WriteMode how) const {
    const bool add = how == WriteMode::add;
    std::vector<Variable> inputs = node.inputs;
    inputs.insert(inputs.begin() + 1, add ? value : combined(how, node.out(), value, loc));
    Attrs attrs;
    for (const Attrs::Entry& entry : node.attrs()) {
      if (entry.name != "below") attrs.set(entry.name, entry.value);
    }
    return apply(add ? "inc_slice" : "set_slice", std::move(inputs), attrs, loc);
  }

  /// At a mask that is known in the call only, a value for each of its true places.
  Variable put_each(const Node& node, const Variable& value) const {
    const Variable taken = taken_masked(node);
    const Variable written = write_entries(*taken.node(), taken.node()->inputs[0],
                                           broadcast_like(value, taken, loc), mode, loc);
    return reshape_sizes(written, sizes_of(node.inputs[0], loc), loc);
  }

  /// The same, where one value is for all of them, or for each.
  Variable put_masked(const Node& node, const Variable& given) const {
    const Variable& x = node.inputs[0];
    const Variable& mask = node.inputs[1];
    const int rest = x.ndim() - mask.ndim();
    Variable value = given;
    if (value.ndim() == rest + 1 && value.static_shape()[0] != 1) return put_each(node, value);
    if (value.ndim() == rest + 1 && value.static_shape()[0] == 1) {
      std::vector<int> order;
      for (int k = 1; k < value.ndim(); ++k) order.push_back(k);
      value = dimshuffle(value, order, loc);
    }
    std::vector<int> order;
    for (int k = 0; k < x.ndim(); ++k) order.push_back(k < mask.ndim() ? k : -1);
    value = broadcast_like(value, x, loc);
    return where(Operand(dimshuffle(mask, order, loc), loc), combined(mode, x, value, loc), x);
  }
};

}  // namespace

Variable written_part(std::string_view op, const Operand& operand, const Operand& given,
                      WriteMode mode) {
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
  value = cast_to(value, dtype, loc);
  const Write write{mode, op, loc};
  if (is_op(part, "masked")) return write.put_masked(*part.node(), value);
  return write.put(part, broadcast_like(value, part, loc));
}

Variable set_subtensor(const Operand& part, const Operand& value) {
  return written_part("set_subtensor", part, value, WriteMode::set);
}
Variable inc_subtensor(const Operand& part, const Operand& value) {
  return written_part("inc_subtensor", part, value, WriteMode::add);
}
Variable mul_subtensor(const Operand& part, const Operand& value) {
  return written_part("mul_subtensor", part, value, WriteMode::mul);
}
Variable max_subtensor(const Operand& part, const Operand& value) {
  return written_part("max_subtensor", part, value, WriteMode::max);
}
Variable min_subtensor(const Operand& part, const Operand& value) {
  return written_part("min_subtensor", part, value, WriteMode::min);
}

}  // namespace croton
