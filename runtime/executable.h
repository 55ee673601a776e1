// Binds a plan to devices and runs it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "croton/array.h"
#include "croton/config.h"
#include "runtime/plan.h"

namespace croton {

class Runtime;
struct SharedNeeds;

/// What a plan does, counted. Bytes are of the shapes of the latest call.
struct PlanStatistics {
  int steps = 0;
  int launches = 0;
  int library_calls = 0;
  int copies = 0;               ///< copies between contexts that move bytes
  int messages = 0;             ///< in which they travel
  std::int64_t bytes_read = 0;  ///< by launches and library calls, each slot once a step
  std::int64_t bytes_written = 0;
  std::int64_t bytes_copied = 0;  ///< between contexts
  std::int64_t bytes_in = 0;      ///< of inputs, shared values and constants that steps read
  std::int64_t bytes_out = 0;     ///< of outputs and updates
  std::int64_t arena_bytes = 0;   ///< for temporaries, over all contexts
  int parallel_launches = 0;      ///< launches that use several threads
  int streaming_launches = 0;     ///< launches with non-temporal stores
  int wide_launches = 0;          ///< GPU: launches whose indices have 64 bits
  bool on_caller = false;         ///< runs on the thread of the caller

  std::int64_t modules_compiled = 0;  ///< and not found in a cache, so far
  double compile_ms = 0;              ///< of compilers for them, summed
  std::int64_t calls = 0;
  std::int64_t replays = 0;            ///< runs of steps that a recording replayed, so far
  std::int64_t specialisations = 0;    ///< plans prepared for a set of shapes, so far
  std::int64_t specialised = 0;        ///< of these, kept
  std::int64_t frames = 0;             ///< sets of working memory made so far
  std::int64_t refreshed_shareds = 0;  ///< shared values brought to a further context, so far
  std::int64_t copied_arguments = 0;   ///< arguments that were strided or on another context
};

/// A plan bound to the contexts of a runtime, ready to be called from any number of threads.
class Executable {
 public:
  /// Opens the contexts of the plan and compiles its modules. ConfigError, DeviceError as
  /// Runtime::context; InternalError for a plan that is wrong.
  Executable(std::shared_ptr<Runtime> runtime, Plan plan, const Config& config);
  ~Executable();
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;

  /// Runs the plan. `results` has one Array for each output of the plan; outputs on the context
  /// "cpu" are host arrays, others live on their context. CallError, before anything ran, for
  /// arguments that do not fit; CallError for an index out of bounds, OutOfMemory, DeviceError:
  /// nothing was changed then. Arguments may be strided and on any context.
  void run(std::span<const Array> arguments, std::span<Array> results) const;
  /// The same for who holds the locks of its shared variables, as SharedLocks takes them.
  void run_locked(std::span<const Array> arguments, std::span<Array> results) const;

  const Plan& plan() const;
  const SharedNeeds& shareds() const;
  PlanStatistics statistics() const;
  /// One line a step with offsets, threads and bytes, for the shapes of the latest call.
  std::string to_text() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace croton
