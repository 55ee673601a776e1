// Random graphs over all ops, each compiled in several ways and compared with the references of its
// ops. What fails is cut down to a few nodes and printed as C++.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <map>

#include "croton/error.h"
#include "tests/fuzz/random_graph.h"
#include "tests/fuzz/sample.h"

using namespace croton;
using namespace croton::fuzz;

namespace {

struct Options {
  unsigned first = 0;
  unsigned graphs = 2000;
  bool all_modes = false;
  std::string mode;
};

/// Fewer graphs than that need not have every op.
constexpr unsigned kEnough = 1000;

struct Counts {
  long runs = 0;
  long failed = 0;
  long unstable = 0;
  long with_gradients = 0;           ///< graphs
  std::map<std::string, long> uses;  ///< by op

  void note_ops(const Sample& sample) {
    for (const Node* node : topological_order(sample.outputs)) ++uses[node->op->name];
  }
  std::vector<std::string> unused() const {
    std::vector<std::string> names;
    for (const OpDef* op : OpRegistry::instance().all()) {
      if (!op->examples.empty() && !uses.contains(op->name)) names.push_back(op->name);
    }
    return names;
  }
};

/// A scalar that each element of each float output counts in, with a weight of its own.
Variable weighted_sum(const std::vector<Variable>& values) {
  Variable total = constant(0.0).astype(DType::float64);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!is_float(values[i].dtype())) continue;
    const Variable v = flatten(values[i].astype(DType::float64));
    total = total + sum(v * sin(iota_like(v, 0, DType::float64) * 1.7 + static_cast<double>(i)));
  }
  return total;
}

Sample sample_of(unsigned seed, Counts& counts) {
  const test::RandomGraph graph(seed, seed % 3 == 0 ? DType::float32 : DType::float64,
                                test::OpChoice::all);
  Sample sample{graph.inputs, graph.arguments, graph.outputs()};
  if (seed % 4 != 0) return sample;
  // The gradients of what was made are graphs too.
  try {
    const std::vector<Variable> slopes = grad(weighted_sum(sample.outputs), sample.inputs,
                                              {.disconnected_inputs = Disconnected::ignore});
    Sample both = sample;
    both.outputs.insert(both.outputs.end(), slopes.begin(), slopes.end());
    reference(both);
    ++counts.with_gradients;
    return both;
  } catch (const UserError&) {
    return sample;  // an op without a gradient says so
  }
}

void try_mode(unsigned seed, const Sample& sample, const Setting& mode, Counts& counts) {
  ++counts.runs;
  const Failure found = failure(sample, mode);
  if (!found) return;
  if (found.of_values && !is_stable(sample)) {
    ++counts.unstable;
    return;
  }
  ++counts.failed;
  const Sample small = shrink(sample, mode);
  std::cout << fmt::format("seed {}, {}:\n{}\n\n{}\n", seed, mode.name, failure(small, mode).text,
                           cpp_text(small, mode))
            << std::flush;
}

void try_seed(unsigned seed, const Options& options, Counts& counts) {
  const Sample sample = sample_of(seed, counts);
  counts.note_ops(sample);
  const std::span<const Setting> list = modes();
  if (options.all_modes) {
    for (const Setting& mode : list) try_mode(seed, sample, mode, counts);
    return;
  }
  if (!options.mode.empty()) {
    for (const Setting& mode : list) {
      if (mode.name == options.mode) try_mode(seed, sample, mode, counts);
    }
    return;
  }
  try_mode(seed, sample, list[0], counts);
  try_mode(seed, sample, list[1 + seed % (list.size() - 1)], counts);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Compares compiled random graphs with the references of their ops"};
  app.add_option("--first", options.first, "The first seed");
  app.add_option("--graphs", options.graphs, "How many seeds");
  app.add_flag("--all-modes", options.all_modes, "Each graph in every mode, not in two");
  app.add_option("--mode", options.mode, "Each graph in the mode of that name alone");
  CLI11_PARSE(app, argc, argv);
  Counts counts;
  for (unsigned seed = options.first; seed < options.first + options.graphs; ++seed) {
    try {
      try_seed(seed, options, counts);
    } catch (const std::exception& error) {
      ++counts.failed;
      std::cout << fmt::format("seed {}: {}\n", seed, error.what()) << std::flush;
    }
  }
  const std::vector<std::string> unused = counts.unused();
  if (!unused.empty()) std::cout << fmt::format("ops not met: {}\n", fmt::join(unused, " "));
  // A result that rounding alone may change is compared with nothing: they must stay few.
  const bool vague = counts.unstable * 20 > counts.runs;
  std::cout << fmt::format(
      "{} graphs, {} with gradients; {} runs, {} of them unstable: {} passed, {} failed\n",
      options.graphs, counts.with_gradients, counts.runs, counts.unstable,
      counts.runs - counts.unstable - counts.failed, counts.failed);
  // Of the graphs tried with gradients some have ops without.
  const bool differentiated = counts.with_gradients * 10 >= options.graphs;
  const bool complete = (unused.empty() && differentiated) || options.graphs < kEnough;
  return counts.failed == 0 && complete && !vague ? 0 : 1;
}
