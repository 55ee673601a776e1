#include "compiler/plan/shapes.h"

#include <fmt/format.h>

#include "compiler/graph/op.h"
#include "croton/error.h"

namespace croton {

Shapes::Shapes(const Graph& graph, std::span<const Variable> shareds, DimTable& dims)
    : dims_(dims) {
  int number = 0;
  for (const Variable& input : graph.inputs) leaves_.emplace(input.node(), number++);
  for (const Variable& shared : shareds) leaves_.emplace(shared.node(), number++);
  // The first sweep finds which sizes must be equal; the second one writes every size in terms of
  // the one that stands for its class, so that equal sizes are the same term.
  infer_all(graph);
  types_.clear();
  values_.clear();
  collect_ = true;
  infer_all(graph);
}

Dim Shapes::numel(const Variable& v) const {
  Dim product = 1;
  for (const Dim& size : of(v).shape) product = product * size;
  return product;
}

void Shapes::infer_all(const Graph& graph) {
  for (const Node* node : graph.order()) {
    if (node->op->form == OpForm::leaf) {
      const Type& type = node->outputs[0];
      DimType dims{type.dtype, {}};
      for (std::size_t axis = 0; axis < type.shape.size(); ++axis) {
        const std::int64_t size = type.shape[axis];
        dims.shape.push_back(size != kAnyDim ? Dim(size)
                                             : dims_.canonical(dims_.input_size(
                                                   leaves_.at(node), static_cast<int>(axis))));
      }
      types_[node] = {dims};
      continue;
    }
    std::vector<DimType> in;
    for (const Variable& input : node->inputs) in.push_back(of(input));
    Infer infer(
        *node->op, node->inputs, node->attrs(), node->loc, std::move(in),
        [this](const Variable& v) { return value_of(v); },
        [this](Dim a, Dim b, std::string message) {
          if (collect_) return;
          const PlanCheck check{dims_.ref(a), dims_.ref(b), std::move(message)};
          if (!dims_.unify(a, b)) throw GraphError(check.message);
          checks_.push_back(check);
        });
    node->op->infer(infer);
    std::vector<DimType> results = infer.results();
    for (std::size_t k = 0; k < results.size(); ++k) {
      const Shape& known = node->outputs[k].shape;
      for (std::size_t axis = 0; axis < results[k].shape.size(); ++axis) {
        Dim& dim = results[k].shape[axis];
        if (known[axis] != kAnyDim) {
          dim = known[axis];
        } else if (dim.is_unknown()) {
          infer.fail(
              "its size depends on a value that the graph computes; sizes must follow from shapes, "
              "constants and integer arguments of the function");
        } else {
          dim = dims_.canonical(dim);
        }
      }
    }
    types_[node] = std::move(results);
  }
}

Dim Shapes::value_of(const Variable& v) {
  // Sizes computed from one another can form a deep or heavily shared graph.
  const auto known = values_.find(v);
  if (known != values_.end()) return known->second;
  const Dim value = compute_value(v);
  values_.emplace(v, value);
  return value;
}

Dim Shapes::compute_value(const Variable& v) {
  const Node& node = *v.node();
  if (const Array* array = constant_value(v)) {
    return Dim(array->astype(DType::int64).item<std::int64_t>());
  }
  const std::string& op = node.op->name;
  if (op == "input" && v.ndim() == 0 && !is_float(v.dtype())) {
    return dims_.input_value(leaves_.at(&node));
  }
  if (op == "size_of") return of(node.inputs[0]).shape[node.attrs().integer("axis")];
  if (op == "cast" && is_integer(v.dtype())) return value_of(node.inputs[0]);
  if (op == "dimshuffle" && v.ndim() == 0) return value_of(node.inputs[0]);
  if (node.inputs.size() == 1 && is_integer(v.dtype())) {
    const bool known_op = op == "neg" || op == "relu" || op == "abs" || op == "square";
    const Dim x = known_op ? value_of(node.inputs[0]) : Dim();
    if (x.is_unknown()) return {};
    if (op == "neg") return Dim(0) - x;
    if (op == "relu") return max(x, Dim(0));
    if (op == "abs") return max(x, Dim(0) - x);
    return x * x;
  }
  if (node.inputs.size() != 2) return {};
  const auto both = [&](auto combine) {
    const Dim a = value_of(node.inputs[0]);
    const Dim b = value_of(node.inputs[1]);
    return a.is_unknown() || b.is_unknown() ? Dim() : combine(a, b);
  };
  if (op == "add") return both([](Dim a, Dim b) { return a + b; });
  if (op == "sub") return both([](Dim a, Dim b) { return a - b; });
  if (op == "mul") return both([](Dim a, Dim b) { return a * b; });
  if (op == "floor_divide") return both([](Dim a, Dim b) { return floor_div(a, b); });
  if (op == "mod") return both([](Dim a, Dim b) { return floor_mod(a, b); });
  if (op == "maximum") return both([](Dim a, Dim b) { return max(a, b); });
  if (op == "minimum") return both([](Dim a, Dim b) { return min(a, b); });
  return {};
}

}  // namespace croton
