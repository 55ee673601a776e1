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

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>

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

/// Passes of code generation that are left out. The first takes longest and finds nothing, because
/// the emitter's addresses are in the form that it would give them; the second orders instructions,
/// which processors that run AVX do themselves (no kernel measured ran slower without it). The rest
/// look for what kernels do not hold: short blocks, calls to memcmp, addresses of thread-locals,
/// constants too wide for an instruction, spills that are read back in parts. Together they take a
/// quarter of the time.
constexpr std::string_view kLeftOut[] = {
    "Loop Strength Reduction",
    "Machine Instruction Scheduler",
    "Canonicalize Freeze Instructions in Loops",
    "Constant Hoisting",
    "Early If-Conversion",
    "Early Tail Duplication",
    "Expand memcmp() to load/stores",
    "Live Range Shrink",
    "Local Dynamic TLS Access Clean-up",
    "Merge contiguous icmps into a memcmp",
    "Optimize machine instruction PHIs",
    "Partially inline calls to library functions",
    "PostRA Machine Sink",
    "Shrink Wrapping analysis",
    "Stack Slot Coloring",
    "TLS Variable Hoist",
    "Tail Duplication",
    "X86 Atom pad short functions",
    "X86 Avoid Store Forwarding Blocks",
    "X86 Domain Reassignment Pass",
    "X86 LEA Optimize",
    "X86 Partial Reduction",
    "X86 cmov Conversion",
};

class Gate final : public llvm::OptPassGate {
 public:
  bool shouldRunPass(llvm::StringRef name, llvm::StringRef) override {
    return std::find(std::begin(kLeftOut), std::end(kLeftOut), std::string_view(name)) ==
           std::end(kLeftOut);
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
  static const croton::LlvmPlugin plugin = {"LLVM " LLVM_VERSION_STRING "-2", croton::compile,
                                            croton::load_object, croton::find_kernel,
                                            croton::unload_object};
  return &plugin;
}
