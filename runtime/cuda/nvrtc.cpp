#include "runtime/cuda/nvrtc.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <system_error>
#include <utility>

#include "croton/error.h"

namespace croton::cuda {
namespace {

constexpr std::string_view kSonames[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2",
                                         "libnvrtc.so"};

using S = NvrtcSymbols;
constexpr std::array kSymbols = {
    Symbol{"nvrtcVersion", &bind_symbol<&S::version>},
    Symbol{"nvrtcGetNumSupportedArchs", &bind_symbol<&S::arch_count>},
    Symbol{"nvrtcGetSupportedArchs", &bind_symbol<&S::arch_list>},
    Symbol{"nvrtcGetErrorString", &bind_symbol<&S::error_string>},
    Symbol{"nvrtcCreateProgram", &bind_symbol<&S::create>},
    Symbol{"nvrtcDestroyProgram", &bind_symbol<&S::destroy>},
    Symbol{"nvrtcCompileProgram", &bind_symbol<&S::compile>},
    Symbol{"nvrtcGetProgramLogSize", &bind_symbol<&S::log_size>},
    Symbol{"nvrtcGetProgramLog", &bind_symbol<&S::log>},
    Symbol{"nvrtcGetCUBINSize", &bind_symbol<&S::cubin_size>},
    Symbol{"nvrtcGetCUBIN", &bind_symbol<&S::cubin>},
    Symbol{"nvrtcGetPTXSize", &bind_symbol<&S::ptx_size>},
    Symbol{"nvrtcGetPTX", &bind_symbol<&S::ptx>},
};

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

/// The lines of a numbered text that the log names, as in "croton.cu(12): error", with neighbours.
std::string blamed(std::string_view log, const std::string& name, std::string_view numbered_text) {
  std::set<std::size_t> wanted;
  const std::string mark = name + "(";
  for (std::size_t at = log.find(mark); at != log.npos; at = log.find(mark, at + 1)) {
    const auto line = static_cast<std::size_t>(std::atoi(log.data() + at + mark.size()));
    for (std::size_t k = line > 2 ? line - 2 : 1; k <= line + 2; ++k) wanted.insert(k);
    if (wanted.size() > 20) break;
  }
  std::string text;
  std::size_t number = 1;
  while (!numbered_text.empty()) {
    const std::string_view line = numbered_text.substr(0, numbered_text.find('\n'));
    if (wanted.contains(number++)) text.append(line).push_back('\n');
    numbered_text.remove_prefix(std::min(numbered_text.size(), line.size() + 1));
  }
  return text;
}

/// Keeps all that belongs to a text which does not compile; gives the file, or why there is none.
std::string save_report(const std::string& text) {
  static std::atomic<int> count{0};
  std::error_code error;
  const auto folder = std::filesystem::temp_directory_path(error);
  const std::string path =
      (folder / fmt::format("croton-nvrtc-{}-{}.txt", getpid(), count++)).string();
  std::ofstream file(path);
  file << text;
  file.close();
  return file ? path : "no file: " + path + " cannot be written";
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

void Nvrtc::bind() {
  const std::string missing = library_.bind(kSymbols, &symbols_);
  const std::string path = library_.report().path;
  if (!missing.empty()) {
    return library_.reject(fmt::format("{} lacks {}; CUDA 11.2 or later is needed", path, missing));
  }
  int major = 0, minor = 0, count = 0;
  if (symbols_.version(&major, &minor) != kSuccess || symbols_.arch_count(&count) != kSuccess) {
    return library_.reject(path + " does not answer");
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

std::span<const std::string_view> Nvrtc::quick_options() const {
  static constexpr std::string_view kQuick[] = {
      "--minimal",            // 7 ms a program
      "--Ofast-compile=min",  // a quarter of the rest; code of the same size
  };
  return quick_ ? std::span<const std::string_view>(kQuick) : std::span<const std::string_view>();
}

NvrtcModule Nvrtc::compile(const std::string& source, const std::string& name, NvrtcTarget target,
                           std::span<const std::string_view> options) const {
  require_usable();
  Program program(symbols_);
  std::vector<std::string> texts = {"--gpu-architecture=" + target.text()};
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
    const std::string lines = numbered(source);
    const std::string file = save_report(
        fmt::format("{}\noptions: {}\n{}\n{}", head, fmt::join(texts, " "), log, lines));
    throw InternalError(fmt::format("{}\n{}\n{}the whole text, the options and the log are in {}",
                                    head, log.substr(0, 2000), blamed(log, name, lines), file));
  };
  int result = symbols_.create(&program.handle, source.c_str(), name.c_str(), 0, nullptr, nullptr);
  if (result != kSuccess) fail(result, "");

  const auto quick = quick_options();
  texts.insert(texts.end(), quick.begin(), quick.end());
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

std::span<const std::string_view> nvrtc_options() {
  static constexpr std::string_view kOptions[] = {"--std=c++17", "--fmad=false", "--ftz=false",
                                                  "--prec-div=true", "--prec-sqrt=true"};
  return kOptions;
}

const Nvrtc& nvrtc() {
  static const Nvrtc* const opened = new Nvrtc(search_from_environment());
  return *opened;
}

}  // namespace croton::cuda
