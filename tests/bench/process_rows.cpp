// The training function in fresh processes: cold, and from the disk cache.
#include <croton/croton.h>
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/bench/bench.h"
#include "tests/bench/training_graph.h"
#include "tests/child_output.h"
#include "tests/temporary_folder.h"

namespace croton::bench {
namespace {

/// What a process pays once, whatever it computes: opening LLVM, the first product of oneDNN.
void load_once() {
  const Variable x = matrix("x");
  const Shared w = shared(Array::ones({32, 32}, DType::float32));
  const Function f = function({x}, tanh(dot(x, w)));
  f(Array::ones({32, 32}, DType::float32));
}

struct Measured {
  double loads, compile, first_call;
};

Measured run_child(const std::string& cache) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string command =
      fmt::format("CROTON_FLAGS='cache_dir={}' '{}' --child", cache, program);
  const auto json = nlohmann::json::parse(test::output_of(command));
  return {json["loads"], json["compile"], json["first_call"]};
}

}  // namespace

int compile_in_this_process() {
  const double loads = seconds_of(load_once);
  Function f;
  const double compile = seconds_of([&] {
    const TrainingGraph graph = training_graph();
    f = function(graph.inputs, graph.outputs, graph.options);
  });
  const Array batch = Array::arange(32, DType::int64);
  const double first_call = seconds_of([&] { f(batch, 0.1f); });
  fmt::print(
      "{}\n",
      nlohmann::json{{"loads", loads}, {"compile", compile}, {"first_call", first_call}}.dump());
  return 0;
}

void measure_processes(const Options& options, Report& report) {
  report.section("the training function of a small network, in fresh processes");
  std::vector<double> loads, cold, warm, first_calls;
  const int repeats = options.quick ? 3 : 15;
  for (int i = 0; i < repeats; ++i) {
    const test::TemporaryFolder cache;
    const Measured empty = run_child(cache.path());
    const Measured filled = run_child(cache.path());
    cold.push_back(empty.compile);
    warm.push_back(filled.compile);
    loads.push_back(filled.loads);
    first_calls.push_back(filled.first_call);
  }
  report.add({"compiled", times_of(cold), 1, "", {}, 0, 200e-3});
  report.add({"from the disk cache", times_of(warm), 1, "", {}, 0, 25e-3});
  report.add({"before it: loads, once a process", times_of(loads)});
  report.add({"after it: the first call", times_of(first_calls)});
}

}  // namespace croton::bench
