// Shared memory of a block: the arrays of a kernel and the scratch of its folds.
#pragma once

#include <cstdint>

#include "compiler/codegen/cuda_lanes.h"
#include "compiler/kernel/kernel.h"

namespace croton::codegen {

/// What a kernel may declare; more has to be asked for at the launch.
inline constexpr std::int64_t kDeclaredSharedBytes = 48 * 1024;

/// Arrays in dynamic shared memory begin at multiples of this.
inline constexpr std::int64_t kSharedAlignment = 16;

/// Whether the array of a `local` node lies in dynamic shared memory.
class SharedArrays {
 public:
  SharedArrays(const kernel::Kernel& kernel, const LaneLayouts& layouts);
  bool dynamic(const kernel::Node& local) const;
  bool any_dynamic() const;

 private:
  const kernel::Kernel& kernel_;
  const LaneLayouts& layouts_;
  bool all_ = false;
};

}  // namespace croton::codegen
