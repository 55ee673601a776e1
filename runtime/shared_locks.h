#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/shared_state.h"

namespace croton {

struct BoundPlan;

/// A shared variable of a call and how it is locked.
struct Locked {
  SharedState* state;
  bool exclusive;  ///< the call updates it
};

/// A place from which a call reads the value of a shared variable.
struct SharedRead {
  Context* context;
  Array* value;
  std::int32_t locked;  ///< number of the variable in SharedNeeds::locked
};

/// What a call wants of shared variables.
struct SharedNeeds {
  std::vector<Locked> locked;  ///< in order of ids
  std::vector<SharedRead> reads;
};

SharedNeeds needs_of(const BoundPlan& bound);
/// Of plans that are run in one call.
SharedNeeds merged(std::span<const SharedNeeds* const> parts);

/// The locks of a call, taken in order of ids. Once they are held, the values are in all places
/// where the call reads them: those that had to be brought there are counted in `refreshed`.
/// OutOfMemory, DeviceError: no lock is held and no value has changed. A value that is lost is in
/// none of its places; the call finds that out.
class SharedLocks {
 public:
  SharedLocks(const SharedNeeds& needs, std::atomic<std::int64_t>& refreshed);
  /// For who only wants the locks, of variables in order of ids.
  explicit SharedLocks(std::span<const Locked> shareds);
  ~SharedLocks() { release(); }
  SharedLocks(const SharedLocks&) = delete;
  SharedLocks& operator=(const SharedLocks&) = delete;
  void release() noexcept;

 private:
  void refresh(const SharedNeeds& needs, std::atomic<std::int64_t>& refreshed);

  std::span<const Locked> held_;
  std::vector<Locked> stricter_;  ///< what is held while values are brought to their places
};

}  // namespace croton
