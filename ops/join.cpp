// Operands one after the other.
#include <fmt/format.h>

#include <algorithm>

#include "croton/error.h"
#include "croton/tensor.h"
#include "ops/axes.h"
#include "ops/build.h"
#include "ops/reference.h"
#include "ops/registry.h"
#include "ops/slice.h"

namespace croton {
namespace {

void infer_concatenate(Infer& infer) {
  if (infer.inputs() < 1) infer.fail("at least one operand is expected");
  const int axis = normalize_axis(infer, infer.attrs().integer("axis"), infer.ndim(0));
  std::vector<Dim> shape = infer.shape(0);
  for (int i = 1; i < infer.inputs(); ++i) {
    if (infer.dtype(i) != infer.dtype(0)) {
      infer.fail(fmt::format("operands of one dtype expected: got {} and {}",
                             name_of(infer.dtype(0)), name_of(infer.dtype(i))));
    }
    if (infer.ndim(i) != infer.ndim(0)) {
      infer.fail(fmt::format("operands with {} and {} axes", infer.ndim(0), infer.ndim(i)));
    }
    for (int k = 0; k < infer.ndim(0); ++k) {
      shape[k] = k == axis ? shape[k] + infer.shape(i)[k]
                           : infer.equal(shape[k], infer.shape(i)[k],
                                         fmt::format("sizes of operands 1 and {} differ along "
                                                     "axis {}",
                                                     i + 1, k));
    }
  }
  infer.out(infer.dtype(0), std::move(shape));
}

kernel::Expr concatenate_element(Lowering& low, std::span<const Position> at) {
  const auto axis = static_cast<std::size_t>(low.node.attrs().integer("axis"));
  const kernel::Expr position = low.value(at[axis]);
  const int count = static_cast<int>(low.in.size());
  std::vector<Dim> begin{0};
  for (const DimType& type : low.in) begin.push_back(begin.back() + type.shape[axis]);
  const auto part = [&](int i) {
    std::vector<Position> from(at.begin(), at.end());
    from[axis] = from[axis] - begin[i];
    kernel::Expr mask;
    if (i > 0) mask = low.value(begin[i]) <= position;
    if (i + 1 < count) {
      const kernel::Expr before = position < low.value(begin[i + 1]);
      mask = mask ? mask & before : before;
    }
    return low.read(i, std::move(from), mask);
  };
  kernel::Expr value = part(count - 1);
  for (int i = count - 1; i-- > 0;) {
    value = low.b.select(position < low.value(begin[i + 1]), part(i), value);
  }
  return value;
}

std::vector<Variable> concatenate_grad(const GradArgs& args) {
  const Loc& loc = args.node.loc;
  const int axis = static_cast<int>(args.node.attrs().integer("axis"));
  std::vector<Variable> result;
  Bound begin = std::int64_t{0};
  Variable sum;  // where the parts so far end, once a size is not known
  for (const Variable& part : args.node.inputs) {
    const Variable size = size_of_axis(part, axis, loc);
    sum = sum.defined() ? apply("add", {sum, size}, {}, loc) : size;
    const Array* known = constant_value(size);
    const Bound end =
        begin.number() && known ? Bound(*begin.number() + known->item<std::int64_t>()) : Bound(sum);
    result.push_back(slice_axis(args.g(), axis, Slice(begin, end), loc));
    begin = end;
  }
  return result;
}

std::vector<Array> concatenate_reference(const Node& node, std::span<const Array> inputs) {
  const auto axis = static_cast<std::size_t>(node.attrs().integer("axis"));
  Shape shape = inputs[0].shape();
  shape[axis] = 0;
  for (const Array& part : inputs) shape[axis] += part.shape()[axis];
  Array result = Array::zeros(shape, inputs[0].dtype());
  auto* to = static_cast<char*>(const_cast<void*>(result.raw_data()));
  std::int64_t inner = static_cast<std::int64_t>(size_of(inputs[0].dtype()));
  for (std::size_t k = axis + 1; k < shape.size(); ++k) inner *= shape[k];
  std::int64_t outer = 1;
  for (std::size_t k = 0; k < axis; ++k) outer *= shape[k];
  for (std::int64_t row = 0; row < outer; ++row) {
    for (const Array& part : inputs) {
      const Array from = part.contiguous();
      const std::int64_t bytes = part.shape()[axis] * inner;
      const char* begin = static_cast<const char*>(from.raw_data()) + row * bytes;
      to = std::copy(begin, begin + bytes, to);
    }
  }
  return {result};
}

/// Operands as variables of their common dtype.
std::vector<Variable> joined(std::string_view op, const Parts& parts) {
  if (parts.list.empty()) {
    throw GraphError(fmt::format("[{}] at least one operand is expected", op));
  }
  std::vector<Variable> values = resolve(op, parts.list);
  DType dtype = values[0].dtype();
  for (const Variable& value : values) {
    dtype = promote(dtype, value.dtype(), build_settings().numpy_policy);
  }
  for (Variable& value : values) value = cast_to(value, dtype, parts.list[0].loc());
  return values;
}

}  // namespace

namespace {

/// One kernel reads the operands of a node: more than it takes parameters for are joined in groups.
Variable join(std::vector<Variable> values, std::int64_t axis, const Loc& loc) {
  constexpr std::size_t kAtOnce = 64;
  while (values.size() > kAtOnce) {
    std::vector<Variable> groups;
    for (std::size_t first = 0; first < values.size(); first += kAtOnce) {
      const std::size_t last = std::min(first + kAtOnce, values.size());
      groups.push_back(join({values.begin() + static_cast<std::ptrdiff_t>(first),
                             values.begin() + static_cast<std::ptrdiff_t>(last)},
                            axis, loc));
    }
    values = std::move(groups);
  }
  if (values.size() == 1) return values[0];
  return apply("concatenate", std::move(values), {{"axis", axis}}, loc);
}

}  // namespace

Variable concatenate(const Parts& parts, int axis) {
  std::vector<Variable> values = joined("concatenate", parts);
  const Loc loc = parts.list[0].loc().named("concatenate");
  if (values[0].ndim() == 0) graph_error("concatenate", "scalars have no axis; use stack", loc);
  const std::int64_t along = checked_axis("concatenate", axis, values[0].ndim(), loc);
  return join(std::move(values), along, loc);
}

Variable stack(const Parts& parts, int axis) {
  std::vector<Variable> values = joined("stack", parts);
  const Loc loc = parts.list[0].loc().named("stack");
  const int rank = values[0].ndim();
  const int along = checked_axis("stack", axis, rank + 1, loc);
  for (Variable& value : values) {
    if (value.ndim() != rank) {
      graph_error("stack",
                  fmt::format("operands have {} and {} axes, expected as many", rank, value.ndim()),
                  loc);
    }
    value = insert_axes(value, {along}, loc);
  }
  return join(std::move(values), along, loc);
}

Variable hstack(const Parts& parts) {
  std::vector<Variable> values = joined("hstack", parts);
  const Loc loc = parts.list[0].loc().named("hstack");
  for (Variable& value : values) value = atleast_1d(Operand(value, loc));
  return concatenate(Parts(values, loc), values[0].ndim() == 1 ? 0 : 1);
}

Variable vstack(const Parts& parts) {
  std::vector<Variable> values = joined("vstack", parts);
  const Loc loc = parts.list[0].loc().named("vstack");
  for (Variable& value : values) value = atleast_2d(Operand(value, loc));
  return concatenate(Parts(values, loc), 0);
}

Variable dstack(const Parts& parts) {
  std::vector<Variable> values = joined("dstack", parts);
  const Loc loc = parts.list[0].loc().named("dstack");
  for (Variable& value : values) value = atleast_3d(Operand(value, loc));
  return concatenate(Parts(values, loc), 2);
}

Variable column_stack(const Parts& parts) {
  std::vector<Variable> values = joined("column_stack", parts);
  const Loc loc = parts.list[0].loc().named("column_stack");
  for (Variable& value : values) {
    if (value.ndim() < 2) value = atleast_2d(Operand(value, loc)).T(loc);
  }
  return concatenate(Parts(values, loc), 1);
}

void register_join_ops(OpRegistry& registry) {
  const auto example = [](std::vector<Shape> shapes, std::int64_t axis) {
    std::vector<std::pair<double, double>> range(shapes.size(), {-3, 3});
    return Example{std::move(shapes), std::move(range), {{"axis", axis}}};
  };
  registry.add({.name = "concatenate",
                .doc = "Operands one after the other along an axis.",
                .form = OpForm::loops,
                .infer = infer_concatenate,
                .element = concatenate_element,
                .grad = concatenate_grad,
                .reference = concatenate_reference,
                .examples = {example({{2, 3}, {4, 3}}, 0), example({{2, 1}, {2, 3}, {2, 2}}, 1),
                             example({{3}, {0}}, 0)}});
}

}  // namespace croton
