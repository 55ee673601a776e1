// The streams of a context on a GPU.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/cuda/gpu.h"
#include "runtime/cuda/pinned.h"
#include "runtime/device.h"

namespace croton::cuda {

/// What a KernelHandle of a GPU points to.
struct GpuKernel {
  FunctionHandle function = nullptr;
  std::string name;
};

struct Grid {
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;
};

/// The dimensions of a grid of that many blocks (1 or more), or of a few more where one dimension
/// does not hold them.
Grid grid_of(std::int64_t blocks);

/// What library functions get as their `queue`.
struct LibraryQueue {
  Gpu& gpu;
  StreamHandle stream;
};

/// One stream computes, one copies in, one copies out. Copies from and to the host go through
/// pinned memory.
class GpuQueue final : public Queue {
 public:
  explicit GpuQueue(std::shared_ptr<Gpu> gpu);
  ~GpuQueue() override;

  void begin(const char* what) override;
  void end() noexcept override;
  void launch(const Launch& launch) override;
  void call(const PreparedCall& call, void* const* operands, void* workspace) override;
  void copy(void* target, const void* source, std::size_t bytes) override;
  void copy_to(Queue& other, void* target, const void* source, std::size_t bytes) override;
  void send(Queue& other, void* target, const void* source, std::size_t bytes) override;
  void copy_to_host(void* target, const void* source, std::size_t bytes) override;
  void zero(void* target, std::size_t bytes) override;
  std::unique_ptr<Event> record() override;
  void wait(const Event& event) override;
  void synchronize() override;
  void drain() noexcept override;
  std::uint64_t next_point() const override { return next_point_; }
  std::uint64_t last_point() const override { return last_point_; }
  void upload(void* target, const void* source, std::size_t bytes, std::uint64_t behind) override;
  std::unique_ptr<Recording> capture(const std::function<void()>& steps) override;
  bool captures() const override { return true; }
  bool replay(const Recording& recording) override;

 private:
  friend class GpuEvent;

  /// A copy to the host that is on its way to `staging`, or (too large) not begun.
  struct HostCopy {
    PinnedBlock* staging;
    void* target;
    const void* source;
    std::size_t bytes;
    std::uint64_t number;
  };

  const DriverSymbols& api() const { return gpu_->api(); }
  class LentEvent;

  /// A point of compute_ that uploads may wait for.
  struct Point {
    std::uint64_t number = 0;
    EventHandle event = nullptr;
  };

  void fence(StreamHandle behind, StreamHandle waiting);
  void begin_upload(std::uint64_t behind);
  void settle(StreamHandle stream) noexcept;
  void copy_out_after_work();
  void no_graph(const std::string& why);
  void finish_copies(std::uint64_t last);
  void copy_large(const HostCopy& copy);
  void forget_copies() noexcept;
  void copy_here_to(GpuQueue& other, void* target, const void* source, std::size_t bytes);
  void stage_to(GpuQueue& other, void* target, const void* source, std::size_t bytes, bool ordered);
  void stage_piece(GpuQueue& other, DevicePointer target, DevicePointer source,
                   const PinnedBlock& block, std::size_t bytes);
  EventHandle take_event();
  void give_event(EventHandle event) noexcept;

  const std::shared_ptr<Gpu> gpu_;
  StreamHandle compute_ = nullptr;
  StreamHandle copy_in_ = nullptr;
  StreamHandle copy_out_ = nullptr;
  StreamHandle capture_ = nullptr;  ///< made when first wanted
  StreamHandle active_ = nullptr;   ///< where launches go: compute_, or capture_
  /// copy_out_ waits for all work of compute_ so far. Other threads add work to compute_ (waits for
  /// uploads), so it is set before the fence and unset behind such work.
  std::atomic<bool> fenced_{false};
  std::vector<void*> parameters_;
  bool named_ = false;  ///< this run of steps is a range of profilers
  bool told_ = false;   ///< that some steps make no graph

  std::mutex copies_mutex_;
  std::vector<HostCopy> copies_;
  std::uint64_t numbers_ = 0;

  std::atomic<std::uint64_t> next_point_{1};
  std::atomic<std::uint64_t> last_point_{0};
  std::mutex points_mutex_;
  std::array<Point, 4> points_;  ///< the latest ones, the oldest first

  std::mutex events_mutex_;
  std::vector<EventHandle> events_;  ///< unused ones
  std::size_t events_made_ = 0;
};

}  // namespace croton::cuda
