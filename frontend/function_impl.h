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

  Array argument(const Arg& arg, std::size_t position) const;
  Outputs run(std::span<const Array> arguments, const std::shared_ptr<const Impl>& self) const;

 private:
  Outputs make_outputs(const std::shared_ptr<const Impl>& self) const;
  std::span<Array> results(Outputs& outputs) const;
};

}  // namespace croton
