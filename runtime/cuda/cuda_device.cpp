#include "runtime/cuda/cuda_device.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>

#include "croton/error.h"
#include "runtime/cuda/cublaslt.h"
#include "runtime/cuda/gemm.h"
#include "runtime/cuda/gpu.h"
#include "runtime/cuda/gpu_device.h"
#include "runtime/cuda/more_libraries.h"
#include "runtime/cuda/nvrtc.h"
#include "runtime/cuda/queue.h"
#include "runtime/kernel_cache.h"
#include "runtime/log.h"

namespace croton {
namespace cuda {
namespace {

class GpuModule final : public Module {
 public:
  GpuModule(std::shared_ptr<Gpu> gpu, ModuleHandle module)
      : gpu_(std::move(gpu)), module_(module) {}
  ~GpuModule() override {
    if (!gpu_->alive() || gpu_->api().push_context(gpu_->context()) != kSuccess) return;
    gpu_->api().module_unload(module_);
    ContextHandle popped = nullptr;
    gpu_->api().pop_context(&popped);
  }

  void add(const std::string& name) {
    GpuKernel kernel{nullptr, name};
    if (gpu_->api().module_function(&kernel.function, module_, name.c_str()) != kSuccess) return;
    allow_shared_memory(kernel);
    kernels_.push_back(std::make_unique<GpuKernel>(std::move(kernel)));
  }

  KernelHandle kernel(const std::string& name) const override {
    for (const auto& kernel : kernels_) {
      if (kernel->name == name) return kernel.get();
    }
    return nullptr;
  }

 private:
  /// Launches may ask for all the dynamic shared memory that a block can have.
  void allow_shared_memory(const GpuKernel& kernel) {
    const std::int64_t most = gpu_->shared_bytes_opt_in();
    int own = 0;
    gpu_->api().function_attribute(&own, static_cast<int>(FunctionAttribute::shared_bytes),
                                   kernel.function);
    if (most <= gpu_->target().shared_bytes) return;
    gpu_->api().set_function_attribute(
        kernel.function, static_cast<int>(FunctionAttribute::max_dynamic_shared_bytes),
        static_cast<int>(most) - own);
  }

  const std::shared_ptr<Gpu> gpu_;
  const ModuleHandle module_;
  std::vector<std::unique_ptr<GpuKernel>> kernels_;
};

}  // namespace

GpuDevice::GpuDevice(std::shared_ptr<Gpu> gpu, const Nvrtc& compiler)
    : gpu_(std::move(gpu)),
      compiler_(compiler),
      compile_for_(compiler.target_for(gpu_->target().sm)) {
  failed_ = &gpu_->dead_flag();
}

std::string GpuDevice::description() const {
  const double gib = static_cast<double>(gpu_->total_bytes()) / (1 << 30);
  return fmt::format("{}, compute capability {}.{}, {} multiprocessors, {:.1f} GiB, PCI {}",
                     gpu_->model(), gpu_->target().sm / 10, gpu_->target().sm % 10,
                     gpu_->target().multiprocessors, gib, gpu_->pci_id());
}

std::unique_ptr<Queue> GpuDevice::new_queue() { return std::make_unique<GpuQueue>(gpu_); }

std::string GpuDevice::compiler_identity() const {
  return fmt::format("cuda, NVRTC {}, {}\n{} {}", compiler_.version(), compile_for_.text(),
                     fmt::join(compiler_.quick_options(), " "), fmt::join(nvrtc_options(), " "));
}

std::string GpuDevice::compile(const std::string& text) {
  const auto start = std::chrono::steady_clock::now();
  NvrtcModule module = compiler_.compile(text, "croton.cu", compile_for_, nvrtc_options());
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  log_info(fmt::format("{}: NVRTC took {:.1f} ms for {} bytes of CUDA C++ to {} bytes for {}",
                       name(), took.count(), text.size(), module.image.size(),
                       compile_for_.text()));
  return std::move(module.image);
}

std::string GpuDevice::load_error(Result result) const {
  const Driver& driver = gpu_->driver();
  const std::string error = driver.error_text(result);
  const bool too_new = result == kInvalidImage || result == kNoBinaryForGpu ||
                       result == kUnsupportedPtxVersion || result == kInvalidPtx;
  if (!too_new) return fmt::format("[{}] loading kernels failed: {}", name(), error);
  return fmt::format(
      "[{}] the driver (for CUDA {}.{}) does not take kernels of NVRTC {} for {}: {}; update the "
      "driver, or use an older CUDA toolkit",
      name(), driver.version() / 1000, driver.version() % 1000 / 10, compiler_.version(),
      compile_for_.text(), error);
}

std::shared_ptr<Module> GpuDevice::load(std::string_view object,
                                        const std::vector<std::string>& kernels) {
  gpu_->require_alive();
  const Current current(*gpu_);
  const std::string image(object);  // with a zero behind it, which PTX needs
  ModuleHandle handle = nullptr;
  const Result result = gpu_->api().module_load(&handle, image.data(), 0, nullptr, nullptr);
  if (result != kSuccess) {
    if (is_sticky(result) || result == kOutOfMemory) gpu_->check(result, "loading kernels");
    throw DeviceError(load_error(result));
  }
  auto module = std::make_shared<GpuModule>(gpu_, handle);
  for (const std::string& kernel : kernels) module->add(kernel);
  return module;
}

std::shared_ptr<Module> GpuDevice::own_kernels(const std::string& text,
                                               const std::vector<std::string>& kernels) {
  internal_check(kernel_cache_ != nullptr, "a device in use has a cache of kernels");
  return kernel_cache_->module(*this, text, kernels, {});
}

const LibraryFunction* GpuDevice::library(std::string_view function) const {
  return find_function(gpu_library(), function);
}

}  // namespace cuda

std::shared_ptr<Device> make_cuda_device(int index, const Config& config) {
  const cuda::Driver& driver = cuda::driver();
  driver.require_usable();
  cuda::nvrtc().require_usable();
  auto gpu = std::make_shared<cuda::Gpu>(driver, index, config.gpu_memory_limit_bytes());
  return std::make_shared<cuda::GpuDevice>(std::move(gpu), cuda::nvrtc());
}

std::vector<std::string> list_cuda_devices() {
  std::vector<std::string> names;
  for (int i = 0; i < cuda::driver().device_count(); ++i) names.push_back(fmt::format("cuda{}", i));
  return names;
}

int cuda_device_at(const std::string& pci_id) {
  const cuda::Driver& driver = cuda::driver();
  driver.require_usable();
  cuda::DeviceNumber wanted = 0;
  if (driver->device_by_pci_id(&wanted, pci_id.c_str()) == cuda::kSuccess) {
    for (int i = 0; i < driver.device_count(); ++i) {
      cuda::DeviceNumber device = 0;
      if (driver->device_get(&device, i) == cuda::kSuccess && device == wanted) return i;
    }
  }
  std::string known;
  for (int i = 0; i < driver.device_count(); ++i) {
    cuda::DeviceNumber device = 0;
    char text[64] = {};
    if (driver->device_get(&device, i) != cuda::kSuccess) continue;
    driver->device_pci_id(text, sizeof text, device);
    known += fmt::format("{}cuda{} at {}", known.empty() ? "" : ", ", i, text);
  }
  throw DeviceError(fmt::format("there is no GPU at PCI address {}: there are {}", pci_id, known));
}

std::string cuda_library_report() {
  std::string text;
  for (const cuda::LibraryReport& report :
       {cuda::driver().report(), cuda::nvrtc().report(), cuda::cublaslt().report(),
        cuda::nccl().report(), cuda::nvtx().report()}) {
    for (const char c : "  " + report.text() + "\n") {
      text += c;
      if (c == '\n') text += "  ";
    }
    text.resize(text.size() - 2);
  }
  return text;
}

}  // namespace croton
