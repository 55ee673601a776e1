#include "runtime/shared_locks.h"

#include <algorithm>

namespace croton {

std::vector<Locked> locked_by(std::span<const Plan* const> plans) {
  std::vector<Locked> all;
  for (const Plan* plan : plans) {
    const std::size_t first = all.size();
    for (const auto& state : plan->shareds) all.push_back({state.get(), false});
    for (const PlanUpdate& u : plan->updates) {
      all[first + static_cast<std::size_t>(u.shared)].exclusive = true;
    }
  }
  std::sort(all.begin(), all.end(),
            [](const Locked& a, const Locked& b) { return a.state->id < b.state->id; });
  std::vector<Locked> once;
  for (const Locked& s : all) {
    if (once.empty() || once.back().state != s.state) once.push_back(s);
    once.back().exclusive = once.back().exclusive || s.exclusive;
  }
  return once;
}

SharedLocks::SharedLocks(std::span<const Locked> shareds) : shareds_(shareds) {
  for (const Locked& s : shareds_) {
    if (s.exclusive) {
      s.state->lock.lock();
    } else {
      s.state->lock.lock_shared();
    }
  }
}

void SharedLocks::release() noexcept {
  for (const Locked& s : shareds_) {
    if (s.exclusive) {
      s.state->lock.unlock();
    } else {
      s.state->lock.unlock_shared();
    }
  }
  shareds_ = {};
}

}  // namespace croton
