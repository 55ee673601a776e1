#include "runtime/null/null_device.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "runtime/cpu/cpu_device.h"

namespace croton {
namespace {

class NullModule final : public Module {
 public:
  explicit NullModule(const std::vector<std::string>& kernels) : kernels_(kernels) {}
  KernelHandle kernel(const std::string& name) const override {
    const auto found = std::find(kernels_.begin(), kernels_.end(), name);
    return found == kernels_.end() ? nullptr : &*found;
  }

 private:
  const std::vector<std::string> kernels_;
};

class NullQueue final : public Queue {
 public:
  void launch(const Launch&) override {}
  void call(const PreparedCall&, void* const*, void*) override {}
  void copy(void*, const void*, std::size_t) override {}
  void copy_to_host(void* target, const void* source, std::size_t bytes) override {
    std::memcpy(target, source, bytes);
  }
  void upload(void* target, const void* source, std::size_t bytes, std::uint64_t) override {
    std::memcpy(target, source, bytes);
  }
  void zero(void* target, std::size_t bytes) override { std::memset(target, 0, bytes); }
};

class NullCall final : public PreparedCall {
 public:
  void run(void* const*, void*, int, void*) const override {}
};

std::string anything(const Attrs&, std::span<const OperandType>) { return {}; }
std::unique_ptr<PreparedCall> prepare_nothing(Device&, const Attrs&, std::span<const OperandType>) {
  return std::make_unique<NullCall>();
}
constexpr LibraryFunction kAnything{"", anything, prepare_nothing};

class NullDevice final : public Device {
 public:
  explicit NullDevice(const TargetInfo& target) : target_(target) {}

  std::string name() const override { return "null"; }
  std::string description() const override { return "takes all work and does none"; }
  const TargetInfo& target() const override { return target_; }
  bool host_memory() const override { return true; }
  bool immediate() const override { return true; }
  bool pretends() const override { return true; }

  void* allocate(std::size_t bytes) override {
    return std::aligned_alloc(64, (bytes + 63) & ~63ull);
  }
  void release(void* memory, std::size_t) noexcept override { std::free(memory); }
  std::unique_ptr<Queue> new_queue() override { return std::make_unique<NullQueue>(); }

  std::string compiler_identity() const override { return "null\n" + target_text(target_); }
  std::string compile(const std::string& text) override { return text; }
  std::shared_ptr<Module> load(std::string_view, const std::vector<std::string>& kernels) override {
    return std::make_shared<NullModule>(kernels);
  }
  const LibraryFunction* library(std::string_view) const override { return &kAnything; }

 private:
  const TargetInfo target_;
};

}  // namespace

std::shared_ptr<Device> make_null_device(const TargetInfo& target) {
  return std::make_shared<NullDevice>(target);
}

}  // namespace croton
