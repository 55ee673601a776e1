#include "runtime/pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <mutex>

#include "croton/error.h"
#include "runtime/bytes_text.h"

namespace croton {
namespace {

constexpr std::size_t kSmallest = 64;
/// Free blocks of a class that are looked through.
constexpr int kLatest = 64;

}  // namespace

std::string bytes_text(std::int64_t bytes) {
  if (bytes < 0) return "an unknown number of bytes";
  if (bytes < 10'000) return fmt::format("{} bytes", bytes);
  const char* const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes) / 1024;
  int unit = 0;
  for (; value >= 1024 && unit < 5; ++unit) value /= 1024;
  return fmt::format("{:.1f} {}", value, units[unit]);
}

// Class 8 * e + s holds blocks of 64 * 2^e * (1 + s / 8) bytes, for e = 0 in steps of 64 bytes up
// to 512.
int Pool::class_of(std::size_t bytes) {
  const std::size_t units = std::max<std::size_t>((bytes + kSmallest - 1) / kSmallest, 1);
  if (units <= 8) return static_cast<int>(units - 1);
  const int top = std::bit_width(units - 1) - 4;  // units - 1 in [8, 16) << top
  return static_cast<int>(8 * (top + 1) + static_cast<int>((units - 1) >> top) - 8);
}

std::size_t Pool::class_bytes(std::size_t bytes) { return bytes_of_class(class_of(bytes)); }

std::size_t Pool::bytes_of_class(int c) {
  if (c < 8) return static_cast<std::size_t>(c + 1) * kSmallest;
  return (static_cast<std::size_t>(c % 8) + 9) << (c / 8 - 1) << 6;
}

Pool::Pool(std::shared_ptr<Device> device, std::string context, std::int64_t limit,
           const Queue* queue)
    : ForkAware(ForkLevel::pool),
      device_(std::move(device)),
      context_(std::move(context)),
      limit_(limit),
      queue_(queue),
      host_memory_(device_->host_memory()) {
  device_->add_pool(this);
}

Pool::~Pool() = default;

void Pool::retire() noexcept {
  device_->remove_pool(this);
  trim();
  lock_.lock();
  retired_ = true;
  const bool last = statistics_.live_blocks == 0;
  lock_.unlock();
  if (last) delete this;
}

/// Under the lock: the first of the latest blocks of a class that is chosen; null where none is.
template <class Choose>
Block* Pool::take_chosen(int size_class, const Choose& choose) {
  void** place = nullptr;  // of what points to the block
  Block* block = free_[static_cast<std::size_t>(size_class)];
  for (int i = 0; block != nullptr && i < kLatest; ++i) {
    if (choose(*block)) {
      if (place == nullptr) {
        free_[static_cast<std::size_t>(size_class)] = static_cast<Block*>(block->link);
      } else {
        *place = block->link;
      }
      return block;
    }
    place = &block->link;
    block = static_cast<Block*>(block->link);
  }
  return nullptr;
}

BlockRef Pool::allocate(std::size_t bytes, const void* wanted) {
  return allocate(bytes, [&](int c) {
    const auto is_wanted = [&](const Block& block) { return block.data == wanted; };
    Block* block = wanted != nullptr ? take_chosen(c, is_wanted) : nullptr;
    return block != nullptr ? block : take_chosen(c, [](const Block&) { return true; });
  });
}

BlockRef Pool::allocate_idle(std::size_t bytes) {
  return allocate(bytes, [&](int c) {
    const std::uint64_t last = queue_ != nullptr ? queue_->last_point() : 0;
    int seen = 0;
    // Of many blocks the last one seen will do: the upload waits for less than with any other.
    return take_chosen(
        c, [&](const Block& block) { return block.free_behind <= last || ++seen == kLatest; });
  });
}

template <class Take>
BlockRef Pool::allocate(std::size_t bytes, const Take& take) {
  if (bytes <= Block::kInlineBytes && host_memory_) return host_block(bytes);
  if (bytes > (std::size_t{1} << 60)) out_of_memory(bytes);
  const int c = class_of(bytes);
  const auto count = static_cast<std::int64_t>(class_bytes(bytes));
  Block* block;
  {
    const std::lock_guard hold(lock_);
    block = take(c);
    ++statistics_.allocations;
    if (block != nullptr) statistics_.cached_bytes -= count;
    // Counted before the device is asked, so that a retired pool waits for this block.
    ++statistics_.live_blocks;
    ++live_[static_cast<std::size_t>(c)];
    statistics_.live_bytes += count;
    if (block != nullptr) {
      statistics_.peak_bytes = std::max(statistics_.peak_bytes, statistics_.live_bytes);
    }
  }
  if (block == nullptr) block = fresh_block(bytes, c);
  block->bytes = bytes;
  return BlockRef(block);
}

/// A block of the class that was free all the same; null where there is none.
Block* Pool::take_any(int size_class) {
  const std::lock_guard hold(lock_);
  Block* block = take_chosen(size_class, [](const Block&) { return true; });
  if (block == nullptr) return nullptr;
  statistics_.cached_bytes -= static_cast<std::int64_t>(bytes_of_class(size_class));
  statistics_.peak_bytes = std::max(statistics_.peak_bytes, statistics_.live_bytes);
  return block;
}

Block* Pool::fresh_block(std::size_t bytes, int size_class) {
  const std::size_t count = class_bytes(bytes);
  // `allocate` has counted it as living.
  const auto note = [&](bool made) {
    const std::lock_guard hold(lock_);
    ++statistics_.device_allocations;
    if (made) {
      statistics_.peak_bytes = std::max(statistics_.peak_bytes, statistics_.live_bytes);
      return;
    }
    --statistics_.live_blocks;
    --live_[static_cast<std::size_t>(size_class)];
    statistics_.live_bytes -= static_cast<std::int64_t>(count);
  };
  void* memory = nullptr;
  Block* block = nullptr;
  try {
    memory = device_->allocate(count);
    if (memory == nullptr) {
      // A block that was free, though not idle, is better than giving all of them back.
      if (Block* free = take_any(size_class)) return free;
      device_->trim_pools();
      memory = device_->allocate(count);
    }
    if (memory != nullptr) {
      block = new_block_header(static_cast<std::byte*>(memory), bytes, this);
      block->tag = static_cast<std::uint64_t>(size_class);
    }
  } catch (...) {  // the device is lost, or the host has no memory
    if (memory != nullptr) device_->release(memory, count);
    note(false);
    throw;
  }
  note(block != nullptr);
  if (block == nullptr) out_of_memory(bytes);
  return block;
}

void Pool::out_of_memory(std::size_t bytes) {
  const PoolStatistics s = statistics();
  const std::int64_t free = device_->free_bytes();
  throw OutOfMemory(fmt::format(
      "[{}] out of memory on {}: asked for {}, {} in use by this context (at most {} so far){}{}; "
      "use "
      "smaller batches, or delete arrays and functions that are not needed",
      context_, device_->name(), bytes_text(static_cast<std::int64_t>(bytes)),
      bytes_text(s.live_bytes), bytes_text(s.peak_bytes),
      free < 0 ? std::string() : fmt::format(", {} free on the device", bytes_text(free)),
      largest_live()));
}

/// The largest blocks in use, in words.
std::string Pool::largest_live() const {
  std::string text;
  const std::lock_guard hold(lock_);
  int kinds = 0;
  for (std::size_t c = kClasses; c-- > 0 && kinds < 3;) {
    if (live_[c] == 0) continue;
    const std::int64_t bytes = static_cast<std::int64_t>(bytes_of_class(static_cast<int>(c)));
    text += fmt::format("{}{} x {}", ++kinds == 1 ? "; the largest in use: " : ", ", live_[c],
                        bytes_text(bytes));
  }
  return text;
}

void Pool::release(Block* block) noexcept {
  const auto c = static_cast<std::size_t>(block->tag);
  const auto count = static_cast<std::int64_t>(class_bytes(block->bytes));
  bool last;
  bool keep;
  {
    const std::lock_guard hold(lock_);
    --statistics_.live_blocks;
    --live_[c];
    statistics_.live_bytes -= count;
    keep = !retired_ && (limit_ == 0 || statistics_.cached_bytes + count <= limit_);
    if (keep) {
      if (queue_ != nullptr) block->free_behind = queue_->next_point();
      block->link = free_[c];
      free_[c] = block;
      statistics_.cached_bytes += count;
    }
    last = retired_ && statistics_.live_blocks == 0;
  }
  if (!keep) {
    block->link = nullptr;
    give_back(block);
  }
  if (last) delete this;
}

void Pool::give_back(Block* chain) noexcept {
  while (chain != nullptr) {
    Block* next = static_cast<Block*>(chain->link);
    device_->release(chain->data, class_bytes(chain->bytes));
    free_block_header(chain);
    chain = next;
  }
}

void Pool::trim() noexcept {
  std::array<Block*, kClasses> chains;
  {
    const std::lock_guard hold(lock_);
    chains = free_;
    free_.fill(nullptr);
    statistics_.cached_bytes = 0;
  }
  for (Block* chain : chains) give_back(chain);
}

PoolStatistics Pool::statistics() const {
  const std::lock_guard hold(lock_);
  return statistics_;
}

}  // namespace croton
