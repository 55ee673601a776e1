#include "tests/cuda_emulator/memory.h"

#include <dlfcn.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "tests/cuda_emulator/report.h"
#include "tests/cuda_emulator/settings.h"

namespace emulator {
namespace {

// Addresses of a device. Under the thread sanitizer a process has few of them.
const std::uint64_t kDeviceSpan = std::uint64_t{dlsym(RTLD_DEFAULT, "__tsan_init") ? 16u : 256u}
                                  << 30;
constexpr std::uint64_t kAlignment = 512;
constexpr std::uint64_t kGap = 512;
constexpr std::uint64_t kHugePage = std::uint64_t{2} << 20;
constexpr std::size_t kMostAllocations = std::size_t{1} << 26;
constexpr int kPoison = 0xff;

std::uint64_t rounded(std::uint64_t value, std::uint64_t to) { return (value + to - 1) / to * to; }

}  // namespace

Memory::Memory(Order& order) : order_(order) {
  const auto devices = static_cast<std::uint64_t>(std::max(settings().devices, 1));
  bytes_ = devices * kDeviceSpan;
  const auto raw = reinterpret_cast<std::uintptr_t>(reserve(bytes_ + kHugePage, false));
  base_ = rounded(raw, kHugePage);
  madvise(reinterpret_cast<void*>(base_), bytes_, MADV_HUGEPAGE);
  owner_ = static_cast<std::uint32_t*>(reserve(bytes_ / kUnit * sizeof(std::uint32_t), true));
  allocations_ = static_cast<Allocation*>(reserve(kMostAllocations * sizeof(Allocation), true));
  if (settings().races) cells_ = static_cast<Cell*>(reserve(bytes_ / 4 * sizeof(Cell), true));
  for (std::uint64_t i = 0; i < devices; ++i) next_.push_back(base_ + i * kDeviceSpan + kGap);
  if (!settings().host_checks) protect(PROT_READ | PROT_WRITE);
}

std::uintptr_t Memory::allocate(AllocationInfo info, std::uint64_t bytes, std::uint32_t devices) {
  std::uintptr_t& next = next_[static_cast<std::size_t>(info.device)];
  const std::uintptr_t end_of_device =
      base_ + static_cast<std::uint64_t>(info.device + 1) * kDeviceSpan;
  const std::uintptr_t begin = next;
  if (next + kGap > end_of_device || bytes > end_of_device - next - kGap ||
      infos_.size() == kMostAllocations) {
    report("the address space of the emulator is used up: run fewer tests in one process");
    return 0;
  }
  const auto id = static_cast<std::uint32_t>(infos_.size());
  next = rounded(begin + bytes, kAlignment) + kGap;
  const Open open(*this);
  if (opened_ > 1) protect(PROT_READ | PROT_WRITE);
  std::memset(reinterpret_cast<void*>(begin), kPoison, bytes);
  std::fill_n(owner_ + (begin - base_) / kUnit, rounded(bytes, kUnit) / kUnit, id);
  allocations_[id] = {begin, begin + bytes, devices, 0};
  info.live = true;
  infos_.push_back(std::move(info));
  by_begin_[begin] = id;
  return begin;
}

void Memory::release(std::uint32_t id, std::uint32_t node, const char* api) {
  Allocation& range = allocations_[id];
  AllocationInfo& info = infos_[id];
  range.devices = 0;
  info.live = false;
  info.freed = node;
  info.freed_by = api;
  info.users.clear();
  info.users.shrink_to_fit();
  const std::uintptr_t first = rounded(range.begin, 4096), last = range.end / 4096 * 4096;
  if (first >= last) return;
  madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
  if (cells_) {
    madvise(cells_ + (first - base_) / 4, (last - first) / 4 * sizeof(Cell), MADV_DONTNEED);
  }
}

std::uint32_t Memory::nearest(std::uintptr_t address) const {
  auto at = by_begin_.upper_bound(address);
  if (at == by_begin_.begin()) return 0;
  return std::prev(at)->second;
}

std::uint32_t Memory::beginning_at(std::uintptr_t address) const {
  const auto at = by_begin_.find(address);
  return at != by_begin_.end() && infos_[at->second].live ? at->second : 0;
}

std::string Memory::describe(std::uintptr_t address) const {
  if (!is_device(address)) {
    if (address < 65536) return "a null pointer";
    if (find_pinned(address, 1)) return "page-locked memory of the host";
    return "memory of the host";
  }
  std::uint32_t id = nearest(address);
  const auto next = by_begin_.upper_bound(address);
  const bool before = next != by_begin_.end() && next->first - address <= kGap / 2 &&
                      (id == 0 || address >= allocations_[id].end + kGap / 2);
  if (before) id = next->second;
  if (id == 0) return "no allocation of any device";
  const Allocation& range = allocations_[id];
  const AllocationInfo& info = infos_[id];
  std::string text;
  if (before) {
    text =
        format("%zu bytes before the begin of ", static_cast<std::size_t>(range.begin - address));
  } else if (address >= range.end) {
    text = format("%zu bytes past the end of ", static_cast<std::size_t>(address - range.end));
  } else {
    text = format("at byte %zu of ", static_cast<std::size_t>(address - range.begin));
  }
  text += format("%zu bytes of device %d (%s", static_cast<std::size_t>(range.end - range.begin),
                 info.device, info.api);
  if (!info.live) text += format(", freed by %s", info.freed_by);
  return text + ")";
}

void Memory::set_devices(int owner, bool stream_ordered, const void* pool, std::uint32_t devices) {
  for (std::size_t id = 1; id < infos_.size(); ++id) {
    const AllocationInfo& info = infos_[id];
    if (!info.live || info.device != owner || info.stream_ordered != stream_ordered) continue;
    if (stream_ordered && info.pool != pool) continue;
    allocations_[id].devices = devices;
  }
}

const Pinned* Memory::find_pinned(std::uintptr_t address, std::uint64_t bytes) const {
  auto at = pinned.upper_bound(address);
  if (at == pinned.begin()) return nullptr;
  const Pinned& found = std::prev(at)->second;
  return address + bytes <= found.end ? &found : nullptr;
}

bool Memory::in_module(std::uintptr_t address, std::uint64_t bytes) const {
  auto at = modules.upper_bound(address);
  return at != modules.begin() && address + bytes <= std::prev(at)->second;
}

void Memory::fill(Checks& checks) const {
  checks.arena = base_;
  checks.arena_bytes = bytes_;
  checks.owner = owner_;
  checks.allocations = allocations_;
  checks.cells = cells_;
}

void Memory::open() {
  if (opened_++ == 0 && settings().host_checks) protect(PROT_READ | PROT_WRITE);
}

void Memory::close() {
  if (--opened_ == 0 && settings().host_checks) protect(PROT_NONE);
}

void Memory::protect(int protection) {
  for (std::size_t i = 0; i < next_.size(); ++i) {
    const std::uintptr_t begin = base_ + i * kDeviceSpan;
    const std::uintptr_t used =
        settings().host_checks ? rounded(next_[i] - begin, kHugePage) : kDeviceSpan;
    mprotect(reinterpret_cast<void*>(begin), used, protection);
  }
}

}  // namespace emulator
