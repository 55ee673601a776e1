// How ops whose results have the axes of their operands are cut: elementwise ones, reductions, and
// those that work along an axis.
#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "compiler/partition/partitioner.h"
#include "ops/slice.h"

namespace croton {
namespace {

using Results = std::optional<std::vector<Held>>;

std::size_t at(int i) { return static_cast<std::size_t>(i); }

/// The first input that is cut, -1 where none is.
int first_cut(const Node& node, const Partitioner& p) {
  for (std::size_t k = 0; k < node.inputs.size(); ++k) {
    if (p.held(node.inputs[k]).cut()) return static_cast<int>(k);
  }
  return -1;
}

/// All inputs broadcast together, aligned at the right; the result is cut along `axis`, counted
/// from the right of the result.
Results cut_aligned(const Node& node, Partitioner& p, int rank, int axis,
                    const std::vector<Variable>& sizes) {
  std::vector<Held> inputs;
  for (const Variable& input : node.inputs) {
    inputs.push_back(p.aligned(p.held(input), axis - (rank - input.ndim()), sizes, node.loc));
  }
  return p.each_shard(node, axis, sizes, [&](int shard) {
    std::vector<Variable> parts;
    for (const Held& input : inputs) parts.push_back(p.part(input, shard));
    return parts;
  });
}

/// A number of rows that is converted or multiplied counts rows still.
Results cut_row_count(const Node& node, Partitioner& p) {
  if (node.inputs.size() > 2 || node.outputs[0].dtype != DType::int64 ||
      (node.op->name != "cast" && node.op->name != "mul")) {
    return {};
  }
  for (const Variable& input : node.inputs) {
    if (input.ndim() != 0 || !is_integer(input.dtype())) return {};
  }
  if (node.inputs.size() == 2 && p.held(node.inputs[0]).counts_rows() &&
      p.held(node.inputs[1]).counts_rows()) {
    return {};
  }
  std::vector<Held> results = p.each_context(node);
  for (int shard = 0; shard < p.shards(); ++shard) {
    std::vector<Variable> inputs;
    for (const Variable& input : node.inputs) {
      const Held& held = p.held(input);
      inputs.push_back(held.counts_rows() ? held.sizes[at(shard)] : p.part(held, shard));
    }
    results[0].sizes.push_back(
        p.on(p.context_of(shard), [&] { return with_inputs(node, std::move(inputs)); }));
  }
  return results;
}

Results cut_scalar(const Node& node, Partitioner& p) {
  const int k = first_cut(node, p);
  if (k < 0) return cut_row_count(node, p);
  const Held held = p.held(node.inputs[at(k)]);
  const int rank = static_cast<int>(node.outputs[0].shape.size());
  return cut_aligned(node, p, rank, held.axis + rank - node.inputs[at(k)].ndim(), held.sizes);
}

/// Where an axis of the operand is in a reduction's result, -1 where it is reduced.
int kept_axis(const Node& node, int axis) {
  const std::vector<std::int64_t>& axes = node.attrs().integers("axes");
  if (std::find(axes.begin(), axes.end(), axis) != axes.end()) return -1;
  if (node.attrs().integer("keepdims") != 0) return axis;
  return axis - static_cast<int>(std::count_if(axes.begin(), axes.end(),
                                               [&](std::int64_t a) { return a < axis; }));
}

Results cut_fold(const Node& node, Partitioner& p) {
  const Held held = p.held(node.inputs[0]);
  if (!held.cut()) return {};
  const auto inputs = [&](int shard) { return std::vector<Variable>{p.part(held, shard)}; };
  const int axis = kept_axis(node, held.axis);
  if (axis >= 0) return p.each_shard(node, axis, held.sizes, inputs);
  const kernel::Fold fold = *node.op->fold;
  if (fold == kernel::Fold::argmin || fold == kernel::Fold::argmax) return {};
  return std::vector<Held>{p.all_reduce(p.partials(node, inputs), fold, node.loc)};
}

bool works_along(const Node& node, int axis) {
  if (node.attrs().has("axis")) return node.attrs().integer("axis") == axis;
  const std::vector<std::int64_t>& axes = node.attrs().integers("axes");
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

/// Operands and results have the same axes, and work is done along others than the cut one.
Results cut_along(const Node& node, Partitioner& p) {
  const int k = first_cut(node, p);
  if (k < 0) return {};
  const Held held = p.held(node.inputs[at(k)]);
  if (works_along(node, held.axis)) return {};
  return cut_aligned(node, p, node.inputs[at(k)].ndim(), held.axis, held.sizes);
}

/// Operands that are joined do not stretch: one that has a single row is an error.
Results cut_concatenate(const Node& node, Partitioner& p) {
  const int k = first_cut(node, p);
  if (k < 0) return {};
  const int axis = p.held(node.inputs[at(k)]).axis;
  for (const Variable& input : node.inputs) {
    if (input.static_shape()[at(axis)] == 1) return {};
  }
  return cut_along(node, p);
}

Results cut_logsumexp(const Node& node, Partitioner& p) {
  const Held held = p.held(node.inputs[0]);
  const int along = static_cast<int>(node.attrs().integer("axis"));
  if (!held.cut() || along == held.axis) return {};
  const bool kept = node.attrs().integer("keepdims") != 0;
  const int axis = kept || along > held.axis ? held.axis : held.axis - 1;
  return p.each_shard(node, axis, held.sizes,
                      [&](int shard) { return std::vector<Variable>{p.part(held, shard)}; });
}

Results cut_dimshuffle(const Node& node, Partitioner& p) {
  const Held held = p.held(node.inputs[0]);
  if (!held.cut()) return {};
  const std::vector<std::int64_t>& order = node.attrs().integers("order");
  const auto found = std::find(order.begin(), order.end(), held.axis);
  if (found == order.end()) return {};
  return p.each_shard(node, static_cast<int>(found - order.begin()), held.sizes,
                      [&](int shard) { return std::vector<Variable>{p.part(held, shard)}; });
}

bool takes_all(const Node& node, int axis) {
  return node.attrs().integers("kind")[at(axis)] == static_cast<std::int64_t>(SliceKind::full);
}

Results cut_slice(const Node& node, Partitioner& p) {
  const Held held = p.held(node.inputs[0]);
  if (!held.cut() || !takes_all(node, held.axis)) return {};
  for (std::size_t k = 1; k < node.inputs.size(); ++k) {
    if (p.held(node.inputs[k]).cut()) return {};
  }
  return p.each_shard(node, held.axis, held.sizes,
                      [&](int shard) { return p.parts_of(node, shard); });
}

/// set_slice and inc_slice: the value has the axes of the operand.
Results cut_write_slice(const Node& node, Partitioner& p) {
  const int k = first_cut(node, p);
  if (k < 0 || k > 1) return {};
  const Held held = p.held(node.inputs[at(k)]);
  if (node.inputs[0].ndim() != node.inputs[1].ndim() || !takes_all(node, held.axis)) return {};
  std::vector<Held> inputs;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const Held& input = p.held(node.inputs[i]);
    inputs.push_back(i < 2 ? p.aligned(input, held.axis, held.sizes, node.loc)
                           : p.whole(input, node.loc));
  }
  if (!inputs[0].cut()) return {};
  return p.each_shard(node, held.axis, held.sizes, [&](int shard) {
    std::vector<Variable> parts;
    for (const Held& input : inputs) parts.push_back(p.part(input, shard));
    return parts;
  });
}

/// The labels have all axes of the values but the last.
Results cut_pick(const Node& node, Partitioner& p) {
  const int k = first_cut(node, p);
  if (k < 0) return {};
  const Held held = p.held(node.inputs[at(k)]);
  if (held.axis >= node.inputs[1].ndim()) return {};
  const Held values = p.aligned(p.held(node.inputs[0]), held.axis, held.sizes, node.loc);
  const Held labels = p.aligned(p.held(node.inputs[1]), held.axis, held.sizes, node.loc);
  if (!values.cut() || !labels.cut()) return {};
  return p.each_shard(node, held.axis, held.sizes, [&](int shard) {
    return std::vector<Variable>{p.part(values, shard), p.part(labels, shard)};
  });
}

Results cut_searchsorted(const Node& node, Partitioner& p) {
  const Held held = p.held(node.inputs[1]);
  if (!held.cut()) return {};
  const Held sorted = p.whole(p.held(node.inputs[0]), node.loc);
  return p.each_shard(node, held.axis, held.sizes, [&](int shard) {
    return std::vector<Variable>{p.part(sorted, shard), p.part(held, shard)};
  });
}

/// The value itself, when it is computed.
Results cut_delay(const Node& node, Partitioner& p) {
  const Held held = p.held(node.inputs[0]);
  if (!held.cut()) return {};
  return p.each_shard(node, held.axis, held.sizes,
                      [&](int shard) { return p.parts_of(node, shard); });
}

const std::unordered_map<std::string_view, PartitionRule>& table() {
  static const std::unordered_map<std::string_view, PartitionRule> rules{
      {"argsort", cut_along},
      {"broadcast", cut_broadcast},
      {"concatenate", cut_concatenate},
      {"cummax", cut_along},
      {"cummin", cut_along},
      {"cumprod", cut_along},
      {"cumsum", cut_along},
      {"delay", cut_delay},
      {"dimshuffle", cut_dimshuffle},
      {"gemm", cut_gemm},
      {"inc_along_axis", cut_along},
      {"inc_slice", cut_write_slice},
      {"inc_take", cut_inc_take},
      {"iota", cut_iota},
      {"log_softmax", cut_along},
      {"logcumsumexp", cut_along},
      {"logsumexp", cut_logsumexp},
      {"max_along_axis", cut_along},
      {"min_along_axis", cut_along},
      {"mul_along_axis", cut_along},
      {"philox_normal", cut_philox},
      {"philox_uniform", cut_philox},
      {"pick", cut_pick},
      {"pick_grad", cut_pick_grad},
      {"prod_others", cut_along},
      {"recurrence", cut_along},
      {"remat", cut_delay},
      {"reshape", cut_reshape},
      {"searchsorted", cut_searchsorted},
      {"set_along_axis", cut_along},
      {"set_slice", cut_write_slice},
      {"shape_of", cut_shape_of},
      {"size_of", cut_size_of},
      {"slice", cut_slice},
      {"softmax", cut_along},
      {"sort", cut_along},
      {"specify_shape", cut_specify_shape},
      {"standardize", cut_along},
      {"take", cut_take},
      {"take_along_axis", cut_along},
  };
  return rules;
}

}  // namespace

PartitionRule partition_rule(const OpDef& op) {
  if (op.form == OpForm::scalar) return cut_scalar;
  if (op.fold) return cut_fold;
  const auto found = table().find(op.name);
  return found == table().end() ? nullptr : found->second;
}

}  // namespace croton
