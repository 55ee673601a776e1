#pragma once

#include <vector>

#include "compiler/fuse/group.h"
#include "compiler/fuse/lower.h"
#include "compiler/kernel/kernel.h"
#include "runtime/target.h"

namespace croton {

/// What a kernel's buffer argument is: a value of the graph, or partial results that one kernel of
/// a group leaves for the next.
struct KernelBuffer {
  Variable value;
  int partial = -1;
};

/// One launch: the kernel, its arguments, its grid.
struct KernelLaunch {
  kernel::Kernel kernel;
  std::vector<KernelBuffer> buffers;  ///< outputs first
  int outputs = 0;
  std::vector<DimRef> sizes;
  Dim blocks = 1;
  Dim work = 0;             ///< scalar operations, roughly
  std::vector<int> shares;  ///< for each output: the buffer whose memory it may take over, or -1
  bool rare = false;        ///< GPU: compiled when a call first launches it
  Dim threads = -1;         ///< GPU: threads of a block; -1: those of the kernel
  Dim packed = -1;          ///< GPU: blocks of the kernel in one block of the launch; -1: one
  /// Zero where each row that a `lanes` writes starts at a multiple of 64 bytes, so that
  /// non-temporal stores are possible.
  Dim misalignment = 0;
  /// GPU: no number that the kernel holds for bounded is larger than this or a buffer: the elements
  /// of the domain, which may be more than those of any buffer.
  Dim span = 0;
};

struct PartialBuffer {
  DType dtype = DType::float32;
  Dim elements = 1;
};

struct Scheduled {
  std::vector<KernelLaunch> launches;
  std::vector<PartialBuffer> partials;
};

/// What a schedule is made for.
struct ScheduleTarget {
  TargetInfo device;
  bool check_bounds = false;   ///< the flag
  bool deterministic = false;  ///< the flag
  ScheduleTarget(TargetInfo device, bool check_bounds = false, bool deterministic = false)
      : device(std::move(device)), check_bounds(check_bounds), deterministic(deterministic) {}
};

/// Kernels for a group of kind map, row, reduce or kernel: how its loops are laid out over blocks
/// and lanes of the target.
Scheduled schedule(const FusionGroup& group, const Shapes& shapes, const ScheduleTarget& target);

// One for each kind.
Scheduled schedule_map(const FusionGroup& group, const Shapes& shapes,
                       const ScheduleTarget& target);
Scheduled schedule_gpu_map(const FusionGroup& group, const Shapes& shapes,
                           const ScheduleTarget& target);
Scheduled schedule_row(const FusionGroup& group, const Shapes& shapes,
                       const ScheduleTarget& target);
Scheduled schedule_reduce(const FusionGroup& group, const Shapes& shapes,
                          const ScheduleTarget& target);
Scheduled schedule_gpu_everything(const FusionGroup& group, const Shapes& shapes,
                                  const ScheduleTarget& target);
Scheduled schedule_gpu_columns(const FusionGroup& group, const Shapes& shapes,
                               const ScheduleTarget& target);
Scheduled schedule_own(const FusionGroup& group, const Shapes& shapes,
                       const ScheduleTarget& target);

// Shared by them.

/// What the operands of a group are and how they are read.
struct Survey {
  std::vector<DomainLoop> loops;
  std::vector<Variable> reads;
  VariableMap<bool> in_place;  ///< of reads and outputs
  std::unordered_set<const Node*> computed;
  MemberReads member_reads;
};
Survey survey(const FusionGroup& group, const Shapes& shapes);

/// Adds the kernel and gives true where the group reads something across the axis along which it
/// writes.
bool schedule_transposed(const FusionGroup& group, const Shapes& shapes,
                         const ScheduleTarget& target, const Survey& known, Scheduled& scheduled);

/// `known` has its kept loops first.
Scheduled schedule_gpu_row(const FusionGroup& group, const Shapes& shapes,
                           const ScheduleTarget& target, const Survey& known);

/// For each output an operand that dies here may give its memory to: of the same element size, read
/// only where the output is written. Each operand at most once.
std::vector<int> find_shares(const FusionGroup& group, const Survey& survey);

/// Elements that one block works on at least, so that handing out blocks costs little.
inline constexpr std::int64_t kBlockElements = 4096;
/// Elements of one row that one block works on at most.
inline constexpr std::int64_t kRowChunk = 65536;

/// Finishes the kernel and drops the operands that it does not read.
void finish(KernelLaunch& launch, kernel::Builder& builder, const GroupLowering& lowering);

/// Product of the sizes of loops [first, last).
Dim extent(const std::vector<DomainLoop>& loops, std::size_t first, std::size_t last);
/// A size as an int64 value of which can be seen that it is a multiple of 8, where it surely is.
kernel::Expr size_in_eights(GroupLowering& lowering, Dim size);
/// Sets the counters of loops [first, last) from one running index, the last one fastest.
void set_counters(GroupLowering& lowering, std::size_t first, std::size_t last, kernel::Expr index);
Dim ceil_div(Dim a, Dim b);
/// Bytes by which the starts of rows of `row` elements miss multiples of 64, of any of the outputs.
Dim misalignment(const std::vector<Variable>& outputs, Dim row);
/// Scalar operations for one element of the whole domain, roughly.
std::int64_t cost_of(const FusionGroup& group);
/// Declares the outputs, then the operands; gives the buffers.
std::vector<KernelBuffer> declare_buffers(GroupLowering& lowering,
                                          const std::vector<Variable>& outputs,
                                          const std::vector<Variable>& reads,
                                          const std::vector<int>& aliases = {});

}  // namespace croton
