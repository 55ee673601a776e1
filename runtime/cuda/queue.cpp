#include "runtime/cuda/queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <limits>
#include <utility>

#include "croton/error.h"
#include "runtime/cuda/more_libraries.h"
#include "runtime/free_list.h"
#include "runtime/log.h"

namespace croton::cuda {
namespace {

/// Copies to the host of up to this many bytes have pinned memory of their own; larger ones share
/// two pieces.
constexpr std::size_t kStagedWhole = std::size_t{16} << 20;

}  // namespace

Grid grid_of(std::int64_t blocks) {
  constexpr std::int64_t kMostX = std::numeric_limits<std::int32_t>::max(), kMostY = 65535;
  const auto parts = [](std::int64_t n, std::int64_t most) { return n / most + (n % most != 0); };
  Grid grid;
  // Layers of about the same size, so that few blocks have nothing to do.
  const std::int64_t layers = parts(blocks, kMostX);
  const std::int64_t z = parts(layers, kMostY), y = parts(layers, z);
  grid.z = static_cast<unsigned>(z);
  grid.y = static_cast<unsigned>(y);
  grid.x = static_cast<unsigned>(parts(blocks, y * z));
  return grid;
}

/// A point in the work of a queue.
class GpuEvent final : public Event {
 public:
  GpuEvent(GpuQueue& queue, EventHandle event, std::uint64_t copies)
      : queue_(queue), event_(event), copies_(copies) {}
  ~GpuEvent() override { queue_.give_event(event_); }

  void wait_on_host() override {
    const Current current(*queue_.gpu_);
    queue_.gpu_->check(queue_.api().event_synchronize(event_), "waiting for an event");
    queue_.finish_copies(copies_);
  }
  EventHandle handle() const { return event_; }

  static void* operator new(std::size_t) { return FreeList<GpuEvent>::take(); }
  static void operator delete(void* memory) { FreeList<GpuEvent>::give(memory); }

 private:
  GpuQueue& queue_;
  const EventHandle event_;
  const std::uint64_t copies_;  ///< copies to the host with lower numbers come before it
};

namespace {

class GpuRecording final : public Recording {
 public:
  GpuRecording(std::shared_ptr<Gpu> gpu, GraphExecHandle graph)
      : gpu_(std::move(gpu)), graph_(graph) {}
  ~GpuRecording() override {
    if (gpu_->alive()) gpu_->api().graph_exec_destroy(graph_);
  }
  GraphExecHandle graph() const { return graph_; }

 private:
  const std::shared_ptr<Gpu> gpu_;
  const GraphExecHandle graph_;
};

}  // namespace

GpuQueue::GpuQueue(std::shared_ptr<Gpu> gpu) : gpu_(std::move(gpu)) {
  gpu_->require_alive();
  const Current current(*gpu_);
  for (StreamHandle* stream : {&compute_, &copy_in_, &copy_out_}) {
    gpu_->check(api().stream_create(stream, kStreamNonBlocking), "making a stream");
    gpu_->add_stream(*stream);
  }
  active_ = compute_;
}

GpuQueue::~GpuQueue() {
  // In the child of a fork a thread that is not there may hold any lock.
  if (forked_from_cuda()) return;
  for (const StreamHandle stream : {compute_, copy_in_, copy_out_}) gpu_->remove_stream(stream);
  if (!gpu_->alive() || api().push_context(gpu_->context()) != kSuccess) return;
  for (const StreamHandle stream : {compute_, copy_in_, copy_out_}) {
    if (stream == nullptr) continue;
    api().stream_synchronize(stream);
    api().stream_destroy(stream);
  }
  forget_copies();
  if (capture_ != nullptr) api().stream_destroy(capture_);
  for (const EventHandle event : events_) api().event_destroy(event);
  for (const Point& point : points_) {
    if (point.event != nullptr) api().event_destroy(point.event);
  }
  ContextHandle popped = nullptr;
  api().pop_context(&popped);
}

void GpuQueue::begin(const char* what) {
  gpu_->require_alive();
  gpu_->check(api().push_context(gpu_->context()), "making its context current");
  named_ = what != nullptr && nvtx().usable();
  if (named_) nvtx()->push(what);
}

void GpuQueue::end() noexcept {
  if (named_) nvtx()->pop();
  ContextHandle popped = nullptr;
  if (!forked_from_cuda()) api().pop_context(&popped);
}

EventHandle GpuQueue::take_event() {
  {
    const std::lock_guard hold(events_mutex_);
    if (!events_.empty()) {
      const EventHandle event = events_.back();
      events_.pop_back();
      return event;
    }
  }
  EventHandle event = nullptr;
  gpu_->check(api().event_create(&event, kEventDisableTiming), "making an event");
  try {
    // Giving it back asks for no memory.
    const std::lock_guard hold(events_mutex_);
    events_.reserve(events_made_ + 1);
    ++events_made_;
  } catch (...) {
    api().event_destroy(event);
    throw;
  }
  return event;
}

void GpuQueue::give_event(EventHandle event) noexcept {
  if (forked_from_cuda()) return;
  const std::lock_guard hold(events_mutex_);
  events_.push_back(event);
}

/// An event for a while. It may be recorded anew as soon as all who wait for it were told to. The
/// context of its queue is current where it is made.
class GpuQueue::LentEvent {
 public:
  explicit LentEvent(GpuQueue& queue) : queue_(queue), event_(queue.take_event()) {}
  ~LentEvent() {
    if (event_ != nullptr) queue_.give_event(event_);
  }
  LentEvent(const LentEvent&) = delete;
  LentEvent& operator=(const LentEvent&) = delete;
  operator EventHandle() const { return event_; }
  /// It is somebody else's from here on.
  void keep() { event_ = nullptr; }

 private:
  GpuQueue& queue_;
  EventHandle event_;
};

/// Has `waiting` wait for the work that `behind` holds so far.
void GpuQueue::fence(StreamHandle behind, StreamHandle waiting) {
  const LentEvent event(*this);
  Result result = api().event_record(event, behind);
  if (result == kSuccess) result = api().stream_wait_event(waiting, event, 0);
  gpu_->check(result, "ordering two streams");
}

/// After a failure: nothing is under way in the stream any more, and memory that it used is free.
void GpuQueue::settle(StreamHandle stream) noexcept {
  if (!gpu_->alive() || api().push_context(gpu_->context()) != kSuccess) return;
  api().stream_synchronize(stream);
  ContextHandle popped = nullptr;
  api().pop_context(&popped);
}

void GpuQueue::launch(const Launch& l) {
  const auto& kernel = *static_cast<const GpuKernel*>(l.kernel);
  if (l.blocks <= 0) return;  // an empty grid is an error to CUDA
  const std::int64_t grid = (l.blocks + l.packed - 1) / l.packed;
  const Grid shape = grid_of(grid);
  internal_check(shape.y == 1 || l.counted, "a kernel that cannot tell where such a grid ends");
  parameters_.clear();
  for (std::int32_t i = 0; i < l.buffer_count; ++i) {
    parameters_.push_back(const_cast<void**>(&l.buffers[i]));
  }
  for (std::int32_t i = 0; i < l.size_count; ++i) {
    parameters_.push_back(const_cast<std::int64_t*>(&l.sizes[i]));
  }
  std::int64_t blocks = l.blocks;
  std::int64_t* error = l.error;
  if (l.counted) parameters_.push_back(&blocks);
  if (l.checks) parameters_.push_back(&error);
  const Result result =
      api().launch(kernel.function, shape.x, shape.y, shape.z, static_cast<unsigned>(l.threads),
                   static_cast<unsigned>(l.packed), 1, static_cast<unsigned>(l.shared_bytes),
                   active_, parameters_.data(), nullptr);
  fenced_ = false;
  if (result != kSuccess) {
    gpu_->check(result, fmt::format("launching {} with {} blocks of {} x {} threads", kernel.name,
                                    grid, l.threads, l.packed));
  }
}

void GpuQueue::call(const PreparedCall& call, void* const* operands, void* workspace) {
  fenced_ = false;
  LibraryQueue place{*gpu_, active_};
  call.run(operands, workspace, 1, &place);
}

void GpuQueue::copy(void* target, const void* source, std::size_t bytes) {
  if (bytes == 0) return;
  fenced_ = false;
  gpu_->check(api().copy_on_device(device_pointer(target), device_pointer(source), bytes, compute_),
              "copying on the device");
}

void GpuQueue::zero(void* target, std::size_t bytes) {
  if (bytes == 0) return;
  fenced_ = false;
  gpu_->check(api().set_bytes(device_pointer(target), 0, bytes, compute_), "filling with zeros");
}

void GpuQueue::copy_to(Queue& queue, void* target, const void* source, std::size_t bytes) {
  if (bytes == 0) return;
  auto& other = static_cast<GpuQueue&>(queue);
  if (&other == this) return copy(target, source, bytes);
  other.gpu_->require_alive();
  const bool same = other.gpu_ == gpu_;
  if (!same && !gpu_->reaches(*other.gpu_)) return stage_to(other, target, source, bytes, true);
  // What the other queue holds may still use the memory.
  const auto on_other = [&](auto&& work) {
    const Current current(*other.gpu_);
    work();
  };
  Result result = kSuccess;
  on_other([&] {
    const LentEvent before(other);
    other.gpu_->check(other.api().event_record(before, other.compute_), "recording an event");
    const Current current(*gpu_);
    result = api().stream_wait_event(compute_, before, 0);
  });
  gpu_->check(result, "waiting for another GPU");
  copy_here_to(other, target, source, bytes);
  try {
    const LentEvent after(*this);
    gpu_->check(api().event_record(after, compute_), "ordering two GPUs");
    on_other([&] {
      other.gpu_->check(other.api().stream_wait_event(other.compute_, after, 0),
                        "ordering two GPUs");
    });
    other.fenced_ = false;
  } catch (...) {
    // Nothing there waits for the copy, and the target may be given back.
    settle(compute_);
    throw;
  }
}

void GpuQueue::copy_here_to(GpuQueue& other, void* target, const void* source, std::size_t bytes) {
  fenced_ = false;
  const DevicePointer to = device_pointer(target), from = device_pointer(source);
  gpu_->check(other.gpu_ == gpu_ ? api().copy_on_device(to, from, bytes, compute_)
                                 : api().copy_peer(to, other.gpu_->context(), from, gpu_->context(),
                                                   bytes, compute_),
              "copying to another context");
}

void GpuQueue::send(Queue& queue, void* target, const void* source, std::size_t bytes) {
  if (bytes == 0) return;
  auto& other = static_cast<GpuQueue&>(queue);
  other.gpu_->require_alive();
  if (other.gpu_ == gpu_ || gpu_->reaches(*other.gpu_)) {
    copy_here_to(other, target, source, bytes);
  } else {
    stage_to(other, target, source, bytes, false);
  }
}

/// Through pinned memory, piece by piece, where the GPUs do not see each other.
void GpuQueue::stage_to(GpuQueue& other, void* target, const void* source, std::size_t bytes,
                        bool ordered) {
  copy_out_after_work();
  if (ordered) {
    const Current current(*other.gpu_);
    other.fence(other.compute_, other.copy_in_);
  }
  PinnedBlock* block = nullptr;
  try {
    for (std::size_t done = 0; done < bytes; done += Pinned::kPiece) {
      const std::size_t piece = std::min(Pinned::kPiece, bytes - done);
      block = gpu_->pinned().take(piece);
      stage_piece(other, device_pointer(target) + done, device_pointer(source) + done, *block,
                  piece);
      gpu_->pinned().give_after(std::exchange(block, nullptr), copy_out_);
    }
    // Work behind the copy, here and there, sees it done.
    fence(copy_out_, compute_);
    fenced_ = false;
    if (ordered) {
      const Current current(*other.gpu_);
      other.fence(other.copy_in_, other.compute_);
      other.fenced_ = false;
    }
  } catch (...) {
    settle(copy_out_);
    other.settle(other.copy_in_);
    if (block != nullptr) gpu_->pinned().give(block);
    throw;
  }
}

/// `block` is free again when what copy_out_ holds is done.
void GpuQueue::stage_piece(GpuQueue& other, DevicePointer target, DevicePointer source,
                           const PinnedBlock& block, std::size_t bytes) {
  const LentEvent arrived(*this);
  Result result = api().copy_to_host(block.data, source, bytes, copy_out_);
  if (result == kSuccess) result = api().event_record(arrived, copy_out_);
  gpu_->check(result, "copying to another GPU through the host");
  const Current current(*other.gpu_);
  const LentEvent left(other);
  result = other.api().stream_wait_event(other.copy_in_, arrived, 0);
  if (result == kSuccess) {
    result = other.api().copy_to_device(target, block.data, bytes, other.copy_in_);
  }
  if (result == kSuccess) result = other.api().event_record(left, other.copy_in_);
  other.gpu_->check(result, "copying from another GPU through the host");
  const Current again(*gpu_);
  gpu_->check(api().stream_wait_event(copy_out_, left, 0), "waiting for another GPU");
}

void GpuQueue::copy_out_after_work() {
  if (fenced_.exchange(true)) return;
  try {
    fence(compute_, copy_out_);
  } catch (...) {
    fenced_ = false;
    throw;
  }
}

void GpuQueue::copy_to_host(void* target, const void* source, std::size_t bytes) {
  if (bytes == 0) return;
  copy_out_after_work();
  PinnedBlock* staging = nullptr;
  try {
    if (bytes <= kStagedWhole) {
      staging = gpu_->pinned().take(bytes);
      gpu_->check(api().copy_to_host(staging->data, device_pointer(source), bytes, copy_out_),
                  "copying to the host");
    }
    const std::lock_guard hold(copies_mutex_);
    copies_.push_back({staging, target, source, bytes, numbers_});
    ++numbers_;
  } catch (...) {
    settle(copy_out_);
    if (staging != nullptr) gpu_->pinned().give(staging);
    throw;
  }
}

void GpuQueue::copy_large(const HostCopy& copy) {
  struct Pieces {
    GpuQueue& queue;
    PinnedBlock* blocks[2] = {};
    ~Pieces() {
      for (PinnedBlock* block : blocks) {
        if (block != nullptr) queue.gpu_->pinned().give(block);
      }
    }
  } owned{*this};
  PinnedBlock** const pieces = owned.blocks;
  std::size_t filled[2] = {};
  std::size_t begun = 0, done = 0;
  Result result = kSuccess;
  auto* target = static_cast<std::byte*>(copy.target);
  for (int turn = 0; result == kSuccess && done < copy.bytes; turn ^= 1) {
    if (filled[turn] > 0) {
      result = api().event_synchronize(pieces[turn]->last);
      if (result != kSuccess) break;
      std::memcpy(target + done, pieces[turn]->data, filled[turn]);
      done += std::exchange(filled[turn], 0);
    }
    if (begun == copy.bytes) continue;
    if (pieces[turn] == nullptr) {
      try {
        pieces[turn] = gpu_->pinned().take(Pinned::kPiece);
      } catch (...) {
        settle(copy_out_);
        throw;
      }
    }
    const std::size_t piece = std::min(Pinned::kPiece, copy.bytes - begun);
    result = api().copy_to_host(pieces[turn]->data, device_pointer(copy.source) + begun, piece,
                                copy_out_);
    if (result == kSuccess) result = api().event_record(pieces[turn]->last, copy_out_);
    filled[turn] = piece;
    begun += piece;
  }
  if (result != kSuccess) settle(copy_out_);
  gpu_->check(result, "copying to the host");
}

/// Copies with numbers below `last` have arrived: hands them on.
void GpuQueue::finish_copies(std::uint64_t last) {
  const std::lock_guard hold(copies_mutex_);
  std::size_t finished = 0;
  for (; finished < copies_.size() && copies_[finished].number < last; ++finished) {
    HostCopy& copy = copies_[finished];
    if (copy.staging == nullptr) {
      copy_large(copy);
    } else {
      std::memcpy(copy.target, copy.staging->data, copy.bytes);
      gpu_->pinned().give(std::exchange(copy.staging, nullptr));
      copy.bytes = 0;
    }
  }
  copies_.erase(copies_.begin(), copies_.begin() + static_cast<std::ptrdiff_t>(finished));
}

void GpuQueue::forget_copies() noexcept {
  if (forked_from_cuda()) return;
  const std::lock_guard hold(copies_mutex_);
  for (HostCopy& copy : copies_) {
    if (copy.staging != nullptr) gpu_->pinned().give(copy.staging);
  }
  copies_.clear();
}

std::unique_ptr<Event> GpuQueue::record() {
  bool copies;
  std::uint64_t numbers;
  {
    const std::lock_guard hold(copies_mutex_);
    copies = !copies_.empty();
    numbers = numbers_;
  }
  if (copies) copy_out_after_work();
  LentEvent event(*this);
  gpu_->check(api().event_record(event, copies ? copy_out_ : compute_), "recording an event");
  auto made = std::make_unique<GpuEvent>(*this, event, numbers);
  event.keep();
  return made;
}

void GpuQueue::wait(const Event& event) {
  fenced_ = false;
  gpu_->check(api().stream_wait_event(compute_, static_cast<const GpuEvent&>(event).handle(), 0),
              "waiting for an event");
}

void GpuQueue::synchronize() {
  bool copies;
  {
    const std::lock_guard hold(copies_mutex_);
    copies = !copies_.empty();
  }
  try {
    if (copies) copy_out_after_work();
    gpu_->check(api().stream_synchronize(copies ? copy_out_ : compute_), "running its work");
    if (copies) finish_copies(std::numeric_limits<std::uint64_t>::max());
  } catch (...) {
    drain();
    throw;
  }
}

void GpuQueue::drain() noexcept {
  if (gpu_->alive()) {
    for (const StreamHandle stream : {compute_, copy_in_, copy_out_}) {
      api().stream_synchronize(stream);
    }
  }
  forget_copies();
}

/// Has copy_in_ wait for what comes before a point, and makes the next one: an upload between two
/// runs of steps waits for the first of them when its memory was in use in that, and overlaps with
/// the second.
void GpuQueue::begin_upload(std::uint64_t behind) {
  const std::lock_guard hold(points_mutex_);
  Point made = points_[0];
  if (made.event == nullptr) made.event = take_event();
  // Counted first: what is given back from here on may be used by work behind the event.
  made.number = next_point_++;
  points_[0] = {0, made.event};
  gpu_->check(api().event_record(made.event, compute_), "ordering two streams");
  std::rotate(points_.begin(), points_.begin() + 1, points_.end());
  points_.back() = made;
  last_point_ = made.number;
  if (behind == 0) return;
  const auto reached = std::find_if(points_.begin(), points_.end() - 1,
                                    [&](const Point& p) { return p.number >= behind; });
  gpu_->check(api().stream_wait_event(copy_in_, reached->event, 0), "ordering two streams");
}

void GpuQueue::upload(void* target, const void* source, std::size_t bytes, std::uint64_t behind) {
  gpu_->require_alive();
  if (bytes == 0) return;
  const Current current(*gpu_);
  begin_upload(behind);
  PinnedBlock* block = nullptr;
  try {
    for (std::size_t done = 0; done < bytes; done += Pinned::kPiece) {
      const std::size_t piece = std::min(Pinned::kPiece, bytes - done);
      block = gpu_->pinned().take(piece);
      std::memcpy(block->data, static_cast<const std::byte*>(source) + done, piece);
      gpu_->check(api().copy_to_device(device_pointer(target) + done, block->data, piece, copy_in_),
                  "copying to the device");
      gpu_->pinned().give_after(std::exchange(block, nullptr), copy_in_);
    }
    fence(copy_in_, compute_);
    fenced_ = false;
  } catch (...) {
    // Nothing waits for the pieces that are under way, and the target may be given back.
    settle(copy_in_);
    if (block != nullptr) gpu_->pinned().give(block);
    throw;
  }
}

void GpuQueue::no_graph(const std::string& why) {
  const std::string text = fmt::format(
      "{}: steps are launched one by one, because they make no graph: {}", gpu_->name(), why);
  if (std::exchange(told_, true)) return log_debug(text);
  log_warning(text + " (cuda_graphs=off saves the attempt)");
}

std::unique_ptr<Recording> GpuQueue::capture(const std::function<void()>& steps) {
  if (capture_ == nullptr) {
    gpu_->check(api().stream_create(&capture_, kStreamNonBlocking), "making a stream");
  }
  gpu_->check(api().stream_begin_capture(capture_, kCaptureRelaxed), "recording a graph");
  active_ = capture_;
  std::exception_ptr failure;
  try {
    steps();
  } catch (...) {
    failure = std::current_exception();
  }
  active_ = compute_;
  GraphHandle graph = nullptr;
  const Result ended = api().stream_end_capture(capture_, &graph);
  if (failure) {
    if (graph != nullptr) api().graph_destroy(graph);
    gpu_->require_alive();
    try {
      std::rethrow_exception(failure);
    } catch (const Error& e) {  // others, such as a host without memory, are no reason
      return no_graph(e.what()), nullptr;
    }
  }
  gpu_->require_alive();
  if (graph == nullptr) return no_graph(gpu_->driver().error_text(ended)), nullptr;
  GraphExecHandle exec = nullptr;
  const Result made = api().graph_instantiate(&exec, graph, 0);
  api().graph_destroy(graph);
  if (made != kSuccess) {
    if (is_sticky(made)) gpu_->check(made, "making a graph");
    return no_graph(gpu_->driver().error_text(made)), nullptr;
  }
  try {
    return std::make_unique<GpuRecording>(gpu_, exec);
  } catch (...) {
    api().graph_exec_destroy(exec);
    throw;
  }
}

bool GpuQueue::replay(const Recording& recording) {
  fenced_ = false;
  const Result result =
      api().graph_launch(static_cast<const GpuRecording&>(recording).graph(), compute_);
  if (result == kSuccess) return true;
  gpu_->require_alive();
  if (is_sticky(result)) gpu_->check(result, "launching a graph");
  no_graph(gpu_->driver().error_text(result));
  return false;
}

}  // namespace croton::cuda
