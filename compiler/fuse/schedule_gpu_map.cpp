// Elementwise kernels for GPUs: each block has a piece of the elements, its threads take
// neighbours of them.
#include <algorithm>
#include <bit>

#include "compiler/fuse/schedule.h"

namespace croton {

using kernel::Binary;
using kernel::Expr;

namespace {

/// Elements of one block: one or two accesses of 16 bytes a thread and operand, so that blocks
/// start and end often enough for memory to be busy throughout.
constexpr std::int64_t kElements = 2048;
/// Rows of at least this many elements are worked on by a block each, so that what belongs to a row
/// is read once. Of shorter ones a block takes several, and finds the row of each element.
constexpr std::int64_t kLongRow = 512;
constexpr std::int64_t kPerThread = 8;  ///< elements

std::int64_t long_row(const std::vector<DomainLoop>& loops) {
  if (loops.size() < 2 || !loops.back().size.is_number()) return 0;
  return loops.back().size.number() >= kLongRow ? loops.back().size.number() : 0;
}

int threads_for(const std::vector<DomainLoop>& loops) {
  const std::int64_t row = long_row(loops);
  const std::int64_t elements = row > 0 ? std::min(row, kElements) : kElements;
  return static_cast<int>(std::bit_ceil(static_cast<std::uint64_t>(elements / kPerThread)));
}

class MapEmitter {
 public:
  MapEmitter(const FusionGroup& group, GroupLowering& lowering)
      : group_(group), l_(lowering), b_(lowering.b), running_(lowering.loops().size(), false) {}

  /// All values before the first store: an output may take over the memory of any operand.
  void store_all() {
    std::vector<Expr> values;
    for (const Variable& output : group_.outputs) values.push_back(l_.aligned(output));
    for (std::size_t i = 0; i < values.size(); ++i) l_.store(group_.outputs[i], values[i]);
  }

  Dim emit() {
    const std::vector<DomainLoop>& loops = l_.loops();
    l_.hoist(running_);
    if (loops.empty()) {
      store_all();
      return 1;
    }
    const std::int64_t row = long_row(loops);
    return row > 0 ? emit_rows(row) : emit_flat();
  }

 private:
  void lanes(Expr count, Expr start, std::size_t first) {
    const Expr counter = b_.begin_lanes(count);
    l_.open();
    if (first + 1 == l_.loops().size()) {
      l_.set_lane(static_cast<int>(first), start, counter);
    } else {
      l_.set_flat(static_cast<int>(first), start, counter);
    }
    store_all();
    l_.clear_lane();
    l_.close();
    b_.end(counter);
  }

  Dim emit_flat() {
    const Dim all = extent(l_.loops(), 0, l_.loops().size());
    const Expr start = b_.bounded(b_.block() * kElements);
    lanes(b_.binary(Binary::min, b_.i64(kElements), size_in_eights(l_, all) - start), start, 0);
    return ceil_div(all, kElements);
  }

  Dim emit_rows(std::int64_t inner) {
    const std::size_t lane = l_.loops().size() - 1;
    const Dim rows = extent(l_.loops(), 0, lane);
    const std::int64_t chunks = (inner + kElements - 1) / kElements;
    Expr block = b_.block();
    Expr start = b_.i64(0);
    Expr count = b_.i64(inner);
    if (chunks > 1) {
      start = b_.bounded((block % chunks) * kElements);
      count = b_.binary(Binary::min, b_.i64(kElements), count - start);
      block = block / chunks;
    }
    l_.open();
    set_counters(l_, 0, lane, block);
    for (std::size_t i = 0; i < lane; ++i) running_[i] = true;
    l_.hoist(running_);
    lanes(count, start, lane);
    l_.close();
    return rows * Dim(chunks);
  }

  const FusionGroup& group_;
  GroupLowering& l_;
  kernel::Builder& b_;
  std::vector<bool> running_;
};

}  // namespace

Scheduled schedule_gpu_map(const FusionGroup& group, const Shapes& shapes,
                           const ScheduleTarget& target) {
  const Survey known = survey(group, shapes);
  Scheduled tiled;
  if (schedule_transposed(group, shapes, target, known, tiled)) return tiled;
  KernelLaunch launch;
  kernel::Builder b(threads_for(known.loops));
  GroupLowering lowering(group, shapes, b, target.check_bounds);
  lowering.set_loops(known.loops, known.computed);
  // An operand of one element is read by all threads, while the first of them writes.
  const Dim elements = extent(known.loops, 0, known.loops.size());
  const bool one = elements.is_number() && elements.number() <= 1;
  launch.shares = one ? std::vector<int>(group.outputs.size(), -1) : find_shares(group, known);
  launch.buffers = declare_buffers(lowering, group.outputs, known.reads, launch.shares);
  launch.outputs = static_cast<int>(group.outputs.size());
  launch.blocks = MapEmitter(group, lowering).emit();
  const std::vector<DomainLoop>& loops = lowering.loops();
  launch.work = extent(loops, 0, loops.size()) * Dim(cost_of(group));
  finish(launch, b, lowering);
  return {{std::move(launch)}, {}};
}

}  // namespace croton
