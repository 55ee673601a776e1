// Reading at integer indices: take, take_along_axis.
#include "ops/take.h"

#include <fmt/format.h>

#include <algorithm>

#include "croton/indexing.h"
#include "croton/math.h"
#include "croton/tensor.h"
#include "ops/axes.h"
#include "ops/build.h"
#include "ops/reference.h"
#include "ops/registry.h"
#include "ops/sizes.h"

namespace croton {

kernel::Expr wrapped_index(kernel::Expr index, kernel::Expr size) {
  return index.builder->select(index < 0, index + size, index);
}

kernel::Expr in_bounds(kernel::Expr index, kernel::Expr size) {
  return (like(index, 0) <= index) & (index < size);
}

namespace {

void check_bounds(const Lowering& low, kernel::Expr ok, std::int64_t axis, kernel::Expr index,
                  kernel::Expr size) {
  low.b.check(ok,
              fmt::format("index {{value}} is out of bounds for axis {} of size {{bound}}", axis),
              index, size, check_place(low.node));
}

/// Where the axes of the indices stand in the result.
struct TakeLayout {
  std::size_t before = 0;  ///< axes of the operand in front of them
  std::size_t rank = 0;    ///< how many they are
};

bool adjacent(std::span<const std::int64_t> axes) {
  return axes.back() - axes.front() + 1 == static_cast<std::int64_t>(axes.size());
}

template <class Rank>
TakeLayout take_layout(std::span<const std::int64_t> axes, Rank&& rank_of_index) {
  TakeLayout layout;
  for (std::size_t k = 0; k < axes.size(); ++k) {
    layout.rank = std::max(layout.rank, static_cast<std::size_t>(rank_of_index(k)));
  }
  layout.before = adjacent(axes) ? static_cast<std::size_t>(axes[0]) : 0;
  return layout;
}

/// Checks an index array: integers, and in bounds where both are known.
void check_index(Infer& infer, int input, Dim size, std::int64_t axis) {
  if (!is_integer(infer.dtype(input))) {
    infer.fail(fmt::format("indices must be integers: got {}", name_of(infer.dtype(input))));
  }
  Variable source = infer.variable(input);
  while (is_op(source, "broadcast")) source = source.node()->inputs[0];
  const Array* known = constant_value(source);
  if (known == nullptr || !size.is_number()) return;
  for (const std::int64_t i : known->astype(DType::int64).to_vector<std::int64_t>()) {
    if (i < -size.number() || i >= size.number()) {
      infer.fail(
          fmt::format("index {} is out of bounds for axis {} of size {}", i, axis, size.number()));
    }
  }
}

void infer_take(Infer& infer) {
  const std::vector<std::int64_t>& axes = infer.attrs().integers("axes");
  if (axes.empty() || infer.inputs() != static_cast<int>(axes.size()) + 1) {
    infer.fail("one array of indices an axis is expected");
  }
  for (std::size_t k = 0; k < axes.size(); ++k) {
    if (axes[k] < 0 || axes[k] >= infer.ndim(0)) {
      infer.fail(fmt::format("axis {} is out of range for {} axes", axes[k], infer.ndim(0)));
    }
    check_index(infer, static_cast<int>(k) + 1, infer.shape(0)[axes[k]], axes[k]);
  }
  const TakeLayout layout =
      take_layout(axes, [&](std::size_t k) { return infer.ndim(static_cast<int>(k) + 1); });
  std::vector<Dim> indices(layout.rank, Dim(1));
  for (int input = 1; input < infer.inputs(); ++input) {
    const std::vector<Dim>& shape = infer.shape(input);
    for (std::size_t k = 0; k < shape.size(); ++k) {
      Dim& size = indices[layout.rank - shape.size() + k];
      if (shape[k].is(1)) continue;
      size = size.is(1) ? shape[k]
                        : infer.equal(size, shape[k], "arrays of indices differ in size",
                                      SizeRule::broadcast);
    }
  }
  std::vector<Dim> shape;
  for (int axis = 0; axis < infer.ndim(0); ++axis) {
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) {
      shape.push_back(infer.shape(0)[axis]);
    }
  }
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(layout.before), indices.begin(),
               indices.end());
  infer.out(infer.dtype(0), std::move(shape));
}

kernel::Expr take_element(Lowering& low, std::span<const Position> at) {
  const std::vector<std::int64_t>& axes = low.node.attrs().integers("axes");
  const TakeLayout layout =
      take_layout(axes, [&](std::size_t k) { return low.in[k + 1].shape.size(); });
  const std::span<const Position> places = at.subspan(layout.before, layout.rank);
  std::vector<Position> from;
  kernel::Expr mask;
  std::size_t other = 0;
  for (std::size_t axis = 0; axis < low.in[0].shape.size(); ++axis) {
    const auto found = std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(axis));
    if (found == axes.end()) {
      from.push_back(at[other < layout.before ? other : other + layout.rank]);
      ++other;
      continue;
    }
    const int input = static_cast<int>(found - axes.begin()) + 1;
    const std::vector<Dim>& shape = low.in[input].shape;
    std::vector<Position> place(shape.size());
    for (std::size_t k = 0; k < shape.size(); ++k) {
      if (!shape[k].is(1)) place[k] = places[layout.rank - shape.size() + k];
    }
    const kernel::Expr size = low.value(low.in[0].shape[axis]);
    const kernel::Expr raw = low.b.cast(low.read(input, std::move(place)), DType::int64);
    const kernel::Expr index = wrapped_index(raw, size);
    const kernel::Expr ok = in_bounds(index, size);
    check_bounds(low, ok, static_cast<std::int64_t>(axis), raw, size);
    mask = mask ? mask & ok : ok;
    from.push_back(low.computed(index));
  }
  return low.read(0, std::move(from), mask);
}

std::vector<Variable> take_grad(const GradArgs& args) {
  std::vector<Variable> result(args.node.inputs.size());
  const Variable nothing = zeros_like(args.in(0), args.node.loc);
  result[0] = write_entries(args.node, nothing, args.g(), WriteMode::add, args.node.loc);
  return result;
}

std::vector<Array> take_reference(const Node& node, std::span<const Array> inputs) {
  const std::vector<std::int64_t>& axes = node.attrs().integers("axes");
  const Shape& shape = inputs[0].shape();
  const TakeLayout layout = take_layout(axes, [&](std::size_t k) { return inputs[k + 1].ndim(); });
  std::vector<std::int64_t> places(layout.rank, 1);
  std::vector<std::vector<std::int64_t>> indices;
  for (const Array& index : inputs.subspan(1)) {
    indices.push_back(reference::values<std::int64_t>(index));
    for (std::size_t k = 0; k < index.ndim(); ++k) {
      std::int64_t& size = places[layout.rank - index.ndim() + k];
      if (index.shape()[k] != 1) size = index.shape()[k];
    }
  }
  std::vector<std::int64_t> result;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(axis)) == axes.end()) {
      result.push_back(shape[axis]);
    }
  }
  result.insert(result.begin() + static_cast<std::ptrdiff_t>(layout.before), places.begin(),
                places.end());
  return {reference::rearrange(inputs[0], Shape(result), [&](const Shape& at) {
    Shape source;
    std::size_t other = 0;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      const auto found = std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(axis));
      if (found == axes.end()) {
        source.push_back(at[other < layout.before ? other : other + layout.rank]);
        ++other;
        continue;
      }
      const auto k = static_cast<std::size_t>(found - axes.begin());
      const Shape& own = inputs[k + 1].shape();
      Shape place;
      for (std::size_t i = 0; i < own.size(); ++i) {
        place.push_back(own[i] == 1 ? 0 : at[layout.before + layout.rank - own.size() + i]);
      }
      source.push_back(reference::checked_index(
          node.op->name, indices[k][static_cast<std::size_t>(reference::flat_index(own, place))],
          shape[axis]));
    }
    return reference::flat_index(shape, source);
  })};
}

// take_along_axis: the operand and the indices have the same sizes except along the axis.

void infer_along(Infer& infer) {
  infer.expect_inputs(2);
  if (infer.ndim(0) != infer.ndim(1)) {
    infer.fail(fmt::format("the indices must have as many axes as the operand: got {} and {}",
                           infer.ndim(1), infer.ndim(0)));
  }
  const int axis = normalize_axis(infer, infer.attrs().integer("axis"), infer.ndim(0));
  check_index(infer, 1, infer.shape(0)[axis], axis);
  std::vector<Dim> shape = infer.shape(1);
  for (int k = 0; k < infer.ndim(0); ++k) {
    if (k == axis) continue;
    shape[k] = infer.equal(infer.shape(0)[k], shape[k],
                           fmt::format("operand and indices differ along axis {}", k));
  }
  infer.out(infer.dtype(0), std::move(shape));
}

kernel::Expr along_element(Lowering& low, std::span<const Position> at) {
  const std::int64_t axis = low.node.attrs().integer("axis");
  std::vector<Position> from(at.begin(), at.end());
  const kernel::Expr size = low.value(low.in[0].shape[axis]);
  const kernel::Expr raw = low.b.cast(low.read(1, from), DType::int64);
  const kernel::Expr index = wrapped_index(raw, size);
  const kernel::Expr ok = in_bounds(index, size);
  check_bounds(low, ok, axis, raw, size);
  from[axis] = low.computed(index);
  return low.read(0, std::move(from), ok);
}

std::vector<Variable> along_grad(const GradArgs& args) {
  const Loc& loc = args.node.loc;
  const Variable& x = args.in(0);
  const Variable& indices = args.in(1);
  const std::int64_t axis = args.node.attrs().integer("axis");
  if (indices.static_shape()[axis] != 1) {
    return {apply("inc_along_axis", {zeros_like(x, loc), args.g(), indices}, {{"axis", axis}}, loc),
            {}};
  }
  // One entry a row: a comparison with the position fuses with what is around it.
  const Variable wide = cast_to(indices, DType::int64, loc);
  const Variable index = where(lt(wide, scalar_like(wide, 0, loc)),
                               add(wide, size_of_axis(x, static_cast<int>(axis), loc)), wide);
  const Variable chosen = eq(iota_like(x, static_cast<int>(axis)), index);
  return {where(chosen, args.g(), scalar_like(args.g(), 0, loc)), {}};
}

std::vector<Array> along_reference(const Node& node, std::span<const Array> inputs) {
  const auto axis = static_cast<std::size_t>(node.attrs().integer("axis"));
  const Shape& shape = inputs[0].shape();
  const Shape& result = inputs[1].shape();
  const std::vector<std::int64_t> indices = reference::values<std::int64_t>(inputs[1]);
  return {reference::rearrange(inputs[0], result, [&](const Shape& at) {
    Shape source = at;
    source[axis] = reference::checked_index(
        node.op->name, indices[static_cast<std::size_t>(reference::flat_index(result, at))],
        shape[axis]);
    return reference::flat_index(shape, source);
  })};
}

}  // namespace

Variable index_variable(std::string_view op, const Operand& operand) {
  Variable indices = operand.variable();
  if (!is_integer(indices.dtype())) {
    graph_error(
        op,
        fmt::format("indices must be integers: got {}{}", name_of(indices.dtype()),
                    is_bool(indices.dtype()) ? "; for a mask use x(mask), or where(mask, a, b)"
                                             : "; cast them"),
        operand.loc());
  }
  return indices;
}

Variable take_entries(const Variable& x, const std::vector<int>& axes,
                      std::vector<Variable> indices, int below, const Loc& loc) {
  indices.insert(indices.begin(), x);
  Attrs attrs{{"axes", std::vector<std::int64_t>(axes.begin(), axes.end())}};
  if (below > 0) attrs.set("below", std::int64_t{below});
  return apply("take", std::move(indices), std::move(attrs), loc);
}

Variable take_along_axis(const Operand& operand, const Operand& indices, int axis) {
  const Loc loc = operand.loc().named("take_along_axis");
  Variable x = operand.variable();
  Variable index = index_variable("take_along_axis", indices);
  const int along = checked_axis("take_along_axis", axis, x.ndim(), loc);
  if (x.ndim() == index.ndim()) {
    std::vector<Size> sizes = sizes_of(x, loc);
    std::vector<Size> places = sizes_of(index, loc);
    for (int k = 0; k < x.ndim(); ++k) {
      if (k == along) continue;
      if (x.static_shape()[k] == 1) sizes[k] = places[k];
      if (index.static_shape()[k] == 1) places[k] = sizes[k];
    }
    // Only what stretches is broadcast.
    const auto stretched = [&](const Variable& v, const std::vector<Size>& to) {
      for (int k = 0; k < v.ndim(); ++k) {
        if (v.static_shape()[k] == 1 && !(to[k].number() && *to[k].number() == 1)) return true;
      }
      return false;
    };
    if (stretched(x, sizes)) x = broadcast_sizes(x, sizes, loc);
    if (stretched(index, places)) index = broadcast_sizes(index, places, loc);
  }
  return apply("take_along_axis", {x, index}, {{"axis", std::int64_t{along}}}, loc);
}

void register_take_ops(OpRegistry& registry) {
  using List = std::vector<std::int64_t>;
  registry.add(
      {.name = "take",
       .doc = "Entries at integer indices along one axis or several.",
       .form = OpForm::loops,
       .infer = infer_take,
       .element = take_element,
       .grad = take_grad,
       .reference = take_reference,
       .examples = {{{{5, 3}, {4}}, {{-3, 3}, {0, 4}}, {{"axes", List{0}}}},
                    {{{5, 3}, {2, 2}}, {{-3, 3}, {0, 2}}, {{"axes", List{1}}}},
                    {{{4, 3, 2}, {2}, {2}}, {{-3, 3}, {0, 3}, {0, 1}}, {{"axes", List{0, 2}}}}}});
  registry.add({.name = "take_along_axis",
                .doc = "For each place the entry along an axis that the index there names.",
                .form = OpForm::loops,
                .infer = infer_along,
                .element = along_element,
                .grad = along_grad,
                .reference = along_reference,
                .examples = {{{{4, 3}, {4, 1}}, {{-3, 3}, {0, 2}}, {{"axis", 1}}},
                             {{{4, 3}, {2, 3}}, {{-3, 3}, {0, 3}}, {{"axis", 0}}}}});
}

}  // namespace croton
