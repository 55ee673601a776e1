// What the instrumented text of kernels calls, which hands it on to the driver: programs keep
// compiled kernels on disk, and these must not age when the checks change. Linked into every host
// library of kernels, hidden, so that neither a sanitizer of the program nor another library can
// take the names over.
#include <cstring>

#include "tests/cuda_emulator/abi.h"

using namespace emulator;

namespace {

const Tables* tables = nullptr;

struct TlsIndex {
  unsigned long module, offset;
};

#define CALLER __builtin_return_address(0)

inline void check(const volatile void* address, unsigned bytes, unsigned alignment, AccessKind kind,
                  const void* pc) {
  if (!tables) return;
  tables->access(reinterpret_cast<std::uintptr_t>(address), bytes, alignment, kind, pc);
}

[[noreturn]] void undefined(const char* what, const void* pc) {
  if (tables) tables->undefined(what, pc);
  __builtin_trap();
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) std::uint32_t emulator_attach(const Tables* with) {
  tables = with;
  return kAbiVersion;
}

void* __tls_get_addr(TlsIndex* index) { return thread_context()->static_shared + index->offset; }

#define ACCESSES(bytes)                                                                           \
  void __tsan_read##bytes(void* p) { check(p, bytes, bytes, AccessKind::read, CALLER); }          \
  void __tsan_write##bytes(void* p) { check(p, bytes, bytes, AccessKind::write, CALLER); }        \
  void __tsan_volatile_read##bytes(void* p) { check(p, bytes, bytes, AccessKind::read, CALLER); } \
  void __tsan_volatile_write##bytes(void* p) {                                                    \
    check(p, bytes, bytes, AccessKind::write, CALLER);                                            \
  }                                                                                               \
  void __tsan_unaligned_read##bytes(void* p) { check(p, bytes, 1, AccessKind::read, CALLER); }    \
  void __tsan_unaligned_write##bytes(void* p) { check(p, bytes, 1, AccessKind::write, CALLER); }
ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)

void __tsan_read_range(void* p, unsigned long bytes) {
  check(p, static_cast<unsigned>(bytes), 1, AccessKind::read, CALLER);
}
void __tsan_write_range(void* p, unsigned long bytes) {
  check(p, static_cast<unsigned>(bytes), 1, AccessKind::write, CALLER);
}
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}

// Vector accesses come as copies of structures, which the compiler may turn into these.
void* __tsan_memcpy(void* to, const void* from, unsigned long bytes) {
  check(from, static_cast<unsigned>(bytes), 1, AccessKind::read, CALLER);
  check(to, static_cast<unsigned>(bytes), 1, AccessKind::write, CALLER);
  return std::memcpy(to, from, bytes);
}
void* __tsan_memset(void* to, int value, unsigned long bytes) {
  check(to, static_cast<unsigned>(bytes), 1, AccessKind::write, CALLER);
  return std::memset(to, value, bytes);
}

void emu_fence() { thread_context()->fenced |= 1; }

void emu_atomic(const volatile void* p, unsigned bytes, const void* pc) {
  ThreadContext* me = thread_context();
  if (me->fenced & 1) me->fenced |= 2;
  check(p, bytes, bytes, AccessKind::atomic, pc);
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
