// Reductions for GPUs in two stages, with numbers of partial results that follow from the sizes
// alone. Each thread folds in registers what lies far apart; a block then folds what its threads
// have.
#include <algorithm>

#include "compiler/fuse/reduce_parts.h"
#include "compiler/graph/op.h"

namespace croton {

using kernel::Binary;
using kernel::Expr;

namespace {

/// Blocks of the first stage, where there is that much to do: several for each multiprocessor.
constexpr std::int64_t kMostPartials = 1024;
/// Elements that one block folds at least.
constexpr std::int64_t kPiece = 8192;
constexpr std::int64_t kPieceStep = 1024;
/// Columns of one block; where there are fewer, it takes several rows at once.
constexpr std::int64_t kTile = 1024;
constexpr std::int64_t kWarpColumns = 128;  ///< of one warp
/// Sweeps over its rows that a block makes at least.
constexpr std::int64_t kSweeps = 16;
/// A reduction of up to so many elements is one kernel.
constexpr std::int64_t kOneStage = 65536;
/// The second stage: columns and partial results that a block takes at a time.
constexpr std::int64_t kFinalColumns = 32;
constexpr std::int64_t kFinalRows = 8;

class EverythingScheduler : private ReduceParts {
 public:
  EverythingScheduler(const FusionGroup& group, const Shapes& shapes, const ScheduleTarget& target)
      : ReduceParts(group, shapes, target) {}

  Scheduled run() {
    const Dim all = extent(known_.loops, 0, known_.loops.size());
    const Dim share = ceil_div(ceil_div(all, kMostPartials), kPieceStep) * Dim(kPieceStep);
    const Dim piece = max(Dim(kPiece), share);
    const Dim blocks = max(Dim(1), ceil_div(all, piece));
    for (PartialBuffer& partial : result_.partials) partial.elements = blocks;
    first_stage(all, piece, blocks);
    second_stage(blocks);
    return std::move(result_);
  }

 private:
  void first_stage(Dim all, Dim piece, Dim blocks) {
    KernelLaunch launch;
    kernel::Builder b;
    GroupLowering l(group_, shapes_, b, target_.check_bounds);
    l.set_loops(known_.loops, known_.computed);
    std::vector<int> partial;
    begin_first(launch, l, partial);
    launch.blocks = blocks;
    launch.work = all * Dim(cost_of(group_));
    l.hoist(std::vector<bool>(known_.loops.size(), false));
    // A multiple of the step, so that threads can tell that rows are aligned.
    const Expr size = piece.is_number()
                          ? b.i64(piece.number())
                          : b.bounded(l.size(floor_div(piece, kPieceStep)) * kPieceStep);
    const Expr start = b.bounded(b.block() * size);
    const Expr count = b.binary(Binary::min, size, size_in_eights(l, all) - start);
    const Expr counter = b.begin_lanes(count, accumulators());
    l.open();
    if (known_.loops.size() == 1) {
      l.set_lane(0, start, counter);
    } else {
      l.set_flat(0, start, counter);
    }
    for (std::size_t k = 0; k < folds_.size(); ++k) {
      b.accumulate(counter, static_cast<int>(k), folded(l, folds_[k]),
                   pairs(folds_[k]) ? start + counter : Expr{});
    }
    for (const Variable& output : full_outputs_) l.store(output, l.aligned(output));
    l.clear_lane();
    l.close();
    b.end(counter);
    std::size_t p = 0;
    for (std::size_t k = 0; k < folds_.size(); ++k) {
      for (int part = 0; part <= (pairs(folds_[k]) ? 1 : 0); ++part) {
        b.store(partial[p++], b.block(), b.i64(0), b.result(counter, static_cast<int>(k), part));
      }
    }
    add(std::move(launch), b, l);
  }

  void second_stage(Dim blocks) {
    KernelLaunch launch;
    kernel::Builder b;
    GroupLowering l(group_, shapes_, b, target_.check_bounds);
    l.set_loops(known_.loops, known_.computed);
    std::vector<int> partial;
    begin_second(launch, l, partial);
    launch.work = blocks;
    const Expr counter = b.begin_lanes(l.size(blocks), accumulators());
    std::size_t p = 0;
    for (std::size_t k = 0; k < folds_.size(); ++k) {
      const Expr value = b.load(partial[p++], b.i64(0), b.i64(1));
      const Expr index = pairs(folds_[k]) ? b.load(partial[p++], b.i64(0), b.i64(1)) : Expr{};
      b.accumulate(counter, static_cast<int>(k), value, index);
    }
    b.end(counter);
    set_folds(l, counter);
    for (const Variable& output : kept_outputs_) l.store(output, l.aligned(output));
    add(std::move(launch), b, l);
  }
};

/// A block folds a piece of the rows for some columns: its threads stand side by side over
/// `rows_at_once` rows of the tile and walk down; then the rows of the tile are folded.
class ColumnScheduler : private ReduceParts {
 public:
  ColumnScheduler(const FusionGroup& group, const Shapes& shapes, const ScheduleTarget& target)
      : ReduceParts(group, shapes, target) {}

  Scheduled run() {
    order_columns();
    const std::vector<DomainLoop>& loops = known_.loops;
    columns_ = loops[lane_].size;
    rows_ = extent(loops, first_reduced_, lane_);
    kept_ = extent(loops, 0, first_reduced_);
    chunks_ = max(Dim(1), ceil_div(columns_, kTile));
    tile_ = fitting(kTile);
    // Where only calls know how many columns there are, they say how many threads it takes.
    at_once_ =
        columns_.is_number() ? max(Dim(1), floor_div(Dim(tile_), max(columns_, Dim(1)))) : Dim(1);
    const Dim sweeps = ceil_div(rows_, at_once_);
    pieces_ = max(Dim(1), min(floor_div(sweeps, kSweeps),
                              floor_div(Dim(kMostPartials), max(Dim(1), kept_ * chunks_))));
    const Dim all = rows_ * columns_;
    if (all.is_number() && all.number() <= kOneStage) pieces_ = 1;
    piece_sweeps_ = ceil_div(sweeps, pieces_);
    for (PartialBuffer& partial : result_.partials) {
      partial.elements = kept_ * pieces_ * columns_;
    }
    if (pieces_.is(1)) result_.partials.clear();
    first_stage();
    if (!pieces_.is(1)) second_stage();
    return std::move(result_);
  }

 private:
  /// Elements of a tile, `most` or a half, a quarter ... of it, so that what the folds have of each
  /// fits shared memory.
  std::int64_t fitting(std::int64_t most) const {
    std::int64_t bytes = 0;
    for (const PartialBuffer& partial : result_.partials) {
      bytes += static_cast<std::int64_t>(size_of(partial.dtype));
    }
    while (most > 1 && most * bytes > target_.device.shared_bytes) most /= 2;
    return most;
  }

  void first_stage() {
    KernelLaunch launch;
    kernel::Builder b;
    GroupLowering l(group_, shapes_, b, target_.check_bounds);
    l.set_loops(known_.loops, known_.computed);
    partial_.clear();
    if (pieces_.is(1)) {
      begin_only(launch, l);
    } else {
      begin_first(launch, l, partial_);
    }
    launch.blocks = kept_ * pieces_ * chunks_;
    launch.work = extent(known_.loops, 0, lane_ + 1) * Dim(cost_of(group_));
    if (!columns_.is_number()) {
      b.stretch();
      const Dim warps = max(Dim(1), ceil_div(min(columns_, kTile), kWarpColumns));
      launch.threads = warps * Dim(32);
    }

    n_ = l.size(columns_);
    const Expr chunks = l.size(chunks_);
    start_ = b.bounded((b.block() % chunks) * kTile);
    piece_ = b.block() / chunks;
    set_counters(l, 0, first_reduced_, piece_ / l.size(pieces_));
    std::vector<bool> running(known_.loops.size(), false);
    for (std::size_t i = 0; i < first_reduced_; ++i) running[i] = true;
    l.hoist(running);
    width_ = b.binary(Binary::min, b.i64(kTile), n_ - start_);
    const Expr at_once = l.size(at_once_);
    const Expr sweep = b.bounded((piece_ % l.size(pieces_)) * l.size(piece_sweeps_));
    const Expr first = b.bounded(sweep * at_once);
    const Expr rows = b.bounded(l.size(piece_sweeps_) * at_once);
    const Expr left = b.binary(Binary::min, rows, l.size(rows_) - first);
    const Expr count = b.binary(Binary::max, left, b.i64(0));
    walk(l, first, count);
    add(std::move(launch), b, l);
  }

  /// The lanes of the tile walk down the rows, then what they have is folded over the tile's rows.
  void walk(GroupLowering& l, Expr first, Expr count) {
    kernel::Builder& b = l.b;
    const bool single = at_once_.is(1);
    const Expr at_once = l.size(at_once_);
    std::vector<int> tile;
    if (!single) {
      for (const Node* fold : folds_) {
        tile.push_back(b.local(fold->inputs[0].dtype(), b.i64(tile_)));
        if (pairs(fold)) tile.push_back(b.local(DType::int64, b.i64(tile_)));
      }
    }
    const Expr from = b.bounded(b.bounded(first * n_) + start_);
    const Expr sweep = b.bounded(at_once * n_);
    const Expr counter = b.begin_lanes(single ? width_ : b.bounded(at_once * width_));
    l.open();
    const Expr row = b.begin_loop((count + (at_once - 1)) / at_once, accumulators());
    l.open();
    // The last rows need not fill the tile.
    Expr mask;
    if (!single) mask = b.bounded(b.bounded(row * at_once) + counter / width_) < count;
    l.set_mask(mask);
    sweep_rows(l, row, b.bounded(from + b.bounded(row * sweep)), counter, mask);
    l.set_mask({});
    l.close();
    b.end(row);
    if (single) {
      l.clear_lane();
      finish_columns(l, counter, row);
    } else {
      std::size_t p = 0;
      for (std::size_t k = 0; k < folds_.size(); ++k) {
        for (int part = 0; part <= (pairs(folds_[k]) ? 1 : 0); ++part) {
          b.store(tile[p++], b.i64(0), b.i64(1), b.result(row, static_cast<int>(k), part));
        }
      }
    }
    l.clear_lane();
    l.close();
    b.end(counter);
    if (single) return;
    const Expr column = b.begin_lanes(width_);
    l.open();
    const Expr in_tile = b.begin_loop(at_once, accumulators());
    std::size_t p = 0;
    for (std::size_t k = 0; k < folds_.size(); ++k) {
      const Expr value = b.load(tile[p++], in_tile * width_, b.i64(1));
      const Expr index = pairs(folds_[k]) ? b.load(tile[p++], in_tile * width_, b.i64(1)) : Expr{};
      b.accumulate(in_tile, static_cast<int>(k), value, index);
    }
    b.end(in_tile);
    finish_columns(l, column, in_tile);
    l.clear_lane();
    l.close();
    b.end(column);
  }

  void sweep_rows(GroupLowering& l, Expr loop, Expr start, Expr counter, Expr mask) {
    kernel::Builder& b = l.b;
    l.set_flat(static_cast<int>(first_reduced_), start, counter);
    for (std::size_t k = 0; k < folds_.size(); ++k) {
      Expr value = folded(l, folds_[k]);
      if (mask) value = b.select(mask, value, identity(b, *folds_[k]->op->fold, value.dtype()));
      Expr index;
      if (pairs(folds_[k])) {
        index = (start + counter) / n_;
        if (mask) index = b.select(mask, index, b.i64(INT64_MAX));
      }
      b.accumulate(loop, static_cast<int>(k), value, index);
    }
    for (const Variable& output : full_outputs_) l.store(output, l.aligned(output));
  }

  /// A lane has a column's folds: it leaves them, or goes on with them.
  void finish_columns(GroupLowering& l, Expr counter, Expr folds) {
    kernel::Builder& b = l.b;
    if (pieces_.is(1)) {
      set_folds(l, folds);
      l.set_lane(static_cast<int>(lane_), start_, counter);
      for (const Variable& output : kept_outputs_) l.store(output, l.aligned(output));
      return;
    }
    const Expr base = piece_ * n_ + start_;
    std::size_t p = 0;
    for (std::size_t k = 0; k < folds_.size(); ++k) {
      for (int part = 0; part <= (pairs(folds_[k]) ? 1 : 0); ++part) {
        b.store(partial_[p++], base, b.i64(1), b.result(folds, static_cast<int>(k), part));
      }
    }
  }

  void second_stage() {
    KernelLaunch launch;
    const std::int64_t final_rows =
        std::max<std::int64_t>(1, fitting(kFinalColumns * kFinalRows) / kFinalColumns);
    kernel::Builder b(static_cast<int>(kFinalColumns * final_rows));
    GroupLowering l(group_, shapes_, b, target_.check_bounds);
    l.set_loops(known_.loops, known_.computed);
    std::vector<int> partial;
    begin_second(launch, l, partial);
    const Dim chunks = max(Dim(1), ceil_div(columns_, kFinalColumns));
    launch.blocks = kept_ * chunks;
    launch.work = kept_ * pieces_ * columns_;

    const Expr n = l.size(columns_);
    const Expr pieces = l.size(pieces_);
    const Expr start = b.bounded((b.block() % l.size(chunks)) * kFinalColumns);
    const Expr kept_row = b.block() / l.size(chunks);
    set_counters(l, 0, first_reduced_, kept_row);
    std::vector<bool> running(known_.loops.size(), false);
    for (std::size_t i = 0; i < first_reduced_; ++i) running[i] = true;
    l.hoist(running);
    std::vector<int> tile;
    for (const Node* fold : folds_) {
      const Expr elements = b.i64(kFinalColumns * final_rows);
      tile.push_back(b.local(fold->inputs[0].dtype(), elements));
      if (pairs(fold)) tile.push_back(b.local(DType::int64, elements));
    }
    const Expr lane = b.begin_lanes(b.i64(kFinalColumns * final_rows));
    const Expr column = start + lane % kFinalColumns;
    const Expr in_tile = lane / kFinalColumns;
    const Expr sweep = b.begin_loop((pieces + (final_rows - 1)) / final_rows, accumulators());
    const Expr piece = b.bounded(sweep * final_rows + in_tile);
    const Expr mask = (piece < pieces) & (column < n);
    const Expr at = (kept_row * pieces + piece) * n + column;
    std::size_t p = 0;
    for (std::size_t k = 0; k < folds_.size(); ++k) {
      Expr value = b.gather(partial[p++], at, mask);
      value = b.select(mask, value, identity(b, *folds_[k]->op->fold, value.dtype()));
      Expr index;
      if (pairs(folds_[k])) {
        index = b.select(mask, b.gather(partial[p++], at, mask), b.i64(INT64_MAX));
      }
      b.accumulate(sweep, static_cast<int>(k), value, index);
    }
    b.end(sweep);
    p = 0;
    for (std::size_t k = 0; k < folds_.size(); ++k) {
      for (int part = 0; part <= (pairs(folds_[k]) ? 1 : 0); ++part) {
        b.store(tile[p++], b.i64(0), b.i64(1), b.result(sweep, static_cast<int>(k), part));
      }
    }
    b.end(lane);

    const Expr counter = b.begin_lanes(b.binary(Binary::min, b.i64(kFinalColumns), n - start));
    l.open();
    const Expr row = b.begin_loop(b.i64(final_rows), accumulators());
    p = 0;
    for (std::size_t k = 0; k < folds_.size(); ++k) {
      const Expr value = b.load(tile[p++], row * kFinalColumns, b.i64(1));
      const Expr index =
          pairs(folds_[k]) ? b.load(tile[p++], row * kFinalColumns, b.i64(1)) : Expr{};
      b.accumulate(row, static_cast<int>(k), value, index);
    }
    b.end(row);
    set_folds(l, row);
    l.set_lane(static_cast<int>(lane_), start, counter);
    for (const Variable& output : kept_outputs_) l.store(output, l.aligned(output));
    l.clear_lane();
    l.close();
    b.end(counter);
    add(std::move(launch), b, l);
  }

  Dim columns_;
  Dim rows_;
  Dim kept_;
  Dim chunks_;
  std::int64_t tile_ = kTile;
  Dim at_once_;
  Dim pieces_;
  Dim piece_sweeps_;
  // Of the first stage.
  Expr n_;
  Expr start_;
  Expr width_;
  Expr piece_;
  std::vector<int> partial_;
};

}  // namespace

Scheduled schedule_gpu_everything(const FusionGroup& group, const Shapes& shapes,
                                  const ScheduleTarget& target) {
  return EverythingScheduler(group, shapes, target).run();
}

Scheduled schedule_gpu_columns(const FusionGroup& group, const Shapes& shapes,
                               const ScheduleTarget& target) {
  return ColumnScheduler(group, shapes, target).run();
}

}  // namespace croton
