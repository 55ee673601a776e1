#include "croton/jacobian.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/grad/reverse.h"
#include "compiler/graph/op.h"
#include "croton/tensor.h"
#include "croton/vectorize.h"
#include "ops/build.h"
#include "ops/sizes.h"

namespace croton {
namespace {

void check_float(const Variable& v, std::string_view op, std::string_view what, const Loc& loc) {
  if (!v.defined()) graph_error(op, fmt::format("{} is empty", what), loc);
  if (is_float(v.dtype())) return;
  graph_error(op, fmt::format("{} must be a float: got {}", what, variable_title(v, loc)), loc);
}

/// For each element of x an array of x's shape that is 1 there and 0 elsewhere: (elements, shape).
Variable unit_arrays(const Variable& x, const Loc& loc) {
  std::vector<int> axes;
  for (int axis = 0; axis < x.ndim(); ++axis) axes.push_back(axis);
  const Variable count = count_elements(x, axes, DType::int64, loc);
  const Array* known = constant_value(count);
  const Size size = known != nullptr ? Size(known->item<std::int64_t>()) : Size(count);
  const Variable square = eye(size, x.dtype(), loc);
  if (x.ndim() == 1) return square;
  std::vector<Size> sizes = sizes_of(x, loc);
  sizes.insert(sizes.begin(), size);
  return reshape_sizes(square, sizes, loc);
}

/// (elements of expr, shape of wrt) as (shape of expr, shape of wrt).
Variable unfolded(const Variable& rows, const Variable& expr, const Variable& wrt, const Loc& loc) {
  if (expr.ndim() == 1) return rows;
  std::vector<Size> sizes = sizes_of(expr, loc);
  const std::vector<Size> own = sizes_of(wrt, loc);
  sizes.insert(sizes.end(), own.begin(), own.end());
  return reshape_sizes(rows, sizes, loc);
}

}  // namespace

std::vector<Variable> jacobian(const Variable& expr, const std::vector<Variable>& wrt,
                               const ProductOptions& options, Loc line) {
  const Loc loc = line.named("jacobian");
  check_float(expr, "jacobian", "the value to differentiate", loc);
  for (const Variable& v : wrt) check_float(v, "jacobian", "a variable to differentiate by", loc);
  if (expr.ndim() == 0) return Lop({expr}, wrt, {ones_like(expr, loc)}, options, loc);
  const Variable u = make_input(expr.node()->outputs[expr.output()], "", loc);
  const std::vector<Variable> one = Lop({expr}, wrt, {u}, options, loc);
  const Variable units = unit_arrays(expr, loc);
  std::vector<Variable> result = vectorize_graph(one, {{u, units}}, loc);
  for (std::size_t k = 0; k < wrt.size(); ++k) {
    if (result[k].ndim() == wrt[k].ndim()) {  // the same for all elements: zeros
      std::vector<Size> sizes = sizes_of(result[k], loc);
      sizes.insert(sizes.begin(), sizes_of(units, loc)[0]);
      result[k] = broadcast_sizes(result[k], sizes, loc);
    }
    result[k] = unfolded(result[k], expr, wrt[k], loc);
  }
  return result;
}

std::vector<Variable> hessian(const Variable& cost, const std::vector<Variable>& wrt,
                              const ProductOptions& options, Loc line) {
  const Loc loc = line.named("hessian");
  for (const Variable& v : wrt) check_float(v, "hessian", "a variable to differentiate by", loc);
  const std::vector<Variable> slopes = grad(cost, wrt,
                                            {.consider_constant = options.consider_constant,
                                             .disconnected_inputs = options.disconnected,
                                             .add_names = false},
                                            loc);
  std::vector<Variable> result;
  for (std::size_t k = 0; k < wrt.size(); ++k) {
    result.push_back(jacobian(slopes[k], wrt[k], options, loc));
  }
  return result;
}

std::vector<Variable> hessian_vector_product(const Variable& cost, const std::vector<Variable>& wrt,
                                             const std::vector<Variable>& vectors,
                                             const ProductOptions& options, Loc line) {
  const Loc loc = line.named("hessian_vector_product");
  for (const Variable& v : wrt) {
    check_float(v, "hessian_vector_product", "a variable to differentiate by", loc);
  }
  for (const Variable& v : vectors) check_float(v, "hessian_vector_product", "a vector", loc);
  if (vectors.size() != wrt.size()) {
    graph_error("hessian_vector_product",
                fmt::format("one vector for each variable is expected: got {} for {}",
                            vectors.size(), wrt.size()),
                loc);
  }
  const std::vector<Variable> slopes = grad(cost, wrt,
                                            {.consider_constant = options.consider_constant,
                                             .disconnected_inputs = options.disconnected,
                                             .add_names = false},
                                            loc);
  bool many = false;
  std::vector<Variable> single;
  std::vector<std::pair<Variable, Variable>> replace;
  for (std::size_t k = 0; k < wrt.size(); ++k) {
    many = many || vectors[k].ndim() > wrt[k].ndim();
    single.push_back(make_input(wrt[k].node()->outputs[wrt[k].output()], "", loc));
    replace.emplace_back(single.back(), cast_to(vectors[k], wrt[k].dtype(), loc));
  }
  if (!many) return Rop(slopes, wrt, vectors, options, loc);
  return vectorize_graph(Rop(slopes, wrt, single, options, loc), replace, loc);
}

}  // namespace croton
