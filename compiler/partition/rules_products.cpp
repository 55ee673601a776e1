// How products and indexed reads and writes are cut.
#include <algorithm>

#include "compiler/partition/partitioner.h"
#include "ops/build.h"

namespace croton {
namespace {

using Results = std::optional<std::vector<Held>>;

std::size_t at(int i) { return static_cast<std::size_t>(i); }

/// What an axis of a factor is in a product.
enum class Role { batch, free, summed };

struct Factor {
  const Variable& v;
  bool left;
  bool transposed;

  int rank() const { return v.ndim(); }
  Role role(int axis) const {
    if (axis < rank() - 2) return Role::batch;
    const bool last = axis == rank() - 1;
    return (last != transposed) == left ? Role::summed : Role::free;
  }
  int summed_axis() const { return role(rank() - 1) == Role::summed ? rank() - 1 : rank() - 2; }
};

}  // namespace

Results cut_gemm(const Node& node, Partitioner& p) {
  const Attrs& attrs = node.attrs();
  if (node.inputs.size() != 2) return {};
  const Factor factors[] = {{node.inputs[0], true, attrs.integer_or("transpose_a", 0) != 0},
                            {node.inputs[1], false, attrs.integer_or("transpose_b", 0) != 0}};
  const Held held[] = {p.held(node.inputs[0]), p.held(node.inputs[1])};
  const auto run = [&](const Held& a, const Held& b) {
    return [&p, a, b](int shard) {
      return std::vector<Variable>{p.part(a, shard), p.part(b, shard)};
    };
  };
  const auto role = [&](int k) { return factors[k].role(held[k].axis); };
  // Sums over the cut axis are made in parts.
  for (int k = 0; k < 2; ++k) {
    if (!held[k].cut() || role(k) != Role::summed) continue;
    const int other = 1 - k;
    Held both[2];
    both[k] = held[k];
    both[other] = p.aligned(held[other], factors[other].summed_axis(), held[k].sizes, node.loc);
    if (!both[other].cut()) return {};
    return std::vector<Held>{
        p.all_reduce(p.partials(node, run(both[0], both[1])), kernel::Fold::sum, node.loc)};
  }
  const int rank = static_cast<int>(node.outputs[0].shape.size());
  const int k = held[0].cut() ? 0 : 1;
  const int other = 1 - k;
  Held both[2];
  both[k] = held[k];
  if (role(k) == Role::free) {
    both[other] = p.whole(held[other], node.loc);
    return p.each_shard(node, k == 0 ? rank - 2 : rank - 1, held[k].sizes, run(both[0], both[1]));
  }
  const int axis = held[k].axis + rank - factors[k].rank();
  both[other] =
      p.aligned(held[other], axis - (rank - factors[other].rank()), held[k].sizes, node.loc);
  return p.each_shard(node, axis, held[k].sizes, run(both[0], both[1]));
}

Results cut_take(const Node& node, Partitioner& p) {
  const std::vector<std::int64_t>& axes = node.attrs().integers("axes");
  const bool adjacent = axes.back() - axes.front() + 1 == static_cast<std::int64_t>(axes.size());
  const int before = adjacent ? static_cast<int>(axes[0]) : 0;
  int rank = 0;  // of the indices together
  int chosen = -1;
  for (std::size_t k = 1; k < node.inputs.size(); ++k) {
    rank = std::max(rank, node.inputs[k].ndim());
    if (chosen < 0 && p.held(node.inputs[k]).cut()) chosen = static_cast<int>(k);
  }
  if (chosen < 0) {
    const Held held = p.held(node.inputs[0]);
    if (!held.cut() || std::find(axes.begin(), axes.end(), held.axis) != axes.end()) return {};
    const int other =
        held.axis - static_cast<int>(std::count_if(axes.begin(), axes.end(),
                                                   [&](std::int64_t a) { return a < held.axis; }));
    return p.each_shard(node, other < before ? other : other + rank, held.sizes,
                        [&](int shard) { return p.parts_of(node, shard); });
  }
  const Held index = p.held(node.inputs[at(chosen)]);
  const int axis = index.axis + rank - node.inputs[at(chosen)].ndim();
  std::vector<Held> inputs{p.whole(p.held(node.inputs[0]), node.loc)};
  for (std::size_t k = 1; k < node.inputs.size(); ++k) {
    inputs.push_back(p.aligned(p.held(node.inputs[k]), axis - (rank - node.inputs[k].ndim()),
                               index.sizes, node.loc));
  }
  return p.each_shard(node, before + axis, index.sizes, [&](int shard) {
    std::vector<Variable> parts;
    for (const Held& input : inputs) parts.push_back(p.part(input, shard));
    return parts;
  });
}

/// Sums at indices: of cut values each shard adds up its own.
Results cut_inc_take(const Node& node, Partitioner& p) {
  const int axis = static_cast<int>(node.attrs().integer("axis"));
  const Held base = p.held(node.inputs[0]);
  const Held value = p.held(node.inputs[1]);
  const Held index = p.held(node.inputs[2]);
  const Held& any = value.cut() ? value : index.cut() ? index : base;
  const bool summed = (value.cut() && value.axis == axis) || (!value.cut() && index.cut());
  if (!summed) {
    if (any.axis == axis || index.cut()) return {};
    const Held cut_base = p.aligned(base, any.axis, any.sizes, node.loc);
    const Held cut_value = p.aligned(value, any.axis, any.sizes, node.loc);
    if (!cut_base.cut() || !cut_value.cut()) return {};
    return p.each_shard(node, any.axis, any.sizes, [&](int shard) {
      return std::vector<Variable>{p.part(cut_base, shard), p.part(cut_value, shard),
                                   p.part(index, shard)};
    });
  }
  if (base.cut()) return {};
  const Held cut_value = p.aligned(value, axis, any.sizes, node.loc);
  const Held cut_index = p.aligned(index, 0, any.sizes, node.loc);
  if (!cut_value.cut() || !cut_index.cut()) return {};
  Variable source = node.inputs[0];
  while (is_op(source, "broadcast")) source = source.node()->inputs[0];
  const bool from_zero = is_constant(source, 0);
  const auto inputs = [&](int shard) {
    const Variable& mine = p.part(base, shard);
    const Variable start =
        from_zero ? mine : p.on(p.context_of(shard), [&] { return zeros_like(mine, node.loc); });
    return std::vector<Variable>{start, p.part(cut_value, shard), p.part(cut_index, shard)};
  };
  Held sum = p.all_reduce(p.partials(node, inputs), kernel::Fold::sum, node.loc);
  if (!from_zero) {
    for (int c = 0; c < p.contexts(); ++c) {
      sum.parts[at(c)] = p.on(c, [&] {
        return apply("add", {base.parts[at(c)], sum.parts[at(c)]}, {}, node.loc);
      });
    }
  }
  return std::vector<Held>{std::move(sum)};
}

}  // namespace croton
