#include <fmt/format.h>

#include "compiler/graph/node.h"
#include "croton/math.h"
#include "croton/optimizers.h"
#include "croton/reduce.h"
#include "frontend/training.h"
#include "ops/build.h"
#include "ops/built_at.h"

namespace croton {
namespace {

void check_floats(std::string_view op, const std::vector<Variable>& gradients, const Loc& loc) {
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const Variable& g = gradients[i];
    if (!g.defined()) graph_error(op, fmt::format("gradient {} is an empty Variable", i), loc);
    if (!is_float(g.dtype())) {
      graph_error(op, fmt::format("gradient {} is {}: expected floats", i, text_of(g)), loc);
    }
  }
}

Variable squares(const Variable& g, const Loc& loc) {
  return sum(square(cast_to(g, DType::float64, loc)));
}

Variable norm_of(const std::vector<Variable>& gradients, const Loc& loc) {
  return built_at(loc, [&] {
    if (gradients.empty()) return make_scalar(DType::float64, 0, loc);
    Variable total = squares(gradients[0], loc);
    for (std::size_t i = 1; i < gradients.size(); ++i) total = total + squares(gradients[i], loc);
    return sqrt(total);
  });
}

Variable checked_norm(std::string_view op, const Operand& max_norm, const Loc& loc) {
  if (max_norm.is_literal()) {
    const double value = max_norm.literal().real;
    if (!(value >= 0)) {
      graph_error(op, fmt::format("max_norm is {}: expected a number of 0 or more", value), loc);
    }
    return make_scalar(DType::float64, value, loc);
  }
  const Variable x = max_norm.variable();
  if (x.ndim() != 0 || !is_float(x.dtype())) {
    graph_error(op, fmt::format("max_norm is {}: expected a float scalar", text_of(x)), loc);
  }
  return cast_to(x, DType::float64, loc);
}

/// Each gradient times 1 where the norm is at most `most`, else times most / norm.
std::vector<Variable> scaled(const std::vector<Variable>& gradients, const Variable& norm,
                             const Variable& most, const Loc& loc) {
  std::vector<Variable> result;
  for (const Variable& g : gradients) {
    result.push_back(built_at(loc, [&] {
      // A norm of NaN is not at most anything, and its quotient is NaN.
      const Variable factor = where(le(norm, most), 1.0, most / norm);
      const DType wide = is_narrow(g.dtype()) ? DType::float32 : g.dtype();
      return cast_to(cast_to(g, wide, loc) * cast_to(factor, wide, loc), g.dtype(), loc);
    }));
  }
  return result;
}

}  // namespace

std::vector<Variable> clip_by_value(const std::vector<Variable>& gradients, const Operand& low,
                                    const Operand& high) {
  const Loc loc = low.loc().named("clip_by_value");
  check_floats("clip_by_value", gradients, loc);
  if (low.is_literal() && high.is_literal() && !(low.literal().real <= high.literal().real)) {
    graph_error("clip_by_value",
                fmt::format("low is {} and high is {}: expected low <= high", low.literal().real,
                            high.literal().real),
                loc);
  }
  std::vector<Variable> result;
  for (const Variable& g : gradients) {
    const Variable clipped = clip(Operand(g, loc), low, high);
    result.push_back(cast_to(clipped, g.dtype(), loc));
  }
  return result;
}

std::vector<Variable> clip_by_norm(const std::vector<Variable>& gradients,
                                   const Operand& max_norm) {
  const Loc loc = max_norm.loc().named("clip_by_norm");
  check_floats("clip_by_norm", gradients, loc);
  const Variable most = checked_norm("clip_by_norm", max_norm, loc);
  std::vector<Variable> result;
  for (const Variable& g : gradients) {
    result.push_back(scaled({g}, norm_of({g}, loc), most, loc)[0]);
  }
  return result;
}

std::vector<Variable> clip_by_global_norm(const std::vector<Variable>& gradients,
                                          const Operand& max_norm) {
  const Loc loc = max_norm.loc().named("clip_by_global_norm");
  check_floats("clip_by_global_norm", gradients, loc);
  const Variable most = checked_norm("clip_by_global_norm", max_norm, loc);
  return scaled(gradients, norm_of(gradients, loc), most, loc);
}

Variable global_norm(const std::vector<Variable>& gradients, Loc line) {
  const Loc loc = line.named("global_norm");
  check_floats("global_norm", gradients, loc);
  return norm_of(gradients, loc);
}

}  // namespace croton
