#include "ops/evaluate.h"

#include <array>
#include <unordered_map>

#include "compiler/graph/op.h"
#include "croton/error.h"

namespace croton {

Shape broadcast_shape(std::span<const Array> inputs) {
  std::size_t rank = 0;
  for (const Array& input : inputs) rank = std::max(rank, input.ndim());
  Shape shape;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    std::int64_t size = 1;
    for (const Array& input : inputs) {
      const std::size_t missing = rank - input.ndim();
      if (axis >= missing && input.shape()[axis - missing] != 1) {
        size = input.shape()[axis - missing];
      }
    }
    shape.push_back(size);
  }
  return shape;
}

namespace {

constexpr std::size_t kMaxOperands = 4;

template <class T>
Array evaluate_scalar(T (*reference)(const T*), std::span<const Array> inputs, DType result) {
  internal_check(reference != nullptr, "a scalar op has no reference for its operands' dtype");
  internal_check(inputs.size() <= kMaxOperands, "a scalar op has too many operands");
  const Shape shape = broadcast_shape(inputs);
  std::vector<std::vector<T>> operands;
  for (const Array& input : inputs) {
    operands.push_back(input.astype(dtype_of<T>).broadcast_to(shape).template to_vector<T>());
  }
  Array values = Array::empty(shape, dtype_of<T>);
  T* to = values.template mutable_data<T>();
  for (std::int64_t i = 0; i < values.size(); ++i) {
    T x[kMaxOperands] = {};
    for (std::size_t k = 0; k < operands.size(); ++k) {
      x[k] = operands[k][static_cast<std::size_t>(i)];
    }
    to[i] = reference(x);
  }
  return values.astype(result);
}

Array evaluate_scalar(const Node& node, std::span<const Array> inputs) {
  const ScalarReference& reference = node.op->scalar_reference;
  const DType dtype = inputs.back().dtype();
  const DType result = node.outputs[0].dtype;
  if (is_float(dtype)) return evaluate_scalar(reference.real, inputs, result);
  if (is_unsigned(dtype)) return evaluate_scalar(reference.natural, inputs, result);
  if (is_integer(dtype)) return evaluate_scalar(reference.integer, inputs, result);
  return evaluate_scalar(reference.boolean, inputs, result);
}

}  // namespace

bool can_evaluate(const Node& node) {
  const OpDef& op = *node.op;
  if (op.random) return false;
  return op.form == OpForm::scalar || op.reference != nullptr || op.expand != nullptr ||
         op.name == "constant";
}

std::vector<Array> evaluate(const Node& node, std::span<const Array> inputs) {
  const OpDef& op = *node.op;
  if (op.name == "constant") return {node.value};
  if (op.reference != nullptr) return op.reference(node, inputs);
  if (op.form == OpForm::scalar) return {evaluate_scalar(node, inputs)};
  if (op.expand == nullptr) throw InternalError("the op '" + op.name + "' has no reference");
  VariableMap<Array> known;
  for (std::size_t k = 0; k < inputs.size(); ++k) known[node.inputs[k]] = inputs[k];
  return evaluate(op.expand(node), known);
}

std::vector<Array> evaluate(std::span<const Variable> outputs, const VariableMap<Array>& known) {
  VariableMap<Array> values = known;
  // Depth first, by a stack: a node is visited again when its inputs are done.
  std::vector<Variable> todo(outputs.begin(), outputs.end());
  while (!todo.empty()) {
    const Variable v = todo.back();
    if (values.contains(v)) {
      todo.pop_back();
      continue;
    }
    const Node& node = *v.node();
    std::vector<Array> inputs;
    const std::size_t before = todo.size();
    for (const Variable& input : node.inputs) {
      const auto it = values.find(input);
      if (it == values.end()) {
        todo.push_back(input);
      } else {
        inputs.push_back(it->second);
      }
    }
    if (todo.size() != before) continue;
    todo.pop_back();
    std::vector<Array> results = evaluate(node, inputs);
    for (std::size_t k = 0; k < results.size(); ++k) {
      values[Variable(&node, static_cast<int>(k))] = std::move(results[k]);
    }
  }
  std::vector<Array> result;
  for (const Variable& output : outputs) result.push_back(values.at(output));
  return result;
}

}  // namespace croton
