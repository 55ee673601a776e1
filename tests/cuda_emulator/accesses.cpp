// What happens at each access of a kernel: bounds and races.
#include "tests/cuda_emulator/abi.h"
#include "tests/cuda_emulator/block.h"

namespace emulator {
namespace {

// Two accesses of one launch are ordered within a thread, by a barrier within a block, by a
// synchronisation within a warp; across blocks only by a fence and an atomic.
inline bool apart(const Checks& t, const ThreadContext& me, const Access& other) {
  if (other.node == 0) return true;
  if (other.node != t.node) {
    if (other.node >= kSeveralNodes) return Machine::running->ordered(other.node);
    const Place place = t.places[other.node];
    return place.component < t.clock_size && place.tick <= t.clock[place.component];
  }
  if (other.block != me.block_linear) return me.fenced == 3;
  if (other.epoch >> 16 != me.epoch >> 16) return true;
  if (other.thread == me.linear) return true;
  return other.thread / 32 == me.linear / 32 && other.epoch != me.epoch;
}

inline void note_read(const Checks& t, const ThreadContext& me, Access& read, std::uint8_t mask,
                      bool atomic, bool shared) {
  Access now{t.node, me.block_linear, me.epoch, static_cast<std::uint16_t>(me.linear),
             mask,   atomic};
  if (read.node == t.node) {
    const bool same_block = read.block == now.block;
    const bool same_epoch = same_block && read.epoch >> 16 == now.epoch >> 16;
    if (same_epoch && read.thread == now.thread) {
      now.bytes |= read.bytes;
    } else if (same_epoch || (!same_block && !shared)) {
      // Both are unordered with others. Of different bytes only the newer is remembered.
      if (read.bytes & mask) {
        now.bytes &= read.bytes;
        if (same_block)
          now.thread = kSeveralThreads;
        else
          now.block = kSeveralBlocks;
      }
    }
  } else if (read.node != 0 && !shared && !apart(t, me, read)) {
    now.node = Machine::running->join(read.node, t.node);
  }
  read = now;
}

// Shared memory is new in each block.
inline bool other_block(const Checks& t, const ThreadContext& me, const Access& other) {
  return other.node != t.node || other.block != me.block_linear;
}

inline void check_races(const Checks& t, const ThreadContext& me, Cell* cell,
                        std::uintptr_t address, unsigned bytes, bool write, bool atomic,
                        bool shared, const char* access, const void* pc) {
  const std::uintptr_t end = address + bytes;
  for (std::uintptr_t at = address & ~std::uintptr_t{3}; at < end; at += 4, ++cell) {
    const unsigned first = at < address ? static_cast<unsigned>(address - at) : 0;
    const unsigned last = end - at < 4 ? static_cast<unsigned>(end - at) : 4;
    const auto mask = static_cast<std::uint8_t>((1u << last) - (1u << first));
    Access& written = cell->write;
    if ((written.bytes & mask) && !(atomic && written.atomic && written.node == t.node) &&
        !apart(t, me, written) && !(shared && other_block(t, me, written))) {
      Machine::running->explain_race(address, bytes, access, written,
                                     written.atomic ? "an atomic" : "a write", pc);
    }
    if (write && (cell->read.bytes & mask) &&
        !(atomic && cell->read.atomic && cell->read.node == t.node) && !apart(t, me, cell->read) &&
        !(shared && other_block(t, me, cell->read))) {
      Machine::running->explain_race(address, bytes, access, cell->read, "a read", pc);
    }
    if (write) {
      written = {t.node, me.block_linear, me.epoch, static_cast<std::uint16_t>(me.linear),
                 mask,   atomic};
    } else {
      note_read(t, me, cell->read, mask, atomic, shared);
    }
  }
}

inline bool in(std::uintptr_t address, unsigned bytes, std::uintptr_t base, std::uintptr_t size) {
  return address - base < size && address + bytes - base <= size;
}

}  // namespace

void Machine::on_access(std::uintptr_t address, std::uint32_t bytes, std::uint32_t alignment,
                        AccessKind kind, const void* pc) {
  Machine& m = *running;
  const Checks& t = m.checks_;
  const ThreadContext& me = *thread_context();
  const bool atomic = kind == AccessKind::atomic;
  const bool write = kind != AccessKind::read;
  const char* access = atomic ? "updates" : write ? "writes" : "reads";
  if (address & (alignment - 1)) m.explain_fault(Fault::misaligned, address, bytes, access, pc);
  const std::uintptr_t offset = address - t.arena;
  if (offset < t.arena_bytes) {
    const std::uint32_t id = t.owner[offset / kUnit];
    const Allocation& owner = t.allocations[id];
    if (address < owner.begin || address + bytes > owner.end || !(owner.devices & t.device_bit)) {
      m.explain_fault(Fault::memory, address, bytes, access, pc);
    }
    if (owner.touched != t.node) m.touch_in_kernel(id, pc);
    if (t.cells) {
      check_races(t, me, t.cells + offset / 4, address, bytes, write, atomic, false, access, pc);
    }
    return;
  }
  const auto slot = reinterpret_cast<std::uintptr_t>(&me) & ~(kSlotBytes - 1);
  if (address - slot < kSlotBytes) return;
  if (in(address, bytes, t.shared, t.static_shared_bytes) ||
      in(address, bytes, t.dynamic_shared, t.dynamic_shared_bytes)) {
    if (!t.cells) return;
    Cell* cell = t.shared_cells + (address - t.shared) / 4;
    return check_races(t, me, cell, address, bytes, write, atomic, true, access, pc);
  }
  if (!m.elsewhere(address, bytes)) {
    m.explain_fault(Fault::memory, address, bytes, access, pc);
  }
}

}  // namespace emulator
