#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "croton/combine.h"
#include "croton/function.h"

namespace croton {

/// An input of a data-parallel function: its rows, the entries along axis 0, are shared out among
/// the contexts, unless each is to get all of it.
struct CROTON_API ParallelInput {
  Variable value;
  bool scattered = true;
  template <Symbol T>
  ParallelInput(const T& value) : value(value) {}
  ParallelInput(const Variable& value, bool scattered) : value(value), scattered(scattered) {}
};

/// An input of which each context gets all.
inline ParallelInput to_all(const Variable& input) { return {input, false}; }

/// An output, its name, and how it is made of what the contexts have.
struct CROTON_API ParallelOutput {
  Variable value;
  std::string name = {};
  Combine combine = Combine::whole;
  template <Symbol T>
  ParallelOutput(const T& value, Combine combine = Combine::whole)
      : value(value), combine(combine) {}
  ParallelOutput(const Output& output) : value(output.value), name(output.name) {}
  ParallelOutput(std::string name, const Variable& value, Combine combine = Combine::whole)
      : value(value), name(std::move(name)), combine(combine) {}
};

struct DataParallelOptions {
  /// The contexts that share the rows; empty: all that the flag `contexts` binds, in its order, or
  /// the default device where it binds none.
  std::vector<std::string> contexts = {};
  /// As FunctionOptions has them. A shared variable is the same one as everywhere else: it is kept
  /// on each context, read and written as always, and saved without a trace of the contexts.
  std::vector<Update> updates = {};
  std::vector<Given> givens = {};
  std::string name = {};
  std::optional<OnUnused> on_unused = {};
  std::optional<Config> config = {};
  bool no_default_updates = false;
  bool keep_on_device = false;
};

/// Rows of the arguments that are shared out: all, the first n, a range or a list.
class CROTON_API Rows {
 public:
  Rows() = default;
  /// The first `count` rows.
  Rows(std::int64_t count) : kind_(Kind::range), stop_(count) {}
  Rows(int count) : Rows(std::int64_t{count}) {}
  /// Rows [start, stop); negative numbers count from the end.
  Rows(std::int64_t start, std::int64_t stop) : kind_(Kind::range), start_(start), stop_(stop) {}
  /// These rows, any number of times each; negative numbers count from the end.
  Rows(std::vector<std::int64_t> rows) : kind_(Kind::list), rows_(std::move(rows)) {}
  /// A vector of integers.
  Rows(const Array& rows);

 private:
  friend struct RowsAccess;
  enum class Kind { all, range, list };
  Kind kind_ = Kind::all;
  std::int64_t start_ = 0;
  std::int64_t stop_ = 0;
  std::vector<std::int64_t> rows_;
};

struct BatchOptions {
  /// Chosen before the rows are shared out. CallError for a row that is not there.
  Rows batch = {};
  /// Each context computes its rows in that many pieces, one after the other, and what the
  /// contexts have is put together once: less memory, the same values. At least 1.
  int num_slices = 1;
};

/// A function that several contexts compute together, each from some of the rows of its inputs,
/// with the results that one device would give, up to the rounding of sums: means and other
/// statistics of the batch, gradients, counters, random numbers and terms that have no rows are
/// those of the whole batch. Any number of rows will do, 0 and fewer than there are contexts
/// included; contexts without rows do nothing. A handle, cheap to copy; may be called from several
/// threads. After Synkhronos' function and Keras' multi_gpu_model.
class CROTON_API DataParallel {
 public:
  DataParallel() = default;

  /// As Function's. CallError where scattered arguments differ in their numbers of rows.
  Outputs operator()(const Arg& a = Arg::kNone, const Arg& b = Arg::kNone,
                     const Arg& c = Arg::kNone, const Arg& d = Arg::kNone,
                     const Arg& e = Arg::kNone, const Arg& f = Arg::kNone,
                     const Arg& g = Arg::kNone, const Arg& h = Arg::kNone) const;
  Outputs call(std::span<const Array> arguments, const BatchOptions& options = {}) const;
  Outputs call(std::initializer_list<Array> arguments, const BatchOptions& options = {}) const {
    return call(std::span(arguments.begin(), arguments.size()), options);
  }

  const std::string& name() const;
  const std::vector<std::string>& contexts() const;
  const std::vector<std::string>& output_names() const;
  /// Of the calls in which every context has rows, in one piece each.
  FunctionStatistics statistics() const;
  /// Lines about ops that every context computes for itself, because they need all rows at once.
  const std::vector<std::string>& computed_by_all() const;

  struct Impl;

 private:
  friend CROTON_API DataParallel data_parallel(const std::vector<ParallelInput>& inputs,
                                               const std::vector<ParallelOutput>& outputs,
                                               const DataParallelOptions& options, Loc loc);
  const Impl& impl() const;
  void choose(const Rows& batch, std::vector<Array>& arguments) const;
  std::shared_ptr<const Impl> impl_;
};

/// Compiles a data-parallel function. GraphError as function(); ConfigError for a context that is
/// not bound.
CROTON_API DataParallel data_parallel(const std::vector<ParallelInput>& inputs,
                                      const std::vector<ParallelOutput>& outputs,
                                      const DataParallelOptions& options = {},
                                      Loc loc = Loc::current());

}  // namespace croton
