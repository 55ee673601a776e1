// Kernels that go over the kept axes row by row. A row is worked on in stages: each stage is one
// sweep over the reduced axes, makes the reductions that depend on those before, and writes the
// values that are ready. softmax, layer normalisation and the like are one such kernel.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "compiler/fuse/schedule.h"
#include "compiler/graph/op.h"
#include "croton/error.h"

namespace croton {

using kernel::Binary;
using kernel::Expr;
using kernel::Fold;

namespace {

/// From this many operations on, a value that two stages need is kept instead of computed again.
constexpr int kKeepCost = 6;

bool touches_reduced(const Group& group, const Node* node) {
  const auto found = group.axes.find(node);
  if (found == group.axes.end()) return true;
  for (const int axis : found->second) {
    if (axis >= 0 && group.reduced[axis]) return true;
  }
  return false;
}

struct Stage {
  std::vector<const Node*> folds;
  std::vector<Variable> outputs;  ///< of the whole domain, written in this sweep
  std::vector<const Node*> keep;  ///< values to be stored for later stages
};

/// Stages in order; the last one may have no folds.
class Staging {
 public:
  Staging(const Group& group, const Shapes& shapes) : group_(group), shapes_(shapes) {
    for (const Node* node : group.nodes) {
      int level = 0;
      for (const Variable& input : node->inputs) {
        if (const auto it = level_.find(input.node()); it != level_.end()) {
          level = std::max(level, it->second);
        }
      }
      if (reduces(node, shapes)) {
        stage(level).folds.push_back(node);
        ++level;
      }
      level_.emplace(node, level);
    }
    for (const Variable& output : group.outputs) {
      const Node* node = output.node();
      if (reduces(node, shapes) || !touches_reduced(group, node)) continue;
      stage(level_.at(node)).outputs.push_back(output);
    }
    find_kept();
  }

  std::vector<Stage> stages;

 private:
  Stage& stage(int level) {
    if (static_cast<int>(stages.size()) <= level) stages.resize(level + 1);
    return stages[level];
  }

  void find_kept() {
    std::unordered_map<const Node*, int> first;
    std::unordered_set<const Node*> kept;
    for (int s = 0; s < static_cast<int>(stages.size()); ++s) {
      std::vector<const Node*> todo;
      std::unordered_set<const Node*> seen;
      const auto visit = [&](const Node* node) {
        if (group_.axes.contains(node) && !reduces(node, shapes_) &&
            touches_reduced(group_, node) && seen.insert(node).second) {
          todo.push_back(node);
        }
      };
      for (const Node* fold : stages[s].folds) visit(fold->inputs[0].node());
      for (const Variable& output : stages[s].outputs) visit(output.node());
      while (!todo.empty()) {
        const Node* node = todo.back();
        todo.pop_back();
        const auto [it, added] = first.emplace(node, s);
        if (!added && it->second < s && node->op->cost >= kKeepCost) {
          if (kept.insert(node).second) stages[it->second].keep.push_back(node);
          continue;
        }
        for (const Variable& input : node->inputs) visit(input.node());
      }
    }
  }

  const Group& group_;
  const Shapes& shapes_;
  std::unordered_map<const Node*, int> level_;
};

/// Emits the stages of one row.
class RowEmitter {
 public:
  RowEmitter(GroupLowering& lowering, std::size_t first_reduced)
      : l_(lowering), b_(lowering.b), first_(first_reduced), lane_(lowering.loops().size() - 1) {
    running_.assign(lowering.loops().size(), false);
    for (std::size_t i = 0; i < first_; ++i) running_[i] = true;
  }

  void emit(const Stage& stage, int unroll) {
    l_.hoist(running_);
    std::vector<kernel::Accumulator> accumulators;
    for (const Node* fold : stage.folds) {
      accumulators.push_back({*fold->op->fold, fold->inputs[0].dtype(), kernel::kNone});
    }
    const bool nested = lane_ > first_;
    Expr outer;
    if (nested) {
      outer = b_.begin_loop(l_.size(extent(l_.loops(), first_, lane_)), accumulators);
      l_.open();
      set_counters(l_, first_, lane_, outer);
    }
    const Expr inner_size = l_.size(l_.loops()[lane_].size);
    const Expr counter = b_.begin_lanes(inner_size, accumulators, unroll);
    l_.open();
    l_.set_lane(static_cast<int>(lane_), b_.i64(0), counter);
    const Expr index = nested ? outer * inner_size + counter : counter;
    for (const Node* node : stage.keep) keep(node, nested ? outer * inner_size : b_.i64(0));
    for (std::size_t k = 0; k < stage.folds.size(); ++k) {
      const Node* fold = stage.folds[k];
      const Expr value = l_.at(fold->inputs[0], l_.operand_position(fold, 0));
      b_.accumulate(counter, static_cast<int>(k), value, pairs(fold) ? index : Expr{});
    }
    for (const Variable& output : stage.outputs) l_.store(output, l_.aligned(output));
    l_.clear_lane();
    l_.close();
    b_.end(counter);
    std::vector<Expr> results;
    Expr from = counter;
    if (nested) {
      for (std::size_t k = 0; k < stage.folds.size(); ++k) {
        const int number = static_cast<int>(k);
        b_.accumulate(outer, number, b_.result(counter, number),
                      pairs(stage.folds[k]) ? b_.result(counter, number, 1) : Expr{});
      }
      l_.close();
      b_.end(outer);
      from = outer;
    }
    for (std::size_t k = 0; k < stage.folds.size(); ++k) {
      const Node* fold = stage.folds[k];
      l_.set_fold(fold, b_.result(from, static_cast<int>(k), pairs(fold) ? 1 : 0));
    }
    for (const Node* node : stage.keep) l_.set_cached(node, kept_.at(node), kept_position(node));
  }

  void declare_kept(const std::vector<Stage>& stages) {
    for (const Stage& stage : stages) {
      for (const Node* node : stage.keep) {
        kept_.emplace(
            node, b_.local(node->outputs[0].dtype, l_.size(extent(l_.loops(), first_, lane_ + 1))));
      }
    }
  }

 private:
  static bool pairs(const Node* fold) {
    return *fold->op->fold == Fold::argmax || *fold->op->fold == Fold::argmin;
  }

  void keep(const Node* node, Expr base) {
    b_.store(kept_.at(node), base, b_.i64(1), l_.aligned(node->out()));
  }

  /// Row-major over the reduced loops.
  Position kept_position(const Node*) const {
    Position position;
    Dim stride = 1;
    for (std::size_t i = lane_ + 1; i-- > first_;) {
      position.terms.emplace_back(l_.loops()[i].axes.back(), stride);
      stride = stride * l_.loops()[i].size;
    }
    return position;
  }

  GroupLowering& l_;
  kernel::Builder& b_;
  std::size_t first_;
  std::size_t lane_;
  std::vector<bool> running_;
  std::unordered_map<const Node*, int> kept_;
};

}  // namespace

Scheduled schedule_row(const Group& group, const Shapes& shapes, const ScheduleTarget& target) {
  Survey known = survey(group, shapes);
  // Kept loops first: the order among kept and among reduced ones stays.
  std::stable_partition(known.loops.begin(), known.loops.end(),
                        [](const DomainLoop& loop) { return !loop.reduced; });
  KernelLaunch launch;
  kernel::Builder b;
  GroupLowering lowering(group, shapes, b, target.check_bounds);
  lowering.set_loops(known.loops, known.computed);
  launch.buffers = declare_buffers(lowering, group.outputs, known.reads);
  launch.outputs = static_cast<int>(group.outputs.size());
  launch.shares.assign(group.outputs.size(), -1);

  const std::vector<DomainLoop>& loops = lowering.loops();
  std::size_t kept = 0;
  while (kept < loops.size() && !loops[kept].reduced) ++kept;
  internal_check(kept < loops.size(), "a row kernel without a reduced axis");
  const Dim rows = extent(loops, 0, kept);
  const Dim width = extent(loops, kept, loops.size());
  const Dim rows_per_block = max(Dim(1), floor_div(Dim(kBlockElements), max(width, Dim(1))));
  launch.blocks = ceil_div(rows, rows_per_block);
  launch.work = rows * width * Dim(cost_of(group));
  launch.misalignment = misalignment(group.outputs, loops.back().size);

  Staging staging(group, shapes);
  // A GPU has little memory inside a block; there values are computed again.
  if (target.device.gpu()) {
    for (Stage& stage : staging.stages) stage.keep.clear();
  }
  RowEmitter emitter(lowering, kept);
  emitter.declare_kept(staging.stages);
  lowering.hoist(std::vector<bool>(loops.size(), false));
  const Expr first = b.block() * lowering.size(rows_per_block);
  const Expr last =
      b.binary(Binary::min, lowering.size(rows), first + lowering.size(rows_per_block));
  const Expr row = b.begin_loop(last - first);
  lowering.open();
  set_counters(lowering, 0, kept, first + row);
  for (const Stage& stage : staging.stages) {
    int cost = 0;
    for (const Node* fold : stage.folds) {
      cost += group.contains(fold->inputs[0].node()) ? fold->inputs[0].node()->op->cost : 0;
    }
    emitter.emit(stage, stage.folds.empty() || cost > 8 ? 1 : 4);
  }
  // What depends on the kept axes alone is written once a row.
  std::vector<bool> running(loops.size(), false);
  for (std::size_t i = 0; i < kept; ++i) running[i] = true;
  lowering.hoist(running);
  for (const Variable& output : group.outputs) {
    if (reduces(output.node(), shapes) || !touches_reduced(group, output.node())) {
      lowering.store(output, lowering.aligned(output));
    }
  }
  lowering.close();
  b.end(row);
  finish(launch, b, lowering);
  return {{std::move(launch)}, {}};
}

}  // namespace croton
