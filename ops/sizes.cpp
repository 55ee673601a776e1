#include "ops/sizes.h"

#include <fmt/format.h>

#include "ops/build.h"
#include "ops/checked_size.h"
#include "ops/slice.h"

namespace croton {
namespace {

Variable checked_symbol(std::string_view op, const Variable& size, const Loc& loc) {
  if (size.ndim() != 0 || !is_integer(size.dtype())) {
    graph_error(op,
                fmt::format("a size must be an integer scalar: got {}",
                            size.node()->outputs[size.output()].to_text()),
                loc);
  }
  return cast_to(size, DType::int64, loc);
}

void add_size(std::string_view op, SizeList& list, const Size& size, const Loc& loc,
              bool inferred) {
  std::int64_t number = 0;
  if (const std::int64_t* given = size.number()) {
    number = *given;
  } else {
    const Variable symbol = checked_symbol(op, *size.variable(), loc);
    const Array* value = constant_value(symbol);
    if (value == nullptr) {
      list.numbers.push_back(kSymbolSize);
      list.symbols.push_back(symbol);
      return;
    }
    number = value->item<std::int64_t>();
  }
  if (number < 0 && !(inferred && number == kInferredSize)) {
    graph_error(op, fmt::format("a size must not be negative: got {}", number), loc);
  }
  list.numbers.push_back(number);
}

/// Whether the node only casts or names its operand: each entry is that of the same number, and no
/// check is lost without the node.
bool is_plain_view(const Variable& v) {
  if (v.node()->inputs.empty()) return false;
  const Variable& x = v.node()->inputs[0];
  if (x.ndim() > 1 || !is_integer(x.dtype())) return false;
  if (is_op(v, "cast")) return keeps_values(x.dtype(), v.dtype());
  if (!is_op(v, "dimshuffle") && !is_op(v, "reshape") && !is_op(v, "specify_shape")) return false;
  return x.static_shape().is_static() && x.static_shape().numel() == v.static_shape().numel();
}

/// Entry i of a vector of known length, looked up in what the vector is made of: so numbers among
/// the sizes stay numbers.
Size vector_entry(const Variable& vector, std::int64_t i, const Loc& loc) {
  Variable v = vector;
  for (;;) {
    while (v.ndim() == 1 && is_plain_view(v)) v = v.node()->inputs[0];
    if (const Array* value = constant_value(v)) {
      return Size(
          value->astype(DType::int64).to_vector<std::int64_t>()[static_cast<std::size_t>(i)]);
    }
    if (v.ndim() == 0) return Size(v);
    if (v.ndim() != 1) break;
    const Node& node = *v.node();
    if (is_op(v, "shape_of")) return sizes_of(node.inputs[0], loc)[static_cast<std::size_t>(i)];
    if (is_op(v, "concatenate")) {
      std::size_t part = 0;
      while (node.inputs[part].static_shape()[0] != kAnyDim &&
             i >= node.inputs[part].static_shape()[0]) {
        i -= node.inputs[part++].static_shape()[0];
      }
      if (node.inputs[part].static_shape()[0] == kAnyDim) break;
      v = node.inputs[part];
    } else if (is_op(v, "slice") && node.inputs.size() == 1 &&
               node.inputs[0].static_shape()[0] != kAnyDim) {
      const Dim shape[] = {Dim(node.inputs[0].static_shape()[0])};
      const AxisPart part = slice_parts(node.attrs(), shape, [](int) { return Dim(); })[0];
      i = part.start.number() + part.step * i;
      v = node.inputs[0];
    } else {
      break;
    }
  }
  const Variable index = make_scalar(DType::int64, i, loc);
  return Size(apply("take", {v, index}, {{"axes", std::vector<std::int64_t>{0}}}, loc));
}

}  // namespace

std::vector<Size> vector_sizes(std::string_view op, const Variable& vector, const Loc& loc) {
  const Type& type = vector.node()->outputs[vector.output()];
  if (!is_integer(type.dtype) || type.shape.size() > 1) {
    graph_error(op,
                fmt::format("sizes must be integers or one integer vector: got {}", type.to_text()),
                loc);
  }
  if (type.shape.empty()) return {Size(vector)};
  if (is_op(vector, "shape_of")) return sizes_of(vector.node()->inputs[0], loc);
  if (type.shape[0] == kAnyDim) {
    graph_error(op,
                "the number of axes must be known: the length of the vector of sizes is not; give "
                "its length where it is declared, or a list of scalars",
                loc);
  }
  std::vector<Size> sizes;
  for (std::int64_t i = 0; i < type.shape[0]; ++i) sizes.push_back(vector_entry(vector, i, loc));
  return sizes;
}

SizeList size_list(std::string_view op, std::span<const Size> sizes, const Loc& loc,
                   bool inferred) {
  SizeList list;
  for (const Size& size : sizes) add_size(op, list, size, loc, inferred);
  return list;
}

SizeList size_list(std::string_view op, const Sizes& sizes, const Loc& loc, bool inferred) {
  return sizes.is_vector() ? size_list(op, vector_sizes(op, sizes.vector(), loc), loc, inferred)
                           : size_list(op, std::span(sizes.list()), loc, inferred);
}

std::vector<Dim> size_dims(const Infer& infer, int first) {
  std::vector<Dim> dims;
  for (std::int64_t number : infer.attrs().integers("sizes")) {
    if (number == kSymbolSize) {
      const Dim size = infer.value(first++);
      infer.equal(max(size, Dim(0)), size, "a size must not be negative: got {b}");
      dims.push_back(size);
    } else {
      dims.push_back(number == kInferredSize ? Dim() : Dim(number));
    }
  }
  return dims;
}

Shape size_numbers(const Attrs& attrs, std::span<const Array> symbols) {
  Shape shape;
  std::size_t next = 0;
  for (std::int64_t number : attrs.integers("sizes")) {
    shape.push_back(number == kSymbolSize ? symbols[next++].item<std::int64_t>() : number);
  }
  return shape;
}

Variable broadcast_sizes(const Variable& x, std::span<const Size> sizes, const Loc& loc) {
  SizeList list = size_list("broadcast", sizes, loc);
  bool same = list.symbols.empty() && list.numbers.size() == x.static_shape().size();
  for (std::size_t i = 0; same && i < list.numbers.size(); ++i) {
    same = list.numbers[i] == x.static_shape()[i];
  }
  if (same) return x;
  std::vector<Variable> inputs{x};
  inputs.insert(inputs.end(), list.symbols.begin(), list.symbols.end());
  return apply("broadcast", std::move(inputs), {{"sizes", std::move(list.numbers)}}, loc);
}

}  // namespace croton
