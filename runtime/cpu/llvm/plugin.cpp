// The plug-in: LLVM behind the interface of runtime/cpu/jit.h.
#include <llvm/ADT/SmallVector.h>
#include <llvm/AsmParser/Parser.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/OptBisect.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>

#include <map>

#include "runtime/cpu/jit.h"
#include "runtime/cpu/llvm/object_loader.h"

namespace croton {
namespace {

std::unique_ptr<llvm::TargetMachine> make_machine(const TargetInfo& target, std::string& error) {
  static const bool initialized = [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    return true;
  }();
  (void)initialized;
  std::string triple = llvm::sys::getProcessTriple();
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!found) return nullptr;
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  options.TrapUnreachable = false;
  return std::unique_ptr<llvm::TargetMachine>(
      found->createTargetMachine(triple, target.cpu, target.features, options, llvm::Reloc::PIC_,
                                 llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default, true));
}

/// Making one takes longer than compiling a small kernel, and none may serve two threads at once.
llvm::TargetMachine* machine(const TargetInfo& target, std::string& error) {
  thread_local std::map<std::string, std::unique_ptr<llvm::TargetMachine>> machines;
  auto& slot = machines[target.cpu + "/" + target.features];
  if (!slot) slot = make_machine(target, error);
  return slot.get();
}

/// Leaves out the one pass over IR among those of code generation that takes long: the emitter's
/// addresses are in the form that it would give them.
class Gate final : public llvm::OptPassGate {
 public:
  bool shouldRunPass(llvm::StringRef name, llvm::StringRef) override {
    return name != "Loop Strength Reduction";
  }
  bool isEnabled() const override { return true; }
};

bool compile(const std::string& text, const TargetInfo& target, bool listing, std::string& output,
             std::string& error) {
  llvm::TargetMachine* generator = machine(target, error);
  if (!generator) return false;
  llvm::LLVMContext context;
  Gate gate;
  context.setOptPassGate(gate);
  llvm::SMDiagnostic diagnostic;
  auto layout = generator->createDataLayout();
  auto buffer = llvm::MemoryBufferRef(text, "kernels");
  auto module = llvm::parseAssembly(
      buffer, diagnostic, context, nullptr,
      [&](llvm::StringRef, llvm::StringRef) { return layout.getStringRepresentation(); });
  llvm::raw_string_ostream message(error);
  if (!module) {
    diagnostic.print("", message, false);
    return false;
  }
  module->setTargetTriple(generator->getTargetTriple().str());
  if (llvm::verifyModule(*module, &message)) return false;
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  auto type = listing ? llvm::CodeGenFileType::AssemblyFile : llvm::CodeGenFileType::ObjectFile;
  if (generator->addPassesToEmitFile(passes, stream, nullptr, type, true)) {
    message << "this build of LLVM cannot write that kind of file";
    return false;
  }
  passes.run(*module);
  output.assign(bytes.data(), bytes.size());
  return true;
}

}  // namespace
}  // namespace croton

extern "C" __attribute__((visibility("default"))) const croton::LlvmPlugin* croton_llvm_plugin() {
  // The number after the dash counts changes of the settings above.
  static const croton::LlvmPlugin plugin = {"LLVM " LLVM_VERSION_STRING "-1", croton::compile,
                                            croton::load_object, croton::find_kernel,
                                            croton::unload_object};
  return &plugin;
}
