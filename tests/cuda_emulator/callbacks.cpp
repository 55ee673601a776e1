// What the instrumented text of kernels calls. Linked into every host library of kernels, hidden,
// so that neither a sanitizer of the program nor another library can take the names over.
#include <cstring>

#include "tests/cuda_emulator/abi.h"

using namespace emulator;

namespace {

Tables* tables = nullptr;

struct TlsIndex {
  unsigned long module, offset;
};

inline ThreadContext* self() {
  std::uintptr_t stack;
  asm("mov %%rsp, %0" : "=r"(stack));
  return reinterpret_cast<ThreadContext*>((stack | (kSlotBytes - 1)) + 1 - kContextBytes);
}

// Two accesses of one launch are ordered within a thread, by a barrier within a block, by a
// synchronisation within a warp; across blocks only by a fence and an atomic.
inline bool apart(const Tables& t, const ThreadContext& me, const Access& other) {
  if (other.node == 0) return true;
  if (other.node != t.node) {
    if (other.node >= kSeveralNodes) return t.ordered(other.node);
    const Place place = t.places[other.node];
    return place.component < t.clock_size && place.tick <= t.clock[place.component];
  }
  if (other.block != me.block_linear) return me.fenced == 3;
  if (other.epoch >> 16 != me.epoch >> 16) return true;
  if (other.thread == me.linear) return true;
  return other.thread / 32 == me.linear / 32 && other.epoch != me.epoch;
}

inline void note_read(const Tables& t, const ThreadContext& me, Access& read, std::uint8_t mask,
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
    now.node = t.join(read.node, t.node);
  }
  read = now;
}

// Shared memory is new in each block.
inline bool other_block(const Tables& t, const ThreadContext& me, const Access& other) {
  return other.node != t.node || other.block != me.block_linear;
}

inline void check_races(const Tables& t, const ThreadContext& me, Cell* cell,
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
      t.race(address, bytes, access, &written, written.atomic ? "an atomic" : "a write", pc);
    }
    if (write && (cell->read.bytes & mask) &&
        !(atomic && cell->read.atomic && cell->read.node == t.node) && !apart(t, me, cell->read) &&
        !(shared && other_block(t, me, cell->read))) {
      t.race(address, bytes, access, &cell->read, "a read", pc);
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

void check(std::uintptr_t address, unsigned bytes, unsigned alignment, bool write, bool atomic,
           const char* access, const void* pc) {
  if (!tables) return;
  const Tables& t = *tables;
  const ThreadContext& me = *self();
  if (address & (alignment - 1)) t.fault(Fault::misaligned, address, bytes, access, nullptr, pc);
  const std::uintptr_t offset = address - t.arena;
  if (offset < t.arena_bytes) {
    const std::uint32_t id = t.owner[offset / kUnit];
    const Allocation& owner = t.allocations[id];
    if (address < owner.begin || address + bytes > owner.end || !(owner.devices & t.device_bit)) {
      t.fault(Fault::memory, address, bytes, access, nullptr, pc);
    }
    if (owner.touched != t.node) t.touch(id, pc);
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
  if (!t.elsewhere(address, bytes, write)) {
    t.fault(Fault::memory, address, bytes, access, nullptr, pc);
  }
}

#define CALLER __builtin_return_address(0)

inline void check(const void* address, unsigned bytes, unsigned alignment, bool write,
                  const void* pc) {
  check(reinterpret_cast<std::uintptr_t>(address), bytes, alignment, write, false,
        write ? "writes" : "reads", pc);
}

[[noreturn]] void undefined(const char* what, const void* pc) {
  if (tables) tables->fault(Fault::undefined, 0, 0, "does", what, pc);
  __builtin_trap();
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) void emulator_attach(Tables* with) { tables = with; }

void* __tls_get_addr(TlsIndex* index) { return self()->static_shared + index->offset; }

#define ACCESSES(bytes)                                                                \
  void __tsan_read##bytes(void* p) { check(p, bytes, bytes, false, CALLER); }          \
  void __tsan_write##bytes(void* p) { check(p, bytes, bytes, true, CALLER); }          \
  void __tsan_volatile_read##bytes(void* p) { check(p, bytes, bytes, false, CALLER); } \
  void __tsan_volatile_write##bytes(void* p) { check(p, bytes, bytes, true, CALLER); } \
  void __tsan_unaligned_read##bytes(void* p) { check(p, bytes, 1, false, CALLER); }    \
  void __tsan_unaligned_write##bytes(void* p) { check(p, bytes, 1, true, CALLER); }
ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)

void __tsan_read_range(void* p, unsigned long bytes) {
  check(p, static_cast<unsigned>(bytes), 1, false, CALLER);
}
void __tsan_write_range(void* p, unsigned long bytes) {
  check(p, static_cast<unsigned>(bytes), 1, true, CALLER);
}
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}

// Vector accesses come as copies of structures, which the compiler may turn into these.
void* __tsan_memcpy(void* to, const void* from, unsigned long bytes) {
  check(from, static_cast<unsigned>(bytes), 1, false, CALLER);
  check(to, static_cast<unsigned>(bytes), 1, true, CALLER);
  return std::memcpy(to, from, bytes);
}
void* __tsan_memset(void* to, int value, unsigned long bytes) {
  check(to, static_cast<unsigned>(bytes), 1, true, CALLER);
  return std::memset(to, value, bytes);
}

void emu_fence() { self()->fenced |= 1; }

void emu_atomic(const volatile void* p, unsigned bytes, const void* pc) {
  ThreadContext* me = self();
  if (me->fenced & 1) me->fenced |= 2;
  check(reinterpret_cast<std::uintptr_t>(p), bytes, bytes, true, true, "updates", pc);
}

unsigned emu_barrier(unsigned op, unsigned value) {
  if (!tables) return 0;
  const auto passed = tables->barrier(static_cast<BarrierOp>(op), value, CALLER);
  return passed;
}

unsigned long long emu_warp(unsigned op, unsigned mask, unsigned long long value, unsigned argument,
                            unsigned width) {
  if (!tables) return 0;
  return tables->warp(static_cast<WarpOp>(op), mask, value, argument, width, CALLER);
}

void emu_trap(const char* what) { undefined(what, CALLER); }

#define UNDEFINED(name, what)                                                  \
  void __ubsan_handle_##name(void*, void*, void*) { undefined(what, CALLER); } \
  void __ubsan_handle_##name##_abort(void*, void*, void*) { undefined(what, CALLER); }
UNDEFINED(out_of_bounds, "an index out of the bounds of an array")
UNDEFINED(shift_out_of_bounds, "a shift by more than the width of its type")
UNDEFINED(divrem_overflow, "a division of integers by zero, or one that overflows")
UNDEFINED(add_overflow, "a signed addition that overflows")
UNDEFINED(sub_overflow, "a signed subtraction that overflows")
UNDEFINED(mul_overflow, "a signed multiplication that overflows")
UNDEFINED(negate_overflow, "a negation that overflows")
UNDEFINED(float_cast_overflow, "a conversion from float beyond the range of its type")
}
