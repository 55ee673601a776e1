#include <fmt/format.h>

#include "tests/bench/bench.h"
#include "tests/bench/limits.h"

namespace croton::bench {
namespace {

void bandwidth(const Options& options, Report& report) {
  Streams streams(options.quick ? std::size_t{16} << 20 : std::size_t{64} << 20);
  Turns turns(options.repeats());
  struct Case {
    std::string name;
    double bytes;
    std::size_t turn;
  };
  std::vector<Case> cases;
  for (const int threads : {1, all_threads()}) {
    const auto add = [&](const char* name, double bytes, std::function<void()> action) {
      cases.push_back({fmt::format("{}, {} thread{}", name, threads, threads > 1 ? "s" : ""), bytes,
                       turns.add(std::move(action))});
    };
    add("read", streams.read_bytes(), [&streams, threads] { streams.read(threads); });
    add("copy", streams.copy_bytes(), [&streams, threads] { streams.copy(threads, false); });
    add("copy, non-temporal", streams.copy_bytes(),
        [&streams, threads] { streams.copy(threads, true); });
    add("triad", streams.triad_bytes(), [&streams, threads] { streams.triad(threads, false); });
    add("triad, non-temporal", streams.triad_bytes(),
        [&streams, threads] { streams.triad(threads, true); });
  }
  turns.run();
  for (const Case& c : cases) report.add({c.name, turns.times(c.turn), c.bytes, "GB/s"});
}

void arithmetic(const Options& options, Report& report) {
  Turns turns(options.repeats());
  struct Case {
    std::string name;
    double operations;
    std::size_t turn;
  };
  std::vector<Case> cases;
  for (const bool doubles : {false, true}) {
    for (const int threads : {1, all_threads()}) {
      cases.push_back(
          {fmt::format("fused multiply-add {}, {} thread{}", doubles ? "float64" : "float32",
                       threads, threads > 1 ? "s" : ""),
           fma_run(threads, doubles), turns.add([=] { fma_run(threads, doubles); })});
    }
  }
  turns.run();
  for (const Case& c : cases) report.add({c.name, turns.times(c.turn), c.operations, "GFLOP/s"});
}

}  // namespace

void measure_limits(const Options& options, Report& report) {
  report.section("limits of this machine");
  bandwidth(options, report);
  arithmetic(options, report);
}

}  // namespace croton::bench
