#pragma once

#include <string>
#include <vector>

#include "compiler/compile.h"
#include "croton/function.h"

namespace croton {

class Runtime;

/// Checks what the user gave to function() and makes the graph to compile of it.
class FunctionMaker {
 public:
  FunctionMaker(const std::vector<Variable>& inputs, const OutputList& outputs,
                const FunctionOptions& options, const Config& config, const Loc& loc);

  /// Gives each transfer its context's canonical name: ConfigError for one that is not bound.
  void bind_transfers(const Runtime& runtime);

  FunctionGraph graph;
  std::vector<std::string> output_names;  ///< empty when no output has a name

 private:
  void check_inputs();
  void add_outputs(const OutputList& outputs);
  void add_updates();
  void add_default_updates();
  Variable update_value(const Update& update) const;
  void apply_givens();
  void check_reachable();
  [[noreturn]] void fail(const std::string& message) const;

  const std::vector<Variable>& inputs_;
  const FunctionOptions& options_;
  OnUnused on_unused_;
  const Loc& loc_;
  VariableMap<Variable> replacements_;  ///< of the givens
};

}  // namespace croton
