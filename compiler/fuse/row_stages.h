// Stages of kernels that go over the kept axes row by row, and the code of one row.
#pragma once

#include <unordered_map>
#include <vector>

#include "compiler/fuse/schedule.h"

namespace croton {

/// Whether a member of a row kernel depends on the reduced axes.
bool touches_reduced(const FusionGroup& group, const Node* node);

/// One sweep over the reduced axes.
struct Stage {
  std::vector<const Node*> folds;
  std::vector<Variable> outputs;  ///< of the whole domain, written in this sweep
  std::vector<const Node*> keep;  ///< values to be stored for later stages
};

/// Stages in order; the last one may have no folds.
class Staging {
 public:
  /// `keep_reads`: operands that several stages read are kept too.
  Staging(const FusionGroup& group, const Shapes& shapes, const Survey* keep_reads = nullptr);

  std::vector<Stage> stages;

  /// Bytes that are kept of one element of a row.
  std::int64_t kept_bytes() const;

 private:
  Stage& stage(int level);
  bool keepable_read(const Variable& v) const;
  void find_kept();

  const FusionGroup& group_;
  const Shapes& shapes_;
  const Survey* keep_reads_;
  std::unordered_map<const Node*, int> level_;
};

/// Emits the stages of one row: loops [first_reduced, ...) are those of the row.
class RowEmitter {
 public:
  RowEmitter(GroupLowering& lowering, std::size_t first_reduced);

  void declare_kept(const std::vector<Stage>& stages);
  void emit(const Stage& stage, int unroll);
  /// After the stages: what depends on the kept axes alone is written once a row.
  void store_kept_axes();

 private:
  static bool pairs(const Node* fold);
  void keep(const Node* node, kernel::Expr base);
  Position kept_position() const;

  GroupLowering& l_;
  kernel::Builder& b_;
  std::size_t first_;
  std::size_t lane_;
  std::vector<bool> running_;
  std::unordered_map<const Node*, int> kept_;
};

/// Vectors of a stage's lanes that an iteration takes, where they are short.
int unroll_of(const FusionGroup& group, const Stage& stage);

}  // namespace croton
