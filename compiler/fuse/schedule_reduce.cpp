// Reductions over everything, or over axes before the last. There are too few rows to give each
// block one, so a first kernel leaves partial results and a second one folds them; how many there
// are follows from the sizes alone.
#include <algorithm>

#include "compiler/fuse/reduce_parts.h"
#include "compiler/fuse/schedule.h"
#include "compiler/graph/op.h"

namespace croton {

using kernel::Binary;
using kernel::Expr;
using kernel::Fold;

namespace {

/// Reductions of up to this many elements are done by one block.
constexpr std::int64_t kOneBlock = 32768;
/// Up to this many rows are folded in registers, without partial results.
constexpr std::int64_t kFewRows = 64;
constexpr std::int64_t kColumns = 8192;  ///< columns of one block, so that sums stay cached
constexpr std::int64_t kPieceElements = 262144;
constexpr std::int64_t kMostPieces = 64;

class Reducer : private ReduceParts {
 public:
  Reducer(const FusionGroup& group, const Shapes& shapes, const ScheduleTarget& target)
      : ReduceParts(group, shapes, target) {}

  Scheduled run() {
    const ScheduleTarget& target = target_;
    bool any_reduced = false;
    bool any_kept = false;
    for (const DomainLoop& loop : known_.loops) (loop.reduced ? any_reduced : any_kept) = true;
    if (!any_reduced) {
      return target.device.gpu() ? schedule_gpu_map(group_, shapes_, target)
                                 : schedule_map(group_, shapes_, target);
    }
    if (!any_kept) {
      const Dim all = extent(known_.loops, 0, known_.loops.size());
      if (all.is_number() && all.number() <= kOneBlock)
        return schedule_row(group_, shapes_, target);
      if (target.device.gpu()) return schedule_gpu_everything(group_, shapes_, target);
      everything();
      return std::move(result_);
    }
    if (target.device.gpu()) return schedule_gpu_columns(group_, shapes_, target);
    columns();
    return std::move(result_);
  }

 private:
  void everything();
  void everything_partial(Dim chunks, Dim blocks, Dim rows, Dim rows_per_block);
  void everything_final(Dim blocks);

  void columns();
  void columns_direct();
  void columns_partial(Dim pieces, Dim piece_rows);
  void columns_final(Dim pieces);
  void accumulate_rows(GroupLowering& l, const std::vector<int>& partial, Expr row, int count,
                       Expr columns, Expr start, const Position& target);
};

void Reducer::everything() {
  lane_ = known_.loops.size() - 1;
  const Dim inner = known_.loops[lane_].size;
  const Dim rows = extent(known_.loops, 0, lane_);
  const Dim chunks = ceil_div(inner, kRowChunk);
  const Dim rows_per_block = max(Dim(1), floor_div(Dim(kRowChunk), max(inner, Dim(1))));
  const Dim blocks = max(Dim(1), ceil_div(rows, rows_per_block) * chunks);
  for (PartialBuffer& partial : result_.partials) partial.elements = blocks;
  everything_partial(chunks, blocks, rows, rows_per_block);
  everything_final(blocks);
}

void Reducer::everything_partial(Dim chunks, Dim blocks, Dim rows, Dim rows_per_block) {
  KernelLaunch launch;
  kernel::Builder b;
  GroupLowering l(group_, shapes_, b, target_.check_bounds);
  l.set_loops(known_.loops, known_.computed);
  std::vector<int> partial;
  begin_first(launch, l, partial);
  launch.blocks = blocks;
  launch.work = rows * known_.loops[lane_].size * Dim(cost_of(group_));

  std::vector<bool> running(known_.loops.size(), false);
  l.hoist(running);
  const Expr inner = l.size(known_.loops[lane_].size);
  const Expr chunk = b.block() % b.binary(Binary::max, l.size(chunks), b.i64(1));
  const Expr row_block = b.block() / b.binary(Binary::max, l.size(chunks), b.i64(1));
  const Expr start = chunk * kRowChunk;
  const Expr count = b.binary(Binary::min, b.i64(kRowChunk), inner - start);
  const Expr first = row_block * l.size(rows_per_block);
  const Expr last = b.binary(Binary::min, l.size(rows), first + l.size(rows_per_block));
  const Expr row = b.begin_loop(last - first, accumulators());
  l.open();
  set_counters(l, 0, lane_, first + row);
  for (std::size_t i = 0; i < lane_; ++i) running[i] = true;
  l.hoist(running);
  const Expr counter = b.begin_lanes(count, accumulators(), 4);
  l.open();
  l.set_lane(static_cast<int>(lane_), start, counter);
  for (std::size_t k = 0; k < folds_.size(); ++k) {
    const Expr index = (first + row) * inner + start + counter;
    b.accumulate(counter, static_cast<int>(k), folded(l, folds_[k]),
                 pairs(folds_[k]) ? index : Expr{});
  }
  for (const Variable& output : full_outputs_) l.store(output, l.aligned(output));
  l.clear_lane();
  l.close();
  b.end(counter);
  for (std::size_t k = 0; k < folds_.size(); ++k) {
    const int n = static_cast<int>(k);
    b.accumulate(row, n, b.result(counter, n), pairs(folds_[k]) ? b.result(counter, n, 1) : Expr{});
  }
  l.close();
  b.end(row);
  std::size_t p = 0;
  for (std::size_t k = 0; k < folds_.size(); ++k) {
    const int n = static_cast<int>(k);
    b.store(partial[p++], b.block(), b.i64(0), b.result(row, n));
    if (pairs(folds_[k])) b.store(partial[p++], b.block(), b.i64(0), b.result(row, n, 1));
  }
  add(std::move(launch), b, l);
}

void Reducer::everything_final(Dim blocks) {
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

void Reducer::columns() {
  order_columns();
  const std::vector<DomainLoop>& loops = known_.loops;
  const Dim rows = extent(loops, first_reduced_, lane_);
  if (rows.is_number() && rows.number() <= kFewRows) {
    columns_direct();
    return;
  }
  const Dim inner = loops[lane_].size;
  const Dim pieces =
      max(Dim(1), min(Dim(kMostPieces), floor_div(rows * inner, Dim(kPieceElements))));
  for (PartialBuffer& partial : result_.partials) {
    partial.elements = extent(loops, 0, first_reduced_) * pieces * inner;
  }
  columns_partial(pieces, ceil_div(rows, pieces));
  columns_final(pieces);
}

void Reducer::columns_direct() {
  KernelLaunch launch;
  kernel::Builder b;
  GroupLowering l(group_, shapes_, b, target_.check_bounds);
  l.set_loops(known_.loops, known_.computed);
  begin_only(launch, l);
  const Dim inner = known_.loops[lane_].size;
  const Dim chunks = ceil_div(inner, kBlockElements);
  launch.blocks = extent(known_.loops, 0, first_reduced_) * chunks;
  launch.work = extent(known_.loops, 0, lane_ + 1) * Dim(cost_of(group_));

  std::vector<bool> running(known_.loops.size(), false);
  const Expr start = (b.block() % l.size(chunks)) * kBlockElements;
  set_counters(l, 0, first_reduced_, b.block() / l.size(chunks));
  for (std::size_t i = 0; i < first_reduced_; ++i) running[i] = true;
  l.hoist(running);
  const Expr count = b.binary(Binary::min, b.i64(kBlockElements), l.size(inner) - start);
  const Expr counter = b.begin_lanes(count);
  l.open();
  l.set_lane(static_cast<int>(lane_), start, counter);
  running[lane_] = true;
  l.hoist(running);
  const Expr row =
      b.begin_loop(l.size(extent(known_.loops, first_reduced_, lane_)), accumulators());
  l.open();
  set_counters(l, first_reduced_, lane_, row);
  for (std::size_t k = 0; k < folds_.size(); ++k) {
    b.accumulate(row, static_cast<int>(k), folded(l, folds_[k]), pairs(folds_[k]) ? row : Expr{});
  }
  for (const Variable& output : full_outputs_) l.store(output, l.aligned(output));
  l.close();
  b.end(row);
  set_folds(l, row);
  for (const Variable& output : kept_outputs_) l.store(output, l.aligned(output));
  l.clear_lane();
  l.close();
  b.end(counter);
  add(std::move(launch), b, l);
}

/// Adds `count` rows from `row` on to the partial results, all columns of the block in one sweep:
/// several rows at once, so that the partial results are read and written less often.
void Reducer::accumulate_rows(GroupLowering& l, const std::vector<int>& partial, Expr row,
                              int count, Expr columns, Expr start, const Position& target) {
  kernel::Builder& b = l.b;
  const Expr counter = b.begin_lanes(columns);
  l.open();
  l.set_lane(static_cast<int>(lane_), start, counter);
  std::vector<std::vector<Expr>> values(folds_.size());
  std::vector<Expr> rows;
  for (int i = 0; i < count; ++i) {
    l.open();
    rows.push_back(row + i);
    set_counters(l, first_reduced_, lane_, rows.back());
    for (std::size_t k = 0; k < folds_.size(); ++k) values[k].push_back(folded(l, folds_[k]));
    for (const Variable& output : full_outputs_) l.store(output, l.aligned(output));
    l.close();
  }
  std::size_t p = 0;
  for (std::size_t k = 0; k < folds_.size(); ++k) {
    const Fold fold = *folds_[k]->op->fold;
    const DType dtype = folds_[k]->inputs[0].dtype();
    const int buffer = partial[p++];
    Expr sum = l.load_at(buffer, dtype, target);
    if (pairs(folds_[k])) {
      const int index_buffer = partial[p++];
      Expr index = l.load_at(index_buffer, DType::int64, target);
      for (int i = 0; i < count; ++i) {
        const Expr x = values[k][i];
        Expr wins = fold == Fold::argmax ? sum < x : x < sum;
        if (is_float(dtype)) wins = wins | ((x != x) & (sum == sum));
        sum = b.select(wins, x, sum);
        index = b.select(wins, rows[i], index);
      }
      l.store_at(index_buffer, target, index);
    } else {
      for (std::size_t width = values[k].size(); width > 1; width /= 2) {
        for (std::size_t i = 0; i < width / 2; ++i) {
          values[k][i] = combine(b, fold, values[k][2 * i], values[k][2 * i + 1]);
        }
      }
      sum = combine(b, fold, sum, values[k][0]);
    }
    l.store_at(buffer, target, sum);
  }
  l.clear_lane();
  l.close();
  b.end(counter);
}

void Reducer::columns_partial(Dim pieces, Dim piece_rows) {
  KernelLaunch launch;
  kernel::Builder b;
  GroupLowering l(group_, shapes_, b, target_.check_bounds);
  l.set_loops(known_.loops, known_.computed);
  std::vector<int> partial;
  begin_first(launch, l, partial);
  const Dim inner = known_.loops[lane_].size;
  const Dim chunks = max(Dim(1), ceil_div(inner, kColumns));
  const Dim rows = extent(known_.loops, first_reduced_, lane_);
  launch.blocks = extent(known_.loops, 0, first_reduced_) * pieces * chunks;
  launch.work = extent(known_.loops, 0, lane_ + 1) * Dim(cost_of(group_));

  const Expr start = (b.block() % l.size(chunks)) * kColumns;
  const Expr piece_index = b.block() / l.size(chunks);  // kept row * pieces + piece
  const Expr piece = piece_index % l.size(pieces);
  set_counters(l, 0, first_reduced_, piece_index / l.size(pieces));
  std::vector<bool> running(known_.loops.size(), false);
  for (std::size_t i = 0; i < first_reduced_; ++i) running[i] = true;
  l.hoist(running);
  const Expr columns = b.binary(Binary::min, b.i64(kColumns), l.size(inner) - start);
  Position target;
  target.terms.emplace_back(known_.loops[lane_].axes.back(), Dim(1));
  target.computed = piece_index * l.size(inner);

  const Expr counter = b.begin_lanes(columns);
  l.open();
  l.set_lane(static_cast<int>(lane_), start, counter);
  std::size_t p = 0;
  for (const Node* fold : folds_) {
    l.store_at(partial[p++], target, identity(b, *fold->op->fold, fold->inputs[0].dtype()));
    if (pairs(fold)) l.store_at(partial[p++], target, b.i64(0));
  }
  l.clear_lane();
  l.close();
  b.end(counter);

  const Expr first = piece * l.size(piece_rows);
  const Expr last = b.binary(Binary::min, l.size(rows), first + l.size(piece_rows));
  const Expr count = b.binary(Binary::max, last - first, b.i64(0));
  constexpr int kRows = 4;
  const Expr quads = count / kRows;
  const Expr quad = b.begin_loop(quads);
  accumulate_rows(l, partial, first + quad * kRows, kRows, columns, start, target);
  b.end(quad);
  const Expr rest = b.begin_loop(count - quads * kRows);
  accumulate_rows(l, partial, first + quads * kRows + rest, 1, columns, start, target);
  b.end(rest);
  add(std::move(launch), b, l);
}

void Reducer::columns_final(Dim pieces) {
  KernelLaunch launch;
  kernel::Builder b;
  GroupLowering l(group_, shapes_, b, target_.check_bounds);
  l.set_loops(known_.loops, known_.computed);
  std::vector<int> partial;
  begin_second(launch, l, partial);
  const Dim inner = known_.loops[lane_].size;
  const Dim chunks = max(Dim(1), ceil_div(inner, kBlockElements));
  const Dim kept = extent(known_.loops, 0, first_reduced_);
  launch.blocks = kept * chunks;
  launch.work = kept * pieces * inner;

  const Expr start = (b.block() % l.size(chunks)) * kBlockElements;
  const Expr kept_row = b.block() / l.size(chunks);
  set_counters(l, 0, first_reduced_, kept_row);
  std::vector<bool> running(known_.loops.size(), false);
  for (std::size_t i = 0; i < first_reduced_; ++i) running[i] = true;
  l.hoist(running);
  const Expr columns = b.binary(Binary::min, b.i64(kBlockElements), l.size(inner) - start);
  const Expr counter = b.begin_lanes(columns);
  l.open();
  l.set_lane(static_cast<int>(lane_), start, counter);
  const Expr piece = b.begin_loop(l.size(pieces), accumulators());
  const Expr base = (kept_row * l.size(pieces) + piece) * l.size(inner) + start;
  std::size_t p = 0;
  for (std::size_t k = 0; k < folds_.size(); ++k) {
    const Expr value = b.load(partial[p++], base, b.i64(1));
    const Expr index = pairs(folds_[k]) ? b.load(partial[p++], base, b.i64(1)) : Expr{};
    b.accumulate(piece, static_cast<int>(k), value, index);
  }
  b.end(piece);
  set_folds(l, piece);
  for (const Variable& output : kept_outputs_) l.store(output, l.aligned(output));
  l.clear_lane();
  l.close();
  b.end(counter);
  add(std::move(launch), b, l);
}

}  // namespace

Scheduled schedule_reduce(const FusionGroup& group, const Shapes& shapes,
                          const ScheduleTarget& target) {
  return Reducer(group, shapes, target).run();
}

}  // namespace croton
