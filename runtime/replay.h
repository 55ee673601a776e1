// Steps of one context that are recorded when they come again with the same memory, and replayed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "runtime/device.h"

namespace croton {

/// A run of launches and library calls that nothing comes between. A call's memory differs from the
/// last one's where results are still held or values swapped, so a few recordings are kept.
class Replay {
 public:
  explicit Replay(std::vector<std::int32_t> steps) : steps_(std::move(steps)) {}

  /// Indices into the specialised steps.
  std::span<const std::int32_t> steps() const { return steps_; }

  /// Replays the recording for this memory, or runs `launch`, which queues the steps; the second
  /// time records them.
  /// Gives whether it replayed.
  bool run(Queue& queue, std::span<void* const> memory, const std::function<void()>& launch);

 private:
  static constexpr std::size_t kMost = 4;
  struct Kept {
    std::vector<void*> memory;
    std::unique_ptr<Recording> recording;  ///< null where it was met once
    std::uint64_t used = 0;
  };

  std::vector<std::int32_t> steps_;
  std::vector<Kept> kept_;
  std::uint64_t clock_ = 0;
  bool hopeless_ = false;  ///< the backend cannot record or launch them, and said why
};

}  // namespace croton
