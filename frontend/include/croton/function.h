#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "croton/array.h"
#include "croton/config.h"
#include "croton/shared.h"
#include "croton/variable.h"

namespace croton {

/// One output of a function, with a name or without.
struct CROTON_API Output {
  Variable value;
  std::string name;
  Output(const Variable& value) : value(value) {}
  Output(std::string name, const Variable& value) : value(value), name(std::move(name)) {}
};

/// Outputs as `{a, b}`, `{{"main", a}, {"aux", b}}`, a vector of Variables, or one Variable.
struct CROTON_API OutputList {
  std::vector<Output> list;
  OutputList(std::initializer_list<Output> outputs) : list(outputs) {}
  OutputList(const std::vector<Variable>& outputs) : list(outputs.begin(), outputs.end()) {}
  OutputList(const std::vector<Output>& outputs) : list(outputs) {}
  template <Symbol T>
  OutputList(const T& output) : list{Output(output)} {}
};

/// A shared variable and its value after the call.
struct Update {
  Shared target;
  Operand value;
};

/// A value and what takes its place in this function.
struct Given {
  Variable value;
  Operand replacement;
};

struct FunctionOptions {
  /// New values of shared variables, all computed from the old ones and stored together when the
  /// call has succeeded.
  std::vector<Update> updates = {};
  /// Replacements inside the graph.
  std::vector<Given> givens = {};
  /// For messages, printing and profiles.
  std::string name = {};
  /// What an input that nothing needs means; the flag on_unused_input unless given.
  std::optional<OnUnused> on_unused = {};
  /// Flags of this function; those of the process and the ConfigScopes unless given.
  std::optional<Config> config = {};
  /// Leaves out the updates that random streams bring along.
  bool no_default_updates = false;
  /// Outputs computed on a GPU stay there (and the call does not wait for them); else they come to
  /// the host.
  bool keep_on_device = false;
};

/// What a call gave: by index, by name, or in a range-for.
class CROTON_API Outputs {
 public:
  Outputs() = default;
  std::size_t size() const { return size_; }
  /// UserError when there are fewer.
  Array operator[](std::size_t index) const;
  /// UserError with the names when there is none of this name.
  Array operator[](std::string_view name) const;
  /// The name of an output; empty where it has none.
  std::string_view name(std::size_t index) const;
  const Array* begin() const { return data(); }
  const Array* end() const { return data() + size_; }

 private:
  friend class Function;
  static constexpr std::size_t kInline = 8;
  Outputs(std::size_t size, const std::vector<std::string>* names,
          std::shared_ptr<const void> owner);
  const Array* data() const { return size_ <= kInline ? inline_.data() : more_.data(); }
  Array* data() { return size_ <= kInline ? inline_.data() : more_.data(); }

  std::size_t size_ = 0;
  std::array<Array, kInline> inline_;
  std::vector<Array> more_;
  const std::vector<std::string>* names_ = nullptr;
  std::shared_ptr<const void> owner_;  ///< of the names
};

/// The arrays one after the other, each as operator<< prints it, behind its name if it has one.
CROTON_API std::ostream& operator<<(std::ostream& out, const Outputs& outputs);

/// An argument of a call: an Array, a number, or a nested list of numbers. Numbers and lists take
/// the dtype of the input if that changes no value (and floating ones any float dtype).
class CROTON_API Arg {
 public:
  /// No argument. One for all calls, so that a call makes none of its own.
  static const Arg kNone;

  constexpr Arg() = default;
  Arg(const Array& array) : array_(array), kind_(Kind::array) {}
  template <Literal T>
  Arg(T value) : literal_(value), kind_(Kind::literal) {}
  Arg(std::initializer_list<Nested> list) : array_(list), kind_(Kind::list) {}
  bool empty() const { return kind_ == Kind::none; }

 private:
  friend class Function;
  enum class Kind { none, array, literal, list };
  Array array_;
  LiteralValue literal_;
  Kind kind_ = Kind::none;
};

/// What a function does in a call, counted; bytes are for the shapes of the latest one.
struct FunctionStatistics {
  int launches = 0;  ///< of kernels
  int library_calls = 0;
  int copies = 0;    ///< between contexts, that move bytes
  int messages = 0;  ///< in which they travel
  std::int64_t bytes_copied = 0;
  std::int64_t bytes_read = 0;  ///< by launches and library calls
  std::int64_t bytes_written = 0;
  std::int64_t bytes_in = 0;   ///< of inputs, shared values and constants
  std::int64_t bytes_out = 0;  ///< of outputs and updates
  std::int64_t temporary_bytes = 0;
  std::int64_t calls = 0;
  std::int64_t replays = 0;          ///< of CUDA graphs, so far
  std::int64_t specialisations = 0;  ///< times that sizes were worked out
  /// Values of shared variables that were brought to a context which did not have them, so far.
  std::int64_t refreshed_shareds = 0;
  // Of a function that runs in parts, the bytes above count what one part hands to another, too.
  /// Modules of kernels that were compiled for it and not found in memory or on disk, so far: some
  /// kernels are compiled by the first call that needs them.
  std::int64_t modules_compiled = 0;
  /// Milliseconds of the compilers, summed over those modules; several are compiled side by side.
  double compile_ms = 0;
};

/// A compiled function. A handle, cheap to copy; may be called from several threads at once.
class CROTON_API Function {
 public:
  Function() = default;

  /// Calls with up to eight arguments; use `call` for more. CallError, before anything has
  /// run, when arguments do not fit.
  Outputs operator()(const Arg& a = Arg::kNone, const Arg& b = Arg::kNone,
                     const Arg& c = Arg::kNone, const Arg& d = Arg::kNone,
                     const Arg& e = Arg::kNone, const Arg& f = Arg::kNone,
                     const Arg& g = Arg::kNone, const Arg& h = Arg::kNone) const;
  /// Calls with a number of arguments that is known at run time.
  Outputs call(std::span<const Array> arguments) const;
  Outputs call(const std::vector<Array>& arguments) const {
    return call(std::span<const Array>(arguments));
  }

  const std::string& name() const;
  const std::vector<Variable>& inputs() const;
  const std::vector<std::string>& output_names() const;
  /// For each output the context on which it is computed; "cpu" where no flag binds another.
  const std::vector<std::string>& output_contexts() const;
  FunctionStatistics statistics() const;

  struct Impl;
  const Impl& impl() const;

 private:
  friend CROTON_API Function function(const std::vector<Variable>& inputs,
                                      const OutputList& outputs, const FunctionOptions& options,
                                      Loc loc);
  std::shared_ptr<const Impl> impl_;
};

/// Compiles a function of `inputs` (symbols made by matrix(...) and the like) that gives `outputs`.
/// GraphError for a graph that cannot be right, with the user's line.
CROTON_API Function function(const std::vector<Variable>& inputs, const OutputList& outputs,
                             const FunctionOptions& options = {}, Loc loc = Loc::current());

}  // namespace croton
