// Kernels that write at integer indices along an axis.
#include "ops/put_kernel.h"

#include <fmt/format.h>

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

/// Narrow floats are combined in float32; bools by or (add, max) and by and (mul, min).
kernel::Expr combined(kernel::Builder& b, WriteMode mode, kernel::Expr old, kernel::Expr value) {
  const DType dtype = old.dtype();
  if (dtype == DType::float16 || dtype == DType::bfloat16) {
    return b.cast(combined(b, mode, b.cast(old, DType::float32), b.cast(value, DType::float32)),
                  dtype);
  }
  switch (mode) {
    case WriteMode::set:
      return value;
    case WriteMode::add:
      return is_bool(dtype) ? old | value : old + value;
    case WriteMode::mul:
      return is_bool(dtype) ? old & value : old * value;
    case WriteMode::max:
      return is_bool(dtype) ? old | value : b.binary(kernel::Binary::max, old, value);
    case WriteMode::min:
      return is_bool(dtype) ? old & value : b.binary(kernel::Binary::min, old, value);
  }
  return value;
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
void put_columns(KernelLowering& low, const Blocks& blocks, WriteMode mode) {
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
  if (blocks.outer.is(1)) {
    // A vector: lanes would be one at a time.
    const kernel::Expr zero = b.i64(0);
    const kernel::Expr ok = in_bounds(index, length);
    kernel::Expr value = b.load(kValue, place, zero);
    if (mode != WriteMode::set) value = combined(b, mode, b.load(kResult, index, zero, ok), value);
    b.store(kResult, index, zero, value, ok);
    b.end(place);
    return;
  }
  const kernel::Expr lane = b.begin_lanes(b.select(in_bounds(index, length), rows, b.i64(0)));
  const kernel::Expr to = begin + index;
  kernel::Expr value = b.load(kValue, first * places + place, places);
  if (mode != WriteMode::set) value = combined(b, mode, b.load(kResult, to, length), value);
  b.store(kResult, to, length, value);
  b.end(lane);
  b.end(place);
}

/// The rows of the operand are cut into chunks, one a block; each block copies its rows and then
/// walks over all indices in order, writing those that fall into its rows. So the order of
/// writes is that of the indices whatever runs the blocks.
void put_rows(KernelLowering& low, WriteMode mode) {
  kernel::Builder& b = low.b;
  if (mode == WriteMode::add && adds_at_once(low)) return add_at_once(low, false);
  const Blocks blocks = blocks_of(low);
  if (blocks.inner.is(1)) return put_columns(low, blocks, mode);
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
  if (mode != WriteMode::set) value = combined(b, mode, b.load(kResult, to, one), value);
  b.store(kResult, to, one, value);
  b.end(lane);
  b.end(place);
}

/// Each lane owns one column along the axis: it copies it, then writes at its indices in order.
void put_along(KernelLowering& low, WriteMode mode) {
  if (mode == WriteMode::add && adds_at_once(low)) return add_at_once(low, true);
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
  kernel::Expr value = b.gather(kValue, element(places, place));
  if (mode != WriteMode::set) value = combined(b, mode, b.gather(kResult, to, ok), value);
  b.scatter(kResult, to, value, ok);
  b.end(place);
  b.end(lane);
}

}  // namespace

void put_kernel(KernelLowering& low, WriteMode mode, bool along) {
  along ? put_along(low, mode) : put_rows(low, mode);
}

}  // namespace croton
