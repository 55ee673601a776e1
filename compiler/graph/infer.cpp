#include "compiler/graph/infer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/graph/lowering.h"
#include "compiler/graph/op.h"
#include "croton/error.h"
#include "runtime/plan_check.h"

namespace croton {

Infer::Infer(const OpDef& op, std::span<const Variable> inputs, const Attrs& attrs, const Loc& loc,
             std::vector<DimType> types, ValueOf value_of, Require require)
    : op_(op),
      inputs_(inputs),
      attrs_(attrs),
      loc_(loc),
      types_(std::move(types)),
      value_of_(std::move(value_of)),
      require_(std::move(require)) {}

Dim Infer::value(int input) const {
  if (const Array* array = constant_value(inputs_[input])) {
    return Dim(array->astype(DType::int64).item<std::int64_t>());
  }
  return value_of_ ? value_of_(inputs_[input]) : Dim();
}

Loc place_of(const Node& node) { return node.loc.named(node.op->name); }

kernel::CheckPlace check_place(const Node& node) {
  return {std::string(title_of(node.loc, node.op->name)), to_text(node.loc)};
}

Dim Infer::equal(Dim a, Dim b, const std::string& what, SizeRule rule) const {
  if (a.same(b)) return a;
  const bool numbers = a.is_number() && b.is_number();
  if (!numbers && a.is_unknown()) return b;
  if (!numbers && b.is_unknown()) return a;
  if (!numbers && !require_) return a.is_number() ? a : b.is_number() ? b : a;
  const bool placed = what.find("{a}") != what.npos || what.find("{b}") != what.npos;
  std::string message = placed ? what : what + ": {a} and {b}";
  if (numbers) fail(filled(filled(std::move(message), "a", a.number()), "b", b.number()));
  require_(a, b, fmt::format("[{}] {}", title_of(loc_, op_.name), message), rule);
  return a.is_number() ? a : b.is_number() ? b : a;
}

std::vector<Dim> Infer::broadcast() const {
  std::size_t rank = 0;
  for (const DimType& type : types_) rank = std::max(rank, type.shape.size());
  std::vector<Dim> result(rank, Dim(1));
  std::vector<int> source(rank, -1);
  for (int i = 0; i < inputs(); ++i) {
    const std::vector<Dim>& shape = types_[i].shape;
    for (std::size_t k = 0; k < shape.size(); ++k) {
      const std::size_t axis = rank - shape.size() + k;
      if (shape[k].is(1)) continue;
      if (source[axis] < 0) {
        result[axis] = shape[k];
        source[axis] = i;
        continue;
      }
      if (result[axis].same(shape[k])) continue;
      result[axis] = equal(result[axis], shape[k],
                           fmt::format("sizes of operands {} and {} differ along axis {} of the "
                                       "result: {{a}} and {{b}}",
                                       source[axis] + 1, i + 1, axis),
                           SizeRule::broadcast);
    }
  }
  return result;
}

void Infer::fail(const std::string& message) const {
  std::vector<std::string> operands;
  for (const Variable& input : inputs_) {
    const Type& type = input.node()->outputs[input.output()];
    operands.push_back(input.name().empty() ? type.to_text()
                                            : fmt::format("'{}' {}", input.name(), type.to_text()));
  }
  throw GraphError(fmt::format(
      "[{}] {}; operands: {}; at {}", title_of(loc_, op_.name), message,
      operands.empty() ? "none" : fmt::format("{}", fmt::join(operands, ", ")), to_text(loc_)));
}

void Infer::expect_inputs(int count) const {
  if (inputs() != count) {
    fail(fmt::format("{} operand{} expected, got {}", count, count == 1 ? "" : "s", inputs()));
  }
}

int normalize_axis(const Infer& infer, std::int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) {
    infer.fail(rank == 0 ? fmt::format("axis {} of a scalar, which has none", axis)
                         : fmt::format("axis {} is out of range: expected {} to {}", axis, -rank,
                                       rank - 1));
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

Position operator+(Position a, const Position& b) {
  for (const auto& [loop, coefficient] : b.terms) {
    bool found = false;
    for (auto& [mine, sum] : a.terms) {
      if (mine != loop) continue;
      sum = sum + coefficient;
      found = true;
    }
    if (!found) a.terms.emplace_back(loop, coefficient);
  }
  a.offset = a.offset + b.offset;
  if (b.computed) a.computed = a.computed ? a.computed + b.computed : b.computed;
  return a;
}

Position operator+(Position a, Dim b) {
  a.offset = a.offset + b;
  return a;
}

Position operator-(Position a, Dim b) {
  a.offset = a.offset - b;
  return a;
}

Position scaled(Position a, Dim by, kernel::Expr by_value) {
  for (auto& [loop, coefficient] : a.terms) coefficient = coefficient * by;
  a.offset = a.offset * by;
  if (a.computed) a.computed = a.computed * by_value;
  return a;
}

}  // namespace croton
