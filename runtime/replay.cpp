#include "runtime/replay.h"

#include <algorithm>

namespace croton {

bool Replay::run(Queue& queue, std::span<void* const> memory, const std::function<void()>& launch) {
  if (hopeless_) return launch(), false;
  const auto known = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& k) {
    return std::equal(memory.begin(), memory.end(), k.memory.begin(), k.memory.end());
  });
  if (known == kept_.end()) {
    Kept* place = nullptr;
    if (kept_.size() < kMost) {
      place = &kept_.emplace_back();
    } else {
      place = &*std::min_element(kept_.begin(), kept_.end(),
                                 [](const Kept& a, const Kept& b) { return a.used < b.used; });
    }
    place->memory.assign(memory.begin(), memory.end());
    place->recording.reset();
    place->used = ++clock_;
    launch();
    return false;
  }
  known->used = ++clock_;
  if (!known->recording) {
    known->recording = queue.capture(launch);
    hopeless_ = known->recording == nullptr;
    if (hopeless_) return launch(), false;
  }
  if (queue.replay(*known->recording)) return true;
  hopeless_ = true;
  kept_.clear();
  launch();
  return false;
}

}  // namespace croton
