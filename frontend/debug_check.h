#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <span>

#include "compiler/compile.h"
#include "compiler/rewrite/trace.h"
#include "runtime/fork.h"

namespace croton {

/// Mode DEBUG: the first call of a function checks, on its real arguments, what every rule and pass
/// did to the graph, and then what the compiled code gives, against the references of the ops.
class DebugCheck final : private ForkAware {
 public:
  /// `graph` is the function as the user wrote it, `trace` what became of it.
  DebugCheck(std::shared_ptr<const RewriteTrace> trace, FunctionGraph graph);

  /// Runs `call`, which fills `results`, the user's outputs. The first time an InternalError names
  /// the rule or pass that changed a value, or the output or update that the compiled code gets
  /// wrong; the call has run then. Once a call was right, later ones are not checked; nor is one
  /// during which another thread set a shared variable that the function reads. One that it updates
  /// must not be set by others during the first call.
  void run(std::span<const Array> arguments, std::span<Array> results,
           const std::function<void()>& call);

 private:
  void before_fork() noexcept override {}
  /// In a child the call that held the lock is gone.
  void after_fork(bool child) noexcept override;

  VariableMap<Array> known_values(std::span<const Array> arguments) const;
  /// Whether somebody else gave a shared variable, that the function only reads, another value.
  bool has_changed(const VariableMap<Array>& known) const;
  void check_results(std::span<const Array> results, std::span<const Array> expected) const;

  std::mutex mutex_;
  std::shared_ptr<const RewriteTrace> trace_;  ///< null once it was checked
  FunctionGraph graph_;
};

}  // namespace croton
