// Compiled modules by the text they come from: in memory, and on disk between runs.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "croton/config.h"
#include "runtime/device.h"
#include "runtime/fork.h"
#include "runtime/kernel_store.h"

namespace croton {

/// What compilers did for somebody.
struct CompilerUse {
  std::atomic<std::int64_t> modules{0};
  std::atomic<std::int64_t> nanoseconds{0};  ///< over all modules, which may be made side by side
};

/// The flags are `cache`, `cache_dir` and `cache_max_bytes`.
class KernelCache final : private ForkAware {
 public:
  explicit KernelCache(const Config& config);
  ~KernelCache();

  /// The module of `text`, which holds `kernels`: the same object as long as anybody keeps it, else
  /// from disk, else compiled, which is added to `use`. `code_key` is Config::code_key. Throws what
  /// the device throws.
  std::shared_ptr<Module> module(Device& device, const std::string& text,
                                 const std::vector<std::string>& kernels,
                                 const std::string& code_key, CompilerUse* use = nullptr);

  struct Statistics {
    std::int64_t from_memory = 0;
    std::int64_t from_disk = 0;
    std::int64_t compiled = 0;
  };
  Statistics statistics() const;

  /// nullptr with cache=off.
  KernelStore* store() { return store_.get(); }

 private:
  struct Entry;

  void before_fork() noexcept override;
  void after_fork(bool child) noexcept override;
  std::shared_ptr<Module> make(Device& device, const std::string& text,
                               const std::vector<std::string>& kernels, std::string_view key,
                               CompilerUse* use);
  std::shared_ptr<Entry> entry(const std::string& name);

  std::unique_ptr<KernelStore> store_;
  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<Entry>> entries_;
  std::atomic<std::int64_t> from_memory_{0}, from_disk_{0}, compiled_{0};
};

}  // namespace croton
