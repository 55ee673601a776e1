#include <cblas.h>
#include <fmt/format.h>
#include <oneapi/dnnl/dnnl.h>

#include "croton/error.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/cpu/jit.h"
#include "runtime/cuda/cuda_device.h"
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

DeviceBackend cuda_backend() {
  DeviceBackend backend{DeviceKind::cuda, make_cuda_device, list_cuda_devices, cuda_library_report};
  backend.index_at = cuda_device_at;
  return backend;
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
