// Elements of integer values that sizes and bounds are made of, as terms over the sizes and the
// integer arguments of the function: scalars, and vectors such as shapes and what is made of them.
#include <algorithm>

#include "compiler/graph/op.h"
#include "compiler/plan/shapes.h"
#include "ops/checked_size.h"
#include "ops/slice.h"

namespace croton {
namespace {

/// Vectors longer than this are not sizes.
constexpr std::int64_t kMost = 64;

bool is_whole(DType dtype) { return is_integer(dtype) || is_bool(dtype); }

Dim negated(Dim x) { return Dim(1) - x; }

Dim unary(const std::string& op, Dim x) {
  if (op == "neg") return Dim(0) - x;
  if (op == "relu") return max(x, Dim(0));
  if (op == "abs") return max(x, Dim(0) - x);
  if (op == "square") return x * x;
  if (op == "logical_not") return negated(x);
  if (op == "sign") return less(0, x) - less(x, 0);
  return {};
}

/// x in a dtype that may not hold it: integers wrap around.
Dim converted(Dim x, DType from, DType to) {
  if (x.is_unknown() || keeps_values(from, to)) return x;
  if (is_bool(to)) return less(x, 0) + less(0, x);
  if (size_of(to) == 8)
    return {};  // uint64 and int64: half of the values of one are not the other's
  const std::int64_t range = std::int64_t{1} << (8 * size_of(to));
  if (is_unsigned(to)) return floor_mod(x, range);
  return floor_mod(x + Dim(range / 2), range) - Dim(range / 2);
}

/// The result of an op in a dtype that may not hold it; of those in uint64 half of the values have
/// no term.
Dim wrapped(const std::string& op, Dim x, DType dtype) {
  if (x.is_unknown() || is_bool(dtype) || dtype == DType::int64) return x;
  if (dtype == DType::uint64) return {};
  for (const char* outgrows :
       {"neg", "abs", "square", "add", "sub", "mul", "floor_divide", "sum", "prod"}) {
    if (op == outgrows) return converted(x, DType::int64, dtype);
  }
  return x;
}

/// `dtype` is that of the operands.
Dim binary(const std::string& op, DType dtype, Dim a, Dim b) {
  if (op == "add") return is_bool(dtype) ? max(a, b) : a + b;
  if (op == "sub") return a - b;
  if (op == "mul") return a * b;
  if (op == "floor_divide") return floor_div(a, b);
  if (op == "mod") return floor_mod(a, b);
  if (op == "maximum" || op == "logical_or") return max(a, b);
  if (op == "minimum" || op == "logical_and") return min(a, b);
  if (op == "lt") return less(a, b);
  if (op == "gt") return less(b, a);
  if (op == "le") return negated(less(b, a));
  if (op == "ge") return negated(less(a, b));
  if (op == "eq") return negated(less(a, b)) * negated(less(b, a));
  if (op == "ne") return less(a, b) + less(b, a);
  return {};
}

}  // namespace

/// The number of elements where it is known and small, else -1.
std::int64_t Shapes::length(const Variable& v) const {
  if (v.ndim() > 1) return -1;
  Dim size = v.ndim() == 0 ? Dim(1) : Dim(v.static_shape()[0]);
  if (size.is(kAnyDim)) {
    const auto known = types_.find(v.node());
    size = known == types_.end() ? Dim() : known->second[v.output()].shape[0];
  }
  return size.is_number() && size.number() <= kMost ? size.number() : -1;
}

Dim Shapes::element(const Variable& v, std::int64_t k) {
  if (!is_whole(v.dtype()) || length(v) <= k || k < 0 || v.output() != 0) return {};
  // Sizes computed from one another can form a deep or heavily shared graph.
  const auto node = values_.find(v.node());
  if (node != values_.end()) {
    const auto known = node->second.find(k);
    const bool found = known != node->second.end();
    if (found && !(assuming_ && known->second.is_unknown())) return known->second;
  }
  Dim value = compute_element(v, k);
  if (value.is_unknown() && assuming_ && v.ndim() == 0) value = assumed(v);
  values_[v.node()][k] = value;
  return value;
}

Dim Shapes::assumed(const Variable& v) {
  std::size_t number = 0;
  while (number < computed_.size() && !computed_[number].same(v)) ++number;
  if (number == computed_.size()) computed_.push_back(v);
  return dims_.input_value(first_computed_ + static_cast<int>(number));
}

Dim Shapes::compute_element(const Variable& v, std::int64_t k) {
  if (const Array* array = constant_value(v)) {
    const Array whole = array->astype(DType::int64).contiguous();
    return Dim(whole.to_vector<std::int64_t>()[static_cast<std::size_t>(k)]);
  }
  const Dim source = element_of_source(v, k);
  return source.is_unknown() ? element_of_arithmetic(v, k) : source;
}

/// Of leaves, and of what picks and orders elements.
Dim Shapes::element_of_source(const Variable& v, std::int64_t k) {
  const Node& node = *v.node();
  const std::string& op = node.op->name;
  if (op == "input" && v.ndim() == 0) {
    const int leaf = leaf_number(node);
    return leaf < 0 ? Dim() : dims_.input_value(leaf);
  }
  if (op == "size_of") return of(node.inputs[0]).shape[node.attrs().integer("axis")];
  if (op == "shape_of") return of(node.inputs[0]).shape[static_cast<std::size_t>(k)];
  if (node.inputs.empty() || node.inputs[0].ndim() > 1) return {};
  if (op == "dimshuffle" || op == "reshape" || op == "specify_shape" || op == "broadcast" ||
      op == "checked_number" || op == "transfer") {
    return element(node.inputs[0], length(node.inputs[0]) == 1 ? 0 : k);
  }
  if (op == "concatenate") {
    for (const Variable& part : node.inputs) {
      const std::int64_t size = length(part);
      if (size < 0) return {};
      if (k < size) return element(part, k);
      k -= size;
    }
  }
  if (op == "slice" && node.inputs[0].ndim() == 0) return element(node.inputs[0], 0);
  if (op == "slice" && length(node.inputs[0]) >= 0) {
    const Dim shape[] = {Dim(length(node.inputs[0]))};
    const AxisPart part =
        slice_parts(node.attrs(), shape, [&](int n) { return element(node.inputs[1 + n], 0); })[0];
    if (part.start.is_number()) return element(node.inputs[0], part.start.number() + part.step * k);
  }
  if (op == "take" && node.inputs.size() == 2) {
    const Dim place = element(node.inputs[1], length(node.inputs[1]) == 1 ? 0 : k);
    if (!place.is_number()) return {};
    const std::int64_t size = length(node.inputs[0]);
    return element(node.inputs[0], place.number() < 0 ? place.number() + size : place.number());
  }
  return {};
}

/// Of elementwise ops and of folds of all elements.
Dim Shapes::element_of_arithmetic(const Variable& v, std::int64_t k) {
  const Node& node = *v.node();
  const std::string& op = node.op->name;
  const auto operand = [&](std::size_t number) {
    const Variable& x = node.inputs[number];
    return element(x, length(x) == 1 ? 0 : k);
  };
  if (node.op->fold) return element_of_fold(v);
  if (node.op->form != OpForm::scalar) return {};
  if (op == "cast") return converted(operand(0), node.inputs[0].dtype(), v.dtype());
  for (const Variable& x : node.inputs) {
    if (x.dtype() == DType::uint64) return {};
  }
  if (node.inputs.size() == 1) {
    const Dim x = operand(0);
    return x.is_unknown() ? Dim() : wrapped(op, unary(op, x), v.dtype());
  }
  if (node.inputs.size() == 2) {
    const Dim a = operand(0);
    const Dim b = operand(1);
    if (a.is_unknown() || b.is_unknown()) return {};
    return wrapped(op, binary(op, node.inputs[0].dtype(), a, b), v.dtype());
  }
  if (op == "where") {
    const Dim condition = operand(0);
    const Dim a = operand(1);
    const Dim b = operand(2);
    if (condition.is_unknown() || a.is_unknown() || b.is_unknown()) return {};
    return b + condition * (a - b);
  }
  if (op == "clip") {
    const Dim x = operand(0);
    const Dim low = operand(1);
    const Dim high = operand(2);
    if (x.is_unknown() || low.is_unknown() || high.is_unknown()) return {};
    return min(max(x, low), high);
  }
  return {};
}

Dim Shapes::element_of_fold(const Variable& v) {
  const Node& node = *v.node();
  const std::string& op = node.op->name;
  const Variable& x = node.inputs[0];
  const std::int64_t count = length(x);
  if (count < 0 || node.inputs.size() != 1 || node.attrs().integers("axes").size() != 1) return {};
  if ((op == "max" || op == "min") && count == 0) return {};
  if (op != "sum" && op != "prod" && op != "max" && op != "min") return {};
  Dim result = op == "sum" ? Dim(0) : op == "prod" ? Dim(1) : element(x, 0);
  for (std::int64_t k = op == "max" || op == "min" ? 1 : 0; k < count; ++k) {
    const Dim next = element(x, k);
    if (next.is_unknown() || result.is_unknown()) return {};
    result = op == "sum"    ? result + next
             : op == "prod" ? result * next
             : op == "max"  ? max(result, next)
                            : min(result, next);
  }
  return wrapped(op, result, v.dtype());
}

}  // namespace croton
