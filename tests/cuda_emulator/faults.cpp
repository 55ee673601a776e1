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

void Machine::install_services() {
  tables_.fault = &Machine::on_fault;
  tables_.race = &Machine::on_race;
  tables_.touch = [](std::uint32_t allocation, const void* pc) {
    Machine& m = machine();
    if (!m.touch(allocation, m.tables_.node, *m.clock_)) m.abandon(kLaunchFailed, "", pc);
  };
  tables_.elsewhere = [](std::uintptr_t address, std::uint32_t bytes, bool) {
    Machine& m = machine();
    return m.memory_.find_pinned(address, bytes) || m.memory_.in_module(address, bytes);
  };
  tables_.ordered = [](std::uint32_t node) {
    Machine& m = machine();
    return m.order_.after(*m.clock_, node);
  };
  tables_.join = [](std::uint32_t readers, std::uint32_t node) {
    return machine().order_.both(readers, node);
  };
  tables_.barrier = [](BarrierOp op, std::uint32_t value, const void* pc) {
    return machine().barrier(op, value, pc);
  };
  tables_.warp = [](WarpOp op, std::uint32_t mask, std::uint64_t value, std::uint32_t argument,
                    std::uint32_t width, const void* pc) {
    return machine().warp(op, mask, value, argument, width, pc);
  };
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
                            const char* access, const char* detail, const void* pc) {
  if (fault == Fault::undefined)
    return abandon(kLaunchFailed, std::string("undefined: ") + detail, pc);
  const std::string what =
      format("%s %u bytes at %#zx", access, bytes, static_cast<std::size_t>(address));
  const std::string place = memory_.describe(address) + argument_of(address);
  if (fault == Fault::misaligned) {
    return abandon(kMisaligned, "misaligned: " + what + ", " + place, pc);
  }
  const char* title = "out of bounds: ";
  if (address - tables_.shared < 512 * 1024) {
    const std::uintptr_t at = address - tables_.shared;
    return abandon(
        kIllegalAddress,
        format("out of bounds: %s: shared memory has %zu bytes declared and %zu dynamic, "
               "this is byte %zu",
               what.c_str(), static_cast<std::size_t>(tables_.static_shared_bytes),
               static_cast<std::size_t>(tables_.dynamic_shared_bytes),
               static_cast<std::size_t>(at >= tables_.dynamic_shared - tables_.shared
                                            ? address - tables_.dynamic_shared
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
    else if (inside && !(range.devices & tables_.device_bit))
      title = "wrong device: ";
  }
  abandon(kIllegalAddress,
          title + what + " on device " + std::to_string(launch_.device) + ", " + place, pc);
}

void Machine::on_fault(Fault fault, std::uintptr_t address, std::uint32_t bytes, const char* access,
                       const char* detail, const void* pc) {
  machine().explain_fault(fault, address, bytes, access, detail, pc);
  __builtin_unreachable();
}

void Machine::on_race(std::uintptr_t address, std::uint32_t bytes, const char* access,
                      const Access* other, const char* earlier, const void* pc) {
  Machine& m = machine();
  std::string by;
  if (other->node != m.tables_.node) {
    by = format("%s by %s, with which it is not ordered", earlier, m.order_.name(other->node));
  } else if (other->block == kSeveralBlocks) {
    by = format("%s by several blocks", earlier);
  } else if (other->thread == kSeveralThreads) {
    by = format("%s by several threads of block %u", earlier, other->block);
  } else {
    by = format("%s by thread %u of block %u", earlier, other->thread, other->block);
  }
  const bool shared = address - m.tables_.shared < 512 * 1024;
  const std::string title = other->node == m.tables_.node ? "race: " : "missing synchronisation: ";
  m.abandon(kLaunchFailed,
            title +
                format("%s %u bytes at %#zx, %s%s, after ", access, bytes,
                       static_cast<std::size_t>(address),
                       shared ? "shared memory" : m.memory_.describe(address).c_str(),
                       shared ? "" : m.argument_of(address).c_str()) +
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
  const std::uint32_t id = tables_.owner[(address - tables_.arena) / kUnit];
  if (memory_.range(id).touched != node && !touch(id, node, clock)) return false;
  if (!tables_.cells) return true;
  const auto conflict = [&](const Access& other, const char* earlier) {
    if (other.node == 0 || other.node == node || order_.after(clock, other.node)) return false;
    report(
        format("missing synchronisation: %s %s memory (%s) after %s by %s, with which it is not "
               "ordered",
               order_.name(node), write ? "writes" : "reads", memory_.describe(address).c_str(),
               earlier, order_.name(other.node)));
    return true;
  };
  Cell* cell = tables_.cells + (address - tables_.arena) / 4;
  Cell* const end = tables_.cells + (address + bytes - tables_.arena + 3) / 4;
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
