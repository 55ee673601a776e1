// Where temporaries lie inside the one block of memory that a call takes for them.
#pragma once

#include <cstdint>
#include <vector>

namespace croton {

/// Something that needs `bytes` from step `first` to step `last`, both included.
struct ArenaItem {
  std::int64_t bytes = 0;
  std::int32_t first = 0;
  std::int32_t last = 0;
  std::int64_t offset = 0;  ///< filled in by lay_out
};

/// Gives each item an offset, a multiple of `alignment`, such that items that live at the same step
/// do not overlap: in order of first steps, each takes the smallest hole it fits in. Gives the
/// bytes needed in all. Time is O(n log n).
std::int64_t lay_out(std::vector<ArenaItem>& items, std::int64_t alignment);

}  // namespace croton
