#include "runtime/kernel_cache.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include <chrono>

#include "croton/error.h"

namespace croton {

struct KernelCache::Entry {
  std::mutex mutex;  ///< held while the module is made, so that it is made once
  std::weak_ptr<Module> module;
};

KernelCache::KernelCache(const Config& config) : ForkAware(ForkLevel::kernel_cache) {
  if (config.cache()) {
    store_ = std::make_unique<KernelStore>(config.cache_dir(), config.cache_max_bytes());
  }
}

KernelCache::~KernelCache() = default;

void KernelCache::before_fork() noexcept {
  mutex_.lock();
  if (store_) store_->lock();
}

void KernelCache::after_fork(bool child) noexcept {
  if (store_) store_->unlock();
  // What another thread was making will never be done here.
  if (child) entries_.clear();
  mutex_.unlock();
}

std::shared_ptr<KernelCache::Entry> KernelCache::entry(const std::string& name) {
  const std::lock_guard hold(mutex_);
  auto& found = entries_[name];
  if (!found) found = std::make_shared<Entry>();
  const std::shared_ptr<Entry> result = found;
  if (entries_.size() % 256 == 0) {
    // Entries of modules that nobody uses any more; those in the making have another holder.
    std::erase_if(entries_, [](const auto& e) {
      return e.second.use_count() == 1 && e.second->module.expired();
    });
  }
  return result;
}

std::shared_ptr<Module> KernelCache::module(Device& device, const std::string& text,
                                            const std::vector<std::string>& kernels,
                                            const std::string& code_key, CompilerUse* use) {
  const std::string key = fmt::format("{}\n{}\n{}\n{}", device.compiler_identity(), code_key,
                                      fmt::join(kernels, " "), text);
  const XXH128_hash_t h = XXH3_128bits(key.data(), key.size());
  const std::shared_ptr<Entry> place =
      entry(fmt::format("{} {:016x}{:016x}", device.name(), h.high64, h.low64));
  const std::lock_guard hold(place->mutex);
  if (std::shared_ptr<Module> module = place->module.lock()) {
    ++from_memory_;
    return module;
  }
  std::shared_ptr<Module> module = make(device, text, kernels, key, use);
  place->module = module;
  return module;
}

std::shared_ptr<Module> KernelCache::make(Device& device, const std::string& text,
                                          const std::vector<std::string>& kernels,
                                          std::string_view key, CompilerUse* use) {
  if (store_) {
    if (const auto object = store_->load(key)) {
      try {
        std::shared_ptr<Module> module = device.load(*object, kernels);
        ++from_disk_;
        return module;
      } catch (const DeviceError&) {
        // Whole, but not for this machine after all: the same as no entry.
      }
    }
  }
  const auto start = std::chrono::steady_clock::now();
  const std::string object = device.compile(text);
  ++compiled_;
  if (use != nullptr) {
    ++use->modules;
    use->nanoseconds += std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count();
  }
  std::shared_ptr<Module> module = device.load(object, kernels);
  if (store_) store_->store(key, object);
  return module;
}

KernelCache::Statistics KernelCache::statistics() const {
  return {from_memory_.load(), from_disk_.load(), compiled_.load()};
}

}  // namespace croton
