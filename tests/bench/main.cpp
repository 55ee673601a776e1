// croton_bench: times beside the limits of the machine that it runs on.
#include <fmt/format.h>
#include <omp.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <exception>

#include "tests/bench/bench.h"

namespace {

using namespace croton::bench;

constexpr Section kSections[] = {
    {"limits", measure_limits},       {"memory", measure_memory},
    {"products", measure_products},   {"calls", measure_calls},
    {"compiling", measure_compiling}, {"processes", measure_processes},
    {"nvrtc", measure_nvrtc},         {"loops", measure_loops},
    {"arrays", measure_arrays},       {"parallel", measure_parallel},
};

int run(const Options& options) {
  Report report;
  bool any = false;
  for (const Section& section : kSections) {
    if (std::string_view(section.name).find(options.only) == std::string_view::npos) continue;
    any = true;
    section.run(options, report);
  }
  if (!any) {
    fmt::print(stderr, "croton_bench: no section is called '{}'\n", options.only);
    return 2;
  }
  report.summarise();
  if (!options.json.empty()) report.write_json(options.json);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  bool child = false, parallel = false;
  std::string counted;
  int count = 0, threads = 0;
  CLI::App app("Times of Croton beside the limits of this machine");
  app.add_option("--only", options.only,
                 "run the sections whose name holds this: limits, memory, products, calls, "
                 "compiling, processes, nvrtc, loops, arrays, parallel");
  app.add_option("--python", options.python,
                 "the Python of NumPy, PyTorch and JAX, beside which arrays are measured");
  app.add_option("--json", options.json, "write the numbers to this file");
  app.add_flag("--quick", options.quick,
               "fewer repeats and smaller limits: a look, no measurement");
  app.add_option("--threads", threads, "threads to use, by default one for each core");
  app.add_flag("--child", child)->group("");
  app.add_flag("--parallel", parallel)->group("");
  app.add_option("--counted", counted)->group("");
  app.add_option("--count", count)->group("");
  CLI11_PARSE(app, argc, argv);
  try {
    if (child) return compile_in_this_process();
    if (parallel) return measure_in_this_process(options);
    // What is compiled here must be compiled here; the disk cache has rows of its own.
    const char* const given = std::getenv("CROTON_FLAGS");
    std::string flags = given ? fmt::format("{},cache=off", given) : "cache=off";
    if (threads > 0) {
      flags += fmt::format(",threads={}", threads);
      omp_set_num_threads(threads);
    }
    setenv("CROTON_FLAGS", flags.c_str(), 1);
    return counted.empty() ? run(options) : run_counted(counted, count);
  } catch (const std::exception& error) {
    fmt::print(stderr, "croton_bench: {}\n", error.what());
    return 1;
  }
}
