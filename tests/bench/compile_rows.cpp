// How long it takes to make functions, in a warm process and without the disk cache.
#include <croton/croton.h>
#include <fmt/format.h>
#include <omp.h>

#include "tests/bench/bench.h"
#include "tests/bench/spawned_kernel.h"

namespace croton::bench {
namespace {

/// A number that no kernel has held before, so that none is found in memory.
float fresh_number() {
  static int count = 0;
  return 1.0f + 1e-4f * static_cast<float>(++count);
}

/// Ten elementwise operations.
Variable ten_ops(const Variable& a, const Variable& b, const Variable& c, const Variable& d) {
  return tanh(a * b + c) * sigmoid(d) + exp(-a * a) * fresh_number();
}

void one_kernel() {
  const Variable a = vector("a"), b = vector("b"), c = vector("c"), d = vector("d");
  function({a, b, c, d}, ten_ops(a, b, c, d));
}

/// Outputs over inputs of sizes of their own cannot share a kernel.
void sixteen_kernels() {
  std::vector<Variable> inputs, outputs;
  for (int k = 0; k < 16; ++k) {
    const Variable a = vector("a"), b = vector("b"), c = vector("c"), d = vector("d");
    inputs.insert(inputs.end(), {a, b, c, d});
    outputs.push_back(ten_ops(a, b, c, d));
  }
  const Function f = function(inputs, outputs);
}

void short_kernels(const Options& options, Report& report) {
  const SpawnedKernel spawned("");
  Turns turns(options.repeats());
  // Several in a row: between two turns a compiler runs that leaves nothing of ours in the caches.
  const std::size_t one = turns.add(one_kernel, 40e-3);
  const std::size_t sixteen = turns.add(sixteen_kernels, 0);
  const std::size_t gcc = turns.add(
      [&] {
        if (spawned.usable()) spawned.compile();
      },
      0);
  const int threads = omp_get_max_threads();
  const std::size_t sixteen_on_one = turns.add(
      [&] {
        omp_set_num_threads(1);
        sixteen_kernels();
        omp_set_num_threads(threads);
      },
      0);
  turns.run();
  report.add({"one kernel of ten operations", turns.times(one), 1, "", {}, 0, 6e-3});
  report.add({"sixteen of them, on one core", turns.times(sixteen_on_one), 1, "", {}, 0, 80e-3});
  report.add({"sixteen of them", turns.times(sixteen)});
  if (spawned.usable()) {
    report.add({"one kernel against g++ -O3 -shared", turns.times(one), 1, "",
                Limit{"g++", turns.times(gcc), 1}});
  } else {
    report.note("SKIP: no g++ to compile the same kernel with");
  }
}

void compile_chain(int nodes) {
  const Variable x = vector("x"), y = vector("y");
  function({x, y}, long_chain(x, y, nodes));
}

void long_chains(const Options& options, Report& report) {
  std::vector<double> large, small;
  for (int i = 0; i < (options.quick ? 1 : 3); ++i) {
    large.push_back(seconds_of([] { compile_chain(50000); }));
    small.push_back(seconds_of([] { compile_chain(5000); }));
  }
  const Times fifty = times_of(large), five = times_of(small);
  Row row{"50,000 elementwise nodes", fifty, 1, "", {}, 0, 5.0};
  row.note = fmt::format("5,000 nodes: {:.2f} s; ten times as many nodes take {:.1f} times as long",
                         five.min, fifty.min / five.min);
  report.add(std::move(row));
}

}  // namespace

void measure_compiling(const Options& options, Report& report) {
  report.section("making functions, no cache");
  short_kernels(options, report);
  long_chains(options, report);
}

}  // namespace croton::bench
