// Functions compiled for a GPU that need not be there.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "compiler/compile.h"
#include "compiler/passes.h"
#include "croton/croton.h"

namespace croton::test {

/// A GPU of compute capability 9.0.
inline TargetInfo gpu_target() {
  TargetInfo target;
  target.backend = Backend::cuda;
  target.sm = 90;
  target.multiprocessors = 132;
  return target;
}

inline CompileContext gpu_context(const Config& config) {
  return {config, "cuda0", [](const std::string&) { return gpu_target(); }, {}};
}

/// What the passes make of a function.
inline FunctionGraph optimized_for_gpu(const std::vector<Variable>& inputs,
                                       const std::vector<Variable>& outputs) {
  FunctionGraph function;
  function.graph.inputs = inputs;
  function.graph.outputs = outputs;
  function.user_outputs = outputs.size();
  return optimize(std::move(function), gpu_context(current_config()));
}

}  // namespace croton::test
