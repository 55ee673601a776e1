// sort, argsort, and what is made of them: topk. CPUs sort by library functions, GPUs by merging.
#include "croton/sort.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>

#include "croton/indexing.h"
#include "croton/tensor.h"
#include "ops/axes.h"
#include "ops/build.h"
#include "ops/one_axis.h"
#include "ops/order.h"
#include "ops/reference.h"
#include "ops/registry.h"
#include "ops/sizes.h"
#include "ops/slice.h"
#include "ops/sort_kernel.h"
#include "ops/take.h"

namespace croton {
namespace {

// The second results are memory for GPUs to merge into.

void infer_sorting(Infer& infer, DType dtype) {
  infer.expect_inputs(1);
  normalize_axis(infer, infer.attrs().integer("axis"), infer.ndim(0));
  infer.out(dtype, infer.shape(0));
  infer.out(dtype, infer.shape(0));
}

/// Calls use(places along the axis in order, element of a place) for each line.
template <class T, class Use>
void for_each_line(const Node& node, const Array& x, Use&& use) {
  const auto axis = static_cast<std::size_t>(node.attrs().integer("axis"));
  const bool descending = node.attrs().integer("descending") != 0;
  const std::int64_t length = x.shape()[axis];
  std::int64_t inner = 1;
  for (std::size_t k = axis + 1; k < x.ndim(); ++k) inner *= x.shape()[k];
  const std::vector<T> values = reference::values<T>(x);
  const std::int64_t lines = length == 0 ? 0 : x.size() / length;
  for (std::int64_t line = 0; line < lines; ++line) {
    const std::int64_t base = line / inner * length * inner + line % inner;
    const auto element = [&](std::int64_t k) { return static_cast<std::size_t>(base + k * inner); };
    std::vector<std::int64_t> order(static_cast<std::size_t>(length));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
      return value_before<T>(values[element(a)], values[element(b)], descending);
    });
    use(order, element, values);
  }
}

/// What is sorted; or where it was.
template <bool kPlaces>
std::vector<Array> sorted_reference(const Node& node, std::span<const Array> inputs) {
  const Array& x = inputs[0];
  return reference::with_class(x.dtype(), [&](auto tag) -> std::vector<Array> {
    using T = decltype(tag);
    using Result = std::conditional_t<kPlaces, std::int64_t, T>;
    Array result = Array::zeros(x.shape(), dtype_of<Result>);
    Result* to = result.mutable_data<Result>();
    for_each_line<T>(node, x, [&](const auto& order, const auto& element, const auto& values) {
      for (std::size_t k = 0; k < order.size(); ++k) {
        const std::size_t place = element(static_cast<std::int64_t>(k));
        if constexpr (kPlaces) {
          to[place] = order[k];
        } else {
          to[place] = values[element(order[k])];
        }
      }
    });
    const DType dtype = kPlaces ? DType::int64 : x.dtype();
    return {result.astype(dtype), Array::zeros(x.shape(), dtype)};
  });
}

/// To where the elements were, of equals in their order.
std::vector<Variable> sort_grad(const GradArgs& args) {
  const Loc& loc = args.node.loc;
  const Variable places = apply("argsort", {args.in(0)}, args.node.attrs(), loc);
  return {apply("inc_along_axis", {zeros_like(args.in(0), loc), args.g(), places},
                {{"axis", args.node.attrs().integer("axis")}}, loc)};
}

/// The operand and the axis to sort along; with no axis the operand flattened.
struct Sorting {
  Loc loc;
  Variable x;
  int axis = 0;

  Sorting(std::string_view op, const Operand& operand, const Axis& along)
      : loc(operand.loc().named(op)), x(operand.variable()) {
    std::tie(x, axis) = along_one(op, x, along, loc);
  }

  Variable sorted(std::string_view op, bool descending) const {
    return apply(op, {x}, {{"axis", std::int64_t{axis}}, {"descending", std::int64_t{descending}}},
                 loc);
  }
  Variable taken(const Variable& indices) const {
    return take_along_axis({x, loc}, {indices, loc}, axis);
  }
};

Example example(Shape shape, std::int64_t axis, std::int64_t descending) {
  return {{std::move(shape)}, {{-4, 4}}, {{"axis", axis}, {"descending", descending}}};
}

}  // namespace

Variable argsort(const Operand& x, const Axis& axis, const SortOptions& options) {
  return Sorting("argsort", x, axis).sorted("argsort", options.descending);
}

Variable sort(const Operand& x, const Axis& axis, const SortOptions& options) {
  return Sorting("sort", x, axis).sorted("sort", options.descending);
}

std::pair<Variable, Variable> topk(const Operand& x, const Size& k, int axis,
                                   const TopkOptions& options) {
  const Sorting sorting("topk", x, axis);
  const std::int64_t length = sorting.x.static_shape()[static_cast<std::size_t>(sorting.axis)];
  const std::int64_t* number = k.number();
  if (number != nullptr && (*number < 0 || (length != kAnyDim && *number > length))) {
    graph_error("topk",
                length == kAnyDim
                    ? fmt::format("k must not be negative: got {}", *number)
                    : fmt::format("k must be between 0 and the length of axis {}, {}: got {}",
                                  sorting.axis, length, *number),
                sorting.loc);
  }
  const Variable places = sorting.sorted("argsort", options.largest);
  if (number != nullptr && length != kAnyDim) {
    const Variable first = slice_axis(places, sorting.axis, Slice(0, *number), sorting.loc);
    return {sorting.taken(first), first};
  }
  // Whether there are so many shows in the call.
  const SizeList count = size_list("topk", std::span(&k, 1), sorting.loc);
  const Variable numbers = apply("iota", count.symbols,
                                 {{"sizes", count.numbers},
                                  {"axis", std::int64_t{0}},
                                  {"dtype", static_cast<std::int64_t>(DType::int64)}},
                                 sorting.loc);
  const Variable first = take_entries(places, {sorting.axis}, {numbers}, 0, sorting.loc);
  return {sorting.taken(first), first};
}

void register_sort_ops(OpRegistry& registry) {
  const std::vector<Example> examples{example({7}, 0, 0), example({3, 5}, 0, 1),
                                      example({2, 4, 3}, 1, 0), example({2, 60}, 1, 0),
                                      example({1, 1}, 1, 0)};
  registry.add({.name = "sort",
                .doc = "Elements along an axis in order, equal ones in theirs.",
                .form = OpForm::library,
                .cost = 64,
                .infer = [](Infer& infer) { infer_sorting(infer, infer.dtype(0)); },
                .kernel = [](KernelLowering& low) { lower_sort(low, false); },
                .grad = sort_grad,
                .reference = sorted_reference<false>,
                .examples = examples});
  registry.add({.name = "argsort",
                .doc = "Places along an axis in the order of their elements, equal ones in theirs.",
                .form = OpForm::library,
                .cost = 64,
                .infer = [](Infer& infer) { infer_sorting(infer, DType::int64); },
                .kernel = [](KernelLowering& low) { lower_sort(low, true); },
                .reference = sorted_reference<true>,
                .examples = examples});
}

}  // namespace croton
