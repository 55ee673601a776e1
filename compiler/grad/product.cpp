// Products of Jacobians with vectors, from the left and from the right.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/grad/reverse.h"
#include "compiler/graph/op.h"
#include "croton/grad.h"
#include "ops/build.h"
#include "runtime/log.h"

namespace croton {
namespace {

/// What a message calls the parts.
struct Words {
  std::string_view op;
  std::string_view of;  ///< what eval points belong to
};

void check_floats(const std::vector<Variable>& list, const Words& words, std::string_view what,
                  const Loc& loc) {
  for (const Variable& v : list) {
    if (!v.defined()) graph_error(words.op, fmt::format("{} is empty", what), loc);
    if (is_float(v.dtype())) continue;
    graph_error(words.op, fmt::format("{} must be a float: got {}", what, variable_title(v, loc)),
                loc);
  }
}

/// The eval points in the dtypes of what they belong to.
std::vector<Variable> checked_points(const std::vector<Variable>& points,
                                     const std::vector<Variable>& values, const Words& words,
                                     const Loc& loc) {
  if (points.size() != values.size()) {
    graph_error(words.op,
                fmt::format("one eval point for each {} is expected: got {} for {}", words.of,
                            points.size(), values.size()),
                loc);
  }
  check_floats(points, words, "an eval point", loc);
  std::vector<Variable> result;
  for (std::size_t k = 0; k < points.size(); ++k) {
    const Shape& have = points[k].static_shape();
    const Shape& want = values[k].static_shape();
    bool fits = have.size() == want.size();
    for (std::size_t axis = 0; fits && axis < want.size(); ++axis) {
      fits = have[axis] == want[axis] || have[axis] == kAnyDim || want[axis] == kAnyDim;
    }
    if (!fits) {
      graph_error(words.op,
                  fmt::format("eval point {} must have the shape of its {}: got {}, expected {}",
                              k + 1, words.of, have.to_string(), want.to_string()),
                  loc);
    }
    result.push_back(cast_to(points[k], values[k].dtype(), loc));
  }
  return result;
}

void report(const std::string& message, const Words& words, Disconnected meaning, const Loc& loc) {
  if (meaning == Disconnected::raise) graph_error(words.op, message, loc);
  if (meaning == Disconnected::warn) log_warning(fmt::format("[{}] {}", words.op, message));
}

/// The left product; empty where nothing flows.
std::vector<Variable> left_product(const std::vector<Variable>& f, const std::vector<Variable>& wrt,
                                   const std::vector<Variable>& points,
                                   const std::vector<Variable>& constants, const Words& words,
                                   const Loc& loc) {
  ReverseMode reverse(constants);
  for (std::size_t k = 0; k < f.size(); ++k) {
    if (points[k].defined()) reverse.start(f[k], points[k]);
  }
  reverse.run(wrt);
  std::vector<Variable> result;
  for (const Variable& v : wrt) {
    if (const std::string* why = reverse.undefined(v)) {
      graph_error(words.op,
                  fmt::format("the derivative with respect to {} is not defined: {}",
                              variable_title(v, loc), *why),
                  loc);
    }
    result.push_back(reverse.of(v));
  }
  return result;
}

}  // namespace

std::vector<Variable> Lop(const std::vector<Variable>& f, const std::vector<Variable>& wrt,
                          const std::vector<Variable>& eval_points, const ProductOptions& options,
                          Loc line) {
  const Loc loc = line.named("Lop");
  const Words words{"Lop", "value"};
  check_floats(f, words, "a value to differentiate", loc);
  check_floats(wrt, words, "a variable to differentiate by", loc);
  const std::vector<Variable> points = checked_points(eval_points, f, words, loc);
  std::vector<Variable> result =
      left_product(f, wrt, points, options.consider_constant, words, loc);
  for (std::size_t k = 0; k < wrt.size(); ++k) {
    if (result[k].defined()) continue;
    report(fmt::format("no value depends on {} in a differentiable way; set .disconnected = "
                       "Disconnected::ignore to take zeros",
                       variable_title(wrt[k], loc)),
           words, options.disconnected, loc);
    result[k] = zeros_like(wrt[k], loc);
  }
  return result;
}

// With u any vector, Lop(u) = u^T J is linear in u and its own left product with v by u is J v.
std::vector<Variable> Rop(const std::vector<Variable>& f, const std::vector<Variable>& wrt,
                          const std::vector<Variable>& eval_points, const ProductOptions& options,
                          Loc line) {
  const Loc loc = line.named("Rop");
  const Words words{"Rop", "variable"};
  check_floats(f, words, "a value to differentiate", loc);
  check_floats(wrt, words, "a variable to differentiate by", loc);
  const std::vector<Variable> points = checked_points(eval_points, wrt, words, loc);
  std::vector<Variable> any;
  for (const Variable& v : f) {
    any.push_back(make_input(v.node()->outputs[v.output()], "", loc));
  }
  const std::vector<Variable> left =
      left_product(f, wrt, any, options.consider_constant, words, loc);
  std::vector<Variable> values;
  std::vector<Variable> weights;
  for (std::size_t k = 0; k < left.size(); ++k) {
    if (!left[k].defined()) continue;
    values.push_back(left[k]);
    weights.push_back(points[k]);
  }
  Graph graph;
  graph.outputs = left_product(values, any, weights, {}, words, loc);
  // Where sizes are read from u, and where a mark (grad_clip) makes the product depend on it.
  VariableMap<Variable> at;
  for (std::size_t k = 0; k < f.size(); ++k) {
    const Variable nothing = zeros_like(f[k], loc);
    at.emplace(any[k], nothing);
    if (graph.outputs[k].defined()) continue;
    // A rule that gives zeros whatever flows in (floor) says that there is a derivative.
    const std::vector<Variable> own =
        left_product({f[k]}, wrt, {any[k]}, options.consider_constant, words, loc);
    const bool flat =
        std::any_of(own.begin(), own.end(), [](const Variable& v) { return v.defined(); });
    if (!flat) {
      report(fmt::format("{} depends on none of the variables in a differentiable way; set "
                         ".disconnected = Disconnected::ignore to take zeros",
                         variable_title(f[k], loc)),
             words, options.disconnected, loc);
    }
    graph.outputs[k] = nothing;
  }
  return rebuild(graph, {}, at).outputs;
}

}  // namespace croton
