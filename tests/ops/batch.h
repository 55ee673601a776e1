// Many small graphs compiled and run as one function: sources hold many kernels then, which takes a
// fraction of the time where a compiler is started for each.
#pragma once

#include <algorithm>
#include <cmath>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "croton/context.h"
#include "croton/function.h"
#include "tests/ops/graph_values.h"

namespace croton::test {

/// Values of a range, whole ones if wanted, 0 and 1 for bools, none negative for unsigned dtypes.
inline Array drawn(const Shape& shape, std::pair<double, double> range, DType dtype, bool whole,
                   std::mt19937& random) {
  const auto [low, high] = range;
  std::vector<double> values(static_cast<std::size_t>(shape.numel()));
  for (double& v : values) {
    v = std::uniform_real_distribution<double>(low, high)(random);
    if (whole) v = std::floor(v);
    if (is_unsigned(dtype)) v = std::abs(v);
    if (is_bool(dtype)) v = std::uniform_int_distribution<int>(0, 1)(random);
  }
  return Array::from<double>(values, shape).astype(dtype);
}

/// A value that is wanted, what it is computed from, and what a call passes for that.
struct Trial {
  std::string title;
  Variable y;
  std::vector<Variable> inputs;
  std::vector<Array> arguments;

  /// What the references of its ops give.
  Array reference() const {
    Values values;
    for (std::size_t k = 0; k < inputs.size(); ++k) values[inputs[k]] = arguments[k];
    return value(y, values);
  }
};

/// The compiled values. Where compiling or running fails, says of which trial, and gives nothing
/// for it.
inline std::vector<Array> run_together(std::span<const Trial> trials,
                                       const Config& config = current_config()) {
  std::vector<Variable> inputs;
  std::vector<Array> arguments;
  std::vector<Variable> outputs;
  VariableMap<bool> seen;  // trials may share inputs
  for (const Trial& trial : trials) {
    for (std::size_t k = 0; k < trial.inputs.size(); ++k) {
      if (!seen.emplace(trial.inputs[k], true).second) continue;
      inputs.push_back(trial.inputs[k]);
      arguments.push_back(trial.arguments[k]);
    }
    outputs.push_back(trial.y);
  }
  try {
    const Outputs results =
        function(inputs, outputs, {.on_unused = OnUnused::ignore, .config = config})
            .call(arguments);
    return {results.begin(), results.end()};
  } catch (const Error& error) {
    if (trials.size() == 1) {
      INFO(trials[0].title);
      FAIL_CHECK(error.what());
      return {Array()};
    }
  }
  std::vector<Array> results;
  for (const Trial& trial : trials) results.push_back(run_together({&trial, 1}, config)[0]);
  return results;
}

/// Runs the trials, at most 64 at once, and hands each with its result to `check`.
template <class F>
void for_each_result(const std::vector<Trial>& trials, F&& check,
                     const Config& config = current_config()) {
  constexpr std::size_t kTogether = 64;
  for (std::size_t first = 0; first < trials.size(); first += kTogether) {
    const std::size_t count = std::min(kTogether, trials.size() - first);
    const std::vector<Array> results =
        run_together(std::span(trials).subspan(first, count), config);
    for (std::size_t i = 0; i < count; ++i) {
      if (results[i].has_value()) check(trials[first + i], results[i]);
    }
  }
}

}  // namespace croton::test
