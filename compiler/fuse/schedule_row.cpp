// Kernels that go over the kept axes row by row. A row is worked on in stages: each stage is one
// sweep over the reduced axes, makes the reductions that depend on those before, and writes the
// values that are ready. softmax, layer normalisation and the like are one such kernel.
#include <algorithm>

#include "compiler/fuse/row_stages.h"
#include "compiler/fuse/schedule.h"
#include "croton/error.h"

namespace croton {

using kernel::Binary;
using kernel::Expr;

Scheduled schedule_row(const FusionGroup& group, const Shapes& shapes,
                       const ScheduleTarget& target) {
  Survey known = survey(group, shapes);
  // Kept loops first: the order among kept and among reduced ones stays.
  std::stable_partition(known.loops.begin(), known.loops.end(),
                        [](const DomainLoop& loop) { return !loop.reduced; });
  if (target.device.gpu()) return schedule_gpu_row(group, shapes, target, known);
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

  const Staging staging(group, shapes);
  RowEmitter emitter(lowering, kept);
  emitter.declare_kept(staging.stages);
  lowering.hoist(std::vector<bool>(loops.size(), false));
  const Expr first = b.block() * lowering.size(rows_per_block);
  const Expr last =
      b.binary(Binary::min, lowering.size(rows), first + lowering.size(rows_per_block));
  const Expr row = b.begin_loop(last - first);
  lowering.open();
  set_counters(lowering, 0, kept, first + row);
  for (const Stage& stage : staging.stages) emitter.emit(stage, unroll_of(group, stage));
  emitter.store_kept_axes();
  lowering.close();
  b.end(row);
  finish(launch, b, lowering);
  return {{std::move(launch)}, {}};
}

}  // namespace croton
