#include "compiler/codegen/llvm.h"

#include "compiler/codegen/llvm_emitter.h"

namespace croton::codegen {

std::string emit_llvm(std::span<const kernel::Kernel* const> kernels, const TargetInfo& target) {
  llvm_ir::Module module;
  std::string bodies;
  for (const kernel::Kernel* kernel : kernels) {
    bodies += "\n";
    bodies += llvm_ir::Emitter(*kernel, target, module).emit();
  }
  std::string text;
  for (const std::string& declaration : module.declarations) text += declaration;
  for (const auto& [name, definition] : module.functions) text += "\n" + definition;
  return text + bodies + "\n!0 = !{}\n!1 = !{i32 1}\n";
}

}  // namespace croton::codegen
