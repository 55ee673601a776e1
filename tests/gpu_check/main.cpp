// gpu_check: measures Croton on GPU 0 beside the limits of that GPU, and tries NCCL there.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <exception>

#include "tests/gpu_check/gpu_check.h"
#include "tests/gpu_check/raw_gpu.h"

namespace croton::gpu_check {

void Results::check(const std::string& row, const std::string& fault) {
  ++checked;
  if (fault.empty()) return;
  wrong.push_back(row + ": " + fault);
  report.note("WRONG " + wrong.back());
}

Pair measure_pair(const Options& options, const std::function<void()>& ours,
                  const std::function<void()>& ours_wait, const std::function<void()>& limit,
                  const std::function<void()>& limit_wait) {
  const double sample = options.rehearse ? 0 : 10e-3;
  const auto counted = [&](const std::function<void()>& run, const std::function<void()>& wait) {
    // The first calls compile, choose algorithms and record graphs.
    for (int i = 0; i < 4; ++i) run();
    wait();
    const double once = bench::seconds_of([&] {
                          for (int i = 0; i < 4; ++i) run();
                          wait();
                        }) /
                        4;
    return static_cast<int>(std::clamp(sample / std::max(once, 1e-7), 1.0, 5000.0));
  };
  const int ours_count = counted(ours, ours_wait), limit_count = counted(limit, limit_wait);
  bench::Turns turns(options.repeats());
  const auto add = [&](const std::function<void()>& run, const std::function<void()>& wait,
                       int count) {
    return turns.add(
        [&run, &wait, count] {
          for (int i = 0; i < count; ++i) run();
          wait();
        },
        0);
  };
  const std::size_t first = add(ours, ours_wait, ours_count);
  const std::size_t second = add(limit, limit_wait, limit_count);
  turns.run();
  const auto each = [](bench::Times times, int count) {
    times.min /= count;
    times.median /= count;
    return times;
  };
  return {each(turns.times(first), ours_count), each(turns.times(second), limit_count)};
}

std::string first_fault(const Array& got, std::int64_t rows, double tolerance,
                        const std::function<std::vector<double>(std::int64_t row)>& expected) {
  const Array table = got.reshape({rows, -1});
  const std::int64_t step = std::max<std::int64_t>(1, rows / 16);
  for (std::int64_t row = 0; row < rows; row += step) {
    const std::vector<double> values =
        table.slice(0, row, row + 1).contiguous().astype(DType::float64).to_vector<double>();
    const std::vector<double> wanted = expected(row);
    if (values.size() != wanted.size()) {
      return fmt::format("{} columns, not {}", values.size(), wanted.size());
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double most = std::max({std::abs(values[i]), std::abs(wanted[i]), 1.0});
      if (!(std::abs(values[i] - wanted[i]) <= tolerance * most)) {
        return fmt::format("element ({}, {}) is {}, not {}", row, i, values[i], wanted[i]);
      }
    }
  }
  return {};
}

namespace {

struct Section {
  const char* name;
  void (*run)(const Options& options, Results& results);
};
constexpr Section kSections[] = {{"memory", measure_memory},
                                 {"calls", measure_calls},
                                 {"products", measure_products},
                                 {"compiling", measure_compiling}};

int measure(const Options& options) {
  const std::string name = RawGpu().name();
  Results results;
  results.report.note((options.rehearse ? "A rehearsal: times mean nothing. " : "") + name);
  for (const Section& section : kSections) {
    if (std::string_view(section.name).find(options.only) == std::string_view::npos) continue;
    try {
      section.run(options, results);
    } catch (const std::exception& error) {
      results.wrong.push_back(std::string(section.name) + ": " + error.what());
      results.report.note("FAILED " + results.wrong.back());
    }
    // A later section may take the process along.
    if (!options.json.empty()) results.report.write_json(options.json);
  }
  results.report.summarise();
  fmt::print("values of {} rows checked, {} faults\n", results.checked, results.wrong.size());
  return results.checked > 0 && results.wrong.empty() ? 0 : 1;
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app("Times of Croton on GPU 0 beside the limits of that GPU");
  app.require_subcommand(1);
  CLI::App* const bench = app.add_subcommand("bench", "the benchmark");
  bench->add_option("--json", options.json, "write the numbers to this file");
  bench->add_option("--only", options.only,
                    "run the sections whose name holds this: memory, calls, products, compiling");
  bench->add_flag("--rehearse", options.rehearse,
                  "small sizes: values are checked, times mean nothing");
  CLI::App* const nccl = app.add_subcommand("nccl", "try NCCL with one rank");
  app.add_subcommand("compile", "compile the training function once")->group("");
  CLI11_PARSE(app, argc, argv);
  if (nccl->parsed()) return check_nccl();
  const char* const given = std::getenv("CROTON_FLAGS");
  const std::string flags = given == nullptr || *given == '\0' ? "" : std::string(given) + ",";
  if (!bench->parsed()) return compile_once();
  setenv("CROTON_FLAGS", (flags + "device=cuda0").c_str(), 1);
  return measure(options);
}

}  // namespace
}  // namespace croton::gpu_check

int main(int argc, char** argv) {
  try {
    return croton::gpu_check::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "gpu_check: {}\n", error.what());
    return 1;
  }
}
