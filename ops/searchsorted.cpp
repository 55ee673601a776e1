// searchsorted and bincount.
#include <fmt/format.h>

#include <algorithm>

#include "croton/math.h"
#include "croton/reduce.h"
#include "croton/sort.h"
#include "croton/tensor.h"
#include "ops/build.h"
#include "ops/built_at.h"
#include "ops/order.h"
#include "ops/reference.h"
#include "ops/registry.h"
#include "ops/sizes.h"
#include "ops/take.h"

namespace croton {
namespace {

using kernel::Expr;

void infer_searchsorted(Infer& infer) {
  infer.expect_inputs(2);
  if (infer.ndim(0) != 1) {
    infer.fail(fmt::format("the sorted operand must be a vector: got {} axes", infer.ndim(0)));
  }
  if (infer.dtype(0) != infer.dtype(1)) infer.fail("both operands must have one dtype");
  infer.out(DType::int64, infer.shape(1));
}

/// The number of elements that come before the value, found by halving steps.
Expr searchsorted_element(Lowering& low, std::span<const Position> at) {
  kernel::Builder& b = low.b;
  const bool right = low.node.attrs().integer("right") != 0;
  const Dim size = low.in[0].shape[0];
  const Expr length = low.value(size);
  const Expr own = comparable(low.read(1, std::vector<Position>(at.begin(), at.end())));
  std::int64_t step = std::int64_t{1} << 40;
  while (size.is_number() && step > std::max<std::int64_t>(size.number(), 1)) step /= 2;
  Expr found = b.i64(0);
  for (; step > 0; step /= 2) {
    const Expr next = found + step;
    const Expr inside = next <= length;
    const Expr other = comparable(low.read(0, {low.computed(next - 1)}, inside));
    const Expr ahead = right ? !comes_before(own, other) : comes_before(other, own);
    found = b.select(inside & ahead, next, found);
  }
  return found;
}

std::vector<Array> searchsorted_reference(const Node& node, std::span<const Array> inputs) {
  const bool right = node.attrs().integer("right") != 0;
  Array result = Array::zeros(inputs[1].shape(), DType::int64);
  std::int64_t* to = result.mutable_data<std::int64_t>();
  reference::with_class(inputs[0].dtype(), [&](auto tag) {
    using T = decltype(tag);
    const std::vector<T> sorted = reference::values<T>(inputs[0]);
    for (const T value : reference::values<T>(inputs[1])) {
      std::size_t first = 0;
      std::size_t last = sorted.size();
      while (first < last) {
        const std::size_t middle = (first + last) / 2;
        const T other = sorted[middle];
        const bool ahead = right ? !value_before(value, other) : value_before(other, value);
        (ahead ? first : last) = ahead ? middle + 1 : middle;
      }
      *to++ = static_cast<std::int64_t>(first);
    }
  });
  return {result};
}

/// One more than the largest element, 0 of no elements.
Size needed_length(const Variable& x, const Loc& loc) {
  const Variable flat = cast_to(flatten({x, loc}), DType::int64, loc);
  const Variable none = make_scalar(DType::int64, std::int64_t{-1}, loc);
  if (const Array* known = constant_value(x)) {
    std::int64_t largest = -1;
    for (const std::int64_t value : known->astype(DType::int64).to_vector<std::int64_t>()) {
      largest = std::max(largest, value);
    }
    return Size(largest + 1);
  }
  return Size(max(concatenate({flat, insert_axes(none, {0}, loc)}, 0)) + 1);
}

Size result_length(const Variable& x, const BincountOptions& options, const Loc& loc) {
  if (options.minlength < 0) {
    graph_error("bincount",
                fmt::format("minlength must not be negative: got {}", options.minlength), loc);
  }
  const Size length = options.length ? *options.length : needed_length(x, loc);
  if (const std::int64_t* number = length.number()) {
    if (*number < 0) {
      graph_error("bincount", fmt::format("length must not be negative: got {}", *number), loc);
    }
    return Size(std::max(*number, options.minlength));
  }
  const Variable asked = cast_to(*length.variable(), DType::int64, loc);
  return Size(maximum({asked, loc}, {make_scalar(DType::int64, options.minlength, loc), loc}));
}

}  // namespace

Variable searchsorted(const Operand& sorted, const Operand& values, Side side) {
  const Loc loc = sorted.loc().named("searchsorted");
  const Operand operands[] = {sorted, values};
  const std::vector<Variable> both = resolve("searchsorted", operands);
  const DType dtype = promote(both[0].dtype(), both[1].dtype(), build_settings().numpy_policy);
  return apply("searchsorted", {cast_to(both[0], dtype, loc), cast_to(both[1], dtype, loc)},
               {{"right", std::int64_t{side == Side::right}}}, loc);
}

Variable searchsorted(const Operand& vector, const Operand& values, Side side,
                      const Operand& sorter) {
  const Loc loc = vector.loc().named("searchsorted");
  const Variable x = vector.variable();
  const Variable order = sorter.variable();
  if (x.ndim() != 1 || order.ndim() != 1) {
    graph_error("searchsorted",
                fmt::format("the vector and its sorter must be vectors: got {} and {} axes",
                            x.ndim(), order.ndim()),
                loc);
  }
  if (!is_integer(order.dtype())) {
    graph_error("searchsorted",
                fmt::format("the sorter must be integers: got {}", name_of(order.dtype())), loc);
  }
  return searchsorted(Operand(take_entries(x, {0}, {order}, 0, loc), loc), values, side);
}

Variable bincount(const Operand& operand, const BincountOptions& options) {
  const Loc loc = operand.loc().named("bincount");
  const Variable x = operand.variable();
  if (!is_integer(x.dtype())) {
    graph_error("bincount", fmt::format("integers expected: got {}", name_of(x.dtype())), loc);
  }
  Variable weights =
      options.weights ? *options.weights : make_scalar(DType::int64, std::int64_t{1}, loc);
  if (is_bool(weights.dtype())) weights = cast_to(weights, DType::int64, loc);
  if (weights.ndim() != 0 && weights.ndim() != x.ndim()) {
    graph_error(
        "bincount",
        fmt::format("one weight an element expected: got {} axes and {}", x.ndim(), weights.ndim()),
        loc);
  }
  return built_at(loc, [&] {
    const Variable flat = cast_to(flatten({x, loc}), DType::int64, loc);
    const Size sizes[] = {result_length(x, options, loc)};
    const Variable zeros = broadcast_sizes(scalar_like(weights, 0, loc), sizes, loc);
    const Variable size = size_of_axis(zeros, 0, loc);
    // Negative ones do not count from the end.
    const Variable index = where(lt(flat, 0), sub({flat, loc}, {size, loc}), flat);
    const Variable value = flatten({broadcast_like(weights, x, loc), loc});
    return apply("inc_take", {zeros, value, index}, {{"axis", 0}}, loc);
  });
}

void register_searchsorted_ops(OpRegistry& registry) {
  const auto example = [](Shape sorted, Shape values, std::int64_t right) {
    // Any one value is sorted; the tests of values have more.
    return Example{{std::move(sorted), std::move(values)}, {{-1, 1}, {-2, 2}}, {{"right", right}}};
  };
  registry.add({.name = "searchsorted",
                .doc = "How many elements of a sorted vector come before each value.",
                .form = OpForm::loops,
                .cost = 40,
                .infer = infer_searchsorted,
                .element = searchsorted_element,
                .reference = searchsorted_reference,
                .examples = {example({1}, {3, 4}, 0), example({1}, {5}, 1)}});
}

}  // namespace croton
