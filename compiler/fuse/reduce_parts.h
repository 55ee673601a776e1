// What both schedules of reductions share: those over everything, or over axes before the last.
#pragma once

#include <vector>

#include "compiler/fuse/schedule.h"

namespace croton {

class ReduceParts {
 protected:
  ReduceParts(const FusionGroup& group, const Shapes& shapes, const ScheduleTarget& target);

  static bool pairs(const Node* fold);
  bool is_full(const Node* node) const;
  std::vector<kernel::Accumulator> accumulators() const;
  kernel::Expr folded(GroupLowering& l, const Node* fold) const;
  /// Buffers of the first kernel: full outputs, partial results, operands.
  void begin_first(KernelLaunch& launch, GroupLowering& l, std::vector<int>& partial);
  /// Buffers of the second kernel: outputs, operands of what follows the folds, partial results.
  void begin_second(KernelLaunch& launch, GroupLowering& l, std::vector<int>& partial);
  /// Buffers of a kernel that does all.
  void begin_only(KernelLaunch& launch, GroupLowering& l);
  void add(KernelLaunch launch, kernel::Builder& b, GroupLowering& l);
  /// Brings the loops into the order [kept ..., reduced ..., lane].
  void order_columns();
  /// The last results of a `lanes` or loop become the values of the folds.
  void set_folds(GroupLowering& l, kernel::Expr from) const;

  const FusionGroup& group_;
  const Shapes& shapes_;
  const ScheduleTarget& target_;
  Survey known_;
  std::vector<const Node*> folds_;
  std::vector<Variable> full_outputs_;
  std::vector<Variable> kept_outputs_;
  Scheduled result_;
  std::size_t first_reduced_ = 0;  ///< columns: the first loop that is reduced
  std::size_t lane_ = 0;
};

}  // namespace croton
