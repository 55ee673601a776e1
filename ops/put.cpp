// Writing at integer indices: set_take and inc_take along one axis with a vector of indices,
// inc_along_axis, and the way there from several arrays of indices of any rank.
#include <fmt/format.h>

#include <algorithm>

#include "croton/math.h"
#include "croton/tensor.h"
#include "ops/build.h"
#include "ops/reference.h"
#include "ops/registry.h"
#include "ops/sizes.h"
#include "ops/take.h"

namespace croton {
namespace {

/// An operand seen as (outer, length, inner) around an axis, and the number of indices.
struct Blocks {
  Dim outer = 1;
  Dim length;
  Dim inner = 1;
  Dim places;
};

Blocks blocks_of(const KernelLowering& low) {
  const auto axis = static_cast<std::size_t>(low.node.attrs().integer("axis"));
  const std::vector<Dim>& shape = low.in[0].shape;
  Blocks blocks;
  blocks.length = shape[axis];
  blocks.places = low.in[1].shape[axis];
  for (std::size_t k = 0; k < axis; ++k) blocks.outer = blocks.outer * shape[k];
  for (std::size_t k = axis + 1; k < shape.size(); ++k) blocks.inner = blocks.inner * shape[k];
  return blocks;
}

kernel::Expr accumulated(kernel::Builder& b, kernel::Expr old, kernel::Expr value) {
  const DType dtype = old.dtype();
  if (dtype == DType::float16 || dtype == DType::bfloat16) {
    return b.cast(b.cast(old, DType::float32) + b.cast(value, DType::float32), dtype);
  }
  return is_bool(dtype) ? old | value : old + value;
}

void check_index(const KernelLowering& low, kernel::Expr ok, kernel::Expr index,
                 kernel::Expr length) {
  low.b.check(ok,
              fmt::format("index {{value}} is out of bounds for axis {} of size {{bound}}",
                          low.node.attrs().integer("axis")),
              index, length, check_place(low.node));
}

// Buffers: result, operand, value, indices.
constexpr int kResult = 0;
constexpr int kOperand = 1;
constexpr int kValue = 2;
constexpr int kIndices = 3;

kernel::Expr checked_index(KernelLowering& low, kernel::Expr place, kernel::Expr length) {
  kernel::Builder& b = low.b;
  const kernel::Expr raw = b.cast(b.load(kIndices, place, b.i64(0)), DType::int64);
  const kernel::Expr index = wrapped_index(raw, length);
  check_index(low, in_bounds(index, length), raw, length);
  return index;
}

/// Elements of one block of a kernel that may add in any order.
constexpr std::int64_t kAtOnce = 2048;

/// Lanes over all elements of an operand, kAtOnce to a block; `body` takes the number of the first
/// element of the block and the counter.
template <class Body>
void over_elements(KernelLowering& low, Dim elements, const Body& body) {
  kernel::Builder& b = low.b;
  low.blocks = floor_div(elements + Dim(kAtOnce - 1), Dim(kAtOnce));
  low.work = elements;
  const kernel::Expr start = b.bounded(b.block() * kAtOnce);
  const kernel::Expr count =
      b.binary(kernel::Binary::min, b.i64(kAtOnce), low.value(elements) - start);
  const kernel::Expr lane = b.begin_lanes(count);
  body(start, lane);
  b.end(lane);
}

/// In two kernels: a copy of the operand, then one addition for each value, all at once. `along`:
/// there is an index for each value.
void add_at_once(KernelLowering& low, bool along) {
  kernel::Builder& b = low.b;
  const Blocks blocks = blocks_of(low);
  const kernel::Expr one = b.i64(1);
  if (low.launch == 0) {
    low.more = true;
    over_elements(low, blocks.outer * blocks.length * blocks.inner,
                  [&](kernel::Expr start, kernel::Expr) {
                    b.store(kResult, start, one, b.load(kOperand, start, one));
                  });
    return;
  }
  over_elements(low, blocks.outer * blocks.places * blocks.inner,
                [&](kernel::Expr start, kernel::Expr lane) {
                  const kernel::Expr inner = low.value(blocks.inner);
                  const kernel::Expr length = low.value(blocks.length);
                  const kernel::Expr places = low.value(blocks.places);
                  const kernel::Expr number = b.bounded(start + lane);
                  const kernel::Expr row = number / inner;
                  const kernel::Expr found =
                      along ? b.load(kIndices, start, one) : b.gather(kIndices, row % places);
                  const kernel::Expr raw = b.cast(found, DType::int64);
                  const kernel::Expr index = wrapped_index(raw, length);
                  const kernel::Expr ok = in_bounds(index, length);
                  check_index(low, ok, raw, length);
                  const kernel::Expr to = (row / places * length + index) * inner + number % inner;
                  b.scatter_add(kResult, to, b.load(kValue, start, one), ok);
                });
}

bool adds_at_once(const KernelLowering& low) {
  return low.atomics && kernel::Builder::can_scatter_add(low.out[0].dtype);
}

/// Along the last axis: each block has some rows, copies them, and then writes one column of them
/// after the other, in the order of the indices.
void put_columns(KernelLowering& low, const Blocks& blocks, bool add) {
  constexpr std::int64_t kRows = 64;
  kernel::Builder& b = low.b;
  low.blocks = floor_div(blocks.outer + Dim(kRows - 1), Dim(kRows));
  low.work = blocks.outer * (blocks.length + blocks.places);

  const kernel::Expr one = b.i64(1);
  const kernel::Expr length = low.value(blocks.length);
  const kernel::Expr places = low.value(blocks.places);
  const kernel::Expr first = b.block() * kRows;
  const kernel::Expr rows =
      b.binary(kernel::Binary::min, low.value(blocks.outer) - first, b.i64(kRows));
  const kernel::Expr begin = first * length;
  const kernel::Expr copy = b.begin_lanes(rows * length);
  b.store(kResult, begin, one, b.load(kOperand, begin, one));
  b.end(copy);

  const kernel::Expr place = b.begin_loop(places);
  const kernel::Expr index = checked_index(low, place, length);
  const kernel::Expr lane = b.begin_lanes(b.select(in_bounds(index, length), rows, b.i64(0)));
  const kernel::Expr to = begin + index;
  kernel::Expr value = b.load(kValue, first * places + place, places);
  if (add) value = accumulated(b, b.load(kResult, to, length), value);
  b.store(kResult, to, length, value);
  b.end(lane);
  b.end(place);
}

/// The rows of the operand are cut into chunks, one a block; each block copies its rows and then
/// walks over all indices in order, writing those that fall into its rows. So the order of
/// additions is that of the indices whatever runs the blocks.
void put_kernel(KernelLowering& low, bool add) {
  kernel::Builder& b = low.b;
  if (add && adds_at_once(low)) return add_at_once(low, false);
  const Blocks blocks = blocks_of(low);
  if (blocks.inner.is(1)) return put_columns(low, blocks, add);
  const Dim chunks = min(blocks.length, max(floor_div(Dim(64), max(blocks.outer, Dim(1))), Dim(1)));
  const Dim rows = floor_div(blocks.length + chunks - Dim(1), max(chunks, Dim(1)));
  low.blocks = blocks.outer * chunks;
  low.work = blocks.outer * (blocks.length + blocks.places) * blocks.inner;

  const kernel::Expr zero = b.i64(0);
  const kernel::Expr one = b.i64(1);
  const kernel::Expr length = low.value(blocks.length);
  const kernel::Expr inner = low.value(blocks.inner);
  const kernel::Expr places = low.value(blocks.places);
  const kernel::Expr outer = b.block() / low.value(chunks);
  const kernel::Expr first = (b.block() % low.value(chunks)) * low.value(rows);
  const kernel::Expr last = b.binary(kernel::Binary::min, first + low.value(rows), length);

  const kernel::Expr begin = (outer * length + first) * inner;
  const kernel::Expr count = b.binary(kernel::Binary::max, (last - first) * inner, zero);
  const kernel::Expr copy = b.begin_lanes(count);
  b.store(kResult, begin, one, b.load(kOperand, begin, one));
  b.end(copy);

  const kernel::Expr place = b.begin_loop(places);
  const kernel::Expr index = checked_index(low, place, length);
  const kernel::Expr mine = (first <= index) & (index < last);
  const kernel::Expr lane = b.begin_lanes(b.select(mine, inner, zero));
  const kernel::Expr to = (outer * length + index) * inner;
  kernel::Expr value = b.load(kValue, (outer * places + place) * inner, one);
  if (add) value = accumulated(b, b.load(kResult, to, one), value);
  b.store(kResult, to, one, value);
  b.end(lane);
  b.end(place);
}

void set_take_kernel(KernelLowering& low) { put_kernel(low, false); }
void inc_take_kernel(KernelLowering& low) { put_kernel(low, true); }

/// Each lane owns one column along the axis: it copies it, then adds at its indices in order.
void along_kernel(KernelLowering& low) {
  if (adds_at_once(low)) return add_at_once(low, true);
  constexpr std::int64_t kColumns = 256;
  kernel::Builder& b = low.b;
  const Blocks blocks = blocks_of(low);
  const Dim columns = blocks.outer * blocks.inner;
  low.blocks = floor_div(columns + Dim(kColumns - 1), Dim(kColumns));
  low.work = columns * (blocks.length + blocks.places);

  const kernel::Expr length = low.value(blocks.length);
  const kernel::Expr inner = low.value(blocks.inner);
  const kernel::Expr places = low.value(blocks.places);
  const kernel::Expr first = b.block() * kColumns;
  const kernel::Expr count =
      b.binary(kernel::Binary::min, low.value(columns) - first, b.i64(kColumns));
  const kernel::Expr lane = b.begin_lanes(count);
  const kernel::Expr outer = (first + lane) / inner;
  const kernel::Expr rest = (first + lane) % inner;
  const auto element = [&](kernel::Expr size, kernel::Expr k) {
    return (outer * size + k) * inner + rest;
  };
  const kernel::Expr row = b.begin_loop(length);
  b.scatter(kResult, element(length, row), b.gather(kOperand, element(length, row)));
  b.end(row);
  const kernel::Expr place = b.begin_loop(places);
  const kernel::Expr raw = b.cast(b.gather(kIndices, element(places, place)), DType::int64);
  const kernel::Expr index = wrapped_index(raw, length);
  const kernel::Expr ok = in_bounds(index, length);
  check_index(low, ok, raw, length);
  const kernel::Expr to = element(length, index);
  const kernel::Expr value = b.gather(kValue, element(places, place));
  b.scatter(kResult, to, accumulated(b, b.gather(kResult, to, ok), value), ok);
  b.end(place);
  b.end(lane);
}

void check_value(Infer& infer) {
  infer.expect_inputs(3);
  if (infer.dtype(0) != infer.dtype(1)) {
    infer.fail(fmt::format("a value of dtype {} expected, got {}", name_of(infer.dtype(0)),
                           name_of(infer.dtype(1))));
  }
  if (infer.ndim(0) != infer.ndim(1)) infer.fail("the value has another number of axes");
  if (!is_integer(infer.dtype(2))) infer.fail("indices must be integers");
  const int axis = normalize_axis(infer, infer.attrs().integer("axis"), infer.ndim(0));
  for (int k = 0; k < infer.ndim(0); ++k) {
    if (k == axis) continue;
    infer.equal(infer.shape(0)[k], infer.shape(1)[k],
                fmt::format("the value does not fit along axis {}", k));
  }
  infer.out(infer.dtype(0), infer.shape(0));
}

void infer_put(Infer& infer) {
  check_value(infer);
  if (infer.ndim(2) != 1) infer.fail("one vector of indices is expected");
  infer.equal(infer.shape(1)[infer.attrs().integer("axis")], infer.shape(2)[0],
              "one value an index is expected");
}

void infer_along(Infer& infer) {
  check_value(infer);
  if (infer.ndim(2) != infer.ndim(1)) infer.fail("one index a value is expected");
  for (int k = 0; k < infer.ndim(1); ++k) {
    infer.equal(infer.shape(1)[k], infer.shape(2)[k], "one index a value is expected");
  }
}

Variable take_back(const Node& node, const Variable& g) {
  return take_entries(g, {static_cast<int>(node.attrs().integer("axis"))}, {node.inputs[2]}, 0,
                      node.loc);
}

/// Of values for one place only the last one is kept, and only that one has a gradient.
Variable kept_gradient(const GradArgs& args) {
  const Loc& loc = args.node.loc;
  const int axis = static_cast<int>(args.node.attrs().integer("axis"));
  const Variable& indices = args.in(2);
  const Variable number = iota_like(Operand(indices, loc), 0);
  const Size length[] = {sizes_of(args.in(0), loc)[axis]};
  const Variable nobody = broadcast_sizes(make_scalar(DType::int64, 0, loc), length, loc);
  const Variable last = apply("set_take", {nobody, number, indices}, {{"axis", 0}}, loc);
  const Variable kept = eq(take_entries(last, {0}, {indices}, 0, loc), number);
  std::vector<int> order(static_cast<std::size_t>(args.in(1).ndim()), -1);
  order[axis] = 0;
  const Variable g = take_back(args.node, args.g());
  return where(dimshuffle(kept, order, loc), g, scalar_like(g, 0, loc));
}

std::vector<Variable> set_take_grad(const GradArgs& args) {
  const Loc& loc = args.node.loc;
  return {apply("set_take", {args.g(), zeros_like(args.in(1), loc), args.in(2)}, args.node.attrs(),
                loc),
          kept_gradient(args),
          {}};
}

std::vector<Variable> inc_take_grad(const GradArgs& args) {
  return {args.g(), take_back(args.node, args.g()), {}};
}

std::vector<Variable> along_grad(const GradArgs& args) {
  return {args.g(),
          apply("take_along_axis", {args.g(), args.in(2)}, args.node.attrs(), args.node.loc),
          {}};
}

std::vector<Array> put_reference(const Node& node, std::span<const Array> inputs) {
  const auto axis = static_cast<std::size_t>(node.attrs().integer("axis"));
  const Shape& shape = inputs[0].shape();
  const Shape& places = inputs[1].shape();
  const bool along = node.op->name == "inc_along_axis";
  const bool add = node.op->name != "set_take";
  const std::vector<std::int64_t> indices = reference::values<std::int64_t>(inputs[2]);
  return {reference::with_class(inputs[0].dtype(), [&](auto tag) {
    using T = decltype(tag);
    std::vector<T> result = reference::values<T>(inputs[0]);
    reference::Odometer position(places);
    std::size_t number = 0;
    for (const T value : reference::values<T>(inputs[1])) {
      Shape to = position.at();
      const std::int64_t index = indices[along ? number : static_cast<std::size_t>(to[axis])];
      to[axis] = reference::checked_index(node.op->name, index, shape[axis]);
      auto&& target = result[static_cast<std::size_t>(reference::flat_index(shape, to))];
      target = add ? static_cast<T>(target + value) : value;
      position.next();
      ++number;
    }
    Array out = Array::empty(shape, dtype_of<T>);
    std::copy(result.begin(), result.end(), out.mutable_data<T>());
    return out.astype(inputs[0].dtype());
  })};
}

// flat_index: several indices into adjacent axes as one into their product.

void infer_flat_index(Infer& infer) {
  const int count = static_cast<int>(infer.attrs().integers("sizes").size());
  if (infer.inputs() < count || count == 0) infer.fail("one array of indices a size is expected");
  std::vector<Dim> shape;
  for (int input = 0; input < count; ++input) {
    const std::vector<Dim>& own = infer.shape(input);
    if (own.size() > shape.size()) shape.insert(shape.begin(), own.size() - shape.size(), Dim(1));
    for (std::size_t k = 0; k < own.size(); ++k) {
      Dim& size = shape[shape.size() - own.size() + k];
      if (own[k].is(1)) continue;
      size = size.is(1) ? own[k]
                        : infer.equal(size, own[k], "arrays of indices differ in size",
                                      SizeRule::broadcast);
    }
  }
  infer.out(DType::int64, std::move(shape));
}

kernel::Expr flat_index_element(Lowering& low, std::span<const Position> at) {
  kernel::Builder& b = low.b;
  const std::vector<std::int64_t>& sizes = low.node.attrs().integers("sizes");
  int symbol = static_cast<int>(sizes.size());
  kernel::Expr flat;
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    const std::vector<Dim>& own = low.in[k].shape;
    std::vector<Position> place(own.size());
    for (std::size_t i = 0; i < own.size(); ++i) {
      if (!own[i].is(1)) place[i] = at[at.size() - own.size() + i];
    }
    const kernel::Expr size = sizes[k] == kSymbolSize ? low.read(symbol++, {}) : b.i64(sizes[k]);
    const kernel::Expr raw = b.cast(low.read(static_cast<int>(k), std::move(place)), DType::int64);
    const kernel::Expr index = wrapped_index(raw, size);
    const kernel::Expr ok = in_bounds(index, size);
    b.check(ok, "index {value} is out of bounds for an axis of size {bound}", raw, size,
            check_place(low.node));
    const kernel::Expr safe = b.select(ok, index, b.i64(0));
    flat = flat ? flat * size + safe : safe;
  }
  return flat;
}

std::vector<Array> flat_index_reference(const Node& node, std::span<const Array> inputs) {
  const std::size_t count = node.attrs().integers("sizes").size();
  const Shape sizes = size_numbers(node.attrs(), inputs.subspan(count));
  Shape shape;
  for (const Array& index : inputs.first(count)) {
    Shape wide;
    const std::size_t rank = std::max(shape.size(), index.ndim());
    for (std::size_t k = 0; k < rank; ++k) {
      const std::int64_t a = k + shape.size() < rank ? 1 : shape[k + shape.size() - rank];
      const std::int64_t c = k + index.ndim() < rank ? 1 : index.shape()[k + index.ndim() - rank];
      wide.push_back(a == 1 ? c : a);
    }
    shape = wide;
  }
  Array result = Array::zeros(shape, DType::int64);
  std::int64_t* flat = result.mutable_data<std::int64_t>();
  for (std::size_t k = 0; k < count; ++k) {
    const std::vector<std::int64_t> index =
        reference::values<std::int64_t>(inputs[k].broadcast_to(shape));
    for (std::size_t i = 0; i < index.size(); ++i) {
      flat[i] = flat[i] * sizes[k] + reference::checked_index(node.op->name, index[i], sizes[k]);
    }
  }
  return {result};
}

Variable reshape_like(const Variable& x, const Variable& like, const Loc& loc) {
  return x.ndim() == like.ndim() ? x : reshape_sizes(x, sizes_of(like, loc), loc);
}

/// The arrays of indices as one.
Variable joined_index(const Node& take, const Variable& x, int first, const Loc& loc) {
  const std::size_t count = take.inputs.size() - 1;
  if (count == 1) return take.inputs[1];
  std::vector<Variable> inputs(take.inputs.begin() + 1, take.inputs.end());
  std::vector<Size> sizes = sizes_of(x, loc);
  const SizeList list =
      size_list("take", std::span(sizes).subspan(static_cast<std::size_t>(first), count), loc);
  inputs.insert(inputs.end(), list.symbols.begin(), list.symbols.end());
  return apply("flat_index", std::move(inputs), {{"sizes", list.numbers}}, loc);
}

}  // namespace

Variable write_entries(const Node& take, const Variable& operand, const Variable& value, bool add,
                       const Loc& loc) {
  const std::vector<std::int64_t>& axes = take.attrs().integers("axes");
  const int count = static_cast<int>(axes.size());
  // Indexed axes that are apart go to the front, where the result has them, too.
  Variable x = operand;
  std::vector<int> back;
  int first = static_cast<int>(axes[0]);
  if (axes.back() - axes.front() + 1 != count) {
    std::vector<int> order(axes.begin(), axes.end());
    for (int k = 0; k < x.ndim(); ++k) {
      if (std::find(axes.begin(), axes.end(), k) == axes.end()) order.push_back(k);
    }
    back.resize(order.size());
    for (std::size_t k = 0; k < order.size(); ++k) back[order[k]] = static_cast<int>(k);
    x = dimshuffle(x, order, loc);
    first = 0;
  }
  const Variable index = joined_index(take, x, first, loc);
  const Variable flat_operand = merge_axes(x, first, count, loc);
  const Variable flat_index = merge_axes(index, 0, index.ndim(), loc);
  const Variable flat_value = merge_axes(value, first, index.ndim(), loc);
  Variable result = apply(add ? "inc_take" : "set_take", {flat_operand, flat_value, flat_index},
                          {{"axis", std::int64_t{first}}}, loc);
  result = reshape_like(result, x, loc);
  return back.empty() ? result : dimshuffle(result, back, loc);
}

void register_put_ops(OpRegistry& registry) {
  const std::vector<Example> rows{
      {{{5, 3}, {4, 3}, {4}}, {{-3, 3}, {-3, 3}, {0, 4}}, {{"axis", 0}}},
      {{{2, 3}, {2, 4}, {4}}, {{-3, 3}, {-3, 3}, {0, 2}}, {{"axis", 1}}}};
  registry.add({.name = "set_take",
                .doc = "The operand with entries along an axis replaced; the last one wins.",
                .form = OpForm::loops,
                .infer = infer_put,
                .kernel = set_take_kernel,
                .grad = set_take_grad,
                .reference = put_reference,
                .examples = rows});
  registry.add({.name = "inc_take",
                .doc = "The operand with values added to entries along an axis.",
                .form = OpForm::loops,
                .infer = infer_put,
                .kernel = inc_take_kernel,
                .grad = inc_take_grad,
                .reference = put_reference,
                .examples = rows});
  registry.add(
      {.name = "inc_along_axis",
       .doc = "The operand with each value added to the entry along an axis that its index names.",
       .form = OpForm::loops,
       .infer = infer_along,
       .kernel = along_kernel,
       .grad = along_grad,
       .reference = put_reference,
       .examples = {{{{4, 3}, {2, 3}, {2, 3}}, {{-3, 3}, {-3, 3}, {0, 3}}, {{"axis", 0}}},
                    {{{4, 3}, {4, 5}, {4, 5}}, {{-3, 3}, {-3, 3}, {0, 2}}, {{"axis", 1}}}}});
  registry.add(
      {.name = "flat_index",
       .doc = "Indices into several axes as one into their product.",
       .form = OpForm::loops,
       .infer = infer_flat_index,
       .element = flat_index_element,
       .reference = flat_index_reference,
       .examples = {{{{4}, {4}}, {{0, 2}, {0, 3}}, {{"sizes", std::vector<std::int64_t>{3, 4}}}}}});
}

}  // namespace croton
