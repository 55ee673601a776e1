// Positions as values, and what is made from them.
#include <fmt/format.h>

#include <cmath>

#include "croton/math.h"
#include "croton/tensor.h"
#include "ops/axes.h"
#include "ops/build.h"
#include "ops/reference.h"
#include "ops/registry.h"
#include "ops/sizes.h"

namespace croton {
namespace {

DType result_dtype(const Attrs& attrs) { return static_cast<DType>(attrs.integer("dtype")); }

void infer_iota(Infer& infer) {
  std::vector<Dim> shape = size_dims(infer, 0);
  normalize_axis(infer, infer.attrs().integer("axis"), static_cast<int>(shape.size()));
  if (is_bool(result_dtype(infer.attrs()))) infer.fail("positions do not fit bool");
  infer.out(result_dtype(infer.attrs()), std::move(shape));
}

kernel::Expr iota_element(Lowering& low, std::span<const Position> at) {
  const Position& along = at[static_cast<std::size_t>(low.node.attrs().integer("axis"))];
  return low.b.cast(low.value(along), low.out[0].dtype);
}

std::vector<Array> iota_reference(const Node& node, std::span<const Array> inputs) {
  const Shape shape = size_numbers(node.attrs(), inputs);
  const auto axis = static_cast<std::size_t>(node.attrs().integer("axis"));
  Array result = Array::zeros(shape, DType::int64);
  std::int64_t* to = result.mutable_data<std::int64_t>();
  reference::Odometer position(shape);
  for (std::int64_t i = 0; i < result.size(); ++i, position.next()) to[i] = position.at()[axis];
  return {result.astype(result_dtype(node.attrs()))};
}

Variable iota(std::span<const Size> sizes, int axis, DType dtype, const Loc& loc) {
  const SizeList list = size_list("arange", sizes, loc);
  return apply("iota", list.symbols,
               {{"sizes", list.numbers},
                {"axis", std::int64_t{axis}},
                {"dtype", static_cast<std::int64_t>(dtype)}},
               loc);
}

bool is_integer_bound(const Operand& bound) {
  if (bound.is_literal()) return !is_float(bound.literal().kind);
  return is_integer(bound.variable().dtype());
}

/// The bound as a number, where it is one.
std::optional<double> number_of(const Operand& bound) {
  if (bound.is_literal()) return bound.literal().real;
  const Variable x = bound.variable();
  const Array* value = constant_value(x);
  if (value == nullptr || value->size() != 1) return {};
  return value->astype(DType::float64).item<double>();
}

Variable scaled_iota(const Size& count, const Operand& start, const Operand& step, DType dtype,
                     const Loc& loc) {
  const auto as_dtype = [&](const Operand& bound) {
    return bound.is_literal() ? make_scalar(dtype, bound.literal(), loc)
                              : cast_to(bound.variable(), dtype, loc);
  };
  const Size sizes[] = {count};
  Variable x = iota(sizes, 0, dtype, loc);
  if (number_of(step) != 1) x = mul(Operand(x, loc), as_dtype(step));
  if (number_of(start) != 0) x = add(Operand(x, loc), as_dtype(start));
  return x;
}

/// max(0, ceil((stop - start) / step)) on symbolic integers; the step is a number.
Variable symbolic_count(const Operand& start, const Operand& stop, std::int64_t step,
                        const Loc& loc) {
  const auto wide = [&](const Operand& bound) {
    return cast_to(bound.variable(), DType::int64, loc);
  };
  const auto whole = [&](std::int64_t value) { return make_scalar(DType::int64, value, loc); };
  const auto node = [&](std::string_view op, const Variable& a, const Variable& b) {
    return apply(op, {a, b}, {}, loc);
  };
  Variable length = wide(stop);
  if (number_of(start) != 0) length = node("sub", length, wide(start));
  if (step < 0) length = node("sub", whole(0), length);
  const std::int64_t by = std::abs(step);
  if (by != 1) length = node("floor_divide", node("add", length, whole(by - 1)), whole(by));
  return node("maximum", length, whole(0));
}

}  // namespace

Variable arange(const Operand& stop, std::optional<DType> dtype) {
  return arange(Operand(0, stop.loc()), stop, 1, dtype);
}

Variable arange(const Operand& start, const Operand& stop, const Operand& step,
                std::optional<DType> dtype) {
  const Loc loc = stop.loc().named("arange");
  for (const Operand* bound : {&start, &stop, &step}) {
    if (!bound->is_literal() && bound->variable().ndim() != 0) {
      graph_error("arange", "bounds must be scalars", loc);
    }
  }
  const bool integers = is_integer_bound(start) && is_integer_bound(stop) && is_integer_bound(step);
  const DType type = dtype.value_or(integers ? DType::int64 : build_settings().float_x);
  const std::optional<double> by = number_of(step);
  if (!by) graph_error("arange", "the step must be a number; scale the result instead", loc);
  if (*by == 0) graph_error("arange", "the step must not be 0", loc);
  const std::optional<double> first = number_of(start);
  const std::optional<double> last = number_of(stop);
  if (first && last) {
    const double count = std::max(0.0, std::ceil((*last - *first) / *by));
    if (!(count < 9e15)) graph_error("arange", "the bounds and the step must be finite", loc);
    return scaled_iota(Size(static_cast<std::int64_t>(count)), start, step, type, loc);
  }
  if (!integers) {
    graph_error("arange", "with symbolic bounds all bounds must be integers", loc);
  }
  return scaled_iota(Size(symbolic_count(start, stop, static_cast<std::int64_t>(*by), loc)), start,
                     step, type, loc);
}

Variable iota_like(const Operand& operand, int axis, DType dtype) {
  const Variable x = operand.variable();
  const Loc loc = operand.loc().named("iota_like");
  const int along = checked_axis("iota_like", axis, x.ndim(), loc);
  return iota(sizes_of(x, loc), along, dtype, loc);
}

Variable eye(const Size& n, std::optional<DType> dtype, Loc line) {
  const Loc loc = line.named("eye");
  const Size sizes[] = {n};
  const Variable place = iota(sizes, 0, DType::int64, loc);
  const Variable same = eq(Operand(dimshuffle(place, {0, -1}, loc), loc), place);
  return cast_to(same, dtype.value_or(build_settings().float_x), loc);
}

Variable one_hot(const Operand& operand, const Size& length, std::optional<DType> dtype) {
  const Variable x = operand.variable();
  const Loc loc = operand.loc().named("one_hot");
  if (!is_integer(x.dtype())) {
    graph_error("one_hot", fmt::format("places must be integers: got {}", name_of(x.dtype())), loc);
  }
  const Size sizes[] = {length};
  const Variable place = iota(sizes, 0, DType::int64, loc);
  const Variable wide = insert_axes(cast_to(x, DType::int64, loc), {x.ndim()}, loc);
  return cast_to(eq(Operand(wide, loc), place), dtype.value_or(build_settings().float_x), loc);
}

void register_iota_ops(OpRegistry& registry) {
  using List = std::vector<std::int64_t>;
  const auto example = [](List sizes, std::int64_t axis, DType dtype) {
    return Example{
        {},
        {},
        {{"sizes", std::move(sizes)}, {"axis", axis}, {"dtype", static_cast<std::int64_t>(dtype)}}};
  };
  registry.add({.name = "iota",
                .doc = "Each element's position along an axis.",
                .form = OpForm::loops,
                .infer = infer_iota,
                .element = iota_element,
                .reference = iota_reference,
                .examples = {example({5}, 0, DType::int64), example({2, 3}, 1, DType::float32)}});
}

}  // namespace croton
