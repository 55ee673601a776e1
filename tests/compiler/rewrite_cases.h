// Rules one by one: the text of what they make, and its values on random and edge inputs, compared
// with those of what was there by the references of the ops.
#pragma once

#include <catch2/catch.hpp>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "compiler/graph/op.h"
#include "compiler/passes.h"
#include "compiler/rewrite/rewrite.h"
#include "compiler/rewrite/trace.h"
#include "croton/error.h"
#include "croton/linalg.h"
#include "croton/math.h"
#include "croton/nn.h"
#include "croton/reduce.h"
#include "croton/tensor.h"
#include "ops/build.h"
#include "ops/evaluate.h"

namespace croton::test {

inline Variable symbol(const char* name, DType dtype, const Shape& shape) {
  return make_input({dtype, shape}, name, Loc::current());
}

inline CompileContext context_of(const Config& config) {
  return {config, "cpu", [](const std::string&) { return TargetInfo{}; }, {}, {}};
}

/// The rule of that name.
inline const Rule& rule_called(std::string_view name) {
  for (const RuleTable& table : all_rules()) {
    for (const Rule& rule : table.rules) {
      if (rule.name == name) return rule;
    }
  }
  throw InternalError("no rule is called " + std::string(name));
}

/// Inputs and outputs of a graph from its outputs.
inline Graph graph_of(const std::vector<Variable>& outputs) {
  Graph graph;
  graph.outputs = outputs;
  for (const Node* node : topological_order(outputs)) {
    if (node->op->name == "input") graph.inputs.push_back(node->out());
  }
  return graph;
}

/// The result of one rule (and constant folding) alone, and what happened.
struct Rewritten {
  Variable value;
  RewriteTrace trace;
  int count(std::string_view rule) const {
    int n = 0;
    for (const auto& a : trace.applications) n += a.rule == rule;
    return n;
  }
};

inline Rewritten apply_rule(std::string_view name, const Variable& before) {
  const Rule rules[] = {rule_called(name), rule_called("fold_constants")};
  const RuleTable tables[] = {{"test", rules}};
  CompileContext context = context_of(Config().with("optimizer_including", "unsafe"));
  context.trace = std::make_shared<RewriteTrace>();
  Rewritten result;
  result.value = rewrite(graph_of({before}), "test", tables, context).outputs[0];
  result.trace = *context.trace;
  return result;
}

/// The graph after a pass with all its rules.
inline Variable after_pass(Graph (*pass)(const Graph&, const CompileContext&),
                           const Variable& before) {
  return pass(graph_of({before}), context_of(Config())).outputs[0];
}

/// Numbers at which functions go wrong.
inline std::vector<double> edges_of(DType dtype) {
  if (is_bool(dtype)) return {0, 1};
  if (is_unsigned(dtype)) return {0, 1, 2, 3, 7, 100, 255};
  if (is_integer(dtype)) return {0, 1, -1, 2, -3, 7, 100, -128, 127};
  constexpr double inf = std::numeric_limits<double>::infinity();
  return {0.0,
          -0.0,
          1.0,
          -1.0,
          0.5,
          -2.0,
          3.25,
          -7.5,
          1e-3,
          -1e-4,
          20.,
          -20.,
          90.,
          -90.,
          500.,
          -500,
          inf,
          -inf,
          std::numeric_limits<double>::quiet_NaN()};
}

/// Values for an input: edges, in all combinations with those of other inputs where sizes are open.
inline Array edge_values(const Type& type, int which, int count) {
  const std::vector<double> edges = edges_of(type.dtype);
  Shape shape = type.shape;
  const auto n = static_cast<std::int64_t>(edges.size());
  constexpr std::int64_t kMost = 19;  // edges of a float
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] != kAnyDim) continue;
    shape[axis] = shape.size() == 1 ? (count > 1 ? kMost * kMost : kMost) : axis == 0 ? 7 : 5;
  }
  Array values = Array::zeros(shape, DType::float64);
  double* to = values.mutable_data<double>();
  for (std::int64_t i = 0; i < values.size(); ++i) {
    to[i] = edges[static_cast<std::size_t>((which == 0 ? i : i / kMost + which - 1) % n)];
  }
  return values.astype(type.dtype);
}

inline Array random_values(const Type& type, int which) {
  Shape shape = type.shape;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] == kAnyDim) shape[axis] = axis == 0 ? 7 : 5;
  }
  std::mt19937 random(17 + static_cast<unsigned>(which));
  // Integer scalars may be sizes.
  const bool positive = is_unsigned(type.dtype) || (shape.empty() && is_integer(type.dtype));
  std::uniform_real_distribution<double> draw(positive ? 0 : -4, 4);
  Array values = Array::zeros(shape, DType::float64);
  double* to = values.mutable_data<double>();
  for (std::int64_t i = 0; i < values.size(); ++i) to[i] = draw(random);
  return values.astype(type.dtype);
}

/// Compares two graphs of the same inputs by value.
inline void check_values(const Variable& before, const Variable& after, Precision precision,
                         bool edges = true) {
  const Graph graph = graph_of({before});
  for (const bool at_edges : {true, false}) {
    if (at_edges && !edges) continue;
    VariableMap<Array> known;
    int which = 0;
    for (const Variable& input : graph.inputs) {
      const Type& type = input.node()->outputs[0];
      known[input] = at_edges ? edge_values(type, which, static_cast<int>(graph.inputs.size()))
                              : random_values(type, which);
      ++which;
    }
    const Variable both[] = {before, after};
    const std::vector<Array> values = evaluate(both, known);
    CHECK(difference(values[1], values[0], precision) == "");
  }
}

/// One rule: what it makes of `before`, as text and by value.
inline void check_rule(std::string_view name, const Variable& before, const std::string& text,
                       bool edges = true) {
  INFO(name << " of " << expression_text(before));
  const Rewritten result = apply_rule(name, before);
  CHECK(result.count(name) > 0);
  CHECK(expression_text(result.value) == text);
  check_values(before, result.value, rule_called(name).precision, edges);
}

/// A rule that does not match.
inline void check_no_match(std::string_view name, const Variable& before) {
  INFO(name << " of " << expression_text(before));
  CHECK(apply_rule(name, before).count(name) == 0);
}

inline constexpr DType kFloats[] = {DType::float16, DType::bfloat16, DType::float32,
                                    DType::float64};
inline constexpr DType kIntegers[] = {DType::int8,  DType::int32,  DType::int64,
                                      DType::uint8, DType::uint32, DType::uint64};

}  // namespace croton::test
