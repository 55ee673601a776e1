// What the emulated driver and the host libraries of kernels share.
#pragma once

#include <cstddef>
#include <cstdint>

namespace emulator {

/// Every thread of a block runs on a stack slot of this size, aligned to it; its context is in the
/// slot's last bytes, so that the stack pointer alone finds it.
constexpr std::uintptr_t kSlotBytes = 128 * 1024;
constexpr std::uintptr_t kContextBytes = 256;

struct ThreadContext {
  std::uint32_t thread[3], block[3], block_size[3], grid_size[3];  // device.h reads these
  char* dynamic_shared;                                            // and this
  char* static_shared;
  std::uint32_t linear;        // the thread in its block
  std::uint32_t block_linear;  // the block in its grid
  std::uint32_t epoch;         // barriers passed << 16 | synchronisations of the warp
  std::uint32_t fenced;        // a fence and then an atomic: see race()
};
static_assert(offsetof(ThreadContext, dynamic_shared) == 48, "device.h counts on it");
static_assert(sizeof(ThreadContext) <= kContextBytes);

/// The context of the calling thread of a block.
inline ThreadContext* thread_context() {
  std::uintptr_t stack;
  asm("mov %%rsp, %0" : "=r"(stack));
  return reinterpret_cast<ThreadContext*>((stack | (kSlotBytes - 1)) + 1 - kContextBytes);
}

enum class WarpOp : std::uint32_t {
  sync,
  shuffle_index,
  shuffle_up,
  shuffle_down,
  shuffle_xor,
  all,
  any,
  ballot,
  match_any,
  match_all,
  reduce_add,
  reduce_min,
  reduce_max,
  reduce_min_signed,
  reduce_max_signed,
  reduce_and,
  reduce_or,
  reduce_xor,
  active
};

enum class BarrierOp : std::uint32_t { plain, count, all, any };

enum class AccessKind : std::uint32_t { read, write, atomic };

/// Counts changes of what follows here and of device.h. Libraries of kernels say which they know.
constexpr std::uint32_t kAbiVersion = 1;

/// What libraries of kernels call. No pointer is null.
struct Tables {
  void (*access)(std::uintptr_t address, std::uint32_t bytes, std::uint32_t alignment, AccessKind,
                 const void* pc);
  void (*undefined)(const char* what, const void* pc);  // does not return
  std::uint32_t (*barrier)(BarrierOp, std::uint32_t value, const void* pc);
  std::uint64_t (*warp)(WarpOp, std::uint32_t mask, std::uint64_t value, std::uint32_t argument,
                        std::uint32_t width, const void* pc);
};

/// A parameter of a kernel.
struct Parameter {
  std::uint32_t size, alignment;
  bool pointer;
};

/// A kernel of a host library. `emulator_kernels` is an array that ends with a null `address`.
struct Kernel {
  const void* address;
  void (*call)(void** arguments);
  const Parameter* parameters;
  std::uint32_t parameter_count;
  std::uint32_t launch_bound;  // 0: none
};

}  // namespace emulator
