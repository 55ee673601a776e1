#include "compiler/fuse/reduce_parts.h"

#include <algorithm>
#include <limits>

#include "compiler/graph/op.h"

namespace croton {

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

ReduceParts::ReduceParts(const FusionGroup& group, const Shapes& shapes,
                         const ScheduleTarget& target)
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
    if (pairs(fold)) result_.partials.push_back({DType::int64, 1});
  }
}

bool ReduceParts::pairs(const Node* fold) {
  return *fold->op->fold == Fold::argmax || *fold->op->fold == Fold::argmin;
}

bool ReduceParts::is_full(const Node* node) const {
  if (reduces(node, shapes_)) return false;
  for (const int axis : group_.axes.at(node)) {
    if (axis >= 0 && group_.reduced[axis]) return true;
  }
  return false;
}

std::vector<kernel::Accumulator> ReduceParts::accumulators() const {
  std::vector<kernel::Accumulator> list;
  for (const Node* fold : folds_) {
    list.push_back({*fold->op->fold, fold->inputs[0].dtype(), kernel::kNone});
  }
  return list;
}

Expr ReduceParts::folded(GroupLowering& l, const Node* fold) const {
  return l.at(fold->inputs[0], l.operand_position(fold, 0));
}

void ReduceParts::begin_first(KernelLaunch& launch, GroupLowering& l, std::vector<int>& partial) {
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

void ReduceParts::begin_second(KernelLaunch& launch, GroupLowering& l, std::vector<int>& partial) {
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

void ReduceParts::add(KernelLaunch launch, kernel::Builder& b, GroupLowering& l) {
  finish(launch, b, l);
  result_.launches.push_back(std::move(launch));
}

void ReduceParts::begin_only(KernelLaunch& launch, GroupLowering& l) {
  std::vector<Variable> outputs = full_outputs_;
  outputs.insert(outputs.end(), kept_outputs_.begin(), kept_outputs_.end());
  launch.buffers = declare_buffers(l, outputs, known_.reads);
  launch.outputs = static_cast<int>(outputs.size());
  launch.shares.assign(outputs.size(), -1);
}

void ReduceParts::order_columns() {
  std::vector<DomainLoop>& loops = known_.loops;
  // The last kept loop becomes the lanes. Where the domain began as that of the results, the
  // reduced loops stand behind it.
  const auto reduced = std::stable_partition(loops.begin(), loops.end(),
                                             [](const DomainLoop& loop) { return !loop.reduced; });
  std::rotate(reduced - 1, reduced, loops.end());
  lane_ = loops.size() - 1;
  first_reduced_ = 0;
  while (!loops[first_reduced_].reduced) ++first_reduced_;
}

void ReduceParts::set_folds(GroupLowering& l, Expr from) const {
  for (std::size_t k = 0; k < folds_.size(); ++k) {
    l.set_fold(folds_[k], l.b.result(from, static_cast<int>(k), pairs(folds_[k]) ? 1 : 0));
  }
}

}  // namespace croton
