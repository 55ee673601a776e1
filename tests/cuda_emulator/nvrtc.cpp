// The emulated NVRTC: the real one compiles the text first, and its errors are errors; then a host
// compiler builds the same text.
#include <dlfcn.h>
#include <nvrtc.h>

#include <cstring>
#include <future>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

#include "tests/cuda_emulator/host_build.h"
#include "tests/cuda_emulator/image.h"
#include "tests/cuda_emulator/report.h"
#include "tests/cuda_emulator/settings.h"

#define EMULATOR_API extern "C" __attribute__((visibility("default")))

using namespace emulator;

struct _nvrtcProgram {
  std::string source, name, log, cubin, ptx;
  std::vector<std::pair<std::string, std::string>> headers;
};

namespace {

constexpr int kVersionWithoutReal = 13000;
constexpr int kArchitecturesWithoutReal[] = {75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121};

// The functions of the real library.
struct Real {
  void* library = nullptr;
  decltype(&nvrtcVersion) version = nullptr;
  decltype(&nvrtcGetNumSupportedArchs) architecture_count = nullptr;
  decltype(&nvrtcGetSupportedArchs) architectures = nullptr;
  decltype(&nvrtcCreateProgram) create = nullptr;
  decltype(&nvrtcDestroyProgram) destroy = nullptr;
  decltype(&nvrtcCompileProgram) compile = nullptr;
  decltype(&nvrtcGetProgramLogSize) log_size = nullptr;
  decltype(&nvrtcGetProgramLog) log = nullptr;
  decltype(&nvrtcGetCUBINSize) cubin_size = nullptr;
  decltype(&nvrtcGetCUBIN) cubin = nullptr;
  decltype(&nvrtcGetPTXSize) ptx_size = nullptr;
  decltype(&nvrtcGetPTX) ptx = nullptr;
};

void bind(Real& r) {
  const auto get = [&](auto& function, const char* name) {
    function =
        reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(r.library, name));
  };
  get(r.version, "nvrtcVersion");
  get(r.architecture_count, "nvrtcGetNumSupportedArchs");
  get(r.architectures, "nvrtcGetSupportedArchs");
  get(r.create, "nvrtcCreateProgram");
  get(r.destroy, "nvrtcDestroyProgram");
  get(r.compile, "nvrtcCompileProgram");
  get(r.log_size, "nvrtcGetProgramLogSize");
  get(r.log, "nvrtcGetProgramLog");
  get(r.cubin_size, "nvrtcGetCUBINSize");
  get(r.cubin, "nvrtcGetCUBIN");
  get(r.ptx_size, "nvrtcGetPTXSize");
  get(r.ptx, "nvrtcGetPTX");
}

Real open_real() {
  Real r;
  announce("libnvrtc");
  if (!settings().real_nvrtc) return r;
  const std::string soname = format("libnvrtc.so.%d", EMULATED_NVRTC_MAJOR);
  for (const char* folder : {"/lib64/", "/lib/"}) {
    const std::string path = settings().toolkit + folder;
    r.library = dlopen((path + soname).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!r.library) continue;
    bind(r);
    int major = 0, minor = 0;
    r.version(&major, &minor);
    // It opens its builtins by bare name, which works when they are loaded.
    dlopen(format("%slibnvrtc-builtins.so.%d.%d", path.c_str(), major, minor).c_str(), RTLD_LAZY);
    return r;
  }
  if (!settings().quiet) {
    report("there is no real NVRTC in " + settings().toolkit +
           ": texts are compiled for the host alone");
  }
  return r;
}

const Real& real() {
  static const Real all = open_real();
  return all;
}

int version_number() {
  int major = 0, minor = 0;
  if (!real().library) return kVersionWithoutReal;
  real().version(&major, &minor);
  return major * 1000 + minor * 10;
}

// What a compilation gives besides a host library.
struct RealOutput {
  nvrtcResult result = NVRTC_SUCCESS;
  std::string log, cubin, ptx;
};

RealOutput compile_real(const _nvrtcProgram& program, int count, const char* const* options) {
  RealOutput out;
  const Real& r = real();
  if (!r.library) return out;
  std::vector<const char*> texts, names;
  for (const auto& [name, text] : program.headers) {
    names.push_back(name.c_str());
    texts.push_back(text.c_str());
  }
  nvrtcProgram handle = nullptr;
  out.result = r.create(&handle, program.source.c_str(), program.name.c_str(),
                        static_cast<int>(texts.size()), texts.data(), names.data());
  if (out.result != NVRTC_SUCCESS) return out;
  out.result = r.compile(handle, count, options);
  const auto fetch = [&](auto size_of, auto get, std::string& into) {
    std::size_t size = 0;
    if (size_of(handle, &size) != NVRTC_SUCCESS || size == 0) return;
    into.resize(size);
    get(handle, into.data());
  };
  fetch(r.log_size, r.log, out.log);
  if (out.result == NVRTC_SUCCESS) {
    fetch(r.cubin_size, r.cubin, out.cubin);
    fetch(r.ptx_size, r.ptx, out.ptx);
  }
  r.destroy(&handle);
  while (!out.log.empty() && out.log.back() == 0) out.log.pop_back();
  while (!out.ptx.empty() && out.ptx.back() == 0) out.ptx.pop_back();
  return out;
}

struct Target {
  int capability = 75;
  bool cubin = false;
};

// Both "-arch=sm_90" and "-arch", "sm_90"; the capability is what stands behind the underscore.
Target target_of(int count, const char* const* options) {
  Target target;
  for (int i = 0; i < count; ++i) {
    std::string option = options[i];
    const bool named = option.starts_with("--gpu-architecture") || option.starts_with("-arch");
    if (!named) continue;
    if (option.find('=') == std::string::npos && i + 1 < count) option = options[i + 1];
    const std::size_t at = option.find('_');
    if (at == std::string::npos) continue;
    target.capability = std::atoi(option.c_str() + at + 1);
    target.cubin = option.find("sm_") != std::string::npos;
  }
  return target;
}

// The options that matter to a host compiler.
std::vector<std::string> host_options(int count, const char* const* options) {
  std::vector<std::string> kept;
  for (int i = 0; i < count; ++i) {
    std::string option = options[i];
    for (const auto& [from, to] : {std::pair("--define-macro=", "-D"),
                                   {"--include-path=", "-I"},
                                   {"--undefine-macro=", "-U"}}) {
      if (option.starts_with(from)) option = to + option.substr(std::strlen(from));
    }
    const bool keep =
        option.starts_with("-D") || option.starts_with("-I") || option.starts_with("-U");
    if (keep) kept.push_back(option);
  }
  return kept;
}

std::string key_of(const _nvrtcProgram& program, int count, const char* const* options) {
  std::ostringstream text;
  text << kFactsVersion << build_key() << '\0' << version_number()
       << (real().library ? "real" : "host") << '\0' << program.name << '\0' << program.source
       << '\0';
  for (int i = 0; i < count; ++i) text << options[i] << '\0';
  for (const auto& [name, header] : program.headers) text << name << '\0' << header << '\0';
  return hash_of(text.str());
}

// A cached result: three lengths, then log, cubin, PTX.
bool read_cached(const std::string& path, _nvrtcProgram& program) {
  const std::string bytes = read_file(path);
  std::size_t sizes[3], at = 0;
  if (bytes.size() < sizeof sizes) return false;
  std::memcpy(sizes, bytes.data(), sizeof sizes);
  at = sizeof sizes;
  if (sizes[0] + sizes[1] + sizes[2] + at != bytes.size()) return false;
  program.log = bytes.substr(at, sizes[0]);
  program.cubin = bytes.substr(at + sizes[0], sizes[1]);
  program.ptx = bytes.substr(at + sizes[0] + sizes[1]);
  return true;
}

void write_cached(const std::string& path, const _nvrtcProgram& program) {
  const std::size_t sizes[3] = {program.log.size(), program.cubin.size(), program.ptx.size()};
  write_file(path, std::string(reinterpret_cast<const char*>(sizes), sizeof sizes) + program.log +
                       program.cubin + program.ptx);
}

// The host library is the same for all architectures.
HostBuild build_once(const _nvrtcProgram& program, const std::vector<std::string>& options) {
  std::string key = build_key() + '\0' + program.name + '\0' + program.source + '\0';
  for (const std::string& option : options) key += option + '\0';
  for (const auto& [name, header] : program.headers) key += name + '\0' + header + '\0';
  const std::string path = settings().cache_folder + "/host-" + hash_of(key);
  HostBuild build{read_file(path), ""};
  if (!build.library.empty()) return build;
  build = build_for_host(host_text(program.source), program.name, options, program.headers);
  if (!build.library.empty()) write_file(path, build.library);
  return build;
}

nvrtcResult compile(_nvrtcProgram& program, int count, const char* const* options) {
  const std::string path = settings().cache_folder + "/" + key_of(program, count, options);
  if (read_cached(path, program)) return NVRTC_SUCCESS;
  // Side by side: each takes about half of the time.
  std::future<HostBuild> host = std::async(
      std::launch::async, [&] { return build_once(program, host_options(count, options)); });
  const RealOutput out = compile_real(program, count, options);
  const HostBuild build = host.get();
  program.log = out.log;
  if (out.result != NVRTC_SUCCESS) return out.result;
  if (build.library.empty()) {
    report("NVRTC compiles this text, the host compiler does not:\n" + build.log);
    program.log += "\n[cuda emulator] the host compiler fails:\n" + build.log;
    return NVRTC_ERROR_INTERNAL_ERROR;
  }
  const Target target = target_of(count, options);
  Image image{target.capability, false, version_number(), read_cubin(out.cubin), build.library};
  program.cubin = target.cubin ? to_bytes(image) : "";
  image.ptx = true;
  image.kernels.clear();
  program.ptx = out.ptx + "\n" + to_bytes(image);  // the real text stays readable
  write_cached(path, program);
  return NVRTC_SUCCESS;
}

nvrtcResult give(const std::string& bytes, char* into) {
  if (!into) return NVRTC_ERROR_INVALID_INPUT;
  std::memcpy(into, bytes.data(), bytes.size());
  return NVRTC_SUCCESS;
}

}  // namespace

EMULATOR_API nvrtcResult nvrtcVersion(int* major, int* minor) {
  if (!major || !minor) return NVRTC_ERROR_INVALID_INPUT;
  *major = version_number() / 1000;
  *minor = version_number() % 1000 / 10;
  return NVRTC_SUCCESS;
}

EMULATOR_API nvrtcResult nvrtcGetNumSupportedArchs(int* count) {
  if (!count) return NVRTC_ERROR_INVALID_INPUT;
  if (real().library) return real().architecture_count(count);
  *count = static_cast<int>(std::size(kArchitecturesWithoutReal));
  return NVRTC_SUCCESS;
}

EMULATOR_API nvrtcResult nvrtcGetSupportedArchs(int* list) {
  if (!list) return NVRTC_ERROR_INVALID_INPUT;
  if (real().library) return real().architectures(list);
  std::memcpy(list, kArchitecturesWithoutReal, sizeof kArchitecturesWithoutReal);
  return NVRTC_SUCCESS;
}

EMULATOR_API const char* nvrtcGetErrorString(nvrtcResult result) {
  switch (result) {
    case NVRTC_SUCCESS:
      return "NVRTC_SUCCESS";
    case NVRTC_ERROR_OUT_OF_MEMORY:
      return "NVRTC_ERROR_OUT_OF_MEMORY";
    case NVRTC_ERROR_INVALID_INPUT:
      return "NVRTC_ERROR_INVALID_INPUT";
    case NVRTC_ERROR_INVALID_PROGRAM:
      return "NVRTC_ERROR_INVALID_PROGRAM";
    case NVRTC_ERROR_INVALID_OPTION:
      return "NVRTC_ERROR_INVALID_OPTION";
    case NVRTC_ERROR_COMPILATION:
      return "NVRTC_ERROR_COMPILATION";
    case NVRTC_ERROR_INTERNAL_ERROR:
      return "NVRTC_ERROR_INTERNAL_ERROR";
    default:
      return "NVRTC_ERROR unknown";
  }
}

EMULATOR_API nvrtcResult nvrtcCreateProgram(nvrtcProgram* program, const char* source,
                                            const char* name, int count, const char* const* texts,
                                            const char* const* names) {
  if (!program || !source) return NVRTC_ERROR_INVALID_INPUT;
  *program = new _nvrtcProgram;
  (*program)->source = source;
  (*program)->name = name ? name : "default_program";
  for (int i = 0; i < count; ++i) (*program)->headers.emplace_back(names[i], texts[i]);
  return NVRTC_SUCCESS;
}

EMULATOR_API nvrtcResult nvrtcDestroyProgram(nvrtcProgram* program) {
  if (!program || !*program) return NVRTC_ERROR_INVALID_PROGRAM;
  delete *program;
  *program = nullptr;
  return NVRTC_SUCCESS;
}

EMULATOR_API nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int count,
                                             const char* const* options) {
  if (!program) return NVRTC_ERROR_INVALID_PROGRAM;
  if (const int code = injected_failure("compile")) return static_cast<nvrtcResult>(code);
  return compile(*program, count, options);
}

EMULATOR_API nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, std::size_t* size) {
  if (!program || !size) return NVRTC_ERROR_INVALID_PROGRAM;
  *size = program->log.size() + 1;
  return NVRTC_SUCCESS;
}

EMULATOR_API nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char* log) {
  if (!program || !log) return NVRTC_ERROR_INVALID_PROGRAM;
  std::memcpy(log, program->log.c_str(), program->log.size() + 1);
  return NVRTC_SUCCESS;
}

EMULATOR_API nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, std::size_t* size) {
  if (!program || !size) return NVRTC_ERROR_INVALID_PROGRAM;
  *size = program->cubin.size();
  return NVRTC_SUCCESS;
}

EMULATOR_API nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char* bytes) {
  return program ? give(program->cubin, bytes) : NVRTC_ERROR_INVALID_PROGRAM;
}

EMULATOR_API nvrtcResult nvrtcGetPTXSize(nvrtcProgram program, std::size_t* size) {
  if (!program || !size) return NVRTC_ERROR_INVALID_PROGRAM;
  *size = program->ptx.size();
  return NVRTC_SUCCESS;
}

EMULATOR_API nvrtcResult nvrtcGetPTX(nvrtcProgram program, char* bytes) {
  return program ? give(program->ptx, bytes) : NVRTC_ERROR_INVALID_PROGRAM;
}
