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

/// Device memory is owned in units of this many bytes; no two allocations share one.
constexpr std::uintptr_t kUnit = 256;

struct Allocation {
  std::uintptr_t begin = 0, end = 0;
  std::uint32_t devices = 0;  // a bit for each device that may use it; none once freed
  std::uint32_t touched = 0;  // the last node that touched it
};

/// Who accessed a cell of 4 bytes last. A `node` with the highest bit set stands for several.
struct Access {
  std::uint32_t node = 0;
  std::uint32_t block = 0;
  std::uint32_t epoch = 0;
  std::uint16_t thread = 0;
  std::uint8_t bytes = 0;  // a bit for each byte
  std::uint8_t atomic = 0;
};
constexpr std::uint16_t kSeveralThreads = 0xffff;
constexpr std::uint32_t kSeveralBlocks = 0xffffffffu;
constexpr std::uint32_t kSeveralNodes = 0x80000000u;

struct Cell {
  Access write, read;
};

/// A node's place in the partial order of all work: tick `tick` of component `component`.
struct Place {
  std::uint32_t component, tick;
};

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

enum class Fault : std::uint32_t { memory, misaligned, race, undefined };

/// Where the checks look, and whom they call.
struct Tables {
  std::uintptr_t arena = 0, arena_bytes = 0;
  const std::uint32_t* owner = nullptr;  // of each unit: an index of `allocations`, 0 for none
  Allocation* allocations = nullptr;
  Cell* cells = nullptr;  // null when races are not looked for
  std::uintptr_t shared = 0, static_shared_bytes = 0, dynamic_shared = 0, dynamic_shared_bytes = 0;
  Cell* shared_cells = nullptr;
  const Place* places = nullptr;
  const std::uint32_t* clock = nullptr;  // what the running node comes after
  std::uint32_t clock_size = 0;
  std::uint32_t node = 0;
  std::uint32_t device_bit = 0;

  void (*fault)(Fault, std::uintptr_t address, std::uint32_t bytes, const char* access,
                const char* detail, const void* pc) = nullptr;  // does not return
  void (*race)(std::uintptr_t address, std::uint32_t bytes, const char* access, const Access* other,
               const char* earlier, const void* pc) = nullptr;  // does not return
  void (*touch)(std::uint32_t allocation, const void* pc) = nullptr;
  bool (*elsewhere)(std::uintptr_t address, std::uint32_t bytes, bool write) = nullptr;
  bool (*ordered)(std::uint32_t node) = nullptr;
  std::uint32_t (*join)(std::uint32_t readers, std::uint32_t node) = nullptr;
  std::uint32_t (*barrier)(BarrierOp, std::uint32_t value, const void* pc) = nullptr;
  std::uint64_t (*warp)(WarpOp, std::uint32_t mask, std::uint64_t value, std::uint32_t argument,
                        std::uint32_t width, const void* pc) = nullptr;
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
