// Operands as an op may meet them: from contiguous memory, or through an index map of a larger or
// differently ordered array, as the graph has it or as the caller's array has it.
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

#include "croton/indexing.h"
#include "croton/tensor.h"
#include "tests/ops/graph_values.h"

namespace croton::test {

enum class Layout { contiguous, transposed, sliced, reversed, broadcast, strided };
constexpr Layout kLayouts[] = {Layout::contiguous, Layout::transposed, Layout::sliced,
                               Layout::reversed,   Layout::broadcast,  Layout::strided};

inline const char* name_of(Layout layout) {
  constexpr const char* kNames[] = {"contiguous", "transposed", "sliced",
                                    "reversed",   "broadcast",  "strided"};
  return kNames[static_cast<int>(layout)];
}

/// All layouts, or with CROTON_TEST_LAYOUTS=one a single one that goes round with `turn`, where
/// each kernel takes long.
inline std::vector<Layout> layouts_to_try(int turn) {
  const char* const wanted = std::getenv("CROTON_TEST_LAYOUTS");
  if (wanted == nullptr) return {std::begin(kLayouts), std::end(kLayouts)};
  REQUIRE(std::string(wanted) == "one");
  return {kLayouts[static_cast<std::size_t>(turn) % std::size(kLayouts)]};
}

/// The operand of an op, the function's input that it comes from, and what a call passes for that.
struct LaidOut {
  Variable input;
  Array argument;
  Variable operand;
};

/// Sizes that a compiled function does not know, except those of 1: they would not broadcast.
inline Shape unknown_sizes(Shape shape) {
  for (std::int64_t& size : shape) {
    if (size != 1) size = kAnyDim;
  }
  return shape;
}

namespace detail {

/// Takes the same slice of each axis longer than 1.
inline Variable slice_all(const Variable& x, const Shape& shape, const Slice& slice) {
  std::vector<Index> at;
  for (const std::int64_t size : shape) at.emplace_back(size == 1 ? Slice() : slice);
  switch (at.size()) {
    case 1:
      return x(at[0]);
    case 2:
      return x(at[0], at[1]);
    case 3:
      return x(at[0], at[1], at[2]);
    case 4:
      return x(at[0], at[1], at[2], at[3]);
    default:
      FAIL("no rank for this op's operands yet: " << at.size());
      return x;
  }
}

inline Array flipped(Array a) {
  for (std::size_t axis = 0; axis < a.ndim(); ++axis) {
    a = a.slice(static_cast<std::int64_t>(axis), {}, {}, -1);
  }
  return a.copy();
}

/// `a` in the middle of an array of other values, every `step`-th of it.
inline Array surrounded(const Array& a, std::int64_t step) {
  Array values = a.astype(DType::float64);
  for (std::size_t axis = 0; axis < a.ndim(); ++axis) {
    if (a.shape()[axis] == 1) continue;
    Shape larger = values.shape();
    const std::int64_t size = larger[axis];
    larger[axis] = step * size + 2;
    std::int64_t rows = 1, inner = 1;
    for (std::size_t k = 0; k < axis; ++k) rows *= larger[k];
    for (std::size_t k = axis + 1; k < larger.size(); ++k) inner *= larger[k];
    const std::vector<double> from = values.to_vector<double>();
    std::vector<double> to(static_cast<std::size_t>(larger.numel()), 1);
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t i = 0; i < size * inner; ++i) {
        const std::int64_t place = (1 + step * (i / inner)) * inner + i % inner;
        to[static_cast<std::size_t>(row * larger[axis] * inner + place)] =
            from[static_cast<std::size_t>(row * size * inner + i)];
      }
    }
    values = Array::from<double>(to, larger);
  }
  return values.astype(a.dtype());
}

}  // namespace detail

/// An operand with the values of `a` (in the layout broadcast: with those of its first entry). With
/// `known`, sizes are static. 64-bit integers must be exact in float64.
inline LaidOut lay_out(Layout layout, const Array& a, bool known) {
  const Shape shape = a.shape();
  LaidOut made;
  const auto input_of = [&](const Array& argument) {
    made.argument = argument;
    const Shape& sizes = argument.shape();
    made.input = input(a.dtype(), known ? sizes : unknown_sizes(sizes), "x");
  };
  if (shape.size() == 0) layout = Layout::contiguous;
  switch (layout) {
    case Layout::contiguous:
      input_of(a);
      made.operand = made.input;
      break;
    case Layout::transposed:
      input_of(a.transpose().copy());
      made.operand = transpose(made.input);
      break;
    case Layout::sliced:
      input_of(detail::surrounded(a, 1));
      made.operand = detail::slice_all(made.input, shape, Slice(1, -1));
      break;
    case Layout::reversed:
      input_of(detail::flipped(a));
      made.operand = detail::slice_all(made.input, shape, Slice(none, none, -1));
      break;
    case Layout::broadcast:
      input_of(shape[0] > 1 ? a.slice(0, 0, 1).copy() : a);
      made.operand = shape[0] > 1 ? broadcast_to(made.input, shape) : made.input;
      break;
    case Layout::strided: {
      Array view = detail::surrounded(a, 2);
      for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        if (shape[axis] == 1) continue;
        view = view.slice(static_cast<std::int64_t>(axis), 1, 1 + 2 * shape[axis], 2);
      }
      input_of(view);
      made.operand = made.input;
      break;
    }
  }
  return made;
}

}  // namespace croton::test
