// Work on arrays for which the machine has no plain limit: indexing, sorting, running sums,
// strides; beside NumPy, PyTorch and JAX (array_peers.py), as they come and with their memory kept.
#include <croton/croton.h>
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "tests/bench/bench.h"
#include "tests/bench/limits.h"
#include "tests/child_output.h"

namespace croton::bench {
namespace {

constexpr std::int64_t kFew = 100'000;
constexpr std::int64_t kMany = 1'000'000;

Array normal(const Shape& shape, DType dtype = DType::float32) {
  return random_normal(shape, {.seed = 1, .dtype = dtype});
}

struct Work {
  std::string row;  ///< the peers' name for it
  std::string title;
  std::vector<Array> arguments;
  Variable (*build)(const std::vector<Variable>&);
};

std::vector<Work> all_work() {
  using In = const std::vector<Variable>&;
  const Array vector = normal({kMany}), wide = normal({10'000, 100}), square = normal({1000, 1000}),
              image = normal({2048, 2048});
  const Array places =
      (random_uniform({kMany}, {.seed = 2, .dtype = DType::float64})).astype(DType::float64);
  std::vector<std::int64_t> at;
  for (const double u : places.to_vector<double>())
    at.push_back(static_cast<std::int64_t>(u * kFew));
  const Array indices = Array::from<std::int64_t>(at, {kMany});
  return {
      {"gather",
       "gather: 1M of 100k rows of 16",
       {normal({kFew, 16}), indices},
       [](In x) { return x[0](x[1]); }},
      {"scatter",
       "scatter: add 1M into 100k",
       {vector, indices},
       [](In x) { return inc_subtensor(zeros({kFew}, DType::float32)(x[1]), x[0]); }},
      {"sort", "sort: 1M", {vector}, [](In x) { return croton::sort(x[0]); }},
      {"sort doubles",
       "sort: 1M float64",
       {normal({kMany}, DType::float64)},
       [](In x) { return croton::sort(x[0]); }},
      {"sort rows", "sort: 10000 rows of 100", {wide}, [](In x) { return croton::sort(x[0]); }},
      {"sort columns",
       "sort: 1000 columns of 1000",
       {square},
       [](In x) { return croton::sort(x[0], 0); }},
      {"argsort", "argsort: 1M", {vector}, [](In x) { return argsort(x[0]); }},
      {"argsort rows", "argsort: 10000 rows of 100", {wide}, [](In x) { return argsort(x[0]); }},
      {"topk", "topk: 10 of 1000, 1000 times", {square}, [](In x) { return topk(x[0], 10).first; }},
      {"cumsum", "cumsum: 4M", {normal({4 * kMany})}, [](In x) { return cumsum(x[0], 0); }},
      {"cumsum columns",
       "cumsum: 2048 columns of 2048",
       {image},
       [](In x) { return cumsum(x[0], 0); }},
      {"strided",
       "x[:, ::2] * 2 + x[:, 1::2], 4M",
       {image},
       [](In x) {
         return x[0](Slice(), Slice(0, none, 2)) * 2.0f + x[0](Slice(), Slice(1, none, 2));
       }},
  };
}

using Peers = std::map<std::string, std::map<std::string, std::vector<double>>>;

/// The rows of the peers, with memory that they free kept for them, or as they come. The stock
/// numbers are mostly page faults of new memory.
Peers run_peers(const Options& options, bool kept) {
  const std::string memory = kept ? "MALLOC_MMAP_THRESHOLD_=8589934592 "
                                    "MALLOC_TRIM_THRESHOLD_=34359738368 ATEN_CPU_CAPABILITY=avx512 "
                                  : "";
  const std::string command = fmt::format(
      "OMP_NUM_THREADS={0} {1}'{2}' '{3}' {0}{4}", all_threads(), memory, options.python,
      CROTON_BENCH_FOLDER "/array_peers.py", options.quick ? " --quick" : "");
  try {
    return nlohmann::json::parse(test::output_of(command)).get<Peers>();
  } catch (const std::exception&) {
    return {};  // there is no such Python
  }
}

}  // namespace

void measure_arrays(const Options& options, Report& report) {
  report.section("arrays, beside others");
  const Peers stock = run_peers(options, false);
  const Peers kept = run_peers(options, true);
  if (stock.empty()) {
    report.note(
        fmt::format("SKIP: '{}' has no NumPy to measure; --python names another", options.python));
  }
  for (const Work& work : all_work()) {
    std::vector<Variable> inputs;
    for (const Array& x : work.arguments) inputs.push_back(tensor("x", x.dtype(), x.shape()));
    const Function f = function(inputs, work.build(inputs));
    Turns turns(options.repeats());
    const std::size_t ours = turns.add([&] { f.call(work.arguments); });
    turns.run();
    const double elements = static_cast<double>(work.arguments[0].size());
    report.add({work.title, turns.times(ours), elements, "Gelement/s"});
    for (const auto& [peers, how] : {std::pair{&stock, ", stock"}, {&kept, ", memory kept"}}) {
      const auto row = peers->find(work.row);
      if (row == peers->end()) continue;
      for (const auto& [peer, seconds] : row->second) {
        report.add({"  against " + peer + how, turns.times(ours), elements, "Gelement/s",
                    Limit{peer, times_of(seconds), elements}});
      }
    }
  }
}

}  // namespace croton::bench
