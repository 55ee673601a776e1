// From LLVM IR text to object bytes to functions that run. LLVM itself sits in a plug-in,
// libcroton_llvm.so, that is opened on first use; this page is all that both sides share.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/target.h"

namespace croton {

/// The entry of a kernel: runs blocks first <= b < last. `error` points to three words, zero before
/// the launch; a failed check sets error[0] to its id + 1, a lack of scratch memory to -1.
using CpuKernel = void (*)(void* const* buffers, const std::int64_t* sizes, std::int64_t first,
                           std::int64_t last, std::int64_t* error);

/// What the plug-in offers: functions and not classes, for it is built without run-time type
/// information. No exception crosses it: failures return false or null and a message. Any number of
/// threads may use it at once.
struct LlvmPlugin {
  const char* version;
  bool (*compile)(const std::string& text, const TargetInfo& target, bool listing,
                  std::string& output, std::string& error);
  void* (*load)(std::string_view object, std::string& error);
  CpuKernel (*kernel)(void* module, const std::string& name);
  void (*unload)(void* module);
};

/// Machine code in memory, freed with this object: callers keep it while its kernels run.
class CpuModule {
 public:
  CpuModule(const LlvmPlugin& plugin, void* handle) : plugin_(plugin), handle_(handle) {}
  ~CpuModule() { plugin_.unload(handle_); }
  CpuModule(const CpuModule&) = delete;
  CpuModule& operator=(const CpuModule&) = delete;

  /// The kernel of that name; nullptr if the module has none.
  CpuKernel kernel(const std::string& name) const { return plugin_.kernel(handle_, name); }

 private:
  const LlvmPlugin& plugin_;
  void* handle_;
};

/// Version of LLVM and of the code generator's settings, for the keys of caches.
std::string_view cpu_compiler_version();

/// Compiles a module of LLVM IR text to object bytes, which may be kept and loaded later on a
/// machine with the same target. Throws DeviceError when the plug-in cannot be opened,
/// InternalError when the text is wrong.
std::string compile_cpu_object(const std::string& text, const TargetInfo& target);

/// The same as assembly text, for people.
std::string cpu_assembly(const std::string& text, const TargetInfo& target);

/// Loads object bytes. Throws DeviceError when they are no object of this machine or name a
/// function that the process lacks.
std::shared_ptr<CpuModule> load_cpu_object(std::string_view object);

/// Milliseconds that opening the plug-in took, 0 before its first use.
double cpu_compiler_open_ms();

}  // namespace croton
