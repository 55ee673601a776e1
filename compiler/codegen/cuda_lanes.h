// How the iterations of `lanes` are dealt out to the threads of a block.
#pragma once

#include <set>
#include <unordered_map>
#include <vector>

#include "compiler/kernel/kernel.h"

namespace croton::codegen {

/// Thread t of T takes `width` counters from t * width on, then those T * width later, and so on,
/// with accesses of up to 16 bytes to what lies side by side. What is left over at the end, or all
/// of it where rows are not aligned, goes one counter a thread.
struct LaneLayout {
  int width = 1;
  std::set<kernel::Id> wide;          ///< loads and stores made for all `width` counters at once
  std::vector<kernel::Id> multiples;  ///< values that must be multiples of the width for that
  std::set<kernel::Id> same;          ///< values that are equal for all `width` counters
  std::set<kernel::Id> ordinal;       ///< values that are 0, 1, ... modulo the width for them
  bool whole = false;                 ///< the extent is a multiple of the width
  int turns = 0;  ///< written out: so many sweeps of the block cover the extent, a constant
};

/// The layouts of a kernel's `lanes`, and its block-local arrays that are kept in registers: those
/// of which each thread reads only what it wrote itself.
class LaneLayouts {
 public:
  explicit LaneLayouts(const kernel::Kernel& kernel);

  const LaneLayout& of(kernel::Id lanes) const { return layouts_.at(lanes); }
  /// Elements of a block-local array that each thread keeps; 0 for one in shared memory.
  int kept(int buffer) const;

 private:
  class Chooser;
  std::unordered_map<kernel::Id, LaneLayout> layouts_;
  std::unordered_map<int, int> kept_;
};

}  // namespace croton::codegen
