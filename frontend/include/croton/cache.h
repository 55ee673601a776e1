#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "croton/export.h"

// The folder of compiled kernels, by the flags cache_dir and cache_max_bytes; `croton cache` calls
// these. Other programs may use the folder at the same time: they compile again what is gone.
namespace croton {

struct CachedKernel {
  std::string file;  ///< inside the folder
  std::int64_t bytes = 0;
  std::int64_t last_used = 0;  ///< seconds since the epoch
  std::string made_for;        ///< device and compiler; empty when the entry is damaged
};

CROTON_API std::string cache_folder();
/// The entries, latest used first; none when there is no folder.
CROTON_API std::vector<CachedKernel> list_cache();
/// Deletes the least recently used entries until at most `bytes` are left; gives how many.
CROTON_API int prune_cache(std::int64_t bytes);
/// Deletes all entries; gives how many.
CROTON_API int clear_cache();

}  // namespace croton
