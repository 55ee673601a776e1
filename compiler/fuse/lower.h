#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/fuse/group.h"
#include "compiler/graph/lowering.h"
#include "compiler/kernel/builder.h"

namespace croton {

/// One loop of a kernel: domain axes that run together (outer to inner) because every operand is
/// read along them with one stride.
struct DomainLoop {
  std::vector<int> axes;
  Dim size = 1;
  bool reduced = false;
};

/// A read or write of memory that is a sum of loop counters times sizes.
struct Access {
  std::vector<Dim> coefficient;  ///< one a domain axis
  bool computed = false;         ///< an index that is computed comes on top
};

/// What a member reads (itself, or for what it is made of) at each element of the domain.
using MemberReads = std::unordered_map<const Node*, std::vector<Access>>;

/// The loops of a group's domain, outer to inner, from how its operands are read. Axes of size 1
/// have none.
std::vector<DomainLoop> merge_axes(const FusionGroup& group, const std::vector<Access>& accesses,
                                   const std::vector<bool>& used_alone);

/// Turns values of a group into kernel code where the scheduler asks for them.
class GroupLowering {
 public:
  /// `buffers`: the values in memory, in the order of the kernel's arguments; the first `written`
  /// are written. In a survey (no buffers given) the reads are only recorded.
  GroupLowering(const FusionGroup& group, const Shapes& shapes, kernel::Builder& builder,
                bool check_bounds = false);

  /// Evaluates everything at unmerged loops to learn what is read, and how.
  void survey();
  const std::vector<Access>& accesses() const { return accesses_; }
  const std::vector<bool>& used_alone() const { return used_alone_; }
  /// Of the members that are not elementwise.
  const MemberReads& member_reads() const { return member_reads_; }
  const std::vector<Variable>& reads() const { return reads_; }
  /// The members whose values something needed.
  const std::unordered_set<const Node*>& computed() const { return computed_; }
  /// Of an operand, whether its every read is at the element that the domain's loops stand at; of
  /// an output, whether it is written there.
  bool in_place(const Variable& v) const;

  // Set-up of a kernel proper.
  void set_loops(std::vector<DomainLoop> loops, std::unordered_set<const Node*> needed);
  const std::vector<DomainLoop>& loops() const { return loops_; }
  int declare(const Variable& v, bool written, int aliases = -1);
  int declare_partial(DType dtype, bool written, Dim elements);
  /// After the last buffer: with check_bounds, states their sizes.
  void end_declarations();
  int buffer_of(const Variable& v) const { return buffers_.at(v); }

  // Loop counters, as the scheduler opens loops. `lane` marks the loop of the open `lanes`: its
  // counter is start + the lanes' own counter.
  void set_counter(int loop, kernel::Expr value);
  void set_lane(int loop, kernel::Expr start, kernel::Expr counter);
  void clear_lane();
  /// Reads give 0 and stores do nothing where it is false, from here on; {}: no mask.
  void set_mask(kernel::Expr mask) { mask_ = mask; }
  /// For lanes over all loops from `first` on as one: element start + counter of them in row-major
  /// order. What is read and written in that order is contiguous, all else is gathered.
  void set_flat(int first, kernel::Expr start, kernel::Expr counter);

  // Values made in a region are forgotten when it ends.
  void open() { memo_.emplace_back(); }
  void close() { memo_.pop_back(); }

  kernel::Expr size(Dim dim);  ///< as an int64 value
  const std::vector<DimRef>& size_arguments() const { return size_arguments_; }

  /// A member's value (or an operand's) at the domain's position.
  kernel::Expr aligned(const Variable& v);
  kernel::Expr at(const Variable& v, const std::vector<Position>& position, kernel::Expr mask = {});
  /// Where member `node` stands in the domain.
  std::vector<Position> position_of(const Node* node) const;
  /// Where operand k of a member stands; only for elementwise members, dimshuffle and folds.
  std::vector<Position> operand_position(const Node* node, int k) const;
  /// Writes an output at the domain's position.
  void store(const Variable& v, kernel::Expr value);
  void store_at(int buffer, const Position& linear, kernel::Expr value);
  kernel::Expr load_at(int buffer, DType dtype, const Position& linear);
  Position linear(const Variable& v, const std::vector<Position>& position);

  /// Computes, where the code stands now, all members (and reads their operands) that depend on
  /// none of the loops marked in `open` as not yet running; so that inner loops find them.
  void hoist(const std::vector<bool>& running);

  void set_fold(const Node* fold, kernel::Expr value) { folds_[fold] = value; }
  bool has_fold(const Node* fold) const { return folds_.contains(fold); }
  /// From here on the value of a member is read from that buffer (block-local or output).
  void set_cached(const Node* node, int buffer, Position linear) {
    cached_[node] = {buffer, std::move(linear)};
  }
  /// The same in the open lanes alone: at base + counter * stride, or at a base that varies.
  void set_cached_at(const Node* node, int buffer, kernel::Expr base, kernel::Expr stride) {
    cached_[node] = {buffer, {}, base, stride};
  }

  const FusionGroup& group;
  const Shapes& shapes;
  kernel::Builder& b;

 private:
  friend class ElementLowering;
  struct Cached {
    int buffer;
    Position linear;
    kernel::Expr base = {};
    kernel::Expr stride = {};
  };
  /// Where the lanes of an access start, and how far they are apart; a base that varies is all of
  /// it, for gather and scatter.
  struct Address {
    kernel::Expr base;
    kernel::Expr stride;
  };
  Address address(const Position& linear);
  kernel::Expr compute(const Node* node, const std::vector<Position>& position, kernel::Expr mask);
  kernel::Expr read(const Variable& v, const std::vector<Position>& position, kernel::Expr mask);
  kernel::Expr value(const Position& position);
  kernel::Expr axis_value(int axis);
  bool is_flat(const Position& linear) const;
  std::string key(const Variable& v, const std::vector<Position>& position,
                  kernel::Expr mask) const;
  bool depends_on_unready(const Node* node, const std::vector<bool>& running) const;

  bool survey_ = true;
  bool check_bounds_ = false;
  std::vector<std::pair<int, Dim>> elements_;  ///< of the declared buffers
  std::vector<Access> accesses_;
  std::vector<bool> used_alone_;
  // Survey: all reads and writes so far; the numbers of those that the values under way are made
  // of, and that each value seen so far is made of.
  std::vector<Access> walked_;
  std::vector<std::size_t> met_;
  std::unordered_map<std::string, std::vector<std::size_t>> met_at_;
  MemberReads member_reads_;
  std::vector<Variable> reads_;
  bool in_domain_order(const Variable& v, const Position& linear) const;
  VariableMap<bool> in_place_;
  std::unordered_set<const Node*> computed_;  ///< survey: seen so far; else: what a survey saw
  std::vector<DomainLoop> loops_;
  std::vector<int> loop_of_axis_;
  std::vector<kernel::Expr> counters_;  ///< one a loop (survey: one an axis)
  int lane_loop_ = -1;
  kernel::Expr lane_start_;
  kernel::Expr mask_;
  kernel::Expr flat_index_;
  int flat_loop_ = -1;  ///< first of the loops that the lanes run as one
  VariableMap<int> buffers_;
  std::vector<std::unordered_map<std::string, kernel::Expr>> memo_;
  std::unordered_map<const Node*, kernel::Expr> folds_;
  std::unordered_map<const Node*, Cached> cached_;
  std::vector<DimRef> size_arguments_;
  std::unordered_map<DimRef, int> size_index_;
};

/// a fold b, as the scheduler combines partial results.
kernel::Expr combine(kernel::Builder& b, kernel::Fold fold, kernel::Expr x, kernel::Expr y);
kernel::Expr identity(kernel::Builder& b, kernel::Fold fold, DType dtype);

}  // namespace croton
