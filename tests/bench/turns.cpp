#include <algorithm>
#include <chrono>
#include <cmath>

#include "tests/bench/bench.h"

namespace croton::bench {

double seconds_of(const std::function<void()>& action) {
  const auto start = std::chrono::steady_clock::now();
  action();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Times times_of(std::vector<double> seconds) {
  if (seconds.empty()) return {};
  std::sort(seconds.begin(), seconds.end());
  const std::size_t n = seconds.size();
  const double median = n % 2 ? seconds[n / 2] : (seconds[n / 2 - 1] + seconds[n / 2]) / 2;
  return {seconds.front(), median, static_cast<int>(n)};
}

std::size_t Turns::add(std::function<void()> action, double sample_seconds) {
  actions_.push_back({std::move(action), sample_seconds, 1, {}});
  return actions_.size() - 1;
}

void Turns::run() {
  for (Action& action : actions_) {
    action.run();
    double once = seconds_of(action.run);
    while (once * static_cast<double>(action.runs) < action.sample_seconds / 2) {
      const double factor = action.sample_seconds / std::max(once, 1e-9);
      action.runs = std::max(action.runs * 2, static_cast<std::int64_t>(std::min(factor, 1e7)));
      once = seconds_of([&] {
               for (std::int64_t i = 0; i < action.runs; ++i) action.run();
             }) /
             static_cast<double>(action.runs);
    }
  }
  for (int repeat = 0; repeat < repeats_; ++repeat) {
    for (Action& action : actions_) {
      const double all = seconds_of([&] {
        for (std::int64_t i = 0; i < action.runs; ++i) action.run();
      });
      action.seconds.push_back(all / static_cast<double>(action.runs));
    }
  }
}

}  // namespace croton::bench
