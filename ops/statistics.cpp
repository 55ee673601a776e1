// Reductions made of others: ptp, count_nonzero, average, and those that skip NaN.
#include "croton/statistics.h"

#include <fmt/format.h>

#include <limits>

#include "croton/linalg.h"
#include "croton/math.h"
#include "croton/tensor.h"
#include "ops/axes.h"
#include "ops/build.h"
#include "ops/built_at.h"
#include "ops/sizes.h"

namespace croton {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Where an element counts: it is not NaN, and a mask that the user gave holds.
std::optional<Variable> present(const Variable& x, const std::optional<Variable>& mask,
                                const Loc& loc) {
  if (!is_float(x.dtype())) return mask;
  const Variable number = logical_not({isnan({x, loc}), loc});
  if (!mask) return number;
  // A mask that does not fit is the reduction's to refuse.
  if (!is_bool(mask->dtype()) || mask->ndim() > x.ndim()) return mask;
  return logical_and({number, loc}, {*mask, loc});
}

template <class Options, class Reduce>
Variable without_nan(std::string_view op, const Operand& operand, const Options& options,
                     Reduce&& reduce) {
  const Operand x = operand.named(op);
  Options masked = options;
  masked.where = present(x.variable(), options.where, x.loc());
  return built_at(x.loc(), [&] { return reduce(x, masked); });
}

Variable nan_extreme(std::string_view op, const Operand& operand, const Axis& axis,
                     const ReduceOptions& options,
                     Variable (*reduce)(const Operand&, const Axis&, const ReduceOptions&)) {
  return without_nan(op, operand, options, [&](const Operand& x, const ReduceOptions& masked) {
    const Variable y = reduce(x, axis, masked);
    if (!is_float(x.variable().dtype()) || !is_float(y.dtype())) return y;
    const Variable counts = broadcast_like(*masked.where, x.variable(), x.loc());
    const Variable found = any(counts, axis, {.keepdims = options.keepdims});
    return where(found, y, scalar_like(y, std::numeric_limits<double>::quiet_NaN(), x.loc()));
  });
}

Variable nan_argument(std::string_view op, const Operand& operand, const Axis& axis,
                      const ArgOptions& options, bool largest) {
  const Loc loc = operand.loc().named(op);
  const Variable x = operand.variable();
  const auto place = [&](const Variable& of) {
    return largest ? argmax({of, loc}, axis, options) : argmin({of, loc}, axis, options);
  };
  if (!is_float(x.dtype())) return place(x);
  return built_at(loc, [&] {
    const Variable number = logical_not(isnan(x));
    const Variable worst = scalar_like(x, largest ? -kInfinity : kInfinity, loc);
    const Variable filled = where(number, x, worst);
    const Variable y = place(filled);
    const Variable better = any(ne(filled, worst), axis, {.keepdims = options.keepdims});
    // All numbers are the worst one, which NaN was replaced by: the first of them it is.
    const Variable first = argmax({number, loc}, axis, options);
    const Variable found = any(number, axis, {.keepdims = options.keepdims});
    return where(better, y, where(found, first, -1));
  });
}

/// How often each observation counts, a vector along the columns of x; undefined where all count
/// once.
Variable cov_weights(const Variable& x, const CovOptions& options, DType dtype, const Loc& loc) {
  Variable weights;
  for (const auto* given : {&options.fweights, &options.aweights}) {
    if (!*given) continue;
    const Variable& own = **given;
    const bool frequencies = given == &options.fweights;
    if (own.ndim() != 1 || (frequencies && !is_integer(own.dtype()))) {
      graph_error("cov",
                  fmt::format("{} are expected to be a vector{}: got {} axes of {}",
                              frequencies ? "fweights" : "aweights",
                              frequencies ? " of integers" : "", own.ndim(), name_of(own.dtype())),
                  loc);
    }
    const Size observations[] = {sizes_of(x, loc)[1]};
    const Variable scale = broadcast_sizes(cast_to(own, dtype, loc), observations, loc);
    weights = weights.defined() ? weights * scale : scale;
  }
  return weights;
}

}  // namespace

Variable ptp(const Operand& operand, const Axis& axis, const ReduceOptions& options) {
  const Operand x = operand.named("ptp");
  if (is_bool(x.variable().dtype())) {
    graph_error("ptp", "bools have no difference: cast them, for instance to int8", x.loc());
  }
  return sub({max(x, axis, options), x.loc()}, {min(x, axis, options), x.loc()});
}

Variable count_nonzero(const Operand& operand, const Axis& axis, const ReduceOptions& options) {
  const Operand x = operand.named("count_nonzero");
  const Variable some = cast_to(x.variable(), DType::boolean, x.loc());
  return sum({some, x.loc()}, axis, options);
}

Variable average(const Operand& operand, const Operand& weights, const Axis& axis, bool keepdims) {
  const Loc loc = operand.loc().named("average");
  const Variable x = operand.variable();
  const std::vector<int> axes = checked_axes("average", axis, x.ndim(), loc);
  Variable w = weights.variable();
  if (w.ndim() != x.ndim()) {
    if (axes.size() != 1 || w.ndim() != 1) {
      graph_error("average",
                  fmt::format("weights have {} axes and the operand {}: expected the operand's "
                              "shape, or a vector along one axis",
                              w.ndim(), x.ndim()),
                  loc);
    }
    std::vector<int> order(static_cast<std::size_t>(x.ndim()), -1);
    order[static_cast<std::size_t>(axes[0])] = 0;
    w = dimshuffle(w, order, loc);
  }
  return built_at(loc, [&] {
    const DType common = promote(x.dtype(), w.dtype(), build_settings().numpy_policy);
    const DType result = is_float(common) ? common : build_settings().float_x;
    const DType work = is_narrow(result) ? DType::float32 : result;
    // A scale of the weights' shape alone would count a broadcast axis once.
    const Variable scale = broadcast_like(cast_to(w, work, loc), x, loc);
    const Variable total = sum({cast_to(x, work, loc) * scale, loc}, axes, {.keepdims = keepdims});
    const Variable whole = sum({scale, loc}, axes, {.keepdims = keepdims});
    return cast_to(total / whole, result, loc);
  });
}

Variable cov(const Operand& operand, const CovOptions& options) {
  const Loc loc = operand.loc().named("cov");
  const Variable given = operand.variable();
  if (given.ndim() > 2) {
    graph_error("cov", fmt::format("at most two axes are expected: got {}", given.ndim()), loc);
  }
  const bool numpy = build_settings().numpy_policy;
  DType result = given.dtype();
  if (options.aweights) result = promote(result, options.aweights->dtype(), numpy);
  result = options.dtype.value_or(is_float(result) ? result : build_settings().float_x);
  if (!is_float(result)) {
    graph_error("cov", fmt::format("a float dtype is expected: got {}", name_of(result)), loc);
  }
  return built_at(loc, [&] {
    const DType work = is_narrow(result) ? DType::float32 : result;
    Variable x = cast_to(given, work, loc);
    if (x.ndim() < 2) {
      x = atleast_2d({x, loc});
    } else if (!options.rowvar) {
      x = x.T(loc);
    }
    const Variable weights = cov_weights(x, options, work, loc);
    const Size observations[] = {sizes_of(x, loc)[1]};
    const Variable counts =
        weights.defined() ? weights : broadcast_sizes(scalar_like(x, 1, loc), observations, loc);
    const Variable total = sum({counts, loc});
    const Variable mean = sum({x * counts, loc}, 1, {.keepdims = true}) / total;
    const double ddof = options.ddof.value_or(1);
    Variable divisor = total - ddof;
    if (options.aweights) {
      // Each observation's part of the sum, once more weighted: NumPy's rule.
      const Variable own = cast_to(*options.aweights, work, loc);
      divisor = total - ddof * sum({counts * own, loc}) / total;
    }
    const Variable rest = x - mean;
    const Variable product = dot({rest * counts, loc}, rest.T(loc)) / maximum({divisor, loc}, 0);
    return cast_to(squeeze({product, loc}), result, loc);
  });
}

Variable corrcoef(const Operand& operand, bool rowvar) {
  const Loc loc = operand.loc().named("corrcoef");
  return built_at(loc, [&] {
    const Variable c = cov(operand.named("corrcoef"), {.rowvar = rowvar});
    if (c.ndim() == 0) return c / c;
    const Variable deviation = sqrt({diagonal({c, loc}), loc});
    const Variable scaled = c / deviation(Slice(), newaxis) / deviation;
    return clip({scaled, loc}, -1, 1);
  });
}

Variable nansum(const Operand& x, const Axis& axis, const ReduceOptions& options) {
  return without_nan("nansum", x, options, [&](const Operand& operand, const ReduceOptions& o) {
    return sum(operand, axis, o);
  });
}

Variable nanprod(const Operand& x, const Axis& axis, const ReduceOptions& options) {
  return without_nan("nanprod", x, options, [&](const Operand& operand, const ReduceOptions& o) {
    return prod(operand, axis, o);
  });
}

Variable nanmean(const Operand& x, const Axis& axis, const ReduceOptions& options) {
  return without_nan("nanmean", x, options, [&](const Operand& operand, const ReduceOptions& o) {
    return mean(operand, axis, o);
  });
}

Variable nanmax(const Operand& x, const Axis& axis, const ReduceOptions& options) {
  return nan_extreme("nanmax", x, axis, options, max);
}

Variable nanmin(const Operand& x, const Axis& axis, const ReduceOptions& options) {
  return nan_extreme("nanmin", x, axis, options, min);
}

Variable nanvar(const Operand& x, const Axis& axis, const VarOptions& options) {
  return without_nan("nanvar", x, options, [&](const Operand& operand, const VarOptions& o) {
    return var(operand, axis, o);
  });
}

Variable nanstd(const Operand& x, const Axis& axis, const VarOptions& options) {
  return without_nan("nanstd", x, options, [&](const Operand& operand, const VarOptions& o) {
    return croton::std(operand, axis, o);
  });
}

Variable nanargmax(const Operand& x, const Axis& axis, const ArgOptions& options) {
  return nan_argument("nanargmax", x, axis, options, true);
}

Variable nanargmin(const Operand& x, const Axis& axis, const ArgOptions& options) {
  return nan_argument("nanargmin", x, axis, options, false);
}

}  // namespace croton
