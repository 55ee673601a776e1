// How ops are cut that are given sizes: a size that counts the rows of what is cut is that of the
// part on each shard.
#include <algorithm>

#include "compiler/partition/partitioner.h"
#include "croton/tensor.h"
#include "ops/build.h"
#include "ops/sizes.h"

namespace croton {
namespace {

using Results = std::optional<std::vector<Held>>;
using Numbers = std::vector<std::int64_t>;

std::size_t at(int i) { return static_cast<std::size_t>(i); }

/// The attribute "sizes" of a node, and the inputs that stand behind some of them.
struct SizeInputs {
  const Node& node;
  int first;  ///< input
  Numbers numbers;
  std::vector<int> input;  ///< by axis, -1 for a number

  SizeInputs(const Node& n, int first_input)
      : node(n), first(first_input), numbers(n.attrs().integers("sizes")) {
    int next = first;
    for (const std::int64_t number : numbers) input.push_back(number == kSymbolSize ? next++ : -1);
  }
  int rank() const { return static_cast<int>(numbers.size()); }
  const Held* held(const Partitioner& p, int axis) const {
    return input[at(axis)] < 0 ? nullptr : &p.held(node.inputs[at(input[at(axis)])]);
  }
  /// The first axis whose size counts rows, -1 where none does.
  int counting(const Partitioner& p) const {
    for (int axis = 0; axis < rank(); ++axis) {
      const Held* size = held(p, axis);
      if (size != nullptr && size->counts_rows()) return axis;
    }
    return -1;
  }
};

/// The node for each shard: `front` gives the inputs before the sizes, and the size of `axis` is
/// that of the part.
Results with_local_size(const SizeInputs& list, Partitioner& p, int axis,
                        const std::vector<Variable>& sizes, const Partitioner::Inputs& front,
                        const Numbers& numbers) {
  Numbers local = numbers;
  local[at(axis)] = kSymbolSize;
  Attrs attrs = list.node.attrs();
  attrs.set("sizes", local);
  Held result{axis, {}, sizes};
  for (int shard = 0; shard < p.shards(); ++shard) {
    std::vector<Variable> inputs = front(shard);
    for (int k = 0; k < list.rank(); ++k) {
      if (k == axis) {
        inputs.push_back(sizes[at(shard)]);
      } else if (local[at(k)] == kSymbolSize) {
        inputs.push_back(p.part(*list.held(p, k), shard));
      }
    }
    result.parts.push_back(p.on(p.context_of(shard), [&] {
      return apply(*list.node.op, std::move(inputs), attrs, list.node.loc);
    }));
  }
  return std::vector<Held>{std::move(result)};
}

/// The product of the sizes of all axes but the first; nothing where one is not known.
std::optional<std::int64_t> row_elements(const Shape& shape) {
  std::int64_t product = 1;
  for (std::size_t k = 1; k < shape.size(); ++k) {
    if (shape[k] == kAnyDim) return {};
    product *= shape[k];
  }
  return product;
}

/// The number of rows of an argument: all that are shared out have the same.
bool counts_argument(const Variable& size) {
  return is_op(size, "size_of") && is_op(size.node()->inputs[0], "input") &&
         size.node()->attrs().integer("axis") == 0;
}

/// How many of `rows` there are for each of `others`, both sizes of one shard's parts; nothing
/// where that is not known.
std::optional<std::int64_t> rows_each(const Variable& rows, const Variable& others) {
  if (rows.same(others) || (counts_argument(rows) && counts_argument(others))) return 1;
  if (!is_op(rows, "mul")) return {};
  const std::vector<Variable>& factors = rows.node()->inputs;
  for (std::size_t k = 0; k < 2; ++k) {
    const Array* number = constant_value(factors[1 - k]);
    if (number == nullptr) continue;
    const std::optional<std::int64_t> each = rows_each(factors[k], others);
    if (each) return *each * number->item<std::int64_t>();
  }
  return {};
}

/// Whether axes behind the first are the same on both sides, as the user wrote them or as sizes of
/// the operand itself.
bool same_rest(const SizeInputs& list, const Variable& x) {
  if (list.rank() != x.ndim()) return false;
  for (int axis = 1; axis < list.rank(); ++axis) {
    const std::int64_t number = list.numbers[at(axis)];
    if (number >= 0 && number == x.static_shape()[at(axis)]) continue;
    if (number != kSymbolSize) return false;
    const Variable& size = list.node.inputs[at(list.input[at(axis)])];
    const bool own = is_op(size, "size_of") && size.node()->inputs[0].same(x) &&
                     size.node()->attrs().integer("axis") == axis;
    if (!own) return false;
  }
  return true;
}

}  // namespace

Results cut_reshape(const Node& node, Partitioner& p) {
  const Held held = p.held(node.inputs[0]);
  if (!held.cut() || held.axis != 0) return {};
  const SizeInputs list(node, 1);
  if (list.rank() == 0) return {};
  const Variable& x = node.inputs[0];
  const auto front = [&](int shard) { return std::vector<Variable>{p.part(held, shard)}; };
  if (same_rest(list, x)) {
    return with_local_size(list, p, 0, held.sizes, front, list.numbers);
  }
  const std::optional<std::int64_t> row = row_elements(x.static_shape());
  const Held* first = list.held(p, 0);
  Numbers numbers = list.numbers;
  std::int64_t rest = 1;
  int inferred = -1;
  bool known = true;
  for (int axis = 1; axis < list.rank(); ++axis) {
    if (numbers[at(axis)] == kInferredSize) {
      inferred = axis;
    } else if (numbers[at(axis)] == kSymbolSize) {
      known = false;
    } else {
      rest *= numbers[at(axis)];
    }
  }
  const bool same_rows =
      (first != nullptr && first->counts_rows()) ||
      (numbers[0] >= 0 && numbers[0] == x.static_shape()[0] && x.static_shape()[0] != kAnyDim);
  if (same_rows) {
    const std::vector<Variable>& sizes =
        first != nullptr && first->counts_rows() ? first->sizes : held.sizes;
    if (inferred >= 0) {
      // A part of no rows does not tell what is left for a size of -1.
      const std::optional<std::int64_t> each = rows_each(held.sizes[0], sizes[0]);
      if (!known || !row || rest == 0 || !each || *each * *row % rest != 0) return {};
      numbers[at(inferred)] = *each * *row / rest;
    }
    return with_local_size(list, p, 0, sizes, front, numbers);
  }
  // A row of the operand gives a whole number of the result's.
  if (numbers[0] != kInferredSize || !known || !row || rest == 0 || *row % rest != 0) return {};
  const std::int64_t entries = *row / rest;
  std::vector<Variable> sizes;
  for (int shard = 0; shard < p.shards(); ++shard) {
    sizes.push_back(p.on(p.context_of(shard), [&] {
      return entries == 1
                 ? held.sizes[at(shard)]
                 : apply("mul",
                         {held.sizes[at(shard)], make_scalar(DType::int64, entries, node.loc)}, {},
                         node.loc);
    }));
  }
  return with_local_size(list, p, 0, sizes, front, numbers);
}

Results cut_broadcast(const Node& node, Partitioner& p) {
  const Held held = p.held(node.inputs[0]);
  const SizeInputs list(node, 1);
  const int extra = list.rank() - node.inputs[0].ndim();
  if (held.cut()) {
    const int axis = held.axis + extra;
    // The size that is asked for may be another: then one device has an error, and so have these.
    const Held* size = list.held(p, axis);
    const bool kept = size == nullptr
                          ? list.numbers[at(axis)] == node.inputs[0].static_shape()[at(held.axis)]
                          : size->counts_rows() && rows_each(size->sizes[0], held.sizes[0]) == 1;
    if (!kept) return {};
    return with_local_size(
        list, p, axis, held.sizes,
        [&](int shard) { return std::vector<Variable>{p.part(held, shard)}; }, list.numbers);
  }
  const int axis = list.counting(p);
  if (axis < 0) return {};
  const std::vector<Variable> sizes = list.held(p, axis)->sizes;
  const Held source = p.aligned(held, axis - extra, sizes, node.loc);
  return with_local_size(
      list, p, axis, sizes, [&](int shard) { return std::vector<Variable>{p.part(source, shard)}; },
      list.numbers);
}

Results cut_specify_shape(const Node& node, Partitioner& p) {
  const Held held = p.held(node.inputs[0]);
  if (!held.cut()) return {};
  const SizeInputs list(node, 1);
  const std::int64_t number = list.numbers[at(held.axis)];
  const auto front = [&](int shard) { return std::vector<Variable>{p.part(held, shard)}; };
  const Held* size = list.held(p, held.axis);
  if (number == kAnyDim) {
    return p.each_shard(node, held.axis, held.sizes,
                        [&](int shard) { return p.parts_of(node, shard); });
  }
  if (size == nullptr || !size->counts_rows()) return {};
  return with_local_size(list, p, held.axis, size->sizes, front, list.numbers);
}

/// Positions along the cut axis go on where the part before ends.
Results cut_iota(const Node& node, Partitioner& p) {
  const SizeInputs list(node, 0);
  const int axis = list.counting(p);
  if (axis < 0) return {};
  const std::vector<Variable> sizes = list.held(p, axis)->sizes;
  Results results = with_local_size(
      list, p, axis, sizes, [](int) { return std::vector<Variable>(); }, list.numbers);
  if (node.attrs().integer("axis") != axis) return results;
  const DType dtype = node.outputs[0].dtype;
  for (int shard = 1; shard < p.shards(); ++shard) {
    Variable& part = (*results)[0].parts[at(shard)];
    part = p.on(p.context_of(shard), [&] {
      return apply("add", {part, cast_to(p.start(sizes, shard), dtype, node.loc)}, {}, node.loc);
    });
  }
  return results;
}

/// The numbers of a part are those that the rows have in the whole array.
Results cut_philox(const Node& node, Partitioner& p) {
  const SizeInputs list(node, 1);
  if (list.counting(p) != 0) return {};
  const std::vector<Variable> sizes = list.held(p, 0)->sizes;
  const Held offset = p.whole(p.held(node.inputs[0]), node.loc);
  const auto front = [&](int shard) {
    Variable before = p.start(sizes, shard);
    const auto times = [&](const Variable& size) {
      before = apply("mul", {before, size}, {}, node.loc);
    };
    for (int axis = 1; axis < list.rank(); ++axis) {
      if (const Held* size = list.held(p, axis)) {
        times(p.part(*size, shard));
      } else {
        times(make_scalar(DType::int64, list.numbers[at(axis)], node.loc));
      }
    }
    return std::vector<Variable>{p.on(p.context_of(shard), [&] {
      return apply("add", {p.part(offset, shard), before}, {}, node.loc);
    })};
  };
  return with_local_size(list, p, 0, sizes, front, list.numbers);
}

Results cut_pick_grad(const Node& node, Partitioner& p) {
  const Held& g = p.held(node.inputs[0]);
  const Held held = g.cut() ? g : p.held(node.inputs[1]);
  if (!held.cut()) return {};
  std::vector<Held> inputs;
  for (std::size_t k = 0; k < node.inputs.size(); ++k) {
    const Held& input = p.held(node.inputs[k]);
    inputs.push_back(k < 2 ? p.aligned(input, held.axis, held.sizes, node.loc) : input);
  }
  return p.each_shard(node, held.axis, held.sizes, [&](int shard) {
    std::vector<Variable> parts;
    for (const Held& input : inputs) parts.push_back(p.part(input, shard));
    return parts;
  });
}

Results cut_size_of(const Node& node, Partitioner& p) {
  const Held held = p.held(node.inputs[0]);
  if (!held.cut()) return {};
  const bool counts = node.attrs().integer("axis") == held.axis;
  Held result;
  for (int c = 0; c < p.contexts(); ++c) {
    if (counts) {
      result.parts.push_back(p.total(held.sizes, c));
      continue;
    }
    int shard = 0;
    while (p.context_of(shard) != c) ++shard;
    result.parts.push_back(p.on(c, [&] { return with_inputs(node, {p.part(held, shard)}); }));
  }
  if (counts) result.sizes = held.sizes;
  return std::vector<Held>{std::move(result)};
}

Results cut_shape_of(const Node& node, Partitioner& p) {
  const Variable& x = node.inputs[0];
  if (!p.held(x).cut()) return {};
  std::vector<Variable> sizes;
  for (int axis = 0; axis < x.ndim(); ++axis) {
    const Variable size = apply("size_of", {x}, {{"axis", std::int64_t{axis}}}, node.loc);
    sizes.push_back(insert_axes(size, {0}, node.loc));
  }
  return std::vector<Held>{
      p.find(apply("concatenate", sizes, {{"axis", std::int64_t{0}}}, node.loc))};
}

}  // namespace croton
