// Libraries of CUDA that are looked for and reported, and called by what is built on them.
#pragma once

#include <string>
#include <utility>

#include "runtime/cuda/library.h"

namespace croton::cuda {

/// NCCL: collectives between GPUs.
struct NcclUniqueId {
  char internal[128];
};
struct NcclSymbols {
  int (*version)(int*);
  const char* (*error_string)(int result);
  int (*unique_id)(NcclUniqueId*);
  int (*comm_init_rank)(void** comm, int ranks, NcclUniqueId, int rank);
  int (*comm_destroy)(void* comm);
};

/// NVTX: names for ranges of time in profilers.
struct NvtxSymbols {
  int (*push)(const char* name);
  int (*pop)();
};

/// A library with its table; null functions where it is not usable.
template <class Symbols>
class Opened {
 public:
  Opened(Library library, Symbols symbols) : library_(std::move(library)), symbols_(symbols) {}
  bool usable() const { return library_.report().usable; }
  const LibraryReport& report() const { return library_.report(); }
  const Symbols* operator->() const { return &symbols_; }
  void set_version(std::string version) { library_.report().version = std::move(version); }

 private:
  Library library_;
  Symbols symbols_;
};

/// Those of the process, opened by the first call.
const Opened<NcclSymbols>& nccl();
const Opened<NvtxSymbols>& nvtx();

}  // namespace croton::cuda
