// What a call costs beside the launch of a CUDA graph, and what compiling costs.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "tests/bench/training_graph.h"
#include "tests/child_output.h"
#include "tests/gpu_check/gpu_check.h"
#include "tests/gpu_check/raw_gpu.h"
#include "tests/temporary_folder.h"

namespace croton::gpu_check {
namespace {

constexpr double kMostOverhead = 10e-6;

Config with_graphs(bool on) { return current_config().with("cuda_graphs", on ? "on" : "off"); }

/// w = w + v and z = z + y, so often as it is called: two kernels, as one alone needs no graph.
void measure_update(const Options& options, const RawGpu& gpu, bool graphs, Results& results) {
  const Shared w = shared(Array::zeros({1000}, DType::float32), {.name = "w"});
  const Shared v = shared(Array::ones({1000}, DType::float32), {.name = "v"});
  const Shared z = shared(Array::zeros({300}, DType::float32), {.name = "z"});
  const Shared y = shared(Array::full({300}, 2.0f), {.name = "y"});
  const Function f = function({}, std::vector<Output>{},
                              {.updates = {{w, w + v}, {z, z + y}}, .config = with_graphs(graphs)});
  f();
  const int kernels = f.statistics().launches;
  const BareGraph bare(gpu, kernels);
  int calls = 1, launches = 0;
  const Pair times = measure_pair(
      options, [&] { ++calls, f(); }, [] { sync(); }, [&] { ++launches, bare.launch(); },
      [&] { gpu.wait(); });
  const std::string name = fmt::format("two kernels, graphs {}", graphs ? "on" : "off");
  bench::Row row{name, times.ours, 1, "", bench::Limit{"bare graph", times.limit, 1}, 0, 0, {}};
  if (graphs) row.floor_seconds = times.limit.min + kMostOverhead;
  results.report.add(std::move(row));
  const float got = w.get_value().at<float>({999}), other = z.get_value().at<float>({299});
  const auto wanted = static_cast<float>(calls);
  std::string fault;
  if (kernels != 2) {
    fault = fmt::format("a call launches {} kernels", kernels);
  } else if (got != wanted || other != 2 * wanted) {
    fault = fmt::format("after {} calls w is {} and z is {}", calls, got, other);
  } else if (bare.value() != static_cast<float>(launches * kernels)) {
    fault = fmt::format("after {} launches the number is {}", launches, bare.value());
  } else if ((f.statistics().replays > 0) != graphs) {
    fault = fmt::format("{} replays of graphs", f.statistics().replays);
  }
  results.check(name, fault);
}

/// A training step of a small network, beside a graph of as many kernels that do next to nothing.
void measure_step(const Options& options, const RawGpu& gpu, bool graphs, Results& results) {
  bench::TrainingGraph graph = bench::training_graph();
  graph.options.config = with_graphs(graphs);
  graph.options.keep_on_device = true;
  const Function f = function(graph.inputs, graph.outputs, graph.options);
  const Array batch = Array::arange(32, DType::int64);
  const float first = f(batch, 0.01f)[0].to_host().item<float>();
  const FunctionStatistics work = f.statistics();
  const BareGraph bare(gpu, std::max(1, work.launches + work.library_calls));
  const Pair times = measure_pair(
      options, [&] { f(batch, 0.01f); }, [] { sync(); }, [&] { bare.launch(); },
      [&] { gpu.wait(); });
  const std::string name = fmt::format("small training step, graphs {}", graphs ? "on" : "off");
  bench::Row row{name, times.ours, 1, "", bench::Limit{"bare graph", times.limit, 1}, 0, 0, {}};
  const FunctionStatistics after = f.statistics();
  row.note = fmt::format(
      "{} kernels, {} products, two arguments from the host; {} of {} calls "
      "replayed a graph",
      work.launches, work.library_calls, after.replays, after.calls);
  results.report.add(std::move(row));
  const float last = f(batch, 0.01f)[0].to_host().item<float>();
  std::string fault;
  if (!(last < first)) {
    fault = fmt::format("the cost went from {} to {}", first, last);
  } else if (!graphs && after.replays > 0) {
    fault = fmt::format("{} replays of graphs", after.replays);
  }
  results.check(name, fault);
}

nlohmann::json run_child(const std::string& cache) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string command =
      fmt::format("CROTON_FLAGS='device=cuda0,cache_dir={}' '{}' compile", cache, program);
  return nlohmann::json::parse(test::output_of(command));
}

}  // namespace

void measure_calls(const Options& options, Results& results) {
  results.report.section("calls");
  const RawGpu gpu;
  for (const bool graphs : {true, false}) measure_update(options, gpu, graphs, results);
  for (const bool graphs : {true, false}) measure_step(options, gpu, graphs, results);
}

int compile_once() {
  // Opens the device and the libraries.
  const Shared x = shared(Array::ones({32, 32}, DType::float32));
  function({}, dot(x, x) * 2.0f)();
  Function f;
  const double compile = bench::seconds_of([&] {
    const bench::TrainingGraph graph = bench::training_graph();
    f = function(graph.inputs, graph.outputs, graph.options);
  });
  const Array batch = Array::arange(32, DType::int64);
  float cost = 0;
  const double first = bench::seconds_of([&] { cost = f(batch, 0.1f)[0].item<float>(); });
  const nlohmann::json result{{"compile", compile}, {"first_call", first}, {"cost", cost}};
  fmt::print("{}\n", result.dump());
  return 0;
}

void measure_compiling(const Options& options, Results& results) {
  results.report.section("compiling");
  std::vector<double> cold, warm;
  // Some of compiling may wait for the first call.
  const auto whole = [](const nlohmann::json& child) {
    return child["compile"].get<double>() + child["first_call"].get<double>();
  };
  std::string fault;
  for (int i = 0; i < (options.rehearse ? 1 : 3); ++i) {
    const test::TemporaryFolder cache;
    const nlohmann::json empty = run_child(cache.path()), filled = run_child(cache.path());
    cold.push_back(whole(empty));
    warm.push_back(whole(filled));
    if (!(empty["cost"].get<float>() > 0))
      fault = fmt::format("a cost of {}", empty["cost"].dump());
    if (std::filesystem::is_empty(cache.path())) fault = "nothing was kept in the cache";
  }
  results.report.add({"training function to first result, cold", bench::times_of(cold)});
  results.report.add({"the same from the disk cache", bench::times_of(warm)});
  results.check("training function", fault);
}

}  // namespace croton::gpu_check
