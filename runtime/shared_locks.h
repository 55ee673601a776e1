#pragma once

#include <span>
#include <vector>

#include "runtime/plan.h"
#include "runtime/shared_state.h"

namespace croton {

/// A shared variable of a call and how it is locked.
struct Locked {
  SharedState* state;
  bool exclusive;  ///< the call updates it
};

/// Those of the plans of one call, in order of ids.
std::vector<Locked> locked_by(std::span<const Plan* const> plans);

/// The locks of a call, in order of ids.
class SharedLocks {
 public:
  explicit SharedLocks(std::span<const Locked> shareds);
  ~SharedLocks() { release(); }
  SharedLocks(const SharedLocks&) = delete;
  SharedLocks& operator=(const SharedLocks&) = delete;
  void release() noexcept;

 private:
  std::span<const Locked> shareds_;
};

}  // namespace croton
