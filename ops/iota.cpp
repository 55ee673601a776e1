// Positions as values, and what is made from them.
#include <fmt/format.h>

#include <cmath>

#include "croton/math.h"
#include "croton/tensor.h"
#include "ops/axes.h"
#include "ops/build.h"
#include "ops/checked_size.h"
#include "ops/reference.h"
#include "ops/registry.h"
#include "ops/size_arithmetic.h"
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

/// max(0, ceil((stop - start) / step)) on symbolic integers; the step may be one, too.
Size symbolic_count(const Operand& start, const Operand& stop, const Operand& step,
                    const Loc& loc) {
  const auto whole = [&](const Operand& bound) {
    if (const std::optional<double> number = number_of(bound)) {
      return Size(static_cast<std::int64_t>(*number));
    }
    return Size(cast_to(bound.variable(), DType::int64, loc));
  };
  const Size by = checked_step("arange", whole(step), loc);
  Size length = size_sub(whole(stop), whole(start), loc);
  if (by.number() && *by.number() > 0) {
    length = size_divide(size_add(length, Size(*by.number() - 1), loc), by, loc);
  } else {
    const Size back = size_divide(size_sub(Size(0), length, loc), by, loc);
    length = size_sub(Size(0), back, loc);
  }
  return size_max(length, Size(0), loc);
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
  if (by && *by == 0) graph_error("arange", "the step must not be 0", loc);
  const std::optional<double> first = number_of(start);
  const std::optional<double> last = number_of(stop);
  if (first && last && by) {
    const double count = std::max(0.0, std::ceil((*last - *first) / *by));
    if (!(count < 9e15)) graph_error("arange", "the bounds and the step must be finite", loc);
    return scaled_iota(Size(static_cast<std::int64_t>(count)), start, step, type, loc);
  }
  if (!integers) {
    graph_error("arange", "with a symbolic bound or step all of them must be integers", loc);
  }
  return scaled_iota(symbolic_count(start, stop, step, loc), start, step, type, loc);
}

Variable iota_like(const Operand& operand, int axis, DType dtype) {
  const Variable x = operand.variable();
  const Loc loc = operand.loc().named("iota_like");
  const int along = checked_axis("iota_like", axis, x.ndim(), loc);
  return iota(sizes_of(x, loc), along, dtype, loc);
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
