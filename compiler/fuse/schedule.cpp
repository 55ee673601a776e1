#include "compiler/fuse/schedule.h"

#include <algorithm>

#include "compiler/graph/op.h"
#include "croton/error.h"

namespace croton {

using kernel::Binary;
using kernel::Expr;

Scheduled schedule(const FusionGroup& group, const Shapes& shapes, const ScheduleTarget& target) {
  switch (group.kind) {
    case GroupKind::map:
      return target.device.gpu() ? schedule_gpu_map(group, shapes, target)
                                 : schedule_map(group, shapes, target);
    case GroupKind::row:
      return schedule_row(group, shapes, target);
    case GroupKind::reduce:
      return schedule_reduce(group, shapes, target);
    case GroupKind::kernel:
      return schedule_own(group, shapes, target);
    case GroupKind::library:
    case GroupKind::copy:
    case GroupKind::view:
      break;
  }
  throw InternalError("this kind of group has no kernel");
}

Survey survey(const FusionGroup& group, const Shapes& shapes) {
  kernel::Builder scratch;
  GroupLowering lowering(group, shapes, scratch);
  lowering.survey();
  Survey result;
  result.loops = merge_axes(group, lowering.accesses(), lowering.used_alone());
  result.reads = lowering.reads();
  result.computed = lowering.computed();
  result.member_reads = lowering.member_reads();
  for (const Variable& read : result.reads) result.in_place[read] = lowering.in_place(read);
  for (const Variable& v : group.outputs) result.in_place[v] = lowering.in_place(v);
  return result;
}

void finish(KernelLaunch& launch, kernel::Builder& builder, const GroupLowering& lowering) {
  launch.kernel = builder.finish();
  launch.sizes = lowering.size_arguments();
  launch.span = 1;
  for (const Dim& size : lowering.group.domain) launch.span = launch.span * size;
  kernel::Kernel& k = launch.kernel;
  std::vector<bool> used(k.buffers.size(), false);
  const auto touches = [](const kernel::Node& node) {
    return node.op == kernel::Op::load || node.op == kernel::Op::gather ||
           node.op == kernel::Op::store || node.op == kernel::Op::scatter ||
           node.op == kernel::Op::local;
  };
  for (const kernel::Node& node : k.nodes) {
    if (touches(node)) used[node.index] = true;
  }
  std::vector<int> renumbered(k.buffers.size(), -1);
  std::vector<kernel::Buffer> buffers;
  std::vector<KernelBuffer> arguments;
  for (std::size_t i = 0; i < k.buffers.size(); ++i) {
    const bool argument = i < launch.buffers.size();
    if (argument && static_cast<int>(i) >= launch.outputs && !used[i]) continue;
    renumbered[i] = static_cast<int>(buffers.size());
    buffers.push_back(k.buffers[i]);
    if (argument) arguments.push_back(launch.buffers[i]);
  }
  if (buffers.size() == k.buffers.size()) return;
  for (kernel::Buffer& buffer : buffers) {
    if (buffer.aliases >= 0) buffer.aliases = renumbered[buffer.aliases];
  }
  for (kernel::Node& node : k.nodes) {
    if (touches(node)) node.index = renumbered[node.index];
  }
  for (int& share : launch.shares) {
    if (share >= 0) share = renumbered[share];
  }
  k.buffers = std::move(buffers);
  launch.buffers = std::move(arguments);
  set_name(k);
}

Dim extent(const std::vector<DomainLoop>& loops, std::size_t first, std::size_t last) {
  Dim product = 1;
  for (std::size_t i = first; i < last; ++i) product = product * loops[i].size;
  return product;
}

Expr size_in_eights(GroupLowering& lowering, Dim size) {
  if (size.is_number() || !floor_mod(size, Dim(8)).is(0)) return lowering.size(size);
  return lowering.b.bounded(lowering.size(floor_div(size, Dim(8))) * 8);
}

void set_counters(GroupLowering& lowering, std::size_t first, std::size_t last, Expr index) {
  for (std::size_t i = last; i-- > first;) {
    if (i == first) {
      lowering.set_counter(static_cast<int>(i), index);
      return;
    }
    const Expr size = lowering.size(lowering.loops()[i].size);
    lowering.set_counter(static_cast<int>(i), index % size);
    index = index / size;
  }
}

Dim ceil_div(Dim a, Dim b) { return floor_div(a + b - Dim(1), b); }

Dim misalignment(const std::vector<Variable>& outputs, Dim row) {
  // Rows of larger elements are aligned where those of the smallest are.
  std::size_t smallest = 64;
  for (const Variable& output : outputs) smallest = std::min(smallest, size_of(output.dtype()));
  return floor_mod(row * Dim(static_cast<std::int64_t>(smallest)), Dim(64));
}

std::int64_t cost_of(const FusionGroup& group) {
  std::int64_t cost = 1;
  for (const Node* node : group.nodes) cost += node->op->cost;
  return cost;
}

std::vector<KernelBuffer> declare_buffers(GroupLowering& lowering,
                                          const std::vector<Variable>& outputs,
                                          const std::vector<Variable>& reads,
                                          const std::vector<int>& aliases) {
  std::vector<KernelBuffer> buffers;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    lowering.declare(outputs[i], true, aliases.empty() ? -1 : aliases[i]);
    buffers.push_back({outputs[i]});
  }
  for (const Variable& read : reads) {
    lowering.declare(read, false);
    buffers.push_back({read});
  }
  lowering.end_declarations();
  return buffers;
}

std::vector<int> find_shares(const FusionGroup& group, const Survey& survey) {
  std::vector<int> shares(group.outputs.size(), -1);
  std::vector<bool> taken(survey.reads.size(), false);
  for (std::size_t i = 0; i < group.outputs.size(); ++i) {
    // Else elements would be written that are read later.
    if (!survey.in_place.at(group.outputs[i])) continue;
    for (std::size_t k = 0; k < survey.reads.size(); ++k) {
      const Variable& read = survey.reads[k];
      if (taken[k] || !survey.in_place.at(read)) continue;
      if (size_of(read.dtype()) != size_of(group.outputs[i].dtype())) continue;
      taken[k] = true;
      shares[i] = static_cast<int>(group.outputs.size() + k);
      break;
    }
  }
  return shares;
}

Scheduled schedule_map(const FusionGroup& group, const Shapes& shapes,
                       const ScheduleTarget& target) {
  const Survey known = survey(group, shapes);
  Scheduled tiled;
  if (schedule_transposed(group, shapes, target, known, tiled)) return tiled;
  KernelLaunch launch;
  kernel::Builder b;
  GroupLowering lowering(group, shapes, b, target.check_bounds);
  lowering.set_loops(known.loops, known.computed);
  launch.shares = find_shares(group, known);
  launch.buffers = declare_buffers(lowering, group.outputs, known.reads, launch.shares);
  launch.outputs = static_cast<int>(group.outputs.size());

  const std::vector<DomainLoop>& loops = lowering.loops();
  std::vector<bool> running(loops.size(), false);
  const auto store_all = [&] {
    // All values before the first store: an output may take over the memory of any operand.
    std::vector<Expr> values;
    for (const Variable& output : group.outputs) values.push_back(lowering.aligned(output));
    for (std::size_t i = 0; i < values.size(); ++i) lowering.store(group.outputs[i], values[i]);
  };
  lowering.hoist(running);
  if (loops.empty()) {
    store_all();
  } else {
    // Blocks are chunks of rows, or of one long row; a block runs over its rows one by one.
    const std::size_t lane = loops.size() - 1;
    const Dim inner = loops[lane].size;
    const Dim rows = extent(loops, 0, lane);
    const bool one_row = lane == 0;
    const std::int64_t chunk_limit = one_row ? kBlockElements : kRowChunk;
    const bool chunked = one_row || !inner.is_number() || inner.number() > chunk_limit;
    const Dim chunks = chunked ? ceil_div(inner, chunk_limit) : Dim(1);
    const Dim rows_per_block =
        one_row ? Dim(1) : max(Dim(1), floor_div(Dim(kBlockElements), max(inner, Dim(1))));
    launch.blocks = ceil_div(rows, rows_per_block) * chunks;
    launch.misalignment = one_row ? Dim(0) : misalignment(group.outputs, inner);

    Expr block = b.block();
    Expr start = b.i64(0);
    Expr count = lowering.size(inner);
    if (chunked) {
      const Expr chunk = one_row ? block : block % lowering.size(chunks);
      start = chunk * chunk_limit;
      count = b.binary(Binary::min, b.i64(chunk_limit), count - start);
      if (!one_row) block = block / lowering.size(chunks);
    }
    const auto run_lanes = [&] {
      const Expr counter = b.begin_lanes(count);
      lowering.open();
      lowering.set_lane(static_cast<int>(lane), start, counter);
      store_all();
      lowering.clear_lane();
      lowering.close();
      b.end(counter);
    };
    if (one_row) {
      run_lanes();
    } else {
      const Expr first = block * lowering.size(rows_per_block);
      const Expr last =
          b.binary(Binary::min, lowering.size(rows), first + lowering.size(rows_per_block));
      const Expr row = b.begin_loop(last - first);
      lowering.open();
      set_counters(lowering, 0, lane, first + row);
      for (std::size_t i = 0; i < lane; ++i) running[i] = true;
      lowering.hoist(running);
      run_lanes();
      lowering.close();
      b.end(row);
    }
  }
  launch.work = extent(loops, 0, loops.size()) * Dim(cost_of(group));
  finish(launch, b, lowering);
  return {{std::move(launch)}, {}};
}

Scheduled schedule_own(const FusionGroup& group, const Shapes& shapes,
                       const ScheduleTarget& target) {
  const Node& node = *group.nodes[0];
  Scheduled scheduled;
  std::vector<DimType> in;
  for (const Variable& input : node.inputs) in.push_back(shapes.of(input));
  for (bool more = true; more;) {
    KernelLaunch launch;
    kernel::Builder b;
    GroupLowering lowering(group, shapes, b, target.check_bounds);
    lowering.set_loops({}, {});
    for (std::size_t k = 0; k < node.outputs.size(); ++k) {
      const Variable output = node.out(static_cast<int>(k));
      lowering.declare(output, true);
      launch.buffers.push_back({output});
    }
    for (const Variable& input : node.inputs) {
      lowering.declare(input, false);
      launch.buffers.push_back({input});
    }
    lowering.end_declarations();
    launch.outputs = static_cast<int>(node.outputs.size());
    launch.shares.assign(node.outputs.size(), -1);
    KernelLowering own{b, node, in, shapes.of(&node),
                       [&lowering](Dim dim) { return lowering.size(dim); }};
    own.atomics = target.device.gpu() && !target.deterministic;
    own.launch = static_cast<int>(scheduled.launches.size());
    node.op->kernel(own);
    more = own.more;
    launch.blocks = own.blocks;
    launch.work = own.work;
    // What stands at the end of a long series is for operands of sizes that are rare.
    launch.rare = target.device.gpu() && own.launch >= 3 && !own.blocks.is_number();
    finish(launch, b, lowering);
    scheduled.launches.push_back(std::move(launch));
  }
  return scheduled;
}

}  // namespace croton
