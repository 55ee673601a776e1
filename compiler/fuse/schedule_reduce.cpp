// Reductions over everything, or over axes before the last. There are too few rows to give each
// block one, so a first kernel leaves partial results and a second one folds them; how many there
// are follows from the sizes alone.
#include <algorithm>
#include <limits>

#include "compiler/fuse/schedule.h"
#include "compiler/graph/op.h"
#include "croton/error.h"

namespace croton {

using kernel::Binary;
using kernel::Expr;
using kernel::Fold;

Expr identity(kernel::Builder& b, Fold fold, DType dtype) {
  const bool largest = fold == Fold::min || fold == Fold::argmin;
  switch (fold) {
    case Fold::sum:
    case Fold::any:
      return b.integer(dtype, 0);
    case Fold::prod:
    case Fold::all:
      return b.integer(dtype, 1);
    case Fold::min:
    case Fold::max:
    case Fold::argmin:
    case Fold::argmax:
      break;
  }
  if (is_bool(dtype)) return b.integer(dtype, largest ? 1 : 0);
  if (is_float(dtype)) {
    const double infinity = std::numeric_limits<double>::infinity();
    return b.constant(dtype, largest ? infinity : -infinity);
  }
  const int bits = static_cast<int>(size_of(dtype)) * 8;
  if (is_unsigned(dtype))
    return largest ? b.bits(dtype, ~0ull >> (64 - bits)) : b.integer(dtype, 0);
  const std::int64_t low = std::numeric_limits<std::int64_t>::min() >> (64 - bits);
  return b.integer(dtype, largest ? ~low : low);
}

namespace {

/// Reductions of up to this many elements are done by one block.
constexpr std::int64_t kOneBlock = 32768;
/// Up to this many rows are folded in registers, without partial results.
constexpr std::int64_t kFewRows = 64;
constexpr std::int64_t kColumns = 8192;  ///< columns of one block, so that sums stay cached
constexpr std::int64_t kPieceElements = 262144;
constexpr std::int64_t kMostPieces = 64;

bool pairs(Fold fold) { return fold == Fold::argmax || fold == Fold::argmin; }

class Reducer {
 public:
  Reducer(const Group& group, const Shapes& shapes, const ScheduleTarget& target)
      : group_(group), shapes_(shapes), target_(target) {
    known_ = survey(group, shapes);
    for (const Node* node : group.nodes) {
      if (reduces(node, shapes)) folds_.push_back(node);
    }
    for (const Variable& output : group.outputs) {
      (is_full(output.node()) ? full_outputs_ : kept_outputs_).push_back(output);
    }
    for (const Node* fold : folds_) {
      result_.partials.push_back({fold->inputs[0].dtype(), 1});
      if (pairs(*fold->op->fold)) result_.partials.push_back({DType::int64, 1});
    }
  }

  Scheduled run() {
    const ScheduleTarget& target = target_;
    bool any_reduced = false;
    bool any_kept = false;
    for (const DomainLoop& loop : known_.loops) (loop.reduced ? any_reduced : any_kept) = true;
    if (!any_reduced) return schedule_map(group_, shapes_, target);
    if (!any_kept) {
      const Dim all = extent(known_.loops, 0, known_.loops.size());
      if (all.is_number() && all.number() <= kOneBlock)
        return schedule_row(group_, shapes_, target);
      everything();
      return std::move(result_);
    }
    columns();
    return std::move(result_);
  }

 private:
  bool is_full(const Node* node) const {
    if (reduces(node, shapes_)) return false;
    for (const int axis : group_.axes.at(node)) {
      if (axis >= 0 && group_.reduced[axis]) return true;
    }
    return false;
  }

  std::vector<kernel::Accumulator> accumulators() const {
    std::vector<kernel::Accumulator> list;
    for (const Node* fold : folds_) {
      list.push_back({*fold->op->fold, fold->inputs[0].dtype(), kernel::kNone});
    }
    return list;
  }

  Expr folded(GroupLowering& l, const Node* fold) const {
    return l.at(fold->inputs[0], l.operand_position(fold, 0));
  }

  /// Buffers of the first kernel: full outputs, partial results, operands.
  void begin_first(KernelLaunch& launch, GroupLowering& l, std::vector<int>& partial) {
    for (const Variable& output : full_outputs_) {
      l.declare(output, true);
      launch.buffers.push_back({output});
    }
    for (std::size_t i = 0; i < result_.partials.size(); ++i) {
      partial.push_back(
          l.declare_partial(result_.partials[i].dtype, true, result_.partials[i].elements));
      launch.buffers.push_back({{}, static_cast<int>(i)});
    }
    launch.outputs = static_cast<int>(launch.buffers.size());
    launch.shares.assign(launch.outputs, -1);
    for (const Variable& read : known_.reads) {
      l.declare(read, false);
      launch.buffers.push_back({read});
    }
    l.end_declarations();
  }

  /// Buffers of the second kernel: outputs, operands of what follows the folds, partial results.
  void begin_second(KernelLaunch& launch, GroupLowering& l, std::vector<int>& partial) {
    for (const Variable& output : kept_outputs_) {
      l.declare(output, true);
      launch.buffers.push_back({output});
    }
    for (const Variable& read : known_.reads) {
      l.declare(read, false);
      launch.buffers.push_back({read});
    }
    launch.outputs = static_cast<int>(kept_outputs_.size());
    launch.shares.assign(launch.outputs, -1);
    for (std::size_t i = 0; i < result_.partials.size(); ++i) {
      partial.push_back(
          l.declare_partial(result_.partials[i].dtype, false, result_.partials[i].elements));
      launch.buffers.push_back({{}, static_cast<int>(i)});
    }
    l.end_declarations();
  }

  void add(KernelLaunch launch, kernel::Builder& b, GroupLowering& l) {
    finish(launch, b, l);
    result_.launches.push_back(std::move(launch));
  }

  void everything();
  void everything_partial(Dim chunks, Dim blocks, Dim rows, Dim rows_per_block);
  void everything_final(Dim blocks);

  void columns();
  void columns_direct();
  void columns_partial(Dim pieces, Dim piece_rows);
  void columns_final(Dim pieces);
  void accumulate_rows(GroupLowering& l, const std::vector<int>& partial, Expr row, int count,
                       Expr columns, Expr start, const Position& target);

  const Group& group_;
  const Shapes& shapes_;
  const ScheduleTarget& target_;
  Survey known_;
  std::vector<const Node*> folds_;
  std::vector<Variable> full_outputs_;
  std::vector<Variable> kept_outputs_;
  Scheduled result_;
  std::size_t first_reduced_ = 0;  ///< columns: loops are [kept ..., reduced ..., lane]
  std::size_t lane_ = 0;
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
                 pairs(*folds_[k]->op->fold) ? index : Expr{});
  }
  for (const Variable& output : full_outputs_) l.store(output, l.aligned(output));
  l.clear_lane();
  l.close();
  b.end(counter);
  for (std::size_t k = 0; k < folds_.size(); ++k) {
    const int n = static_cast<int>(k);
    b.accumulate(row, n, b.result(counter, n),
                 pairs(*folds_[k]->op->fold) ? b.result(counter, n, 1) : Expr{});
  }
  l.close();
  b.end(row);
  std::size_t p = 0;
  for (std::size_t k = 0; k < folds_.size(); ++k) {
    const int n = static_cast<int>(k);
    b.store(partial[p++], b.block(), b.i64(0), b.result(row, n));
    if (pairs(*folds_[k]->op->fold))
      b.store(partial[p++], b.block(), b.i64(0), b.result(row, n, 1));
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
    const Expr index =
        pairs(*folds_[k]->op->fold) ? b.load(partial[p++], b.i64(0), b.i64(1)) : Expr{};
    b.accumulate(counter, static_cast<int>(k), value, index);
  }
  b.end(counter);
  for (std::size_t k = 0; k < folds_.size(); ++k) {
    l.set_fold(folds_[k],
               b.result(counter, static_cast<int>(k), pairs(*folds_[k]->op->fold) ? 1 : 0));
  }
  for (const Variable& output : kept_outputs_) l.store(output, l.aligned(output));
  add(std::move(launch), b, l);
}

void Reducer::columns() {
  std::vector<DomainLoop>& loops = known_.loops;
  // [kept ..., reduced ..., lane]: the last kept loop becomes the lanes. Where the domain began as
  // that of the results, the reduced loops stand behind it.
  const auto reduced = std::stable_partition(loops.begin(), loops.end(),
                                             [](const DomainLoop& loop) { return !loop.reduced; });
  std::rotate(reduced - 1, reduced, loops.end());
  lane_ = loops.size() - 1;
  first_reduced_ = 0;
  while (!loops[first_reduced_].reduced) ++first_reduced_;
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
  std::vector<Variable> outputs = full_outputs_;
  outputs.insert(outputs.end(), kept_outputs_.begin(), kept_outputs_.end());
  launch.buffers = declare_buffers(l, outputs, known_.reads);
  launch.outputs = static_cast<int>(outputs.size());
  launch.shares.assign(outputs.size(), -1);
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
    b.accumulate(row, static_cast<int>(k), folded(l, folds_[k]),
                 pairs(*folds_[k]->op->fold) ? row : Expr{});
  }
  for (const Variable& output : full_outputs_) l.store(output, l.aligned(output));
  l.close();
  b.end(row);
  for (std::size_t k = 0; k < folds_.size(); ++k) {
    l.set_fold(folds_[k], b.result(row, static_cast<int>(k), pairs(*folds_[k]->op->fold) ? 1 : 0));
  }
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
    if (pairs(fold)) {
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
    if (pairs(*fold->op->fold)) l.store_at(partial[p++], target, b.i64(0));
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
    const Expr index = pairs(*folds_[k]->op->fold) ? b.load(partial[p++], base, b.i64(1)) : Expr{};
    b.accumulate(piece, static_cast<int>(k), value, index);
  }
  b.end(piece);
  for (std::size_t k = 0; k < folds_.size(); ++k) {
    l.set_fold(folds_[k],
               b.result(piece, static_cast<int>(k), pairs(*folds_[k]->op->fold) ? 1 : 0));
  }
  for (const Variable& output : kept_outputs_) l.store(output, l.aligned(output));
  l.clear_lane();
  l.close();
  b.end(counter);
  add(std::move(launch), b, l);
}

}  // namespace

Scheduled schedule_reduce(const Group& group, const Shapes& shapes, const ScheduleTarget& target) {
  return Reducer(group, shapes, target).run();
}

}  // namespace croton
