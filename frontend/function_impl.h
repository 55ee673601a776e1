#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "croton/config.h"
#include "croton/function.h"
#include "frontend/debug_check.h"
#include "runtime/program.h"

namespace croton {

struct Function::Impl {
  std::string name;
  std::vector<Variable> inputs;
  std::vector<std::string> output_names;
  std::vector<std::string> output_contexts;
  std::size_t user_outputs = 0;
  FunctionGraph graph;      ///< as the user wrote it
  FunctionGraph optimized;  ///< after all passes
  std::vector<FunctionPart>
      parts;      ///< as they were cut into kernels; their plans are the program's
  Config config;  ///< under which it was compiled
  std::unique_ptr<Program> program;
  std::unique_ptr<DebugCheck> debug;  ///< in mode DEBUG

  /// The argument as an array: numbers and lists take the dtype of the input, CallError in the
  /// function's name where they do not fit.
  static Array argument(const Arg& arg, const Variable& input, std::size_t position,
                        const std::string& function);
  Outputs run(std::span<const Array> arguments, const std::shared_ptr<const Impl>& self) const;
  FunctionStatistics statistics() const;

 private:
  Outputs make_outputs(const std::shared_ptr<const Impl>& self) const;
  std::span<Array> results(Outputs& outputs) const;
};

/// Compiles a graph that has been checked.
std::shared_ptr<Function::Impl> compile_function(FunctionGraph graph,
                                                 std::vector<std::string> output_names,
                                                 const Config& config,
                                                 const std::shared_ptr<Runtime>& runtime);

}  // namespace croton
