#include "compiler/rewrite/size_source.h"

#include <algorithm>

#include "compiler/graph/op.h"
#include "ops/sizes.h"

namespace croton {
namespace {

/// Ops whose result has the shape of their first operand.
bool keeps_shape(const std::string& op) {
  static constexpr std::string_view kOps[] = {
      "transfer",      "specify_shape",   "softmax",        "log_softmax",    "standardize",
      "set_slice",     "inc_slice",       "set_take",       "inc_take",       "inc_along_axis",
      "delay",         "custom_gradient", "remat",          "prod_others",    "mul_take",
      "max_take",      "min_take",        "set_along_axis", "mul_along_axis", "max_along_axis",
      "min_along_axis"};
  return std::find(std::begin(kOps), std::end(kOps), op) != std::end(kOps);
}

}  // namespace

bool EqualSizes::has(const SizeSource& source) const {
  return std::find(sources.begin(), sources.end(), source) != sources.end();
}

void EqualSizes::add(const SizeSource& source) {
  constexpr std::size_t kMost = 4;
  if (has(source)) return;
  if (sources.size() == kMost) {
    complete = false;
  } else {
    sources.push_back(source);
  }
}

void EqualSizes::add(const EqualSizes& other) {
  for (const SizeSource& source : other.sources) add(source);
  complete = complete && other.complete;
}

bool SizeSources::is_entry_needed(const Node& node) {
  return node.outputs.size() == 1 && !node.outputs[0].shape.is_static() && !node.inputs.empty();
}

EqualSizes SizeSources::known(const Variable& v, int axis) const {
  const std::int64_t size = v.static_shape()[axis];
  if (size != kAnyDim) return {{{size, nullptr, 0, 0}}};
  if (!is_entry_needed(*v.node())) return {{{kAnyDim, v.node(), v.output(), axis}}};
  return entries_.find(v.node())->axes[static_cast<std::size_t>(axis)];
}

EqualSizes SizeSources::of(const Variable& v, int axis) {
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
  return known(v, axis);
}

std::optional<SizeSource> SizeSources::only(const Variable& v, int axis) {
  const EqualSizes sizes = of(v, axis);
  if (!sizes.complete || sizes.sources.size() != 1) return {};
  return sizes.sources[0];
}

bool SizeSources::implied(const Variable& kept, int kept_axis, const Variable& gone,
                          int gone_axis) {
  const EqualSizes left = of(gone, gone_axis);
  const EqualSizes right = of(kept, kept_axis);
  return left.complete && std::all_of(left.sources.begin(), left.sources.end(),
                                      [&](const SizeSource& s) { return right.has(s); });
}

/// The source of a size that is given by an integer scalar.
SizeSource SizeSources::value_of(const Variable& size) const {
  if (is_op(size, "size_of")) {
    const Node& node = *size.node();
    return known(node.inputs[0], static_cast<int>(node.attrs().integer("axis"))).sources[0];
  }
  // A scalar that nothing else says: itself, under an axis that no value has.
  return {kAnyDim, size.node(), size.output(), -1};
}

void SizeSources::compute_elementwise(const Node& node, Entry& entry) {
  const int rank = static_cast<int>(node.outputs[0].shape.size());
  for (int axis = 0; axis < rank; ++axis) {
    for (const Variable& input : node.inputs) {
      const int mine = axis - (rank - input.ndim());
      if (mine < 0 || input.static_shape()[mine] == 1) continue;
      entry.axes[axis].add(known(input, mine));
    }
  }
}

/// The attribute "sizes", with symbolic ones among the inputs from `first` on.
void SizeSources::compute_sizes(const Node& node, Entry& entry, std::size_t first) {
  const std::vector<std::int64_t>& sizes = node.attrs().integers("sizes");
  const bool broadcast = node.op->name == "broadcast";
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    if (sizes[axis] != kSymbolSize) continue;
    entry.axes[axis].add(value_of(node.inputs[first++]));
    if (!broadcast) continue;
    // An operand that is not stretched has to agree with the size.
    const Variable& x = node.inputs[0];
    const int mine = static_cast<int>(axis) - static_cast<int>(sizes.size()) + x.ndim();
    if (mine >= 0 && x.static_shape()[mine] != 1) entry.axes[axis].add(known(x, mine));
  }
}

void SizeSources::compute_gemm(const Node& node, Entry& entry) {
  const int rank = static_cast<int>(node.outputs[0].shape.size());
  for (int side = 0; side < 2; ++side) {
    const Variable& x = node.inputs[side];
    const bool transposed =
        node.attrs().integer_or(side == 0 ? "transpose_a" : "transpose_b", 0) != 0;
    const int axis = x.ndim() - 2 + ((side == 1) != transposed ? 1 : 0);
    entry.axes[rank - 2 + side] = known(x, axis);
  }
}

void SizeSources::compute_fold(const Node& node, Entry& entry) {
  const std::vector<std::int64_t>& axes = node.attrs().integers("axes");
  const bool keepdims = node.attrs().integer("keepdims") != 0;
  int axis = 0;
  for (int from = 0; from < node.inputs[0].ndim(); ++from) {
    const bool reduced = std::find(axes.begin(), axes.end(), from) != axes.end();
    if (!reduced) entry.axes[axis] = known(node.inputs[0], from);
    if (!reduced || keepdims) ++axis;
  }
}

void SizeSources::compute(const Node& node) {
  Entry entry;
  entry.keep = node.out();
  const Shape& shape = node.outputs[0].shape;
  const int rank = static_cast<int>(shape.size());
  entry.axes.resize(static_cast<std::size_t>(rank));
  const std::string& op = node.op->name;
  if (node.op->form == OpForm::scalar) {
    compute_elementwise(node, entry);
  } else if (keeps_shape(op)) {
    for (int axis = 0; axis < rank; ++axis) entry.axes[axis] = known(node.inputs[0], axis);
  } else if (op == "dimshuffle") {
    const std::vector<std::int64_t>& order = node.attrs().integers("order");
    for (int axis = 0; axis < rank; ++axis) {
      if (order[axis] >= 0) entry.axes[axis] = known(node.inputs[0], static_cast<int>(order[axis]));
    }
  } else if (node.op->fold) {
    compute_fold(node, entry);
  } else if (op == "broadcast" || op == "reshape") {
    compute_sizes(node, entry, 1);
  } else if (op == "iota") {
    compute_sizes(node, entry, 0);
  } else if (op == "gemm") {
    compute_gemm(node, entry);
  } else if (op == "pick" || op == "pick_grad") {
    // The last axis of a pick_grad is the node's own.
    for (int axis = 0; axis < node.inputs[1].ndim(); ++axis) {
      entry.axes[axis] = known(node.inputs[0], axis);
      entry.axes[axis].add(known(node.inputs[1], axis));
    }
  }
  for (int axis = 0; axis < rank; ++axis) {
    if (shape[axis] != kAnyDim) entry.axes[axis] = {{{shape[axis], nullptr, 0, 0}}};
    if (entry.axes[axis].sources.empty()) entry.axes[axis].add({kAnyDim, &node, 0, axis});
  }
  entries_[&node] = std::move(entry);
}

}  // namespace croton
