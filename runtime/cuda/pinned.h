// Memory of the host that GPUs copy from and to on their own: staging for all other memory.
#pragma once

#include <array>
#include <cstddef>
#include <mutex>
#include <vector>

#include "runtime/cuda/driver.h"

namespace croton::cuda {

class Gpu;

/// A piece of pinned memory, and the copy that used it last.
struct PinnedBlock {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  EventHandle last = nullptr;
  bool busy = false;  ///< `last` was recorded and nobody waited for it yet
};

/// Blocks of pinned memory in powers of two, kept for reuse. The context of the GPU is current
/// where it is called.
class Pinned {
 public:
  /// Copies of more bytes go through blocks of this size, piece by piece.
  static constexpr std::size_t kPiece = std::size_t{4} << 20;

  explicit Pinned(Gpu& gpu) : gpu_(gpu) {}
  ~Pinned();
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

  /// At least `bytes`, which nobody uses. Blocks that a copy still reads are waited for rather than
  /// made anew once kMost bytes exist. OutOfMemory when the host has none.
  PinnedBlock* take(std::size_t bytes);
  /// Back, to be used again when the work that `stream` holds so far is done; also when it throws.
  void give_after(PinnedBlock* block, StreamHandle stream);
  /// Back, unused from now on.
  void give(PinnedBlock* block) noexcept;
  /// Frees what nobody uses.
  void trim() noexcept;

 private:
  static constexpr std::size_t kMost = std::size_t{256} << 20;
  static constexpr std::size_t kSmallest = 4096;
  static constexpr std::size_t kClasses = 48;

  static std::size_t class_of(std::size_t bytes);
  PinnedBlock* reusable(std::size_t size_class, bool wait);
  void free(PinnedBlock* block) noexcept;

  Gpu& gpu_;
  std::mutex mutex_;
  std::array<std::vector<PinnedBlock*>, kClasses> free_;
  std::array<std::size_t, kClasses> made_{};
  std::size_t total_ = 0;
};

}  // namespace croton::cuda
