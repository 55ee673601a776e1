#include "runtime/cpu/jit.h"

#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <vector>

#include "croton/error.h"

namespace croton {
namespace {

constexpr const char* kPluginName = "libcroton_llvm.so";

std::atomic<double> open_ms{0};

/// Beside the library (or program) that holds this function, then in lib/ next to its folder, as
/// for programs in bin/, then wherever the system looks.
std::vector<std::string> plugin_paths() {
  std::vector<std::string> paths;
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&plugin_paths), &info) && info.dli_fname) {
    std::string own = info.dli_fname;
    auto slash = own.rfind('/');
    std::string folder = slash == std::string::npos ? std::string(".") : own.substr(0, slash);
    paths.push_back(folder + "/" + kPluginName);
    paths.push_back(folder + "/../lib/" + kPluginName);
  }
  paths.emplace_back(kPluginName);
  return paths;
}

const LlvmPlugin* open_plugin() {
  std::string tried;
  for (const std::string& path : plugin_paths()) {
    // Never closed: modules, and LLVM's own statics, live as long as the process.
    if (void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
      using Entry = const LlvmPlugin* (*)();
      if (auto entry = reinterpret_cast<Entry>(dlsym(library, "croton_llvm_plugin"))) {
        return entry();
      }
      tried += "\n  " + path + ": no entry croton_llvm_plugin";
    } else {
      const char* reason = dlerror();
      tried += "\n  " + std::string(reason ? reason : path.c_str());
    }
  }
  throw DeviceError(
      "[cpu] the code generator for CPUs cannot be opened; tried:" + tried +
      "\nIt needs LLVM 19 (Debian: apt install libllvm19) and belongs beside libcroton");
}

const LlvmPlugin& plugin() {
  static const LlvmPlugin* const opened = [] {
    auto start = std::chrono::steady_clock::now();
    const LlvmPlugin* result = open_plugin();
    std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    open_ms = took.count();
    return result;
  }();
  return *opened;
}

std::string generate(const std::string& text, const TargetInfo& target, bool listing) {
  std::string output, error;
  if (!plugin().compile(text, target, listing, output, error)) {
    throw InternalError("[cpu] LLVM rejects a generated module: " + error);
  }
  return output;
}

}  // namespace

std::string_view cpu_compiler_version() { return plugin().version; }

std::string compile_cpu_object(const std::string& text, const TargetInfo& target) {
  return generate(text, target, false);
}

std::string cpu_assembly(const std::string& text, const TargetInfo& target) {
  return generate(text, target, true);
}

std::shared_ptr<CpuModule> load_cpu_object(std::string_view object) {
  std::string error;
  void* handle = plugin().load(object, error);
  if (!handle) throw DeviceError("[cpu] compiled code cannot be loaded: " + error);
  return std::make_shared<CpuModule>(plugin(), handle);
}

double cpu_compiler_open_ms() { return open_ms; }

}  // namespace croton
