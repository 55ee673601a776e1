#include "runtime/cuda/nvrtc.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "croton/error.h"

namespace croton::cuda {
namespace {

constexpr std::string_view kSonames[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2",
                                         "libnvrtc.so"};

// nvrtcResult.
constexpr int kSuccess = 0;
constexpr int kOutOfMemory = 1;
constexpr int kInvalidOption = 5;

std::string numbered(std::string_view source) {
  std::string text;
  int number = 1;
  while (!source.empty()) {
    const std::string_view line = source.substr(0, source.find('\n'));
    text += fmt::format("{:>5} | {}\n", number++, line);
    source.remove_prefix(std::min(source.size(), line.size() + 1));
  }
  return text;
}

// A program of NVRTC, destroyed at the end of the scope.
class Program {
 public:
  explicit Program(const NvrtcSymbols& symbols) : symbols_(symbols) {}
  ~Program() {
    if (handle) symbols_.destroy(&handle);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// Fetches a text or image by NVRTC's pair of functions; empty where that fails.
  std::string fetch(int (*size_of)(NvrtcSymbols::Program, std::size_t*),
                    int (*get)(NvrtcSymbols::Program, char*)) const {
    std::size_t size = 0;
    if (size_of(handle, &size) != kSuccess || size == 0) return {};
    std::string bytes(size, '\0');
    return get(handle, bytes.data()) == kSuccess ? bytes : std::string();
  }

  NvrtcSymbols::Program handle = nullptr;

 private:
  const NvrtcSymbols& symbols_;
};

void drop_terminator(std::string& text) {
  while (!text.empty() && (text.back() == '\0' || text.back() == '\n')) text.pop_back();
}

}  // namespace

std::string NvrtcTarget::text() const {
  return fmt::format("{}_{}", cubin ? "sm" : "compute", capability);
}

Nvrtc::Nvrtc(const LibrarySearch& search) : library_("NVRTC", kSonames, search) {
  if (library_) bind();
}

void Nvrtc::reject(std::string reason) {
  library_.report().usable = false;
  library_.report().reason = std::move(reason);
}

void Nvrtc::bind() {
  std::string missing;
  const auto get = [&](auto& function, const char* name) {
    void* address = library_.symbol(name);
    if (!address) missing += (missing.empty() ? "" : ", ") + std::string(name);
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(address);
  };
  get(symbols_.version, "nvrtcVersion");
  get(symbols_.arch_count, "nvrtcGetNumSupportedArchs");
  get(symbols_.arch_list, "nvrtcGetSupportedArchs");
  get(symbols_.error_string, "nvrtcGetErrorString");
  get(symbols_.create, "nvrtcCreateProgram");
  get(symbols_.destroy, "nvrtcDestroyProgram");
  get(symbols_.compile, "nvrtcCompileProgram");
  get(symbols_.log_size, "nvrtcGetProgramLogSize");
  get(symbols_.log, "nvrtcGetProgramLog");
  get(symbols_.cubin_size, "nvrtcGetCUBINSize");
  get(symbols_.cubin, "nvrtcGetCUBIN");
  get(symbols_.ptx_size, "nvrtcGetPTXSize");
  get(symbols_.ptx, "nvrtcGetPTX");
  const std::string path = library_.report().path;
  if (!missing.empty()) {
    return reject(fmt::format("{} lacks {}; CUDA 11.2 or later is needed", path, missing));
  }
  int major = 0, minor = 0, count = 0;
  if (symbols_.version(&major, &minor) != kSuccess || symbols_.arch_count(&count) != kSuccess) {
    return reject(path + " does not answer");
  }
  library_.report().version = fmt::format("{}.{}", major, minor);
  quick_ = major >= 13;
  capabilities_.resize(static_cast<std::size_t>(count));
  symbols_.arch_list(capabilities_.data());
  std::sort(capabilities_.begin(), capabilities_.end());
  // NVRTC opens its builtins by bare name, which a folder unknown to the loader does not serve.
  // Where they are loaded already, the name is enough; where they are missing, compiling says so.
  const std::string builtins =
      fmt::format("{}libnvrtc-builtins.so.{}.{}", library_.folder(), major, minor);
  dlopen(builtins.c_str(), RTLD_LAZY | RTLD_LOCAL);
}

void Nvrtc::require_usable() const {
  if (!usable()) throw DeviceError("[nvrtc] " + report().text());
}

NvrtcTarget Nvrtc::target_for(int capability) const {
  require_usable();
  if (std::binary_search(capabilities_.begin(), capabilities_.end(), capability)) {
    return {capability, true};
  }
  const auto above = std::upper_bound(capabilities_.begin(), capabilities_.end(), capability);
  if (above == capabilities_.begin()) {
    throw DeviceError(fmt::format(
        "[nvrtc] no code for compute capability {}: NVRTC {} ({}) begins at {}; use an older CUDA "
        "toolkit",
        capability, version(), report().path, capabilities_.empty() ? 0 : capabilities_.front()));
  }
  return {*std::prev(above), false};
}

NvrtcModule Nvrtc::compile(const std::string& source, const std::string& name, NvrtcTarget target,
                           std::span<const std::string_view> options) const {
  require_usable();
  Program program(symbols_);
  const auto fail = [&](int result, const std::string& log) {
    const std::string head = fmt::format("[nvrtc] cannot compile {} for {} with NVRTC {}: {}", name,
                                         target.text(), version(), symbols_.error_string(result));
    const bool unknown =
        result == kInvalidOption &&
        !std::binary_search(capabilities_.begin(), capabilities_.end(), target.capability);
    if (unknown) {
      throw DeviceError(fmt::format("{}\nit knows {}; use another CUDA toolkit", head,
                                    fmt::join(capabilities_, ", ")));
    }
    if (result == kOutOfMemory) throw OutOfMemory(head);
    throw InternalError(fmt::format("{}\n{}\n{}", head, log, numbered(source)));
  };
  int result = symbols_.create(&program.handle, source.c_str(), name.c_str(), 0, nullptr, nullptr);
  if (result != kSuccess) fail(result, "");

  std::vector<std::string> texts = {"--gpu-architecture=" + target.text()};
  if (quick_) {
    texts.emplace_back("--minimal");            // 7 ms a program
    texts.emplace_back("--Ofast-compile=min");  // a quarter of the rest; code of the same size
  }
  texts.insert(texts.end(), options.begin(), options.end());
  std::vector<const char*> pointers;
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  result = symbols_.compile(program.handle, static_cast<int>(pointers.size()), pointers.data());
  NvrtcModule module;
  module.log = program.fetch(symbols_.log_size, symbols_.log);
  drop_terminator(module.log);
  if (result != kSuccess) fail(result, module.log);
  module.image = target.cubin ? program.fetch(symbols_.cubin_size, symbols_.cubin)
                              : program.fetch(symbols_.ptx_size, symbols_.ptx);
  internal_check(!module.image.empty(), "NVRTC gives out no code for what it compiled");
  return module;
}

}  // namespace croton::cuda
