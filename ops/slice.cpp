// Slices: Python's meaning of negative, large and open bounds, for any step.
#include "ops/slice.h"

#include <fmt/format.h>

#include <algorithm>

#include "croton/error.h"
#include "ops/build.h"
#include "ops/reference.h"
#include "ops/registry.h"

namespace croton {
namespace {

/// The bound as Python counts it: negative values from the end, then clamped to [low, high].
Dim python_bound(Dim value, Dim size, Dim low, Dim high) {
  if (value.is_number()) {
    return value.number() < 0 ? max(value + size, low) : min(value, high);
  }
  return min(max(value + less(value, 0) * size, low), high);
}

AxisPart range_part(Dim size, Dim start, bool open_start, Dim stop, bool open_stop,
                    std::int64_t step) {
  AxisPart part;
  part.step = step;
  if (step > 0) {
    // A start beyond the end needs no clamp: the count is 0 then.
    part.start = open_start                                 ? Dim(0)
                 : start.is_number() && start.number() >= 0 ? start
                                                            : python_bound(start, size, 0, size);
    const Dim end = open_stop ? size : python_bound(stop, size, 0, size);
    const Dim length = end - part.start;
    part.count = max(step == 1 ? length : floor_div(length + Dim(step - 1), step), 0);
  } else {
    const Dim last = size - Dim(1);
    part.start = open_start ? last : python_bound(start, size, -1, last);
    const Dim end = open_stop ? Dim(-1) : python_bound(stop, size, -1, last);
    const Dim length = part.start - end;
    part.count = max(step == -1 ? length : floor_div(length + Dim(-step - 1), -step), 0);
  }
  return part;
}

}  // namespace

std::vector<AxisPart> slice_parts(const Attrs& attrs, std::span<const Dim> shape,
                                  const std::function<Dim(int)>& symbol) {
  const std::vector<std::int64_t>& kind = attrs.integers("kind");
  const std::vector<std::int64_t>& starts = attrs.integers("start");
  const std::vector<std::int64_t>& stops = attrs.integers("stop");
  const std::vector<std::int64_t>& steps = attrs.integers("step");
  std::vector<AxisPart> parts;
  int next = 0;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (kind[axis] == static_cast<std::int64_t>(SliceKind::full)) {
      parts.push_back({0, shape[axis], 1, -1});
      continue;
    }
    if (kind[axis] == static_cast<std::int64_t>(SliceKind::entry)) {
      const Dim index = starts[axis];
      parts.push_back({starts[axis] < 0 ? index + shape[axis] : index, 1, 1, -1});
      continue;
    }
    const int start_symbol = starts[axis] == kSymbolBound ? next++ : -1;
    const int stop_symbol = stops[axis] == kSymbolBound ? next++ : -1;
    const Dim start = start_symbol >= 0 ? symbol(start_symbol) : Dim(starts[axis]);
    const Dim stop = stop_symbol >= 0 ? symbol(stop_symbol) : Dim(stops[axis]);
    parts.push_back(range_part(shape[axis], start, starts[axis] == kOpenBound, stop,
                               stops[axis] == kOpenBound, steps[axis]));
    parts.back().start_symbol = start_symbol;
  }
  return parts;
}

std::vector<AxisPart> infer_slice_parts(Infer& infer, int first) {
  const std::vector<Dim>& shape = infer.shape(0);
  const std::vector<std::int64_t>& kind = infer.attrs().integers("kind");
  if (kind.size() != shape.size()) infer.fail("one slice an axis is expected");
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (kind[axis] != static_cast<std::int64_t>(SliceKind::entry)) continue;
    const std::int64_t index = infer.attrs().integers("start")[axis];
    const std::int64_t least = index < 0 ? -index : index + 1;
    if (shape[axis].is_number() && shape[axis].number() < least) {
      infer.fail(fmt::format("index {} is out of bounds for axis {} of size {}", index, axis,
                             shape[axis].number()));
    }
    if (shape[axis].is_number()) continue;
    infer.equal(max(shape[axis], Dim(least)), shape[axis],
                fmt::format("index {} is out of bounds for axis {} of size {{b}}", index, axis));
  }
  return slice_parts(infer.attrs(), shape, [&](int k) { return infer.value(first + k); });
}

Position start_position(Lowering& low, const AxisPart& part, Dim size, int first) {
  if (part.start_symbol < 0) {
    Position position;
    position.offset = part.start;
    return position;
  }
  kernel::Builder& b = low.b;
  const kernel::Expr n = low.value(size);
  kernel::Expr start = low.read(first + part.start_symbol, {});
  start = b.select(start < 0, start + n, start);
  const kernel::Expr least = b.i64(part.step > 0 ? 0 : -1);
  const kernel::Expr most = part.step > 0 ? n : n - 1;
  start = b.binary(kernel::Binary::max, start, least);
  return low.computed(b.binary(kernel::Binary::min, start, most));
}

void SliceBuilder::add_full() {
  kind.push_back(static_cast<std::int64_t>(SliceKind::full));
  start.push_back(kOpenBound);
  stop.push_back(kOpenBound);
  step.push_back(1);
}

void SliceBuilder::add_entry(std::int64_t index) {
  kind.push_back(static_cast<std::int64_t>(SliceKind::entry));
  start.push_back(std::max(index, kSymbolBound + 1));
  stop.push_back(kOpenBound);
  step.push_back(1);
}

void SliceBuilder::add_range(const Slice& slice, const Loc& loc) {
  const auto bound = [&](const Bound& given, std::string_view what) {
    if (given.is_none()) return kOpenBound;
    if (const std::int64_t* number = given.number()) return std::max(*number, kSymbolBound + 1);
    const Variable& symbol = *given.variable();
    if (symbol.ndim() != 0 || !is_integer(symbol.dtype())) {
      graph_error("slice",
                  fmt::format("{} must be an integer scalar: got {}", what,
                              symbol.node()->outputs[symbol.output()].to_text()),
                  loc);
    }
    if (const Array* value = constant_value(symbol)) {
      return std::max(value->astype(DType::int64).item<std::int64_t>(), kSymbolBound + 1);
    }
    symbols.push_back(cast_to(symbol, DType::int64, loc));
    return kSymbolBound;
  };
  const std::int64_t first = bound(slice.start, "start");
  const std::int64_t last = bound(slice.stop, "stop");
  const std::size_t used = symbols.size();
  std::int64_t by = bound(slice.step, "step");
  internal_check(symbols.size() == used, "slices with symbolic steps are taken entry by entry");
  if (by == kOpenBound) by = 1;
  if (by == 0) graph_error("slice", "the step must not be 0", loc);
  if (first == kOpenBound && last == kOpenBound && by == 1) return add_full();
  kind.push_back(static_cast<std::int64_t>(SliceKind::range));
  start.push_back(first);
  stop.push_back(last);
  step.push_back(by);
}

Attrs SliceBuilder::attrs() const {
  return {{"kind", kind}, {"start", start}, {"stop", stop}, {"step", step}};
}

Variable slice_axis(const Variable& x, int axis, const Slice& slice, const Loc& loc) {
  SliceBuilder builder;
  for (int k = 0; k < x.ndim(); ++k) {
    k == axis ? builder.add_range(slice, loc) : builder.add_full();
  }
  std::vector<Variable> inputs{x};
  inputs.insert(inputs.end(), builder.symbols.begin(), builder.symbols.end());
  return apply("slice", std::move(inputs), builder.attrs(), loc);
}

namespace {

void infer_slice(Infer& infer) {
  if (infer.inputs() < 1) infer.fail("an operand is expected");
  std::vector<Dim> shape;
  for (const AxisPart& part : infer_slice_parts(infer, 1)) shape.push_back(part.count);
  infer.out(infer.dtype(0), std::move(shape));
}

kernel::Expr slice_element(Lowering& low, std::span<const Position> at) {
  const std::vector<Dim>& shape = low.in[0].shape;
  const std::vector<AxisPart> parts =
      slice_parts(low.node.attrs(), shape, [](int) { return Dim(); });
  std::vector<Position> from;
  for (std::size_t axis = 0; axis < at.size(); ++axis) {
    const AxisPart& part = parts[axis];
    from.push_back(scaled(at[axis], part.step, low.b.i64(part.step)) +
                   start_position(low, part, shape[axis], 1));
  }
  return low.read(0, std::move(from));
}

std::vector<Variable> slice_grad(const GradArgs& args) {
  std::vector<Variable> result(args.node.inputs.size());
  std::vector<Variable> inputs = args.node.inputs;
  inputs[0] = zeros_like(args.in(0), args.node.loc);
  inputs.insert(inputs.begin() + 1, args.g());
  result[0] = apply("set_slice", std::move(inputs), args.node.attrs(), args.node.loc);
  return result;
}

/// The parts with the numbers of a call.
std::vector<AxisPart> concrete_parts(const Attrs& attrs, const Shape& shape,
                                     std::span<const Array> symbols) {
  const std::vector<Dim> dims(shape.begin(), shape.end());
  return slice_parts(attrs, dims, [&](int k) {
    return Dim(symbols[static_cast<std::size_t>(k)].item<std::int64_t>());
  });
}

std::vector<Array> slice_reference(const Node& node, std::span<const Array> inputs) {
  const Shape& from = inputs[0].shape();
  const std::vector<AxisPart> parts = concrete_parts(node.attrs(), from, inputs.subspan(1));
  Shape shape;
  for (const AxisPart& part : parts) shape.push_back(part.count.number());
  return {reference::rearrange(inputs[0], shape, [&](const Shape& at) {
    Shape source;
    for (std::size_t axis = 0; axis < at.size(); ++axis) {
      source.push_back(parts[axis].start.number() + at[axis] * parts[axis].step);
    }
    return reference::flat_index(from, source);
  })};
}

// Writing: inputs are the operand, the value (of the slice's shape) and the symbolic bounds.

void infer_write(Infer& infer) {
  if (infer.inputs() < 2) infer.fail("an operand and a value are expected");
  if (infer.dtype(0) != infer.dtype(1)) {
    infer.fail(fmt::format("a value of dtype {} expected, got {}", name_of(infer.dtype(0)),
                           name_of(infer.dtype(1))));
  }
  const std::vector<AxisPart> parts = infer_slice_parts(infer, 2);
  if (infer.ndim(0) != infer.ndim(1)) infer.fail("the value has another number of axes");
  for (int axis = 0; axis < infer.ndim(0); ++axis) {
    infer.equal(parts[axis].count, infer.shape(1)[axis],
                fmt::format("the value does not fit the slice along axis {}", axis));
  }
  infer.out(infer.dtype(0), infer.shape(0));
}

/// Where in the value an element of the operand is written, and whether it is.
struct Target {
  std::vector<Position> at;
  kernel::Expr inside;
};

Target write_target(Lowering& low, std::span<const Position> at) {
  const std::vector<Dim>& shape = low.in[0].shape;
  const std::vector<AxisPart> parts =
      slice_parts(low.node.attrs(), shape, [](int) { return Dim(); });
  kernel::Builder& b = low.b;
  Target target;
  const auto require = [&](kernel::Expr ok) {
    target.inside = target.inside ? target.inside & ok : ok;
  };
  for (std::size_t axis = 0; axis < at.size(); ++axis) {
    const AxisPart& part = parts[axis];
    if (part.start.is(0) && part.step == 1 && part.count.same(shape[axis])) {
      target.at.push_back(at[axis]);
      continue;
    }
    const Position start = start_position(low, part, shape[axis], 2);
    Position offset = at[axis] + scaled(start, -1, b.i64(-1));
    if (part.step == -1) offset = scaled(offset, -1, b.i64(-1));
    kernel::Expr number = low.value(offset);
    if (part.step != 1 && part.step != -1) {
      const kernel::Expr whole = number / part.step;
      require(whole * part.step == number);
      number = whole;
      offset = low.computed(whole);
    }
    require(b.i64(0) <= number);
    require(number < low.value(low.in[1].shape[axis]));
    target.at.push_back(std::move(offset));
  }
  return target;
}

kernel::Expr set_element(Lowering& low, std::span<const Position> at) {
  Target target = write_target(low, at);
  const kernel::Expr value = low.read(1, std::move(target.at), target.inside);
  // Not `!inside`, which would negate it in the kernel.
  if (target.inside.id == kernel::kNone) return value;
  return low.b.select(target.inside, value,
                      low.read(0, std::vector<Position>(at.begin(), at.end())));
}

kernel::Expr inc_element(Lowering& low, std::span<const Position> at) {
  kernel::Builder& b = low.b;
  Target target = write_target(low, at);
  const kernel::Expr old = low.read(0, std::vector<Position>(at.begin(), at.end()));
  const kernel::Expr value = low.read(1, std::move(target.at), target.inside);
  const DType dtype = old.dtype();
  kernel::Expr sum;
  if (dtype == DType::float16 || dtype == DType::bfloat16) {
    sum = b.cast(b.cast(old, DType::float32) + b.cast(value, DType::float32), dtype);
  } else {
    sum = is_bool(dtype) ? old | value : old + value;
  }
  return target.inside ? b.select(target.inside, sum, old) : sum;
}

Variable read_back(const Node& node, const Variable& g) {
  std::vector<Variable> inputs = node.inputs;
  inputs.erase(inputs.begin() + 1);
  inputs[0] = g;
  return apply("slice", std::move(inputs), node.attrs(), node.loc);
}

std::vector<Variable> set_grad(const GradArgs& args) {
  std::vector<Variable> result(args.node.inputs.size());
  std::vector<Variable> inputs = args.node.inputs;
  inputs[0] = args.g();
  inputs[1] = zeros_like(args.in(1), args.node.loc);
  result[0] = apply("set_slice", std::move(inputs), args.node.attrs(), args.node.loc);
  result[1] = read_back(args.node, args.g());
  return result;
}

std::vector<Variable> inc_grad(const GradArgs& args) {
  std::vector<Variable> result(args.node.inputs.size());
  result[0] = args.g();
  result[1] = read_back(args.node, args.g());
  return result;
}

std::vector<Array> write_reference(const Node& node, std::span<const Array> inputs) {
  const Shape& shape = inputs[0].shape();
  const std::vector<AxisPart> parts = concrete_parts(node.attrs(), shape, inputs.subspan(2));
  const bool add = node.op->name == "inc_slice";
  return {reference::with_class(inputs[0].dtype(), [&](auto tag) {
    using T = decltype(tag);
    std::vector<T> result = reference::values<T>(inputs[0]);
    reference::Odometer position(inputs[1].shape());
    for (const T value : reference::values<T>(inputs[1])) {
      Shape to;
      for (std::size_t axis = 0; axis < parts.size(); ++axis) {
        to.push_back(parts[axis].start.number() + position.at()[axis] * parts[axis].step);
      }
      auto&& target = result[static_cast<std::size_t>(reference::flat_index(shape, to))];
      target = add ? static_cast<T>(target + value) : value;
      position.next();
    }
    Array out = Array::empty(shape, dtype_of<T>);
    std::copy(result.begin(), result.end(), out.mutable_data<T>());
    return out.astype(inputs[0].dtype());
  })};
}

Attrs example_attrs(std::vector<Slice> slices) {
  SliceBuilder builder;
  for (const Slice& slice : slices) builder.add_range(slice, Loc());
  return builder.attrs();
}

}  // namespace

void register_slice_ops(OpRegistry& registry) {
  const std::vector<Slice> rows{Slice(1, 4, 2), Slice()};
  const std::vector<Slice> back{Slice(none, none, -1), Slice(-2, none)};
  registry.add({.name = "slice",
                .doc = "start:stop:step along each axis.",
                .form = OpForm::loops,
                .infer = infer_slice,
                .element = slice_element,
                .grad = slice_grad,
                .reference = slice_reference,
                .examples = {{{{5, 3}}, {{-3, 3}}, example_attrs(rows)},
                             {{{4, 3}}, {{-3, 3}}, example_attrs(back)}}});
  const auto add_write = [&](std::string name, std::string doc,
                             kernel::Expr (*element)(Lowering&, std::span<const Position>),
                             std::vector<Variable> (*grad)(const GradArgs&)) {
    registry.add({.name = std::move(name),
                  .doc = std::move(doc),
                  .form = OpForm::loops,
                  .infer = infer_write,
                  .element = element,
                  .grad = grad,
                  .reference = write_reference,
                  .examples = {{{{5, 3}, {2, 3}}, {{-3, 3}, {-3, 3}}, example_attrs(rows)},
                               {{{4, 3}, {4, 2}}, {{-3, 3}, {-3, 3}}, example_attrs(back)}}});
  };
  add_write("set_slice", "The operand with a slice of it replaced by the value.", set_element,
            set_grad);
  add_write("inc_slice", "The operand with the value added to a slice of it.", inc_element,
            inc_grad);
}

}  // namespace croton
