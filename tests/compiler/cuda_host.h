// Emitted CUDA C++, run on the host by the emulator: see tests/cuda_emulator.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/compiler/cuda_kernels.h"
#include "tests/temporary_folder.h"

namespace croton::test {

/// What a launch left behind.
struct Outcome {
  std::vector<Bytes> buffers;
  std::vector<std::int64_t> error;  // three words
};

/// Whether the emulator was built and there is a host compiler for it.
bool can_run_kernels();

/// Emits all kernels as one program and runs every launch under the emulator, with its checks; the
/// threads of a block in ascending or descending order. Outcomes in the order of cases and
/// launches. A fault of the build or the run throws, with its output. `wide`: in the form that has
/// indices of 64 bits, as a grid of two dimensions.
class HostProgram {
 public:
  explicit HostProgram(const std::vector<KernelCase>& cases, bool wide = false);

  std::vector<Outcome> run(bool descending) const;

 private:
  const std::vector<KernelCase>& cases_;
  const bool wide_;
  TemporaryFolder folder_;
};

}  // namespace croton::test
