#include "compiler/plan/shapes.h"

#include <fmt/format.h>

#include <unordered_set>

#include "compiler/graph/op.h"
#include "croton/error.h"
#include "runtime/plan_check.h"

namespace croton {

std::vector<Variable> shareds_of(const FunctionGraph& function) {
  std::vector<Variable> result;
  std::unordered_set<const SharedState*> known;
  const auto add = [&](const Variable& v) {
    if (known.insert(v.node()->shared.get()).second) result.push_back(v);
  };
  for (const Node* node : function.graph.order()) {
    if (node->shared) add(node->out());
  }
  for (const Variable& v : function.updated) add(v);
  return result;
}

Shapes::Shapes(const Graph& graph, std::span<const Variable> shareds, DimTable& dims,
               const Graph* written)
    : dims_(dims) {
  int number = 0;
  for (const Variable& input : graph.inputs) leaves_.emplace(input.node(), number++);
  for (const Variable& shared : shareds) leaves_.emplace(shared.node()->shared.get(), number++);
  first_computed_ = number;
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

int Shapes::leaf_number(const Node& leaf) const {
  // A shared variable has one value, on however many contexts.
  const void* key = &leaf;
  if (leaf.shared) key = leaf.shared.get();
  const auto found = leaves_.find(key);
  return found == leaves_.end() ? -1 : found->second;
}

std::vector<DimType> Shapes::leaf_type(const Node& node) {
  const Type& type = node.outputs[0];
  const int leaf = leaf_number(node);
  DimType dims{type.dtype, {}};
  for (std::size_t axis = 0; axis < type.shape.size(); ++axis) {
    const std::int64_t size = type.shape[axis];
    if (size != kAnyDim) {
      dims.shape.emplace_back(size);
    } else if (leaf >= 0) {
      dims.shape.push_back(dims_.canonical(dims_.input_size(leaf, static_cast<int>(axis))));
    } else {
      dims.shape.emplace_back();  // a shared variable that only `written` has
    }
  }
  return {dims};
}

std::vector<DimType> Shapes::infer_types(const Node& node) {
  std::vector<DimType> in;
  for (const Variable& input : node.inputs) in.push_back(of(input));
  Infer infer(
      *node.op, node.inputs, node.attrs(), node.loc, std::move(in),
      [&](const Variable& v) {
        asked_.emplace_back(&node, v);
        return element(v, 0);
      },
      [&](Dim a, Dim b, std::string message, SizeRule rule) {
        require({dims_.ref(a), dims_.ref(b), std::move(message), to_text(node.loc),
                 rule == SizeRule::broadcast});
      });
  node.op->infer(infer);
  return infer.results();
}

void Shapes::infer_node(const Node& node, Sweep sweep) {
  std::vector<DimType> results = infer_types(node);
  const auto each_size = [&](const auto& visit) {
    for (std::size_t k = 0; k < results.size(); ++k) {
      for (std::size_t axis = 0; axis < results[k].shape.size(); ++axis) {
        visit(results[k].shape[axis], node.outputs[k].shape[axis]);
      }
    }
  };
  bool unknown = false;
  each_size([&](const Dim& size, std::int64_t known) {
    unknown = unknown || (size.is_unknown() && known == kAnyDim);
  });
  if (unknown) {
    assuming_ = true;
    results = infer_types(node);
    assuming_ = false;
  }
  each_size([&](Dim& size, std::int64_t known) {
    if (known != kAnyDim) {
      size = known;
    } else if (!size.is_unknown()) {
      size = dims_.canonical(size);
    } else if (sweep == Sweep::sizes) {
      throw GraphError(
          fmt::format("[{}] its size depends on a value that is no integer scalar; at {}",
                      title_of(node.loc, node.op->name), to_text(node.loc)));
    }
  });
  types_[&node] = std::move(results);
}

void Shapes::infer_all(const Graph& graph, Sweep sweep) {
  types_.clear();
  values_.clear();
  asked_.clear();
  for (const Node* node : graph.order()) {
    if (node->op->form == OpForm::leaf) {
      types_[node] = leaf_type(*node);
    } else {
      infer_node(*node, sweep);
    }
  }
}

}  // namespace croton
