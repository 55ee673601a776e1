// Where the checks of accesses look.
#pragma once

#include <cstdint>

namespace emulator {

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

enum class Fault { memory, misaligned };

/// For the launch that runs.
struct Checks {
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
};

}  // namespace emulator
