// The text of one kernel: one case for each node of the kernel language.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/codegen/cuda_index.h"
#include "compiler/codegen/cuda_lanes.h"
#include "compiler/codegen/cuda_prelude.h"
#include "compiler/codegen/cuda_shared.h"
#include "compiler/kernel/kernel.h"

namespace croton::codegen {

// Names in the text: bN buffer, nN size, cN counter, vN value, pN several loaded at once, aN_K
// accumulator K of loop N and xN_K its index, sN_K and tN_K their shared scratch, mN how many
// counters of lanes N are taken several at a time, rN the sweep of lanes that are written out. No
// letter begins the name of a type (cuda_prelude.h). A value of the k-th of several counters has _k
// behind its name.
class KernelEmitter {
 public:
  KernelEmitter(const kernel::Kernel& kernel, Prelude& prelude);

  std::string text();

 private:
  using Id = kernel::Id;
  using Node = kernel::Node;

  // Layout of the text.
  void line(std::string_view content);
  void open(std::string_view head);
  void close();
  void define(Id id, std::string_view expression);

  const Node& node(Id id) const { return kernel_.nodes[id]; }
  bool is_constant(Id id, std::uint64_t bits) const;
  bool is_index(Id id) const { return index_[id] != IndexType::none; }
  /// Whether the node has a value for each of several counters.
  bool split(Id id) const {
    return width_ > 1 && node(id).varying && !layouts_.of(lanes_).same.contains(id);
  }
  std::string suffix(Id id) const;
  std::string_view type_of(Id id) const;

  std::string signature() const;
  std::string threads() const;
  std::string value(Id id) const;
  /// An operand of `user`: an index where that is one, in 64 bits where it computes in those.
  std::string operand(Id user, Id id) const;
  std::string sum(std::string_view a, std::string_view b) const;
  std::string offset(const Node& node) const;
  std::string element(Id id) const;
  std::string barrier() const;

  void region(int index);
  void statement(Id id);
  void each(Id id);
  std::string any_counter(Id id);
  void arithmetic(Id id);
  void index_arithmetic(Id id);
  void load(Id id);
  void store(Id id);
  void wide_load(Id id);
  void wide_store(Id id);
  void local(Id id);
  void check(Id id);
  void loop(Id id);
  void lanes(Id id);
  void lanes_body(Id id, int width);
  void written_out(Id id);
  std::string wide_counters(Id id);

  // Folds.
  void accumulators(Id id);
  void accumulator(Id id, std::size_t k, std::string_view name);
  void accumulate(Id id);
  void merge(kernel::Fold fold, DType dtype, const std::string& name, std::string_view other,
             std::string_view other_index);
  void fold_warps(Id id, int width);
  void fold_over_warps(Id id);
  void fold_block(Id id);

  const kernel::Kernel& kernel_;
  Prelude& prelude_;
  LaneLayouts layouts_;
  SharedArrays shared_;
  std::vector<IndexType> index_;
  std::vector<bool> barrier_;
  std::string text_;
  std::string shared_end_ = "0";  // where the next array in dynamic shared memory begins
  int depth_ = 0;
  Id lanes_ = kernel::kNone;  // the lanes around the statement
  int width_ = 1;             // counters that the statements take at a time
  int k_ = 0;                 // which of them is being printed
};

}  // namespace croton::codegen
