// Kernels built by hand, compiled for this machine and run on arrays of plain bytes.
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "compiler/codegen/llvm.h"
#include "compiler/kernel/kernel.h"
#include "runtime/cpu/jit.h"

namespace croton::test {

/// One or more kernels in one module.
class JitModule {
 public:
  explicit JitModule(const std::vector<kernel::Kernel>& kernels,
                     const TargetInfo& target = host_target()) {
    std::vector<const kernel::Kernel*> pointers;
    for (const kernel::Kernel& k : kernels) pointers.push_back(&k);
    text_ = codegen::emit_llvm(pointers, target);
    module_ = load_cpu_object(compile_cpu_object(text_, target));
    for (const kernel::Kernel& k : kernels) entries_.push_back(module_->kernel(k.name));
  }

  const std::string& text() const { return text_; }

  /// Runs kernel `which` over `blocks` blocks; gives the error words.
  std::vector<std::int64_t> run(std::size_t which, std::vector<void*> buffers,
                                std::vector<std::int64_t> sizes, std::int64_t blocks = 1) const {
    std::vector<std::int64_t> error(3);
    entries_.at(which)(buffers.data(), sizes.data(), 0, blocks, error.data());
    return error;
  }

 private:
  std::string text_;
  std::shared_ptr<CpuModule> module_;
  std::vector<CpuKernel> entries_;
};

/// This machine, and the narrower ones that it can play.
inline std::vector<TargetInfo> targets() {
  TargetInfo target = host_target();
  std::vector<TargetInfo> all = {target};
#if defined(__x86_64__)
  if (target.vector_bits > 256) {
    target.vector_bits = 256;
    target.cpu = "x86-64-v3";
    all.push_back(target);
  }
  target.vector_bits = 128;
  target.cpu = "x86-64";
  all.push_back(target);
#endif
  return all;
}

/// Elements as their bits, zero-extended, in an array of elements of `size` bytes.
inline std::vector<std::uint8_t> pack(const std::vector<std::uint64_t>& values, std::size_t size) {
  std::vector<std::uint8_t> bytes(values.size() * size + 1);
  for (std::size_t i = 0; i < values.size(); ++i) std::memcpy(&bytes[i * size], &values[i], size);
  return bytes;
}

inline std::uint64_t element(const std::vector<std::uint8_t>& bytes, std::size_t size,
                             std::size_t i) {
  std::uint64_t value = 0;
  std::memcpy(&value, &bytes[i * size], size);
  return value;
}

}  // namespace croton::test
