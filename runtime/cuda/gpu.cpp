#include "runtime/cuda/gpu.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "croton/error.h"
#include "runtime/cuda/pinned.h"
#include "runtime/log.h"

namespace croton::cuda {

Gpu::Gpu(const Driver& driver, int index, std::int64_t memory_limit)
    : driver_(driver),
      index_(index),
      name_(fmt::format("cuda{}", index)),
      memory_limit_(memory_limit) {
  driver_.require_usable();
  if (index >= driver_.device_count()) {
    const std::string& visible = driver_.visible_devices();
    throw DeviceError(
        fmt::format("there is no {}: the driver shows {} GPU{}{}", name_, driver_.device_count(),
                    driver_.device_count() == 1 ? "" : "s",
                    visible.empty() ? "" : fmt::format(" (CUDA_VISIBLE_DEVICES={})", visible)));
  }
  Result result = api().device_get(&device_, index);
  if (result == kSuccess) result = api().primary_retain(&context_, device_);
  if (result != kSuccess) throw DeviceError(open_error(result));
  try {
    const Current current(*this);
    read_properties();
    check(api().stream_create(&memory_stream_, kStreamNonBlocking), "making a stream");
    check(api().event_create(&fence_, kEventDisableTiming), "making an event");
    make_pool();
    pinned_ = std::make_unique<Pinned>(*this);
  } catch (...) {
    api().primary_release(device_);
    throw;
  }
}

Gpu::~Gpu() {
  if (!alive()) {
    // Gone with the context, or the parent's.
    pinned_.release();
    new std::shared_ptr<void>(std::move(blas));
    if (!forked_from_cuda()) api().primary_release(device_);
    return;
  }
  if (api().push_context(context_) == kSuccess) {
    blas.reset();
    pinned_.reset();
    if (pool_ != nullptr) api().pool_destroy(pool_);
    api().event_destroy(fence_);
    api().stream_destroy(memory_stream_);
    ContextHandle popped = nullptr;
    api().pop_context(&popped);
  }
  api().primary_release(device_);
}

std::string Gpu::open_error(Result result) const {
  const std::string why = driver_.error_text(result);
  switch (result) {
    case kDeviceUnavailable:
      return fmt::format(
          "{} is in exclusive use by another process (its compute mode allows one, or none): {}; "
          "end that process, or allow several with nvidia-smi -c 0",
          name_, why);
    case kNotPermitted:
    case kOperatingSystem:
      return fmt::format("{} may not be used: no permission ({})", name_, why);
    case kOutOfMemory:
      return fmt::format("{} has no memory left for a context: {}; other processes use it all",
                         name_, why);
    default:
      return fmt::format("{} cannot be opened: {}", name_, why);
  }
}

int Gpu::attribute(Attribute which) const {
  int value = 0;
  if (api().device_attribute(&value, static_cast<int>(which), device_) != kSuccess) return 0;
  return value;
}

void Gpu::read_properties() {
  char text[256] = {};
  if (api().device_name(text, sizeof text, device_) == kSuccess) model_ = text;
  char pci[64] = {};
  if (api().device_pci_id(pci, sizeof pci, device_) == kSuccess) pci_id_ = pci;
  std::size_t bytes = 0;
  if (api().device_bytes(&bytes, device_) == kSuccess) {
    total_bytes_ = static_cast<std::int64_t>(bytes);
  }
  target_.backend = Backend::cuda;
  target_.cpu.clear();
  target_.sm = 10 * attribute(Attribute::capability_major) + attribute(Attribute::capability_minor);
  target_.multiprocessors = attribute(Attribute::multiprocessors);
  target_.warp = attribute(Attribute::warp_size);
  target_.max_threads = attribute(Attribute::max_threads_per_block);
  target_.shared_bytes = attribute(Attribute::shared_bytes_per_block);
  target_.l2_bytes = attribute(Attribute::l2_bytes);
  target_.l3_bytes = 0;
  shared_bytes_opt_in_ = attribute(Attribute::shared_bytes_opt_in);
}

void Gpu::make_pool() {
  if (attribute(Attribute::memory_pools) == 0) return;
  MemoryPoolProperties properties;
  properties.location.id = device_;
  check(api().pool_create(&pool_, &properties), "making a memory pool");
  // What Croton's own pools let go is to be reused by them soon, or goes back by `trim`.
  std::uint64_t keep = std::uint64_t{64} << 20;
  api().pool_set_attribute(pool_, static_cast<int>(PoolAttribute::release_threshold), &keep);
}

void Gpu::declare_dead(Result result, std::string_view what) {
  const std::lock_guard hold(failure_mutex_);
  if (dead_.load(std::memory_order_relaxed)) return;
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  failure_ = fmt::format(
      "{} failed at {:%Y-%m-%d %H:%M:%S}, {}: {}; nothing runs there any more and what it held is "
      "lost, until the program is started again (other devices go on)",
      name_, fmt::localtime(now), what, driver_.error_text(result));
  dead_.store(true, std::memory_order_release);
  log_warning(failure_);
}

std::string Gpu::failure() const {
  // A thread that is not in this process may hold the lock.
  if (forked_from_cuda()) return std::string(fork_reason());
  const std::lock_guard hold(failure_mutex_);
  return failure_;
}

void Gpu::require_alive() const {
  if (forked_from_cuda()) throw DeviceError(fmt::format("[{}] {}", name_, fork_reason()));
  if (dead()) throw DeviceError(fmt::format("[{}] {}", name_, failure()));
}

void Gpu::check(Result result, std::string_view what) {
  if (result == kSuccess) return;
  require_alive();
  if (is_sticky(result)) {
    declare_dead(result, what);
    require_alive();
  }
  const std::string text =
      fmt::format("[{}] {} failed: {}", name_, what, driver_.error_text(result));
  if (result == kOutOfMemory) throw OutOfMemory(text);
  throw DeviceError(text);
}

bool Gpu::reaches(Gpu& peer) {
  if (&peer == this || peer.device_ == device_) return true;
  const std::lock_guard hold(memory_mutex_);
  for (const auto& [known, reached] : peers_) {
    if (known == &peer) return reached;
  }
  int can = 0;
  bool reached = api().can_access_peer(&can, device_, peer.device_) == kSuccess && can != 0;
  if (reached) {
    const Result result = api().enable_peer(peer.context_, 0);
    reached = result == kSuccess || result == kPeerAccessAlreadyEnabled;
  }
  if (reached && peer.pool_ != nullptr) {
    // Memory from pools asks for access of its own.
    MemoryAccess access;
    access.location.id = device_;
    reached = api().pool_set_access(peer.pool_, &access, 1) == kSuccess;
  }
  log_debug(fmt::format("{} {} the memory of {}", name_, reached ? "reaches" : "does not reach",
                        peer.name_));
  peers_.emplace_back(&peer, reached);
  return reached;
}

void* Gpu::allocate(std::size_t bytes) {
  require_alive();
  const Current current(*this);
  const std::lock_guard hold(memory_mutex_);
  const auto count = static_cast<std::int64_t>(bytes);
  if (memory_limit_ > 0 && taken_bytes_ + count > memory_limit_) return nullptr;
  DevicePointer memory = 0;
  Result result;
  if (pool_ != nullptr) {
    result = api().pool_allocate(&memory, bytes, pool_, memory_stream_);
    // Other streams may use it from here on.
    if (result == kSuccess) result = api().stream_synchronize(memory_stream_);
  } else {
    result = api().memory_allocate(&memory, bytes);
  }
  if (result == kOutOfMemory) return nullptr;
  check(result, "allocating memory");
  taken_bytes_ += count;
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(memory));
}

void Gpu::release(void* memory, std::size_t bytes) noexcept {
  if (memory == nullptr || !alive() || api().push_context(context_) != kSuccess) return;
  {
    const std::lock_guard hold(memory_mutex_);
    if (pool_ != nullptr) {
      for (const StreamHandle stream : streams_) {
        api().event_record(fence_, stream);
        api().stream_wait_event(memory_stream_, fence_, 0);
      }
      api().free_async(device_pointer(memory), memory_stream_);
    } else {
      api().memory_free(device_pointer(memory));  // waits for the whole device
    }
    taken_bytes_ -= static_cast<std::int64_t>(bytes);
  }
  ContextHandle popped = nullptr;
  api().pop_context(&popped);
}

void Gpu::trim() noexcept {
  if (!alive() || api().push_context(context_) != kSuccess) return;
  {
    const std::lock_guard hold(memory_mutex_);
    if (pool_ != nullptr) {
      api().stream_synchronize(memory_stream_);
      api().pool_trim(pool_, 0);
    }
  }
  pinned_->trim();
  ContextHandle popped = nullptr;
  api().pop_context(&popped);
}

std::int64_t Gpu::free_bytes() {
  if (!alive()) return -1;
  const Current current(*this);
  std::size_t free = 0, total = 0;
  if (api().memory_info(&free, &total) != kSuccess) return -1;
  auto bytes = static_cast<std::int64_t>(free);
  if (memory_limit_ > 0) {
    const std::lock_guard hold(memory_mutex_);
    bytes = std::min(bytes, memory_limit_ - taken_bytes_);
  }
  return bytes;
}

void Gpu::add_stream(StreamHandle stream) {
  const std::lock_guard hold(memory_mutex_);
  streams_.push_back(stream);
}

void Gpu::remove_stream(StreamHandle stream) noexcept {
  const std::lock_guard hold(memory_mutex_);
  std::erase(streams_, stream);
}

Current::Current(Gpu& gpu) : gpu_(gpu) {
  gpu_.check(gpu_.api().push_context(gpu_.context()), "making its context current");
}

Current::~Current() {
  ContextHandle popped = nullptr;
  gpu_.api().pop_context(&popped);
}

}  // namespace croton::cuda
