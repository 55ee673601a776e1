// What a kernel did wrong, in words; and the order of accesses by other means than kernels.
#include <algorithm>

#include "tests/cuda_emulator/block.h"
#include "tests/cuda_emulator/report.h"

namespace emulator {
namespace {

constexpr int kIllegalAddress = 700;
constexpr int kMisaligned = 716;
constexpr int kLaunchFailed = 719;

std::string triple(const std::uint32_t* v) { return format("(%u,%u,%u)", v[0], v[1], v[2]); }

}  // namespace

void Machine::touch_in_kernel(std::uint32_t allocation, const void* pc) {
  if (!touch(allocation, checks_.node, *clock_)) abandon(kLaunchFailed, "", pc);
}

bool Machine::elsewhere(std::uintptr_t address, std::uint32_t bytes) const {
  return memory_.find_pinned(address, bytes) || memory_.in_module(address, bytes);
}

std::string Machine::where() const {
  if (threads_.empty() || !threads_[current_].fiber) return "block ?, thread ?";
  const ThreadContext& c = *threads_[current_].fiber->context;
  return "block " + triple(c.block) + ", thread " + triple(c.thread);
}

// Leaves the fiber for good. The block is abandoned, as on hardware.
void Machine::abandon(int code, const std::string& what, const void* pc) {
  if (!what.empty()) {
    report(what + "\n    in kernel " + launch_.name + ", " + where() +
           (pc ? ", " + source_line(pc) : ""));
  }
  code_ = code;
  void* nowhere = nullptr;
  emulator_switch(&nowhere, scheduler_);
  __builtin_unreachable();
}

// The parameter that points into the allocation that was meant, or below it.
std::string Machine::argument_of(std::uintptr_t address) const {
  const Kernel& kernel = *launch_.kernel;
  const std::uint32_t meant = memory_.is_device(address) ? memory_.nearest(address) : 0;
  int best = -1;
  std::uintptr_t nearest = 0;
  for (std::uint32_t i = 0; i < kernel.parameter_count; ++i) {
    if (!kernel.parameters[i].pointer) continue;
    const auto value = *static_cast<const std::uintptr_t*>(launch_.arguments[i]);
    if (value > address || value < nearest) continue;
    if (meant && memory_.nearest(value) != meant) continue;
    if (!meant && address - value > (std::uintptr_t{1} << 40)) continue;
    best = static_cast<int>(i);
    nearest = value;
  }
  return best < 0 ? "" : format(", from argument %d", best);
}

void Machine::explain_fault(Fault fault, std::uintptr_t address, std::uint32_t bytes,
                            const char* access, const void* pc) {
  const std::string what =
      format("%s %u bytes at %#zx", access, bytes, static_cast<std::size_t>(address));
  const std::string place = memory_.describe(address) + argument_of(address);
  if (fault == Fault::misaligned) {
    return abandon(kMisaligned, "misaligned: " + what + ", " + place, pc);
  }
  const char* title = "out of bounds: ";
  if (address - checks_.shared < kSharedSpan) {
    const std::uintptr_t at = address - checks_.shared;
    return abandon(
        kIllegalAddress,
        format("out of bounds: %s: shared memory has %zu bytes declared and %zu dynamic, "
               "this is byte %zu",
               what.c_str(), static_cast<std::size_t>(checks_.static_shared_bytes),
               static_cast<std::size_t>(checks_.dynamic_shared_bytes),
               static_cast<std::size_t>(at >= checks_.dynamic_shared - checks_.shared
                                            ? address - checks_.dynamic_shared
                                            : at)),
        pc);
  }
  if (!memory_.is_device(address)) {
    title = address < 65536 ? "null pointer: " : "host pointer: ";
  } else if (const std::uint32_t id = memory_.nearest(address)) {
    const Allocation& range = memory_.range(id);
    const bool inside = address < range.end;
    if (!memory_.info(id).live)
      title = "use after free: ";
    else if (inside && !(range.devices & checks_.device_bit))
      title = "wrong device: ";
  }
  abandon(kIllegalAddress,
          title + what + " on device " + std::to_string(launch_.device) + ", " + place, pc);
}

void Machine::explain_race(std::uintptr_t address, std::uint32_t bytes, const char* access,
                           const Access& other, const char* earlier, const void* pc) {
  std::string by;
  if (other.node != checks_.node) {
    by = format("%s by %s, with which it is not ordered", earlier, order_.name(other.node));
  } else if (other.block == kSeveralBlocks) {
    by = format("%s by several blocks", earlier);
  } else if (other.thread == kSeveralThreads) {
    by = format("%s by several threads of block %u", earlier, other.block);
  } else {
    by = format("%s by thread %u of block %u", earlier, other.thread, other.block);
  }
  const bool shared = address - checks_.shared < kSharedSpan;
  const std::string title = other.node == checks_.node ? "race: " : "missing synchronisation: ";
  abandon(kLaunchFailed,
          title +
              format("%s %u bytes at %#zx, %s%s, after ", access, bytes,
                     static_cast<std::size_t>(address),
                     shared ? "shared memory" : memory_.describe(address).c_str(),
                     shared ? "" : argument_of(address).c_str()) +
              by,
          pc);
}

void Machine::give_up_on_signal(std::uintptr_t address) {
  const bool stack = fibers_.in_guard(address);
  abandon(kIllegalAddress,
          stack ? "the stack of a thread is used up"
                : format("a signal of the processor at address %#zx",
                         static_cast<std::size_t>(address)),
          nullptr);
}

bool Machine::touch(std::uint32_t allocation, std::uint32_t node, const Clock& clock) {
  const_cast<Allocation&>(memory_.range(allocation)).touched = node;
  AllocationInfo& info = memory_.info(allocation);
  if (!order_.after(clock, info.made)) {
    report(
        format("missing synchronisation: %s uses memory that %s allocates, with which it is not "
               "ordered",
               order_.name(node), order_.name(info.made)));
    return false;
  }
  auto& users = info.users;
  users.erase(std::remove_if(users.begin(), users.end(),
                             [&](std::uint32_t user) { return order_.after(clock, user); }),
              users.end());
  users.push_back(node);
  return true;
}

bool Machine::access(std::uintptr_t address, std::uint64_t bytes, bool write, std::uint32_t node,
                     const Clock& clock) {
  if (bytes == 0 || !memory_.is_device(address)) return true;
  const std::uint32_t id = checks_.owner[(address - checks_.arena) / kUnit];
  if (memory_.range(id).touched != node && !touch(id, node, clock)) return false;
  if (!checks_.cells) return true;
  const auto conflict = [&](const Access& other, const char* earlier) {
    if (other.node == 0 || other.node == node || order_.after(clock, other.node)) return false;
    report(
        format("missing synchronisation: %s %s memory (%s) after %s by %s, with which it is not "
               "ordered",
               order_.name(node), write ? "writes" : "reads", memory_.describe(address).c_str(),
               earlier, order_.name(other.node)));
    return true;
  };
  Cell* cell = checks_.cells + (address - checks_.arena) / 4;
  Cell* const end = checks_.cells + (address + bytes - checks_.arena + 3) / 4;
  const Access mine{node, 0, 0, 0, 0xf, 0};
  for (; cell != end; ++cell) {
    if (conflict(cell->write, "a write")) return false;
    if (write) {
      if (conflict(cell->read, "a read")) return false;
      cell->write = mine;
    } else if (cell->read.node != 0 && cell->read.node != node &&
               !order_.after(clock, cell->read.node)) {
      cell->read.node = order_.both(cell->read.node, node);
    } else {
      cell->read = mine;
    }
  }
  return true;
}

}  // namespace emulator
