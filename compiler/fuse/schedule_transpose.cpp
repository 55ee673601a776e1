// Elementwise kernels that read operands along another axis than they write. They work on square
// tiles: what is read across is first brought into a block-local array, along the axis on which it
// lies side by side, and read from there.
#include <algorithm>
#include <optional>

#include "compiler/fuse/schedule.h"
#include "compiler/graph/op.h"

namespace croton {

using kernel::Binary;
using kernel::Expr;

namespace {

constexpr std::int64_t kGpuTile = 32;
constexpr std::int64_t kCpuTile = 64;
/// Axes of fewer elements are not worth tiles.
constexpr std::int64_t kShortest = 16;

/// The transposed values of a group and the loop along which they lie side by side.
struct Crossing {
  std::vector<const Node*> nodes;
  std::size_t loop = 0;
};

/// Whether what a value is read from lies side by side along `axis`, where `lane` is the axis of
/// the lanes: of all its reads that go along both.
bool crosses(const std::vector<Access>& reads, int axis, int lane) {
  bool any = false;
  for (const Access& read : reads) {
    const bool along_lane = read.computed || !read.coefficient[lane].is(0);
    if (!along_lane || read.coefficient[axis].is(0)) continue;
    if (!read.coefficient[axis].is(1) || read.coefficient[lane].is(1)) return false;
    any = true;
  }
  return any;
}

std::optional<Crossing> find_crossing(const FusionGroup& group, const Survey& known) {
  if (known.loops.size() < 2) return {};
  const std::size_t lane = known.loops.size() - 1;
  const int lane_axis = known.loops[lane].axes.back();
  const auto too_short = [](const Dim& size) {
    return size.is_number() && size.number() < kShortest;
  };
  if (too_short(known.loops[lane].size)) return {};
  Crossing crossing;
  for (const Node* node : group.nodes) {
    const auto reads = known.member_reads.find(node);
    const auto axes = group.axes.find(node);
    if (reads == known.member_reads.end() || axes == group.axes.end()) continue;
    if (node->outputs.size() != 1) continue;
    // A value that lacks the axis of the lanes is the same for all of them.
    const std::vector<int>& own = axes->second;
    if (std::find(own.begin(), own.end(), lane_axis) == own.end()) continue;
    for (std::size_t i = 0; i < lane; ++i) {
      if (too_short(known.loops[i].size)) continue;
      if (!crosses(reads->second, known.loops[i].axes.back(), lane_axis)) continue;
      if (crossing.nodes.empty()) crossing.loop = i;
      if (crossing.loop == i) crossing.nodes.push_back(node);
    }
  }
  if (crossing.nodes.empty()) return {};
  return crossing;
}

/// Leaves as many of the values as have room for a tile each; the others are read where they lie.
void keep_fitting(std::vector<const Node*>& nodes, std::int64_t elements, std::int64_t bytes) {
  std::erase_if(nodes, [&](const Node* node) {
    const std::int64_t mine = elements * static_cast<std::int64_t>(size_of(node->outputs[0].dtype));
    if (mine > bytes) return true;
    bytes -= mine;
    return false;
  });
}

class TileEmitter {
 public:
  TileEmitter(const FusionGroup& group, GroupLowering& lowering, const Crossing& crossing,
              std::int64_t tile)
      : group_(group),
        l_(lowering),
        b_(lowering.b),
        crossing_(crossing),
        tile_(tile),
        lane_(lowering.loops().size() - 1),
        height_(lowering.size(lowering.loops()[crossing.loop].size)),
        width_(lowering.size(lowering.loops()[lane_].size)) {}

  /// Arrays for the tiles, then the place of this block's tile. Gives the number of blocks.
  Dim begin(std::int64_t pitch) {
    pitch_ = pitch;
    for (const Node* node : crossing_.nodes) {
      tiles_.push_back(b_.local(node->outputs[0].dtype, b_.i64(tile_ * pitch)));
    }
    const std::vector<DomainLoop>& loops = l_.loops();
    l_.hoist(std::vector<bool>(loops.size(), false));
    const Dim across = ceil_div(loops[lane_].size, tile_);
    const Dim down = ceil_div(loops[crossing_.loop].size, tile_);
    column_ = b_.bounded((b_.block() % l_.size(across)) * tile_);
    Expr rest = b_.block() / l_.size(across);
    row_ = b_.bounded((rest % l_.size(down)) * tile_);
    rest = rest / l_.size(down);
    Dim blocks = across * down;
    for (std::size_t i = lane_; i-- > 0;) {
      if (i == crossing_.loop) continue;
      const Expr size = l_.size(loops[i].size);
      l_.set_counter(static_cast<int>(i), rest % size);
      rest = rest / size;
      blocks = blocks * loops[i].size;
    }
    return blocks;
  }

  /// All lanes of the block over the whole tile; what stands over its edge is masked.
  void gpu() {
    for (const bool fill : {true, false}) {
      const Expr counter = b_.begin_lanes(b_.i64(tile_ * tile_));
      l_.open();
      const Expr fast = counter % tile_, slow = counter / tile_;
      const Expr down = fill ? fast : slow, right = fill ? slow : fast;
      const Expr i = b_.bounded(row_ + down), j = b_.bounded(column_ + right);
      l_.set_counter(static_cast<int>(crossing_.loop), i);
      l_.set_counter(static_cast<int>(lane_), j);
      l_.set_mask((i < height_) & (j < width_));
      const Expr place = right * pitch_ + down;
      if (fill) {
        for (std::size_t k = 0; k < tiles_.size(); ++k) {
          b_.scatter(tiles_[k], place, l_.aligned(crossing_.nodes[k]->out()));
        }
      } else {
        use_tiles(place, {});
        store_all();
      }
      l_.set_mask({});
      l_.close();
      b_.end(counter);
    }
  }

  /// Rows of vectors, first of what is read and then of what is written.
  void cpu() {
    const Expr rows = b_.binary(Binary::min, b_.i64(tile_), height_ - row_);
    const Expr columns = b_.binary(Binary::min, b_.i64(tile_), width_ - column_);
    const Expr right = b_.begin_loop(columns);
    l_.open();
    l_.set_counter(static_cast<int>(lane_), column_ + right);
    Expr lanes = b_.begin_lanes(rows);
    l_.open();
    l_.set_lane(static_cast<int>(crossing_.loop), row_, lanes);
    for (std::size_t k = 0; k < tiles_.size(); ++k) {
      b_.store(tiles_[k], right * pitch_, b_.i64(1), l_.aligned(crossing_.nodes[k]->out()));
    }
    end(lanes);
    end(right);

    const Expr down = b_.begin_loop(rows);
    l_.open();
    l_.set_counter(static_cast<int>(crossing_.loop), row_ + down);
    lanes = b_.begin_lanes(columns);
    l_.open();
    l_.set_lane(static_cast<int>(lane_), column_, lanes);
    use_tiles(down, b_.i64(pitch_));
    store_all();
    end(lanes);
    end(down);
  }

 private:
  void end(Expr region) {
    l_.clear_lane();
    l_.close();
    b_.end(region);
  }

  void use_tiles(Expr base, Expr stride) {
    for (std::size_t k = 0; k < tiles_.size(); ++k) {
      l_.set_cached_at(crossing_.nodes[k], tiles_[k], base, stride);
    }
  }

  void store_all() {
    std::vector<Expr> values;
    for (const Variable& output : group_.outputs) values.push_back(l_.aligned(output));
    for (std::size_t i = 0; i < values.size(); ++i) l_.store(group_.outputs[i], values[i]);
  }

  const FusionGroup& group_;
  GroupLowering& l_;
  kernel::Builder& b_;
  const Crossing& crossing_;
  std::int64_t tile_;
  std::int64_t pitch_ = 0;  ///< elements from one column of a tile to the next
  std::size_t lane_;
  Expr height_;
  Expr width_;
  Expr row_;
  Expr column_;
  std::vector<int> tiles_;
};

}  // namespace

bool schedule_transposed(const FusionGroup& group, const Shapes& shapes,
                         const ScheduleTarget& target, const Survey& known, Scheduled& scheduled) {
  std::optional<Crossing> crossing = find_crossing(group, known);
  if (!crossing) return false;
  const bool gpu = target.device.gpu();
  const std::int64_t tile = gpu ? kGpuTile : kCpuTile;
  // A column more, so that neither way of going through a tile meets one bank of memory only.
  const std::int64_t pitch = gpu ? tile + 1 : tile;
  if (gpu) keep_fitting(crossing->nodes, tile * pitch, target.device.shared_bytes);
  KernelLaunch launch;
  kernel::Builder b;
  GroupLowering lowering(group, shapes, b, target.check_bounds);
  lowering.set_loops(known.loops, known.computed);
  launch.buffers = declare_buffers(lowering, group.outputs, known.reads);
  launch.outputs = static_cast<int>(group.outputs.size());
  launch.shares.assign(group.outputs.size(), -1);
  TileEmitter emitter(group, lowering, *crossing, tile);
  launch.blocks = emitter.begin(pitch);
  if (gpu) {
    emitter.gpu();
  } else {
    emitter.cpu();
  }
  launch.work = extent(known.loops, 0, known.loops.size()) * Dim(cost_of(group));
  launch.misalignment = misalignment(group.outputs, known.loops.back().size);
  finish(launch, b, lowering);
  scheduled.launches.push_back(std::move(launch));
  return true;
}

}  // namespace croton
