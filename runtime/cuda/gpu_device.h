#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/cuda/gpu.h"
#include "runtime/cuda/nvrtc.h"
#include "runtime/device.h"

namespace croton::cuda {

/// A GPU as the executor sees it.
class GpuDevice final : public Device {
 public:
  GpuDevice(std::shared_ptr<Gpu> gpu, const Nvrtc& compiler);

  std::string name() const override { return gpu_->name(); }
  std::string description() const override;
  const TargetInfo& target() const override { return gpu_->target(); }
  bool host_memory() const override { return false; }
  bool immediate() const override { return false; }
  std::string failure() const override { return gpu_->failure(); }

  void* allocate(std::size_t bytes) override { return gpu_->allocate(bytes); }
  void release(void* memory, std::size_t bytes) noexcept override { gpu_->release(memory, bytes); }
  void trim() noexcept override { gpu_->trim(); }
  std::int64_t free_bytes() const override { return gpu_->free_bytes(); }
  std::unique_ptr<Queue> new_queue() override;

  std::string compiler_identity() const override;
  std::string compile(const std::string& text) override;
  std::shared_ptr<Module> load(std::string_view object,
                               const std::vector<std::string>& kernels) override;
  const LibraryFunction* library(std::string_view function) const override;

  /// Kernels that library functions bring along, of the same cache as all others.
  std::shared_ptr<Module> own_kernels(const std::string& text,
                                      const std::vector<std::string>& kernels);

  Gpu& gpu() const { return *gpu_; }
  const std::shared_ptr<Gpu>& shared_gpu() const { return gpu_; }

 private:
  std::string load_error(Result result) const;

  const std::shared_ptr<Gpu> gpu_;
  const Nvrtc& compiler_;
  const NvrtcTarget compile_for_;
};

}  // namespace croton::cuda
