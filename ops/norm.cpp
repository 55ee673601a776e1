// Norms of vectors and matrices.
#include <fmt/format.h>

#include <cmath>

#include "croton/math.h"
#include "croton/statistics.h"
#include "ops/axes.h"
#include "ops/build.h"
#include "ops/built_at.h"
#include "ops/row.h"
#include "ops/scalar.h"

namespace croton {
namespace {

/// A norm under way. Reduced axes stay until the end.
struct Norm {
  Loc loc;
  Variable x;
  std::vector<int> axes;  ///< of a matrix: that of its rows, then that of its columns

  Variable constant(double value) const { return scalar_like(x, value, loc); }

  Variable folded(std::string_view op, const Variable& v, const std::vector<int>& over) const {
    const std::vector<int> sorted = checked_axes("norm", over, x.ndim(), loc);
    if (sorted.empty()) return v;
    return apply(
        op, {v},
        {{"axes", std::vector<std::int64_t>(sorted.begin(), sorted.end())}, {"keepdims", 1}}, loc);
  }

  /// total^power, whose slope at 0 may be infinite; there the gradient is 0.
  Variable rooted(const Variable& total, double power) const {
    const Variable zero = eq(total, constant(0));
    const Variable safe = where(zero, constant(1), total);
    const Variable root = power == 0.5 ? sqrt(safe) : pow(safe, constant(power));
    return where(zero, constant(power > 0 ? 0 : INFINITY), root);
  }

  Variable euclidean() const { return rooted(folded("sum", square(x), axes), 0.5); }

  Variable power(double p) const {
    const Variable zero = eq(x, constant(0));
    const Variable safe = where(zero, constant(1), abs(x));
    const Variable powers = where(zero, constant(p > 0 ? 0 : INFINITY), pow(safe, constant(p)));
    return rooted(folded("sum", powers, axes), 1 / p);
  }

  Variable of_vector(double p) const {
    if (p == 2) return euclidean();
    if (p == 1) return folded("sum", abs(x), axes);
    if (p == 0) return folded("sum", cast_to(ne(x, constant(0)), x.dtype(), loc), axes);
    if (std::isinf(p)) return folded(p > 0 ? "max" : "min", abs(x), axes);
    return power(p);
  }

  Variable of_matrix(double p) const {
    const double magnitude = std::abs(p);
    if (magnitude != 1 && !std::isinf(magnitude)) {
      graph_error("norm",
                  fmt::format("a matrix has no norm of order {} here: expected \"fro\", 1, -1 or "
                              "an infinity; other orders need singular values",
                              p),
                  loc);
    }
    const int first = magnitude == 1 ? 0 : 1;
    const Variable sums = folded("sum", abs(x), {axes[first]});
    return folded(p > 0 ? "max" : "min", sums, {axes[1 - first]});
  }

  Variable value(const NormOrder& order) const {
    if (!order.p) return euclidean();
    return axes.size() == 1 ? of_vector(*order.p) : of_matrix(*order.p);
  }
};

/// The axes in the order given.
std::vector<int> norm_axes(const NormOrder& order, const Axis& axis, int rank, const Loc& loc) {
  const std::vector<int> sorted = checked_axes("norm", axis, rank, loc);
  if (!order.name.empty() && order.name != "fro") {
    graph_error("norm",
                fmt::format("unknown order \"{}\": expected \"fro\" or a number", order.name), loc);
  }
  if (order.p && std::isnan(*order.p)) graph_error("norm", "the order must not be NaN", loc);
  const bool plain = !order.p && order.name.empty();
  if (!plain && sorted.size() != 1 && sorted.size() != 2) {
    graph_error("norm",
                fmt::format("a norm of an order is over one axis or two: got {}; give `axis`",
                            sorted.size()),
                loc);
  }
  if (!order.name.empty() && sorted.size() != 2) {
    graph_error("norm", "the order \"fro\" is for matrices: expected two axes, got 1", loc);
  }
  if (!axis.axes) return sorted;
  std::vector<int> axes;
  for (const int a : *axis.axes) axes.push_back(checked_axis("norm", a, rank, loc));
  return axes;
}

}  // namespace

Variable norm(const Operand& operand, const NormOrder& order, const Axis& axis, bool keepdims) {
  const Loc loc = operand.loc().named("norm");
  const Variable given = operand.variable();
  const DType result = scalar::float_result(given.dtype());
  const std::vector<int> axes = norm_axes(order, axis, given.ndim(), loc);
  return built_at(loc, [&] {
    const DType work = size_of(result) < 4 ? DType::float32 : result;
    const Norm norm{loc, cast_to(given, work, loc), axes};
    Variable y = norm.value(order);
    if (!keepdims) {
      const std::vector<int> sorted = checked_axes("norm", axes, given.ndim(), loc);
      for (std::size_t k = sorted.size(); k-- > 0;) y = row::without_axis(y, sorted[k], loc);
    }
    return cast_to(y, result, loc);
  });
}

}  // namespace croton
