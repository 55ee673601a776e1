#include "tests/fuzz/sample.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "compiler/graph/op.h"
#include "compiler/rewrite/trace.h"
#include "croton/error.h"
#include "ops/evaluate.h"

namespace croton::fuzz {
namespace {

/// The spacing of the narrowest float that any value of the graph has.
double coarsest(const Sample& sample) {
  double result = spacing(DType::float64);
  for (const Node* node : topological_order(sample.outputs)) {
    for (const Type& type : node->outputs) {
      if (is_float(type.dtype)) result = std::max(result, spacing(type.dtype));
    }
  }
  return result;
}

bool close(const Array& got, const Array& wanted, double eps) {
  if (got.dtype() != wanted.dtype() || got.shape() != wanted.shape()) return false;
  if (!is_float(wanted.dtype())) return array_equal(got, wanted);
  const std::vector<double> a = got.astype(DType::float64).to_vector<double>();
  const std::vector<double> b = wanted.astype(DType::float64).to_vector<double>();
  double largest = 0;
  for (const double v : b) {
    if (std::isfinite(v)) largest = std::max(largest, std::abs(v));
  }
  // A dozen operations, sums of thousands of terms among them, which narrow floats add in float32.
  const double tolerance = (eps > 1e-4 ? 64 : 4096) * eps;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) || std::isnan(b[i])) {
      if (std::isnan(a[i]) != std::isnan(b[i])) return false;
    } else if (a[i] != b[i] && !(std::abs(a[i] - b[i]) <= tolerance * (1 + largest))) {
      return false;
    }
  }
  return true;
}

/// The values of all nodes; floats that an op made are off by up to `noise`, relatively.
VariableMap<Array> evaluate_all(const Sample& sample, double noise, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  VariableMap<Array> values;
  const auto keep = [&](const Variable& v, Array array) {
    if (noise > 0 && is_float(array.dtype())) {
      std::vector<double> list = array.astype(DType::float64).to_vector<double>();
      const double size = std::max(noise, 4 * spacing(array.dtype()));
      for (double& x : list) x *= 1 + size * uniform(random);
      array = Array::from<double>(list, array.shape()).astype(array.dtype());
    }
    values[v] = std::move(array);
  };
  for (std::size_t i = 0; i < sample.inputs.size(); ++i) {
    values[sample.inputs[i]] = sample.arguments[i];
  }
  for (const Node* node : topological_order(sample.outputs)) {
    if (values.contains(node->out())) continue;
    std::vector<Array> operands;
    for (const Variable& input : node->inputs) operands.push_back(values.at(input));
    const std::vector<Array> results = evaluate(*node, operands);
    for (std::size_t k = 0; k < results.size(); ++k) {
      keep(node->out(static_cast<int>(k)), results[k]);
    }
  }
  return values;
}

/// The call in three pieces of the rows, of all arguments that have as many as the first with some.
Outputs call_in_shards(const Sample& sample, const Config& config) {
  std::int64_t rows = 0;
  std::vector<ParallelInput> inputs;
  for (std::size_t i = 0; i < sample.inputs.size(); ++i) {
    const Shape& shape = sample.arguments[i].shape();
    const bool may = !shape.empty() && shape[0] > 1;
    if (may && rows == 0) rows = shape[0];
    inputs.emplace_back(sample.inputs[i], may && shape[0] == rows);
  }
  std::vector<ParallelOutput> outputs(sample.outputs.begin(), sample.outputs.end());
  const DataParallel f =
      data_parallel(inputs, outputs, {.on_unused = OnUnused::ignore, .config = config});
  return f.call(sample.arguments, {.num_slices = 3});
}

Outputs call(const Sample& sample, const Setting& mode, const Config& config) {
  if (mode.in_shards) return call_in_shards(sample, config);
  const Function f =
      function(sample.inputs, sample.outputs, {.on_unused = OnUnused::ignore, .config = config});
  return f.call(sample.arguments);
}

}  // namespace

std::span<const Setting> modes() {
  static const std::vector<Setting> list{
      {"FAST_RUN", {}},
      {"FAST_COMPILE", {{"mode", "FAST_COMPILE"}}},
      // Compares each form that the graph takes on its way with the one before.
      {"DEBUG", {{"mode", "DEBUG"}}},
      {"no rules", {{"optimizer_excluding", "canonicalize:stabilize:specialize"}}},
      {"rules of canonicalize alone", {{"optimizer_excluding", "stabilize:specialize"}}},
      {"rules of stabilize alone", {{"optimizer_excluding", "canonicalize:specialize"}}},
      {"rules of specialize alone", {{"optimizer_excluding", "canonicalize:stabilize"}}},
      {"no fusion", {{"fuse", "off"}}},
      {"bounds checked", {{"check_bounds", "on"}}},
      {"in shards", {}, true},
  };
  return list;
}

std::vector<Array> reference(const Sample& sample) {
  const VariableMap<Array> values = evaluate_all(sample, 0, 0);
  std::vector<Array> results;
  for (const Variable& output : sample.outputs) results.push_back(values.at(output));
  return results;
}

Failure failure(const Sample& sample, const Setting& mode) {
  const std::vector<Array> wanted = reference(sample);
  Config config = current_config();
  for (const auto& [flag, value] : mode.flags) config = config.with(flag, value);
  try {
    const Outputs got = call(sample, mode, config);
    const double eps = coarsest(sample);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (close(got[i], wanted[i], eps)) continue;
      std::string text = fmt::format("output {} of {} {}, got\n", i, name_of(got[i].dtype()),
                                     got[i].shape().to_string());
      return {text + to_string(got[i]) + "\nwanted\n" + to_string(wanted[i]), true};
    }
  } catch (const CallError& error) {
    return {error.what(), true};  // an index that a rounded value decides
  } catch (const Error& error) {
    const std::string text = error.what();
    return {text, text.starts_with("[DEBUG]")};
  }
  return {};
}

bool is_stable(const Sample& sample) {
  const double eps = coarsest(sample);
  const std::vector<Array> exact = reference(sample);
  for (unsigned seed = 0; seed < 8; ++seed) {
    try {
      const VariableMap<Array> values = evaluate_all(sample, 4 * eps, seed);
      for (std::size_t i = 0; i < exact.size(); ++i) {
        if (!close(values.at(sample.outputs[i]), exact[i], eps)) return false;
      }
    } catch (const CallError&) {
      return false;
    }
  }
  return true;
}

}  // namespace croton::fuzz
