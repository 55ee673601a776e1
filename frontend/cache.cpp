#include "croton/cache.h"

#include "frontend/default_runtime.h"
#include "runtime/kernel_store.h"

namespace croton {
namespace {

KernelStore store() { return KernelStore(process_config().cache_dir(), 0); }

}  // namespace

std::string cache_folder() { return process_config().cache_dir(); }

std::vector<CachedKernel> list_cache() {
  std::vector<CachedKernel> result;
  for (const StoredKernel& entry : store().list()) {
    result.push_back({entry.file, entry.bytes, entry.last_used, entry.title});
  }
  return result;
}

int prune_cache(std::int64_t bytes) { return store().prune(bytes); }
int clear_cache() { return store().clear(); }

}  // namespace croton
