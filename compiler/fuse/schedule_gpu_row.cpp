// Row kernels for GPUs: a row is the work of a warp or of a block, which reads it once and keeps
// it between the stages: in registers where its width is known and fits them, else in shared
// memory. Rows that fit neither are read again by each stage.
#include <algorithm>
#include <bit>

#include "compiler/codegen/cuda.h"
#include "compiler/fuse/row_stages.h"
#include "compiler/fuse/schedule.h"
#include "croton/error.h"

namespace croton {

using kernel::Expr;

namespace {

/// Elements of a row for each thread: enough for its accesses to be many, few enough for registers.
constexpr std::int64_t kPerThread = 8;
constexpr int kWarp = 32;
constexpr int kMostThreads = 1024;
/// Threads of a row whose width the launch knows: less, so that they may have more registers.
constexpr int kMostElastic = 512;
/// Rows that warps work on share a block of so many threads.
constexpr int kPackedThreads = 256;

/// How the threads of a block are dealt out to rows, and what they keep.
struct RowLayout {
  int threads = kWarp;
  bool elastic = false;
  bool keeps = false;
};

class RowScheduler {
 public:
  RowScheduler(const FusionGroup& group, const Shapes& shapes, const ScheduleTarget& target,
               const Survey& known)
      : group_(group), shapes_(shapes), target_(target), known_(known) {
    while (kept_ < known.loops.size() && !known.loops[kept_].reduced) ++kept_;
    internal_check(kept_ < known.loops.size(), "a row kernel without a reduced axis");
    rows_ = extent(known.loops, 0, kept_);
    width_ = extent(known.loops, kept_, known.loops.size());
  }

  Scheduled run() {
    const bool keeps = Staging(group_, shapes_, &known_).kept_bytes() > 0;
    RowLayout layout;
    layout.elastic = !width_.is_number();
    layout.threads = layout.elastic ? kMostElastic : threads_for(known_.loops.back().size.number());
    layout.keeps = keeps;
    Scheduled scheduled;
    KernelLaunch kept = kernel(layout);
    // Of the sizes, where they are not numbers.
    const Dim fits = less(shared_bytes(kept), Dim(target_.device.shared_bytes + 1));
    if (keeps && !fits.is(1)) {
      layout.keeps = false;
      KernelLaunch again = kernel(layout);
      // Two kernels, of which each call runs one: wide rows are rare.
      again.blocks = again.blocks * (Dim(1) - fits);
      again.rare = !fits.is_number();
      kept.blocks = kept.blocks * fits;
      if (!fits.is(0)) scheduled.launches.push_back(std::move(kept));
      scheduled.launches.push_back(std::move(again));
    } else {
      scheduled.launches.push_back(std::move(kept));
    }
    return scheduled;
  }

 private:
  static int threads_for(std::int64_t width) {
    const auto wanted =
        std::bit_ceil(static_cast<std::uint64_t>((width + kPerThread - 1) / kPerThread));
    return static_cast<int>(std::clamp<std::uint64_t>(wanted, kWarp, kMostThreads));
  }

  /// Of one block of the kernel, for what lies in no registers.
  Dim shared_bytes(const KernelLaunch& launch) const {
    std::vector<Dim> sizes;
    for (const DimRef ref : launch.sizes) sizes.push_back(shapes_.dims().dim(ref));
    return codegen::cuda_shared_term(launch.kernel, sizes);
  }

  KernelLaunch kernel(const RowLayout& layout) const {
    KernelLaunch launch;
    kernel::Builder b(layout.threads);
    GroupLowering lowering(group_, shapes_, b, target_.check_bounds);
    lowering.set_loops(known_.loops, known_.computed);
    launch.buffers = declare_buffers(lowering, group_.outputs, known_.reads);
    launch.outputs = static_cast<int>(group_.outputs.size());
    launch.shares.assign(group_.outputs.size(), -1);
    launch.blocks = rows_;
    launch.work = rows_ * width_ * Dim(cost_of(group_));

    Staging staging(group_, shapes_, &known_);
    if (!layout.keeps) {
      for (Stage& stage : staging.stages) stage.keep.clear();
    }
    RowEmitter emitter(lowering, kept_);
    emitter.declare_kept(staging.stages);
    lowering.hoist(std::vector<bool>(known_.loops.size(), false));
    lowering.open();
    set_counters(lowering, 0, kept_, b.block());
    for (const Stage& stage : staging.stages) emitter.emit(stage, 1);
    emitter.store_kept_axes();
    lowering.close();
    if (layout.elastic) {
      const Dim warps = max(Dim(1), ceil_div(known_.loops.back().size, kWarp * kPerThread));
      launch.threads = min(Dim(kMostElastic), warps * Dim(kWarp));
      launch.packed = max(Dim(1), floor_div(Dim(kPackedThreads), launch.threads));
      b.stretch();
      b.share_blocks();
    } else if (layout.threads == kWarp) {
      launch.packed = kPackedThreads / kWarp;
      b.share_blocks();
    }
    finish(launch, b, lowering);
    // All rows that share a block keep what they need in its shared memory.
    const Dim bytes = shared_bytes(launch);
    if (launch.kernel.packed && !bytes.is(0)) {
      const Dim most = floor_div(Dim(target_.device.shared_bytes), max(bytes, Dim(1)));
      launch.packed = max(Dim(1), min(launch.packed, most));
    }
    return launch;
  }

  const FusionGroup& group_;
  const Shapes& shapes_;
  const ScheduleTarget& target_;
  const Survey& known_;
  std::size_t kept_ = 0;
  Dim rows_;
  Dim width_;
};

}  // namespace

Scheduled schedule_gpu_row(const FusionGroup& group, const Shapes& shapes,
                           const ScheduleTarget& target, const Survey& known) {
  return RowScheduler(group, shapes, target, known).run();
}

}  // namespace croton
