// flat_index: several indices into adjacent axes as one into their product.
#include <algorithm>

#include "compiler/graph/op.h"
#include "ops/build.h"
#include "ops/put_kernel.h"
#include "ops/reference.h"
#include "ops/sizes.h"
#include "ops/take.h"

namespace croton {
namespace {

/// Whether negative indices are out of bounds, instead of counting from the end.
bool counts_from_front(const Node& node) { return node.attrs().integer_or("from_front", 0) != 0; }

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
  const bool from_front = counts_from_front(low.node);
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
    const kernel::Expr index = from_front ? raw : wrapped_index(raw, size);
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
      // A negative one that counts for nothing is out of bounds.
      const std::int64_t own =
          counts_from_front(node) && index[i] < 0 ? index[i] - sizes[k] : index[i];
      flat[i] = flat[i] * sizes[k] + reference::checked_index(node.op->name, own, sizes[k]);
    }
  }
  return {result};
}

}  // namespace

void register_flat_index_ops(OpRegistry& registry) {
  registry.add(
      {.name = "flat_index",
       .doc = "Indices into several axes as one into their product.",
       .form = OpForm::loops,
       .infer = infer_flat_index,
       .element = flat_index_element,
       .reference = flat_index_reference,
       .examples = {{{{4}, {4}}, {{0, 2}, {0, 3}}, {{"sizes", std::vector<std::int64_t>{3, 4}}}},
                    {{{4}},
                     {{0, 3}},
                     {{"sizes", std::vector<std::int64_t>{4}}, {"from_front", std::int64_t{1}}}}}});
}

}  // namespace croton
