// What the benchmarks share: how things are timed, and how results are told.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace croton {
class Variable;
}

namespace croton::bench {

struct Options {
  bool quick = false;              ///< fewer repeats, smaller arrays for the limits
  std::string only;                ///< part of the names of the sections to run; empty: all
  std::string json;                ///< file for the numbers; empty: none
  std::string python = "python3";  ///< that has NumPy, PyTorch or JAX to be measured beside
  int repeats() const { return quick ? 5 : 21; }
};

/// Seconds of one run, over all repeats.
struct Times {
  double min = 0;
  double median = 0;
  int repeats = 0;
};
Times times_of(std::vector<double> seconds);

/// Times several actions in turns, one run of each after the other, so that whatever else the
/// machine does falls on all of them alike.
class Turns {
 public:
  explicit Turns(int repeats) : repeats_(repeats) {}
  /// Gives the number under which the action's times are found. Actions shorter than
  /// `sample_seconds` run several times a sample.
  std::size_t add(std::function<void()> action, double sample_seconds = 1e-3);
  /// Times all actions, after one run of each that does not count.
  void run();
  Times times(std::size_t action) const { return times_of(actions_[action].seconds); }

 private:
  struct Action {
    std::function<void()> run;
    double sample_seconds;
    std::int64_t runs = 1;
    std::vector<double> seconds;
  };
  int repeats_;
  std::vector<Action> actions_;
};

/// Seconds that an action takes.
double seconds_of(const std::function<void()>& action);

/// What a result is held against: a number of units in some seconds.
struct Limit {
  std::string name;
  Times times;
  double amount = 1;
};

/// One line of the report.
struct Row {
  std::string name;
  Times times;
  double amount = 1;      ///< bytes, operations or the like of one run
  std::string unit = {};  ///< "GB/s", "GFLOP/s"; empty where only the time matters
  std::optional<Limit> limit = {};
  double floor_ratio = 0;    ///< of the limit's rate, 0: none
  double floor_seconds = 0;  ///< at most, 0: none
  std::string note = {};

  double rate() const { return amount / times.min; }
  double ratio() const;         ///< of the fastest runs
  double median_ratio() const;  ///< of the medians
  bool has_floor() const { return floor_ratio > 0 || floor_seconds > 0; }
  bool passed() const;
};

class Report {
 public:
  void section(const std::string& title);
  /// Prints the row and keeps it.
  void add(Row row);
  /// Prints a line that is no result, such as why something was left out.
  void note(const std::string& text);
  void summarise() const;
  void write_json(const std::string& path) const;

 private:
  struct Kept {
    std::string section;
    Row row;
  };
  std::string section_;
  std::vector<Kept> rows_;
  std::vector<std::string> notes_;
};

struct Section {
  const char* name;
  void (*run)(const Options& options, Report& report);
};

// One for each file of rows.
void measure_limits(const Options& options, Report& report);
void measure_memory(const Options& options, Report& report);
void measure_arrays(const Options& options, Report& report);
void measure_products(const Options& options, Report& report);
void measure_calls(const Options& options, Report& report);
void measure_compiling(const Options& options, Report& report);
void measure_loops(const Options& options, Report& report);
void measure_processes(const Options& options, Report& report);
void measure_nvrtc(const Options& options, Report& report);
void measure_parallel(const Options& options, Report& report);

/// `nodes` elementwise operations, one on top of the other, of which no two kernels are alike.
Variable long_chain(const Variable& x, const Variable& y, int nodes);

/// What the program does for count_instructions.sh: `what` ("scalars", "vectors", "nodes") so
/// often.
int run_counted(const std::string& what, int count);

/// What the program does when it was started by measure_processes: compiles the training function
/// once and prints how long it took.
int compile_in_this_process();

/// What the program does when it was started by measure_parallel: prints rows.
int measure_in_this_process(const Options& options);

}  // namespace croton::bench
