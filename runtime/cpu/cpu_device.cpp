#include "runtime/cpu/cpu_device.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "croton/error.h"
#include "runtime/cpu/jit.h"
#include "runtime/parallel.h"

namespace croton {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

class LoadedModule final : public Module {
 public:
  LoadedModule(std::shared_ptr<CpuModule> module, const std::vector<std::string>& kernels)
      : module_(std::move(module)) {
    for (const std::string& name : kernels) {
      kernels_.emplace_back(name, reinterpret_cast<KernelHandle>(module_->kernel(name)));
    }
  }
  KernelHandle kernel(const std::string& name) const override {
    for (const auto& [known, handle] : kernels_) {
      if (known == name) return handle;
    }
    return nullptr;
  }

 private:
  std::shared_ptr<CpuModule> module_;
  std::vector<std::pair<std::string, KernelHandle>> kernels_;
};

/// How many runs of steps go on at once share the threads.
struct Threads {
  const int all;
  std::atomic<int> running{0};

  int share() const {
    return std::max(all / std::max(running.load(std::memory_order_relaxed), 1), 1);
  }
};

class CpuQueue final : public Queue {
 public:
  explicit CpuQueue(Threads& threads) : threads_(threads) {}

  void begin(const char*) override { threads_.running.fetch_add(1, std::memory_order_relaxed); }
  void end() noexcept override { threads_.running.fetch_sub(1, std::memory_order_relaxed); }

  void launch(const Launch& l) override {
    const auto kernel = reinterpret_cast<CpuKernel>(const_cast<void*>(l.kernel));
    if (!l.parallel) {
      kernel(l.buffers, l.sizes, 0, l.blocks, l.error);
      return;
    }
    parallel_for(l.blocks, threads_.share(), [&](std::int64_t first, std::int64_t last) {
      kernel(l.buffers, l.sizes, first, last, l.error);
    });
  }

  void call(const PreparedCall& call, void* const* operands, void* workspace) override {
    call.run(operands, workspace, call.one_thread ? 1 : threads_.share(), nullptr);
  }
  void copy(void* target, const void* source, std::size_t bytes) override {
    std::memcpy(target, source, bytes);
  }
  void copy_to_host(void* target, const void* source, std::size_t bytes) override {
    std::memcpy(target, source, bytes);
  }
  void upload(void* target, const void* source, std::size_t bytes, std::uint64_t) override {
    std::memcpy(target, source, bytes);
  }
  void zero(void* target, std::size_t bytes) override { std::memset(target, 0, bytes); }

 private:
  Threads& threads_;
};

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(int threads)
      : target_(host_target()), threads_{threads > 0 ? threads : available_cores()} {}

  std::string name() const override { return "cpu0"; }
  std::string description() const override {
    struct sysinfo memory {};
    sysinfo(&memory);
    const double gib = static_cast<double>(memory.totalram) * memory.mem_unit / (1 << 30);
    return fmt::format("{}, {} cores, {} threads used, {}-bit vectors, {:.1f} GiB", target_.cpu,
                       available_cores(), threads_.all, target_.vector_bits, gib);
  }
  const TargetInfo& target() const override { return target_; }
  bool host_memory() const override { return true; }
  bool immediate() const override { return true; }

  void* allocate(std::size_t bytes) override {
    const std::size_t alignment = bytes >= kHugePage ? kHugePage : 64;
    const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
    void* p = std::aligned_alloc(alignment, rounded);
    if (p != nullptr && bytes >= kHugePage) madvise(p, rounded, MADV_HUGEPAGE);
    return p;
  }
  void release(void* memory, std::size_t) noexcept override { std::free(memory); }
  std::int64_t free_bytes() const override {
    struct sysinfo memory {};
    if (sysinfo(&memory) != 0) return -1;
    return static_cast<std::int64_t>(memory.freeram) * memory.mem_unit;
  }

  std::unique_ptr<Queue> new_queue() override { return std::make_unique<CpuQueue>(threads_); }

  std::string compiler_identity() const override {
    return fmt::format("cpu, LLVM {}\n{}", cpu_compiler_version(), target_text(target_));
  }
  std::string compile(const std::string& text) override {
    return compile_cpu_object(text, target_);
  }
  std::shared_ptr<Module> load(std::string_view object,
                               const std::vector<std::string>& kernels) override {
    return std::make_shared<LoadedModule>(load_cpu_object(object), kernels);
  }
  const LibraryFunction* library(std::string_view function) const override {
    return find_function(cpu_library(), function);
  }

 private:
  const TargetInfo target_;
  Threads threads_;
};

}  // namespace

std::shared_ptr<Device> make_cpu_device(int threads) {
  return std::make_shared<CpuDevice>(threads);
}

std::string target_text(const TargetInfo& t) {
  // Numbers of cores and sizes of caches shape the text of kernels, not what is made of it.
  return fmt::format("cpu={} vector_bits={} features={} sm={}", t.cpu, t.vector_bits, t.features,
                     t.sm);
}

}  // namespace croton
