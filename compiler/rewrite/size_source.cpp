#include "compiler/rewrite/size_source.h"

#include <algorithm>

#include "compiler/graph/op.h"
#include "ops/sizes.h"

namespace croton {
namespace {

/// Ops whose result has the shape of their first operand.
bool keeps_shape(const std::string& op) {
  static constexpr std::string_view kOps[] = {
      "transfer",  "specify_shape", "softmax",  "log_softmax", "standardize",
      "set_slice", "inc_slice",     "set_take", "inc_take",    "inc_along_axis"};
  return std::find(std::begin(kOps), std::end(kOps), op) != std::end(kOps);
}

SizeSource own(const Node& node, int axis) { return {kAnyDim, &node, 0, axis}; }

}  // namespace

bool SizeSources::is_entry_needed(const Node& node) {
  return node.outputs.size() == 1 && !node.outputs[0].shape.is_static() && !node.inputs.empty();
}

SizeSource SizeSources::known(const Variable& v, int axis, int kind) const {
  const std::int64_t size = v.static_shape()[axis];
  if (size != kAnyDim) return {size, nullptr, 0, 0};
  if (!is_entry_needed(*v.node())) return {kAnyDim, v.node(), v.output(), axis};
  return entries_.at(v.node()).sources[kind][static_cast<std::size_t>(axis)];
}

SizeSource SizeSources::of(const Variable& v, int axis, int kind) {
  std::vector<const Node*> todo;
  const auto wants = [&](const Node* node) {
    return is_entry_needed(*node) && !entries_.contains(node);
  };
  if (wants(v.node())) todo.push_back(v.node());
  while (!todo.empty()) {
    const Node* node = todo.back();
    const std::size_t before = todo.size();
    if (wants(node)) {
      for (const Variable& input : node->inputs) {
        if (wants(input.node())) todo.push_back(input.node());
        // The operand of a size_of determines it.
        if (is_op(input, "size_of") && wants(input.node()->inputs[0].node())) {
          todo.push_back(input.node()->inputs[0].node());
        }
      }
      if (todo.size() != before) continue;
      compute(*node);
    }
    todo.pop_back();
  }
  return known(v, axis, kind);
}

/// The source of a size that is given by an integer scalar.
SizeSource SizeSources::value_of(const Variable& size, int kind) const {
  if (is_op(size, "size_of")) {
    const Node& node = *size.node();
    return known(node.inputs[0], static_cast<int>(node.attrs().integer("axis")), kind);
  }
  // A scalar that nothing else says: itself, under an axis that no value has.
  return {kAnyDim, size.node(), size.output(), -1};
}

void SizeSources::compute_elementwise(const Node& node, Entry& entry) {
  const int rank = static_cast<int>(node.outputs[0].shape.size());
  for (int axis = 0; axis < rank; ++axis) {
    bool first = true;
    for (const Variable& input : node.inputs) {
      const int mine = axis - (rank - input.ndim());
      if (mine < 0 || input.static_shape()[mine] == 1) continue;
      if (first) entry.sources[1][axis] = known(input, mine, 1);
      const SizeSource proven = known(input, mine, 0);
      if (!first && !(proven == entry.sources[0][axis])) {
        entry.sources[0][axis] = own(node, axis);
        break;
      }
      entry.sources[0][axis] = proven;
      first = false;
    }
  }
}

/// The attribute "sizes", with symbolic ones among the inputs from `first` on.
void SizeSources::compute_sizes(const Node& node, Entry& entry, std::size_t first) {
  const std::vector<std::int64_t>& sizes = node.attrs().integers("sizes");
  const bool broadcast = node.op->name == "broadcast";
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    if (sizes[axis] != kSymbolSize) continue;
    const Variable& symbol = node.inputs[first++];
    SizeSource proven = value_of(symbol, 0);
    if (broadcast) {
      // An operand that is not stretched has to agree with the size.
      const Variable& x = node.inputs[0];
      const int mine = static_cast<int>(axis) - static_cast<int>(sizes.size()) + x.ndim();
      if (mine >= 0 && x.static_shape()[mine] != 1 && !(known(x, mine, 0) == proven)) {
        proven = own(node, static_cast<int>(axis));
      }
    }
    entry.sources[0][axis] = proven;
    entry.sources[1][axis] = value_of(symbol, 1);
  }
}

void SizeSources::compute_gemm(const Node& node, Entry& entry) {
  const int rank = static_cast<int>(node.outputs[0].shape.size());
  for (int side = 0; side < 2; ++side) {
    const Variable& x = node.inputs[side];
    const bool transposed =
        node.attrs().integer_or(side == 0 ? "transpose_a" : "transpose_b", 0) != 0;
    const int axis = x.ndim() - 2 + ((side == 1) != transposed ? 1 : 0);
    for (int kind = 0; kind < 2; ++kind) {
      entry.sources[kind][rank - 2 + side] = known(x, axis, kind);
    }
  }
}

void SizeSources::compute(const Node& node) {
  Entry entry;
  entry.keep = node.out();
  const Shape& shape = node.outputs[0].shape;
  const int rank = static_cast<int>(shape.size());
  for (auto& list : entry.sources) {
    for (int axis = 0; axis < rank; ++axis) list.push_back(own(node, axis));
  }
  const auto copy = [&](int axis, int from) {
    for (int kind = 0; kind < 2; ++kind) {
      entry.sources[kind][axis] = known(node.inputs[0], from, kind);
    }
  };
  const std::string& op = node.op->name;
  if (node.op->form == OpForm::scalar) {
    compute_elementwise(node, entry);
  } else if (keeps_shape(op)) {
    for (int axis = 0; axis < rank; ++axis) copy(axis, axis);
  } else if (op == "dimshuffle") {
    const std::vector<std::int64_t>& order = node.attrs().integers("order");
    for (int axis = 0; axis < rank; ++axis) {
      if (order[axis] >= 0) copy(axis, static_cast<int>(order[axis]));
    }
  } else if (node.op->fold) {
    const std::vector<std::int64_t>& axes = node.attrs().integers("axes");
    const bool keepdims = node.attrs().integer("keepdims") != 0;
    int axis = 0;
    for (int from = 0; from < node.inputs[0].ndim(); ++from) {
      const bool reduced = std::find(axes.begin(), axes.end(), from) != axes.end();
      if (!reduced) copy(axis, from);
      if (!reduced || keepdims) ++axis;
    }
  } else if (op == "broadcast" || op == "reshape") {
    compute_sizes(node, entry, 1);
  } else if (op == "iota") {
    compute_sizes(node, entry, 0);
  } else if (op == "gemm") {
    compute_gemm(node, entry);
  }
  for (auto& list : entry.sources) {
    for (int axis = 0; axis < rank; ++axis) {
      if (shape[axis] != kAnyDim) list[axis] = {shape[axis], nullptr, 0, 0};
    }
  }
  entries_.emplace(&node, std::move(entry));
}

}  // namespace croton
