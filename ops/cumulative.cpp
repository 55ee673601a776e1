// cumsum, cumprod, cummax, cummin, logcumsumexp, diff.
#include "croton/cumulative.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "compiler/kernel/math.h"
#include "croton/indexing.h"
#include "croton/math.h"
#include "croton/tensor.h"
#include "ops/axes.h"
#include "ops/build.h"
#include "ops/cumulative_kernel.h"
#include "ops/one_axis.h"
#include "ops/reference.h"
#include "ops/registry.h"
#include "ops/running.h"
#include "ops/scalar.h"
#include "ops/slice.h"

namespace croton {
namespace {

using kernel::Binary;
using kernel::Builder;
using kernel::Expr;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Combinations in kernels.

Expr combine_sum(Builder&, Expr a, Expr x) { return a + x; }
Expr combine_prod(Builder&, Expr a, Expr x) { return a * x; }
Expr combine_max(Builder& b, Expr a, Expr x) { return b.binary(Binary::max, a, x); }
Expr combine_min(Builder& b, Expr a, Expr x) { return b.binary(Binary::min, a, x); }

/// log(exp(a) + exp(x)). An infinite or NaN maximum is the result.
Expr combine_logsumexp(Builder& b, Expr a, Expr x) {
  const Expr largest = b.binary(Binary::max, a, x);
  const Expr finite = b.unary(kernel::Unary::abs, largest) < b.constant(a.dtype(), kInfinity);
  const Expr distance = -b.unary(kernel::Unary::abs, a - x);
  return b.select(finite, largest + kernel::log1p(kernel::exp(distance)), largest);
}

/// -0 + x is x, also where x is -0.
Expr zero_identity(Builder& b, DType dtype) {
  return is_float(dtype) ? b.constant(dtype, -0.0) : b.integer(dtype, 0);
}
Expr one_identity(Builder& b, DType dtype) { return b.integer(dtype, 1); }

std::int64_t extreme_integer(DType dtype, bool largest) {
  const int bits = static_cast<int>(size_of(dtype)) * 8;
  if (is_unsigned(dtype)) {
    return largest ? static_cast<std::int64_t>(~std::uint64_t{0} >> (64 - bits)) : 0;
  }
  const std::int64_t top = std::numeric_limits<std::int64_t>::max() >> (64 - bits);
  return largest ? top : -top - 1;
}

Expr lowest(Builder& b, DType dtype) {
  return is_float(dtype) ? b.constant(dtype, -kInfinity)
                         : b.integer(dtype, extreme_integer(dtype, false));
}
Expr highest(Builder& b, DType dtype) {
  return is_float(dtype) ? b.constant(dtype, kInfinity)
                         : b.integer(dtype, extreme_integer(dtype, true));
}

constexpr RunningFold kSum{combine_sum, zero_identity, 2};
constexpr RunningFold kProd{combine_prod, one_identity, 2};
constexpr RunningFold kMax{combine_max, lowest, 2};
constexpr RunningFold kMin{combine_min, highest, 2};
constexpr RunningFold kLogSumExp{combine_logsumexp, lowest, 60};

template <const RunningFold& kFold>
void lower(KernelLowering& low) {
  lower_running(low, kFold);
}

// Type rules.

void infer_running(Infer& infer) {
  infer.expect_inputs(1);
  const DType dtype = infer.dtype(0);
  if (is_bool(dtype) || is_narrow(dtype)) {
    infer.fail(fmt::format("{} is not a dtype to accumulate in", name_of(dtype)));
  }
  normalize_axis(infer, infer.attrs().integer("axis"), infer.ndim(0));
  infer.out(dtype, infer.shape(0));
}

void infer_logcumsumexp(Infer& infer) {
  infer.expect_inputs(1);
  if (!is_float(infer.dtype(0))) infer.fail("floats expected: cast with astype");
  infer_running(infer);
}

// References.

template <class T>
T step(std::string_view op, T a, T x) {
  if (op == "cumsum") return static_cast<T>(a + x);
  if (op == "cumprod") return static_cast<T>(a * x);
  if (op == "cummax") return a < x || x != x ? x : a;
  if (op == "cummin") return x < a || x != x ? x : a;
  const double largest = std::max(static_cast<double>(a), static_cast<double>(x));
  if (a != a || x != x) return static_cast<T>(a + x);
  if (std::isinf(largest)) return static_cast<T>(largest);
  return static_cast<T>(
      largest + std::log1p(std::exp(-std::abs(static_cast<double>(a) - static_cast<double>(x)))));
}

std::vector<Array> running_reference(const Node& node, std::span<const Array> inputs) {
  const Array& x = inputs[0];
  return {reference::with_class(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    std::vector<T> values = reference::values<T>(x);
    along_lines(x.shape(), way_of(node), [&](std::size_t e, std::int64_t before) {
      if (before < 0) return;
      values[e] = step<T>(node.op->name, values[static_cast<std::size_t>(before)],
                          static_cast<T>(values[e]));
    });
    Array out = Array::empty(x.shape(), dtype_of<T>);
    std::copy(values.begin(), values.end(), out.mutable_data<T>());
    return out.astype(x.dtype());
  })};
}

// Gradients.

struct Slopes {
  const GradArgs& args;
  const Loc& loc = args.node.loc;
  Way way = way_of(args.node);

  Variable run(std::string_view op, const Variable& x, Way along) const {
    return apply(op, {x}, along.attrs(), loc);
  }
};

std::vector<Variable> cumsum_grad(const GradArgs& args) {
  const Slopes s{args};
  return {s.run("cumsum", args.g(), s.way.back())};
}

/// The slope of y[k] is s[k] = g[k] + x[k + 1] * s[k + 1], that of x[k] is y[k - 1] * s[k]: no
/// quotients, so zeros are as good as others.
std::vector<Variable> cumprod_grad(const GradArgs& args) {
  const Slopes s{args};
  const Variable slope =
      recurrence(args.g(), following(args.in(0), s.way, s.loc), s.way.back(), s.loc);
  return {mul(Operand(slope, s.loc), Operand(delayed(args.out(), s.way, 1, s.loc), s.loc))};
}

/// Each result is one element, the latest of equals.
std::vector<Variable> extreme_grad(const GradArgs& args) {
  const Slopes s{args};
  const Variable& x = args.in(0);
  const Variable new_one = logical_or(eq(x, args.out()), isnan(x));
  const Variable number = iota_like({x, s.loc}, s.way.axis);
  const Variable nowhere = scalar_like(number, s.way.reverse ? 0x1p62 : -1, s.loc);
  const Variable source =
      s.run(s.way.reverse ? "cummin" : "cummax", where(new_one, number, nowhere), s.way);
  return {apply("inc_along_axis", {zeros_like(x, s.loc), args.g(), source},
                {{"axis", std::int64_t{s.way.axis}}}, s.loc)};
}

/// s[k] = g[k] + exp(y[k] - y[k + 1]) * s[k + 1], and the slope is exp(x[k] - y[k]) * s[k]: no
/// exponent is positive. Infinite elements: -inf gets nothing, inf all of it.
std::vector<Variable> logcumsumexp_grad(const GradArgs& args) {
  const Slopes s{args};
  const Variable& x = args.in(0);
  const Variable y = args.out();
  const Variable zero = scalar_like(x, 0, s.loc);
  const Variable step = where(isinf(y), zero, sub(y, following(y, s.way, s.loc)));
  const Variable sums = recurrence(args.g(), exp(step), s.way.back(), s.loc);
  const Variable own = where(isinf(x), minimum(x, zero), sub(x, y));
  return {mul(exp(own), sums)};
}

// What users call.

/// The operand and the axis of a running fold; with no axis the operand flattened.
struct Operation {
  Loc loc;
  Variable x;
  int axis = 0;
  DType result;

  Operation(std::string_view op, const Operand& operand, const Axis& along,
            const CumulativeOptions& options)
      : loc(operand.loc().named(op)), x(operand.variable()) {
    std::tie(x, axis) = along_one(op, x, along, loc);
    result = options.dtype.value_or(x.dtype());
  }

  Variable run(std::string_view op, const CumulativeOptions& options, double start) const {
    const DType work = is_narrow(result) ? DType::float32 : is_bool(result) ? DType::uint8 : result;
    const Way way{axis, options.reverse};
    const Variable y = apply(op, {cast_to(x, work, loc)}, way.attrs(), loc);
    return cast_to(options.exclusive ? delayed(y, way, start, loc) : y, result, loc);
  }
};

Variable arithmetic(std::string_view op, const Operand& operand, const Axis& axis,
                    const CumulativeOptions& options, double start) {
  Operation operation(op, operand, axis, options);
  const DType from = operation.x.dtype();
  if (!options.dtype && !is_float(from)) {
    operation.result = is_unsigned(from) ? DType::uint64 : DType::int64;
  }
  if (is_bool(operation.result)) {
    graph_error(op, "cannot accumulate in bool: give another dtype", operation.loc);
  }
  return operation.run(op, options, start);
}

Variable extreme(std::string_view op, const Operand& operand, const Axis& axis,
                 const CumulativeOptions& options) {
  Operation operation(op, operand, axis, options);
  if (options.exclusive) {
    graph_error(op, "of no elements there is none: `exclusive` is for sums and products",
                operation.loc);
  }
  operation.result = operation.x.dtype();
  const Variable y = operation.run(op, options, 0);
  return cast_to(y, options.dtype.value_or(y.dtype()), operation.loc);
}

std::vector<Example> examples(double low, double high) {
  const auto one = [&](Shape shape, std::int64_t axis, std::int64_t reverse) {
    return Example{{std::move(shape)}, {{low, high}}, {{"axis", axis}, {"reverse", reverse}}};
  };
  return {one({5}, 0, 0),       one({3, 4}, 0, 0),  one({3, 4}, 1, 1),
          one({2, 3, 4}, 1, 1), one({2, 70}, 1, 0), one({1, 1}, 0, 0)};
}

}  // namespace

Variable cumsum(const Operand& x, const Axis& axis, const CumulativeOptions& options) {
  return arithmetic("cumsum", x, axis, options, 0);
}

Variable cumprod(const Operand& x, const Axis& axis, const CumulativeOptions& options) {
  return arithmetic("cumprod", x, axis, options, 1);
}

Variable cummax(const Operand& x, const Axis& axis, const CumulativeOptions& options) {
  return extreme("cummax", x, axis, options);
}

Variable cummin(const Operand& x, const Axis& axis, const CumulativeOptions& options) {
  return extreme("cummin", x, axis, options);
}

Variable logcumsumexp(const Operand& x, const Axis& axis, const CumulativeOptions& options) {
  Operation operation("logcumsumexp", x, axis, options);
  operation.result = options.dtype.value_or(scalar::float_result(operation.x.dtype()));
  if (!is_float(operation.result)) {
    graph_error("logcumsumexp",
                fmt::format("dtype must be a float: got {}", name_of(operation.result)),
                operation.loc);
  }
  return operation.run("logcumsumexp", options, -kInfinity);
}

Variable diff(const Operand& operand, int n, int axis) {
  const Loc loc = operand.loc().named("diff");
  Variable x = operand.variable();
  const int along = checked_axis("diff", axis, x.ndim(), loc);
  if (n < 0) graph_error("diff", fmt::format("n must not be negative: got {}", n), loc);
  for (; n > 0; --n) {
    const Operand next(slice_axis(x, along, Slice(1, none), loc), loc);
    const Operand before(slice_axis(x, along, Slice(none, -1), loc), loc);
    x = is_bool(x.dtype()) ? ne(next, before) : sub(next, before);
  }
  return x;
}

void register_cumulative_ops(OpRegistry& registry) {
  const auto add = [&](std::string name, std::string doc, void (*infer)(Infer&),
                       void (*kernel)(KernelLowering&),
                       std::vector<Variable> (*grad)(const GradArgs&), double low, double high) {
    registry.add({.name = std::move(name),
                  .doc = std::move(doc),
                  .form = OpForm::loops,
                  .infer = infer,
                  .kernel = kernel,
                  .grad = grad,
                  .reference = running_reference,
                  .examples = examples(low, high)});
  };
  add("cumsum", "Sums of the elements up to each along an axis.", infer_running, lower<kSum>,
      cumsum_grad, -3, 3);
  add("cumprod", "Products of the elements up to each along an axis.", infer_running, lower<kProd>,
      cumprod_grad, -1.5, 1.5);
  add("cummax", "The largest of the elements up to each along an axis; NaN from the first one on.",
      infer_running, lower<kMax>, extreme_grad, -3, 3);
  add("cummin", "The smallest of the elements up to each along an axis; NaN from the first one on.",
      infer_running, lower<kMin>, extreme_grad, -3, 3);
  add("logcumsumexp", "log(cumsum(exp(x))) along an axis, without overflow.", infer_logcumsumexp,
      lower<kLogSumExp>, logcumsumexp_grad, -3, 3);
}

}  // namespace croton
