// The parts of gpu_check: what is measured on a GPU, and what it is held against.
#pragma once

#include <croton/croton.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/bench/bench.h"

namespace croton::gpu_check {

struct Options {
  /// Small sizes and few repeats, for emulated GPUs: values are checked, times mean nothing.
  bool rehearse = false;
  std::string only;  ///< part of the names of the sections to run; empty: all
  std::string json;  ///< file for the numbers; empty: none
  int repeats() const { return rehearse ? 2 : 9; }
  /// Elements of the large arrays: 256 MiB of float32.
  std::int64_t elements() const { return rehearse ? 1 << 15 : 1 << 26; }
};

/// What the rows share: where they go, and how many values were wrong.
struct Results {
  bench::Report report;
  int checked = 0;
  std::vector<std::string> wrong;

  /// Counts one row as checked, and as wrong where `fault` says something.
  void check(const std::string& row, const std::string& fault);
};

/// Two actions in turns; each queues `count` pieces of work, so many that waiting for them at the
/// end does not show. Times are those of one piece.
struct Pair {
  bench::Times ours, limit;
};
Pair measure_pair(const Options& options, const std::function<void()>& ours,
                  const std::function<void()>& ours_wait, const std::function<void()>& limit,
                  const std::function<void()>& limit_wait);

/// Where elements `i` of a large array come from: multiples of 1/64 from -1.95 to 1.95.
inline float element(std::int64_t i) { return static_cast<float>(i * 7 % 251 - 125) / 64.0f; }

/// The first element of `got`, of `rows` rows, that is off by more than `tolerance` of the larger
/// one, in words; some rows are looked at. `expected` gives a whole row.
std::string first_fault(const Array& got, std::int64_t rows, double tolerance,
                        const std::function<std::vector<double>(std::int64_t row)>& expected);

void measure_memory(const Options& options, Results& results);
void measure_products(const Options& options, Results& results);
void measure_calls(const Options& options, Results& results);
void measure_compiling(const Options& options, Results& results);

/// What a process does that measure_compiling starts: compiles and calls the training function
/// once, and prints how long that took.
int compile_once();

/// One rank of NCCL: sums, largest values, broadcasts and gathers. Gives the exit status: 0, 1
/// where a value or a call is wrong, 77 where there is no NCCL.
int check_nccl();

}  // namespace croton::gpu_check
