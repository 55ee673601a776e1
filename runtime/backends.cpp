#include <cblas.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <oneapi/dnnl/dnnl.h>

#include "croton/error.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/cpu/jit.h"
#include "runtime/cuda/nvrtc.h"
#include "runtime/null/null_device.h"
#include "runtime/runtime.h"

namespace croton {
namespace {

std::shared_ptr<Device> only_the_first(int index, const char* kind,
                                       std::shared_ptr<Device> (*make)(const Config&),
                                       const Config& config) {
  if (index != 0) throw DeviceError(fmt::format("there is no {}{}: only {}0", kind, index, kind));
  return make(config);
}

DeviceBackend cpu_backend() {
  return {DeviceKind::cpu,
          [](int index, const Config& config) {
            return only_the_first(
                index, "cpu",
                [](const Config& c) { return make_cpu_device(static_cast<int>(c.threads())); },
                config);
          },
          [] { return std::vector<std::string>{"cpu0"}; }, cpu_library_report};
}

DeviceBackend null_backend() {
  return {DeviceKind::null,
          [](int index, const Config& config) {
            return only_the_first(
                index, "null",
                [](const Config&) {
                  TargetInfo target = host_target();
                  target.backend = Backend::null;
                  return make_null_device(target);
                },
                config);
          },
          [] { return std::vector<std::string>{"null"}; }, [] { return std::string(); }};
}

/// Why no CUDA device can be used on this machine.
std::string no_cuda_reason() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) {
    const char* reason = dlerror();
    return fmt::format("no CUDA driver was found: tried {}", reason ? reason : "libcuda.so.1");
  }
  int version = 0;
  if (auto* ask = reinterpret_cast<int (*)(int*)>(dlsym(driver, "cuDriverGetVersion")))
    ask(&version);
  dlclose(driver);
  return fmt::format(
      "libcuda.so.1 was found (for CUDA {}.{}), but this version of Croton compiles kernels for "
      "GPUs "
      "and does not yet run them",
      version / 1000, version % 1000 / 10);
}

DeviceBackend cuda_backend() {
  return {
      DeviceKind::cuda,
      [](int, const Config&) -> std::shared_ptr<Device> { throw DeviceError(no_cuda_reason()); },
      [] { return std::vector<std::string>(); },
      [] {
        return fmt::format("  {}\n  CUDA driver: {}\n", cuda::Nvrtc().report().text(),
                           no_cuda_reason());
      }};
}

}  // namespace

std::string cpu_library_report() {
  std::string text;
  try {
    text += fmt::format("  LLVM: {}\n", cpu_compiler_version());
  } catch (const Error& e) {
    text += fmt::format("  LLVM: cannot be used: {}\n", e.what());
  }
  const dnnl_version_t* v = dnnl_version();
  text += fmt::format("  oneDNN: {}.{}.{}\n", v->major, v->minor, v->patch);
  text += fmt::format("  OpenBLAS: {}\n", openblas_get_config());
  return text;
}

std::vector<DeviceBackend> default_backends() {
  return {cpu_backend(), cuda_backend(), null_backend()};
}

}  // namespace croton
