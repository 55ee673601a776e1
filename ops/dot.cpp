// Products of vectors and matrices by rank. A product with a vector is a loop, the others go to the
// library.
#include <fmt/format.h>

#include <algorithm>

#include "croton/linalg.h"
#include "croton/math.h"
#include "croton/tensor.h"
#include "ops/axes.h"
#include "ops/build.h"

namespace croton {
namespace {

struct Product {
  std::string_view op;
  Loc loc;
  Variable a;
  Variable b;
  DType dtype;  ///< of the result
};

/// Operands in their common dtype.
Product prepared(std::string_view op, const Operand& a, const Operand& b) {
  const Operand operands[] = {a, b};
  std::vector<Variable> values = resolve(op, operands);
  Product p{op, a.loc().named(op), values[0], values[1],
            promote(values[0].dtype(), values[1].dtype(), build_settings().numpy_policy)};
  if (is_bool(p.dtype)) {
    graph_error(op, "bools have no product of matrices: cast them, for instance to int32", p.loc);
  }
  p.a = cast_to(p.a, p.dtype, p.loc);
  p.b = cast_to(p.b, p.dtype, p.loc);
  return p;
}

/// Sizes that are summed over together must agree; a known size of 1 must not stretch.
void match_inner(Product& p, int axis_a, int axis_b) {
  const std::int64_t a = p.a.static_shape()[axis_a];
  const std::int64_t b = p.b.static_shape()[axis_b];
  if (a != kAnyDim && b != kAnyDim && a != b) {
    graph_error(p.op,
                fmt::format("inner sizes clash: got {} and {}, expected {} == {}",
                            p.a.static_shape().to_string(), p.b.static_shape().to_string(), a, b),
                p.loc);
  }
  const auto pinned = [&](const Variable& x, int axis, std::int64_t size) {
    Shape sizes = x.static_shape();
    sizes[axis] = size;
    return specify_shape(Operand(x, p.loc), sizes);
  };
  if (a == kAnyDim && b != kAnyDim) p.a = pinned(p.a, axis_a, b);
  if (b == kAnyDim && a != kAnyDim) p.b = pinned(p.b, axis_b, a);
}

Variable gemm(const Product& p, const Variable& a, const Variable& b) {
  return apply("gemm", {a, b}, {{"transpose_a", std::int64_t{0}}, {"transpose_b", std::int64_t{0}}},
               p.loc);
}

/// Products, which float16 and bfloat16 make in float32, summed over an axis.
Variable summed_product(const Product& p, const Variable& a, const Variable& b, int axis) {
  const DType work = is_narrow(p.dtype) ? DType::float32 : p.dtype;
  const Variable y = mul(Operand(cast_to(a, work, p.loc), p.loc), cast_to(b, work, p.loc));
  return cast_to(sum_axes(y, {axis}, false, p.loc), p.dtype, p.loc);
}

/// The last axis of `a` with a vector.
Variable matrix_vector(Product& p) {
  match_inner(p, p.a.ndim() - 1, 0);
  return summed_product(p, p.a, p.b, p.a.ndim() - 1);
}

/// A vector with the last but one axis of `b`.
Variable vector_matrix(Product& p) {
  const int axis = p.b.ndim() - 2;
  match_inner(p, 0, axis);
  return summed_product(p, insert_axes(p.a, {1}, p.loc), p.b, axis);
}

/// The last axis of `a` with the first of `b`; all others of `a`, then of `b`.
Variable contract(const Product& p) {
  const Variable& a = p.a;
  const Variable& b = p.b;
  std::vector<Size> sizes = sizes_of(a, p.loc);
  sizes.pop_back();
  const std::vector<Size> more = sizes_of(b, p.loc);
  sizes.insert(sizes.end(), more.begin() + 1, more.end());
  const Variable y =
      gemm(p, merge_axes(a, 0, a.ndim() - 1, p.loc), merge_axes(b, 1, b.ndim() - 1, p.loc));
  return a.ndim() == 2 && b.ndim() == 2 ? y : reshape_sizes(y, sizes, p.loc);
}

std::vector<int> range(int begin, int end) {
  std::vector<int> list;
  for (int k = begin; k < end; ++k) list.push_back(k);
  return list;
}

}  // namespace

Variable dot(const Operand& left, const Operand& right) {
  Product p = prepared("dot", left, right);
  if (p.a.ndim() == 0 || p.b.ndim() == 0) {
    return mul(Operand(p.a, p.loc), p.b);
  }
  if (p.b.ndim() == 1) return matrix_vector(p);
  if (p.a.ndim() == 1) return vector_matrix(p);
  const int inner = p.b.ndim() - 2;
  match_inner(p, p.a.ndim() - 1, inner);
  std::vector<int> order = range(0, p.b.ndim());
  order.erase(order.begin() + inner);
  order.insert(order.begin(), inner);
  p.b = dimshuffle(p.b, order, p.loc);
  return contract(p);
}

Variable matmul(const Operand& left, const Operand& right) {
  Product p = prepared("matmul", left, right);
  if (p.a.ndim() == 0 || p.b.ndim() == 0) {
    graph_error("matmul", "scalars are not matrices; use dot or *", p.loc);
  }
  if (p.b.ndim() == 1) return matrix_vector(p);
  if (p.a.ndim() == 1) return vector_matrix(p);
  match_inner(p, p.a.ndim() - 1, p.b.ndim() - 2);
  if (p.b.ndim() == 2) return contract(p);
  return gemm(p, p.a, p.b);
}

Variable outer(const Operand& left, const Operand& right) {
  Product p = prepared("outer", left, right);
  if (p.a.ndim() != 1 || p.b.ndim() != 1) {
    graph_error("outer",
                fmt::format("two vectors are expected: got {} and {} axes", p.a.ndim(), p.b.ndim()),
                p.loc);
  }
  return mul(Operand(insert_axes(p.a, {1}, p.loc), p.loc), p.b);
}

Variable tensordot(const Operand& left, const Operand& right, int axes) {
  const int a = left.variable().ndim();
  const int b = right.variable().ndim();
  if (axes < 0 || axes > a || axes > b) {
    graph_error("tensordot", fmt::format("{} axes to sum over of {} and {}", axes, a, b),
                left.loc());
  }
  return tensordot(left, right, range(a - axes, a), range(0, axes));
}

Variable tensordot(const Operand& left, const Operand& right, const std::vector<int>& axes_a,
                   const std::vector<int>& axes_b) {
  Product p = prepared("tensordot", left, right);
  if (axes_a.size() != axes_b.size()) {
    graph_error("tensordot", "as many axes of the one operand as of the other are expected", p.loc);
  }
  checked_axes("tensordot", Axis(axes_a), p.a.ndim(), p.loc);
  checked_axes("tensordot", Axis(axes_b), p.b.ndim(), p.loc);
  const int count = static_cast<int>(axes_a.size());
  std::vector<int> inner_a;
  std::vector<int> inner_b;
  for (int k = 0; k < count; ++k) {
    inner_a.push_back(checked_axis("tensordot", axes_a[k], p.a.ndim(), p.loc));
    inner_b.push_back(checked_axis("tensordot", axes_b[k], p.b.ndim(), p.loc));
    match_inner(p, inner_a.back(), inner_b.back());
  }
  std::vector<int> order_a;
  std::vector<int> order_b = inner_b;
  const auto rest = [](std::vector<int>& order, const std::vector<int>& inner, int rank) {
    for (int k = 0; k < rank; ++k) {
      if (std::find(inner.begin(), inner.end(), k) == inner.end()) order.push_back(k);
    }
  };
  rest(order_a, inner_a, p.a.ndim());
  order_a.insert(order_a.end(), inner_a.begin(), inner_a.end());
  rest(order_b, inner_b, p.b.ndim());
  p.a = merge_axes(dimshuffle(p.a, order_a, p.loc), p.a.ndim() - count, count, p.loc);
  p.b = merge_axes(dimshuffle(p.b, order_b, p.loc), 0, count, p.loc);
  return contract(p);
}

}  // namespace croton
