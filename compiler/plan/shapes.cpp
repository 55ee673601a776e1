#include "compiler/plan/shapes.h"

#include <fmt/format.h>

#include "compiler/graph/op.h"
#include "croton/error.h"
#include "runtime/plan_check.h"

namespace croton {

Shapes::Shapes(const Graph& graph, std::span<const Variable> shareds, DimTable& dims,
               const Graph* written)
    : dims_(dims) {
  int number = 0;
  for (const Variable& input : graph.inputs) leaves_.emplace(input.node(), number++);
  for (const Variable& shared : shareds) leaves_.emplace(shared.node(), number++);
  if (written != nullptr) {
    infer_all(*written, Sweep::equalities);
  } else {
    infer_all(graph, Sweep::equalities);
  }
  // The last sweep writes every size in terms of the one that stands for its class, so that equal
  // sizes are the same term: it is the last because it finds no more that must be equal.
  std::int32_t known = 0;
  do {
    known = dims_.unions();
    infer_all(graph, Sweep::sizes);
  } while (dims_.unions() != known);
}

Dim Shapes::numel(const Variable& v) const {
  Dim product = 1;
  for (const Dim& size : of(v).shape) product = product * size;
  return product;
}

void Shapes::require(PlanCheck check) {
  const Dim a = dims_.dim(check.a), b = dims_.dim(check.b);
  const std::int32_t known = dims_.unions();
  if (!dims_.unify(a, b)) {
    const auto text = [&](Dim dim) { return dims_.to_text(dims_.canonical(dim)); };
    throw GraphError(filled(filled(std::move(check.message), "a", text(a)), "b", text(b)) +
                     "; at " + check.line);
  }
  if (dims_.unions() != known) checks_.push_back(std::move(check));
}

std::vector<DimType> Shapes::leaf_type(const Node& node) {
  const Type& type = node.outputs[0];
  const auto leaf = leaves_.find(&node);
  DimType dims{type.dtype, {}};
  for (std::size_t axis = 0; axis < type.shape.size(); ++axis) {
    const std::int64_t size = type.shape[axis];
    if (size != kAnyDim) {
      dims.shape.emplace_back(size);
    } else if (leaf != leaves_.end()) {
      dims.shape.push_back(dims_.canonical(dims_.input_size(leaf->second, static_cast<int>(axis))));
    } else {
      dims.shape.emplace_back();  // a shared variable that only `written` has
    }
  }
  return {dims};
}

void Shapes::infer_node(const Node& node, Sweep sweep) {
  std::vector<DimType> in;
  for (const Variable& input : node.inputs) in.push_back(of(input));
  Infer infer(
      *node.op, node.inputs, node.attrs(), node.loc, std::move(in),
      [this](const Variable& v) { return value_of(v); },
      [&](Dim a, Dim b, std::string message, SizeRule rule) {
        require({dims_.ref(a), dims_.ref(b), std::move(message), to_text(node.loc),
                 rule == SizeRule::broadcast});
      });
  node.op->infer(infer);
  std::vector<DimType> results = infer.results();
  for (std::size_t k = 0; k < results.size(); ++k) {
    const Shape& known = node.outputs[k].shape;
    for (std::size_t axis = 0; axis < results[k].shape.size(); ++axis) {
      Dim& dim = results[k].shape[axis];
      if (known[axis] != kAnyDim) {
        dim = known[axis];
      } else if (!dim.is_unknown()) {
        dim = dims_.canonical(dim);
      } else if (sweep == Sweep::sizes) {
        infer.fail(
            "its size depends on a value that the graph computes; sizes must follow from shapes, "
            "constants and integer arguments of the function");
      }
    }
  }
  types_[&node] = std::move(results);
}

void Shapes::infer_all(const Graph& graph, Sweep sweep) {
  types_.clear();
  values_.clear();
  for (const Node* node : graph.order()) {
    if (node->op->form == OpForm::leaf) {
      types_[node] = leaf_type(*node);
    } else {
      infer_node(*node, sweep);
    }
  }
}

}  // namespace croton
