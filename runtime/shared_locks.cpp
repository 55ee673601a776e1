#include "runtime/shared_locks.h"

#include <algorithm>

#include "runtime/context.h"
#include "runtime/specialize.h"

namespace croton {
namespace {

std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

SharedNeeds in_order(SharedNeeds all, std::vector<SharedState*> state_of_read) {
  std::sort(all.locked.begin(), all.locked.end(),
            [](const Locked& a, const Locked& b) { return a.state->id < b.state->id; });
  SharedNeeds once;
  for (const Locked& s : all.locked) {
    if (once.locked.empty() || once.locked.back().state != s.state) once.locked.push_back(s);
    once.locked.back().exclusive = once.locked.back().exclusive || s.exclusive;
  }
  std::vector<std::pair<const Array*, std::size_t>> places;
  for (std::size_t r = 0; r < all.reads.size(); ++r) places.emplace_back(all.reads[r].value, r);
  std::sort(places.begin(), places.end());
  for (std::size_t p = 0; p < places.size(); ++p) {
    if (p > 0 && places[p].first == places[p - 1].first) continue;
    SharedRead read = all.reads[places[p].second];
    const SharedState* state = state_of_read[places[p].second];
    const auto found =
        std::lower_bound(once.locked.begin(), once.locked.end(), state->id,
                         [](const Locked& a, std::uint64_t id) { return a.state->id < id; });
    read.locked = static_cast<std::int32_t>(found - once.locked.begin());
    once.reads.push_back(read);
  }
  return once;
}

void take(std::span<const Locked> shareds) {
  for (const Locked& s : shareds) {
    if (s.exclusive) {
      s.state->lock.lock();
    } else {
      s.state->lock.lock_shared();
    }
  }
}

}  // namespace

SharedNeeds needs_of(const BoundPlan& bound) {
  SharedNeeds all;
  std::vector<SharedState*> states;
  for (const auto& state : bound.plan.shareds) all.locked.push_back({state.get(), false});
  for (const PlanUpdate& u : bound.plan.updates) all.locked[at(u.shared)].exclusive = true;
  for (std::size_t s = 0; s < bound.plan.slots.size(); ++s) {
    const Slot& slot = bound.plan.slots[s];
    if (slot.kind != SlotKind::shared) continue;
    states.push_back(bound.plan.shareds[at(slot.index)].get());
    all.reads.push_back({bound.contexts[at(slot.context)], bound.shared_values[s], 0});
  }
  return in_order(std::move(all), std::move(states));
}

SharedNeeds merged(std::span<const SharedNeeds* const> parts) {
  SharedNeeds all;
  std::vector<SharedState*> states;
  for (const SharedNeeds* part : parts) {
    all.locked.insert(all.locked.end(), part->locked.begin(), part->locked.end());
    for (const SharedRead& read : part->reads) {
      states.push_back(part->locked[at(read.locked)].state);
      all.reads.push_back(read);
    }
  }
  return in_order(std::move(all), std::move(states));
}

SharedLocks::SharedLocks(const SharedNeeds& needs, std::atomic<std::int64_t>& refreshed)
    : held_(needs.locked) {
  take(held_);
  for (const SharedRead& read : needs.reads) {
    if (read.value->has_value()) continue;
    try {
      refresh(needs, refreshed);
    } catch (...) {
      release();
      throw;
    }
    return;
  }
}

SharedLocks::SharedLocks(std::span<const Locked> shareds) : held_(shareds) { take(held_); }

/// A value that is to be brought somewhere is locked like one that is updated. The locks that are
/// held must then be given back first, and others may change what is missing meanwhile; what was
/// once locked that way stays so, until nothing more is missing.
void SharedLocks::refresh(const SharedNeeds& needs, std::atomic<std::int64_t>& refreshed) {
  const auto source_for = [&](const SharedRead& read) -> const Array* {
    if (read.value->has_value()) return nullptr;
    return needs.locked[at(read.locked)].state->nearest(read.context->device().host_memory());
  };
  std::vector<Locked> wanted = needs.locked;
  for (bool more = true; more;) {
    more = false;
    for (const SharedRead& read : needs.reads) {
      if (wanted[at(read.locked)].exclusive || source_for(read) == nullptr) continue;
      wanted[at(read.locked)].exclusive = more = true;
    }
    if (!more) break;
    release();
    stricter_ = wanted;
    held_ = stricter_;
    take(held_);
  }
  for (const SharedRead& read : needs.reads) {
    const Array* source = source_for(read);
    if (source == nullptr) continue;
    *read.value = read.context->bring_from(*source);
    refreshed.fetch_add(1, std::memory_order_relaxed);
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (held_[i].exclusive && !needs.locked[i].exclusive) needs.locked[i].state->lock.downgrade();
  }
  held_ = needs.locked;
}

void SharedLocks::release() noexcept {
  for (const Locked& s : held_) {
    if (s.exclusive) {
      s.state->lock.unlock();
    } else {
      s.state->lock.unlock_shared();
    }
  }
  held_ = {};
}

}  // namespace croton
