#include "compiler/fuse/row_stages.h"

#include <algorithm>
#include <unordered_set>

#include "compiler/graph/op.h"

namespace croton {

using kernel::Expr;
using kernel::Fold;

namespace {

/// From this many operations on, a value that two stages need is kept instead of computed again.
constexpr int kKeepCost = 6;

}  // namespace

bool touches_reduced(const FusionGroup& group, const Node* node) {
  const auto found = group.axes.find(node);
  if (found == group.axes.end()) return true;
  for (const int axis : found->second) {
    if (axis >= 0 && group.reduced[axis]) return true;
  }
  return false;
}

Staging::Staging(const FusionGroup& group, const Shapes& shapes, const Survey* keep_reads)
    : group_(group), shapes_(shapes), keep_reads_(keep_reads) {
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

Stage& Staging::stage(int level) {
  if (static_cast<int>(stages.size()) <= level) stages.resize(level + 1);
  return stages[level];
}

/// An operand of the whole domain that elementwise members or folds read.
bool Staging::keepable_read(const Variable& v) const {
  if (keep_reads_ == nullptr || v.node()->outputs.size() != 1) return false;
  const auto found = keep_reads_->in_place.find(v);
  if (found == keep_reads_->in_place.end() || !found->second) return false;
  return std::any_of(group_.nodes.begin(), group_.nodes.end(), [&](const Node* node) {
    return group_.axes.contains(node) && (node->op->form == OpForm::scalar || node->op->fold) &&
           std::any_of(node->inputs.begin(), node->inputs.end(),
                       [&](const Variable& input) { return input.same(v); });
  });
}

void Staging::find_kept() {
  std::unordered_map<const Node*, int> first;
  std::unordered_set<const Node*> kept;
  for (int s = 0; s < static_cast<int>(stages.size()); ++s) {
    std::vector<const Node*> todo;
    std::unordered_set<const Node*> seen;
    const auto visit = [&](const Variable& v) {
      const Node* node = v.node();
      const bool member =
          group_.axes.contains(node) && !reduces(node, shapes_) && touches_reduced(group_, node);
      if (!member && (group_.contains(node) || !keepable_read(v))) return;
      if (seen.insert(node).second) todo.push_back(node);
    };
    for (const Node* fold : stages[s].folds) visit(fold->inputs[0]);
    for (const Variable& output : stages[s].outputs) visit(output);
    while (!todo.empty()) {
      const Node* node = todo.back();
      todo.pop_back();
      const bool read = !group_.contains(node);
      const auto [it, added] = first.emplace(node, s);
      if (!added && it->second < s && (read || node->op->cost >= kKeepCost)) {
        if (kept.insert(node).second) stages[it->second].keep.push_back(node);
        continue;
      }
      if (read) continue;
      for (const Variable& input : node->inputs) visit(input);
    }
  }
}

std::int64_t Staging::kept_bytes() const {
  std::int64_t bytes = 0;
  for (const Stage& stage : stages) {
    for (const Node* node : stage.keep) {
      bytes += static_cast<std::int64_t>(size_of(node->outputs[0].dtype));
    }
  }
  return bytes;
}

RowEmitter::RowEmitter(GroupLowering& lowering, std::size_t first_reduced)
    : l_(lowering), b_(lowering.b), first_(first_reduced), lane_(lowering.loops().size() - 1) {
  running_.assign(lowering.loops().size(), false);
  for (std::size_t i = 0; i < first_; ++i) running_[i] = true;
}

void RowEmitter::emit(const Stage& stage, int unroll) {
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
  for (const Node* node : stage.keep) l_.set_cached(node, kept_.at(node), kept_position());
}

void RowEmitter::store_kept_axes() {
  l_.hoist(running_);
  for (const Variable& output : l_.group.outputs) {
    if (reduces(output.node(), l_.shapes) || !touches_reduced(l_.group, output.node())) {
      l_.store(output, l_.aligned(output));
    }
  }
}

void RowEmitter::declare_kept(const std::vector<Stage>& stages) {
  const Expr width = l_.size(extent(l_.loops(), first_, lane_ + 1));
  for (const Stage& stage : stages) {
    for (const Node* node : stage.keep) {
      kept_.emplace(node, b_.local(node->outputs[0].dtype, width));
    }
  }
}

bool RowEmitter::pairs(const Node* fold) {
  return *fold->op->fold == Fold::argmax || *fold->op->fold == Fold::argmin;
}

void RowEmitter::keep(const Node* node, Expr base) {
  b_.store(kept_.at(node), base, b_.i64(1), l_.aligned(node->out()));
}

/// Row-major over the reduced loops.
Position RowEmitter::kept_position() const {
  Position position;
  Dim stride = 1;
  for (std::size_t i = lane_ + 1; i-- > first_;) {
    position.terms.emplace_back(l_.loops()[i].axes.back(), stride);
    stride = stride * l_.loops()[i].size;
  }
  return position;
}

int unroll_of(const FusionGroup& group, const Stage& stage) {
  int cost = 0;
  for (const Node* fold : stage.folds) {
    cost += group.contains(fold->inputs[0].node()) ? fold->inputs[0].node()->op->cost : 0;
  }
  return stage.folds.empty() || cost > 8 ? 1 : 4;
}

}  // namespace croton
