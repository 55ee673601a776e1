#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_map>

#include "compiler/codegen/cuda.h"
#include "compiler/codegen/llvm.h"
#include "compiler/compile.h"
#include "compiler/fuse/group.h"
#include "compiler/fuse/own_kernels.h"
#include "compiler/fuse/schedule.h"
#include "compiler/graph/op.h"
#include "compiler/passes.h"
#include "compiler/plan/parts.h"
#include "compiler/plan/shapes.h"
#include "croton/error.h"
#include "runtime/shared_state.h"

namespace croton {
namespace {

/// Kernels in one module: enough to share the fixed cost, few enough to compile side by side.
constexpr std::size_t kModuleKernels = 16;
constexpr std::size_t kGpuModuleKernels = 8;  ///< they take longer

class PlanBuilder {
 public:
  PlanBuilder(const FunctionGraph& function, const CompileContext& context, const Graph* written);

  const Shapes& shapes() const { return *shapes_; }
  /// Where no size is computed.
  Plan run();

 private:
  void add_inputs();
  void find_results();
  int context_number(const std::string& name);
  int add_slot(SlotKind kind, int index, const DimType& type, int context);
  int slot_of(const Variable& v, int context);
  int new_slot(const Variable& v, int context);
  int output_slot(const Variable& v);
  int update_slot(const Variable& v, const Node& target);
  void add_update(const Variable& v, const Node& target);
  int copied_slot(const Variable& v, int slot, int context, std::string label);
  bool has_host_memory(int context) const;
  bool fetched(const Variable& v) const;
  void add_group(const FusionGroup& group);
  void add_kernels(const FusionGroup& group, Step step);
  void add_step(Step step);
  int kernel_number(kernel::Kernel kernel, int context, bool streams, bool rare);
  void add_modules();
  std::string emit(const std::vector<const kernel::Kernel*>& kernels, int context) const;

  struct Pending {
    kernel::Kernel kernel;
    int context = 0;
    bool streams = false;
    bool rare = false;
  };

  const FunctionGraph& function_;
  const CompileContext& context_;
  Plan plan_;
  std::unique_ptr<Shapes> shapes_;
  std::unordered_map<const Node*, int> input_number_;
  std::unordered_map<const SharedState*, int> shared_number_;
  VariableMap<int> slots_;                       ///< of computed values
  std::unordered_map<std::string, int> leaves_;  ///< of leaves: one a context
  VariableMap<bool> results_;
  std::vector<int> writer_;  ///< step that writes a slot, -1
  std::vector<Pending> kernels_;
  std::unordered_map<std::string, int> kernel_index_;
};

std::string label_of(const FusionGroup& group) {
  std::vector<std::string> names;
  for (const Node* node : group.nodes) {
    if (names.size() == 6) {
      names.push_back("...");
      break;
    }
    names.push_back(node->op->name);
  }
  return fmt::format("{} ({})", fmt::join(names, " "), to_text(group.nodes.back()->loc));
}

void PlanBuilder::add_inputs() {
  for (const Variable& input : function_.graph.inputs) {
    input_number_.emplace(input.node(), static_cast<int>(plan_.inputs.size()));
    plan_.inputs.push_back({input.name(), input.dtype(), input.static_shape()});
  }
}

int PlanBuilder::context_number(const std::string& name) {
  const auto it = std::find(plan_.contexts.begin(), plan_.contexts.end(), name);
  if (it != plan_.contexts.end()) return static_cast<int>(it - plan_.contexts.begin());
  plan_.contexts.push_back(name);
  return static_cast<int>(plan_.contexts.size()) - 1;
}

int PlanBuilder::add_slot(SlotKind kind, int index, const DimType& type, int context) {
  Slot slot{kind, index, type.dtype, {}, context};
  for (const Dim& size : type.shape) slot.shape.push_back(plan_.dims.ref(size));
  plan_.slots.push_back(std::move(slot));
  writer_.push_back(-1);
  return static_cast<int>(plan_.slots.size()) - 1;
}

bool PlanBuilder::has_host_memory(int context) const {
  return plan_.contexts[context] == "cpu" ||
         context_.target(plan_.contexts[context]).backend != Backend::cuda;
}

/// Whether an output of the user is computed on a device and comes to the host.
bool PlanBuilder::fetched(const Variable& v) const {
  if (function_.keep_on_device || v.node()->op->form == OpForm::leaf) return false;
  return v.context() != "cpu" && context_.target(v.context()).backend == Backend::cuda;
}

/// Where an output of the user leaves the call: in memory of the host, unless it is kept.
int PlanBuilder::output_slot(const Variable& v) {
  // What an earlier part gave has a context.
  const bool free = v.node()->op->form == OpForm::leaf && v.context().empty();
  const int own = v.context().empty() ? 0 : context_number(v.context());
  if (function_.keep_on_device) return slot_of(v, own);
  // Arguments and constants are there already.
  const int slot = slot_of(v, free ? context_number("cpu") : own);
  const int there = plan_.slots[slot].context;
  return has_host_memory(there) ? slot : copied_slot(v, slot, context_number("cpu"), "output");
}

/// The new value of a shared variable lives in the memory of its context.
int PlanBuilder::update_slot(const Variable& v, const Node& target) {
  const int home = context_number(*target.context);
  const Node& node = *v.node();
  // Arguments and constants are there already.
  const int slot = slot_of(v, node.op->form == OpForm::leaf && !node.shared ? home : 0);
  const int there = plan_.slots[slot].context;
  const bool same = there == home || (has_host_memory(there) && has_host_memory(home));
  return same ? slot : copied_slot(v, slot, home, "update of " + target.shared->title());
}

void PlanBuilder::add_update(const Variable& v, const Node& target) {
  const int slot = update_slot(v, target);
  const int context = context_number(*target.context);
  const bool home = *target.context == target.shared->context;
  plan_.updates.push_back({shared_number_.at(target.shared.get()), slot, home ? -1 : context});
}

/// A copy of `slot`, which holds `v`, that leaves the call on `context`.
int PlanBuilder::copied_slot(const Variable& v, int slot, int context, std::string label) {
  Step step;
  step.kind = Step::Kind::copy;
  step.context = plan_.slots[slot].context;
  step.label = std::move(label);
  if (context_.log && context_.config.log_placement()) {
    context_.log(fmt::format("placement: copy for the {} of {} from {} to {}", step.label,
                             v.node()->outputs[v.output()].to_text(), plan_.contexts[step.context],
                             plan_.contexts[context]));
  }
  const int copy = add_slot(SlotKind::result, 0, shapes_->of(v), context);
  step.slots = {copy, slot};
  add_step(std::move(step));
  return copy;
}

/// Outputs and updates outlive the call, and so does what they are views of.
void PlanBuilder::find_results() {
  for (std::size_t i = 0; i < function_.graph.outputs.size(); ++i) {
    Variable v = function_.graph.outputs[i];
    if (i < function_.user_outputs && fetched(v)) continue;
    while (v.node()->op->view) v = v.node()->inputs[0];
    results_[v] = true;
  }
}

int PlanBuilder::slot_of(const Variable& v, int context) {
  if (v.node()->op->form != OpForm::leaf) {
    internal_check(slots_.contains(v), "a value is used before its step");
    return slots_.at(v);
  }
  const Node& node = *v.node();
  if (node.shared) context = context_number(*node.context);
  const std::string key =
      node.shared ? fmt::format("shared {}@{}", shared_number_.at(node.shared.get()), context)
                  : fmt::format("{}@{}", node.id, context);
  if (const auto it = leaves_.find(key); it != leaves_.end()) return it->second;
  int slot = -1;
  if (node.shared) {
    slot =
        add_slot(SlotKind::shared, shared_number_.at(node.shared.get()), shapes_->of(v), context);
  } else if (node.op->name == "constant") {
    plan_.constants.push_back(node.value);
    slot = add_slot(SlotKind::constant, static_cast<int>(plan_.constants.size()) - 1,
                    shapes_->of(v), context);
  } else {
    slot = add_slot(SlotKind::input, input_number_.at(&node), shapes_->of(v), context);
  }
  leaves_.emplace(key, slot);
  return slot;
}

int PlanBuilder::new_slot(const Variable& v, int context) {
  const SlotKind kind = results_.contains(v) ? SlotKind::result : SlotKind::temporary;
  const int slot = add_slot(kind, 0, shapes_->of(v), context);
  slots_[v] = slot;
  return slot;
}

void PlanBuilder::add_step(Step step) {
  const int number = static_cast<int>(plan_.steps.size());
  for (std::size_t i = 0; i < step.slots.size(); ++i) {
    int root = step.slots[i];
    while (plan_.slots[root].kind == SlotKind::view) root = plan_.slots[root].index;
    if (static_cast<int>(i) < step.outputs) {
      writer_[root] = number;
      continue;
    }
    const int writer = writer_[root];
    if (writer < 0 || plan_.steps[writer].context == step.context) continue;
    if (std::find(step.after.begin(), step.after.end(), writer) == step.after.end()) {
      step.after.push_back(writer);
    }
  }
  plan_.steps.push_back(std::move(step));
}

int PlanBuilder::kernel_number(kernel::Kernel kernel, int context, bool streams, bool rare) {
  const std::string key = fmt::format("{}@{}", kernel.name, context);
  if (const auto it = kernel_index_.find(key); it != kernel_index_.end()) {
    kernels_[it->second].rare = kernels_[it->second].rare && rare;
    return it->second;
  }
  const int number = static_cast<int>(kernels_.size());
  kernel_index_.emplace(key, number);
  kernels_.push_back({std::move(kernel), context, streams, rare});
  return number;
}

void PlanBuilder::add_kernels(const FusionGroup& group, Step step) {
  Scheduled scheduled = schedule(group, *shapes_,
                                 {context_.target(*group.context), context_.config.check_bounds(),
                                  context_.config.deterministic()});
  std::vector<int> partials;
  for (const PartialBuffer& partial : scheduled.partials) {
    partials.push_back(
        add_slot(SlotKind::temporary, 0, {partial.dtype, {partial.elements}}, step.context));
  }
  for (const Variable& output : group.outputs) new_slot(output, step.context);
  for (KernelLaunch& launch : scheduled.launches) {
    Step mine = step;
    mine.kind = Step::Kind::launch;
    for (const KernelBuffer& buffer : launch.buffers) {
      mine.slots.push_back(buffer.partial >= 0 ? partials[buffer.partial]
                                               : slot_of(buffer.value, step.context));
    }
    mine.outputs = launch.outputs;
    mine.sizes = launch.sizes;
    mine.blocks = plan_.dims.ref(launch.blocks);
    mine.work = plan_.dims.ref(launch.work);
    mine.misalignment = plan_.dims.ref(launch.misalignment);
    if (context_.target(*group.context).gpu()) {
      std::vector<Dim> sizes;
      for (const DimRef ref : launch.sizes) sizes.push_back(plan_.dims.dim(ref));
      const Dim packed = launch.packed.is(-1) ? Dim(1) : launch.packed;
      mine.shared_bytes = plan_.dims.ref(codegen::cuda_shared_term(launch.kernel, sizes) * packed);
      mine.span = plan_.dims.ref(launch.span);
      if (!launch.threads.is(-1)) mine.threads = plan_.dims.ref(launch.threads);
      if (!launch.packed.is(-1)) mine.packed = plan_.dims.ref(launch.packed);
    }
    mine.shares.assign(launch.shares.begin(), launch.shares.end());
    for (std::size_t k = 0; k < launch.kernel.places.size(); ++k) {
      const auto& [op, line] = launch.kernel.places[k];
      const std::string& message = launch.kernel.checks[k];
      mine.checks.push_back(op.empty() ? message
                                       : fmt::format("[{}] {}; at {}", op, message, line));
    }
    const bool streams = group.kind == GroupKind::map || group.kind == GroupKind::row;
    mine.kernel = kernel_number(std::move(launch.kernel), step.context, streams, launch.rare);
    add_step(std::move(mine));
  }
}

void PlanBuilder::add_group(const FusionGroup& group) {
  Step step;
  step.context = context_number(*group.context);
  step.label = label_of(group);
  const Node& node = *group.nodes[0];
  switch (group.kind) {
    case GroupKind::view: {
      const int source = slot_of(node.inputs[0], step.context);
      slots_[node.out()] =
          add_slot(SlotKind::view, source, shapes_->of(node.out()), plan_.slots[source].context);
      return;
    }
    case GroupKind::copy: {
      step.kind = Step::Kind::copy;
      const int source = slot_of(node.inputs[0], step.context);
      step.slots = {new_slot(node.out(), step.context), source};
      step.context = plan_.slots[source].context;
      add_step(std::move(step));
      return;
    }
    case GroupKind::library: {
      step.kind = Step::Kind::library;
      step.name = node.op->name;
      step.attrs = node.attrs();
      if (context_.config.deterministic()) step.attrs.set("deterministic", std::int64_t{1});
      if (context_.config.allow_tf32()) step.attrs.set("tf32", std::int64_t{1});
      for (std::size_t k = 0; k < node.outputs.size(); ++k) {
        step.slots.push_back(new_slot(node.out(static_cast<int>(k)), step.context));
      }
      step.outputs = static_cast<int>(node.outputs.size());
      for (const Variable& input : node.inputs) {
        step.slots.push_back(slot_of(input, step.context));
      }
      step.shares.assign(step.outputs, -1);
      add_step(std::move(step));
      return;
    }
    case GroupKind::map:
    case GroupKind::row:
    case GroupKind::reduce:
    case GroupKind::kernel:
      add_kernels(group, std::move(step));
      return;
  }
}

std::string PlanBuilder::emit(const std::vector<const kernel::Kernel*>& kernels,
                              int context) const {
  const TargetInfo target = context_.target(plan_.contexts[context]);
  return target.gpu() ? codegen::emit_cuda(kernels) : codegen::emit_llvm(kernels, target);
}

/// The same kernel with non-temporal stores of its arguments.
kernel::Kernel streaming_copy(const kernel::Kernel& kernel) {
  kernel::Kernel copy = kernel;
  for (kernel::Node& node : copy.nodes) {
    if (node.op != kernel::Op::store || !copy.buffers[node.index].argument) continue;
    const kernel::Node& stride = copy.nodes[node.in[1]];
    node.streaming = stride.op == kernel::Op::constant && stride.bits == 1;
  }
  return copy;
}

void PlanBuilder::add_modules() {
  for (std::size_t c = 0; c < plan_.contexts.size(); ++c) {
    std::vector<int> mine, rare;
    for (std::size_t k = 0; k < kernels_.size(); ++k) {
      if (kernels_[k].context != static_cast<int>(c)) continue;
      (kernels_[k].rare ? rare : mine).push_back(static_cast<int>(k));
    }
    // A module's text does not depend on the order in which users wrote things.
    std::sort(mine.begin(), mine.end(),
              [&](int a, int b) { return kernels_[a].kernel.name < kernels_[b].kernel.name; });
    // Modules of about the same size, since they compile side by side.
    const bool gpu = context_.target(plan_.contexts[c]).gpu();
    const std::size_t most = gpu ? kGpuModuleKernels : kModuleKernels;
    const std::size_t count = (mine.size() + most - 1) / most;
    for (std::size_t m = 0; m < count; ++m) {
      const std::size_t first = mine.size() * m / count, last = mine.size() * (m + 1) / count;
      PlanModule module{static_cast<std::int32_t>(c), {}, {}};
      std::vector<const kernel::Kernel*> kernels;
      for (std::size_t i = first; i < last; ++i) {
        kernels.push_back(&kernels_[mine[i]].kernel);
        module.kernels.push_back(kernels_[mine[i]].kernel.name);
        plan_.kernels[mine[i]].module = static_cast<std::int32_t>(plan_.modules.size());
      }
      module.text = emit(kernels, static_cast<int>(c));
      plan_.modules.push_back(std::move(module));
    }
    for (const int k : rare) {
      const kernel::Kernel& kernel = kernels_[k].kernel;
      plan_.kernels[k].module = static_cast<std::int32_t>(plan_.modules.size());
      plan_.modules.push_back(
          {static_cast<std::int32_t>(c), emit({&kernel}, static_cast<int>(c)), {kernel.name}});
    }
    const TargetInfo target = context_.target(plan_.contexts[c]);
    if (target.backend != Backend::cpu) continue;
    for (const int k : mine) {
      if (!kernels_[k].streams) continue;
      const kernel::Kernel streaming = streaming_copy(kernels_[k].kernel);
      plan_.kernels[k].streaming_module = static_cast<std::int32_t>(plan_.modules.size());
      plan_.modules.push_back({static_cast<std::int32_t>(c),
                               emit({&streaming}, static_cast<int>(c)),
                               {streaming.name}});
    }
  }
}

PlanBuilder::PlanBuilder(const FunctionGraph& function, const CompileContext& context,
                         const Graph* written)
    : function_(function), context_(context) {
  plan_.name = function_.name;
  add_inputs();
  const std::vector<Variable> used = shareds_of(function_);
  for (const Variable& v : used) plan_.shareds.push_back(v.node()->shared);
  shapes_ = std::make_unique<Shapes>(function_.graph, used, plan_.dims, written);
  for (std::size_t i = 0; i < used.size(); ++i) {
    shared_number_[used[i].node()->shared.get()] = static_cast<int>(i);
  }
}

Plan PlanBuilder::run() {
  internal_check(shapes_->computed().empty(), "a plan whose sizes are computed");
  context_number(context_.default_context);
  find_results();
  const bool fuse_kernels = context_.config.fuse() && context_.config.mode() != Mode::fast_compile;
  std::string reasons;
  Explain explain;
  if (wants_dump(context_, "fuse")) {
    explain = [&](const Node& producer, const Node& root, const char* reason) {
      reasons += fmt::format("  {} ({}) is not computed in the kernel of {}: {}\n",
                             producer.op->name, to_text(producer.loc), root.op->name, reason);
    };
  }
  std::vector<FusionGroup> groups = fuse(function_.graph, *shapes_, fuse_kernels, explain);
  use_own_kernels(groups, context_.target);
  if (explain) context_.dump("fuse", to_text(groups) + reasons);
  for (const FusionGroup& group : groups) add_group(group);
  for (std::size_t i = 0; i < function_.graph.outputs.size(); ++i) {
    if (i < function_.user_outputs) {
      plan_.outputs.push_back(output_slot(function_.graph.outputs[i]));
    } else {
      add_update(function_.graph.outputs[i], *function_.updated[i - function_.user_outputs].node());
    }
  }
  for (const Pending& pending : kernels_) {
    PlanKernel kernel;
    kernel.name = pending.kernel.name;
    kernel.checks = pending.kernel.checks;
    kernel.threads = pending.kernel.threads;
    kernel.rare = pending.rare;
    kernel.packed = pending.kernel.packed;
    kernel.indexed = context_.target(plan_.contexts[pending.context]).gpu();
    plan_.kernels.push_back(std::move(kernel));
  }
  add_modules();
  plan_.checks = shapes_->checks();
  if (wants_dump(context_, "plan")) context_.dump("plan", to_text(plan_));
  return std::move(plan_);
}

}  // namespace

Plan make_plan(const FunctionGraph& function, const CompileContext& context, const Graph* written) {
  return PlanBuilder(function, context, written).run();
}

std::vector<FunctionPart> make_parts(const FunctionGraph& written, const FunctionGraph& optimized,
                                     const CompileContext& context) {
  PlanBuilder whole(optimized, context, &written.graph);
  std::vector<FunctionPart> parts;
  if (whole.shapes().computed().empty()) {
    parts.push_back({written, optimized, {}, whole.run()});
    return parts;
  }
  CompileContext untraced = context;
  untraced.trace = {};
  untraced.log = {};
  parts = split_parts(written, untraced);
  for (FunctionPart& part : parts) {
    part.optimized = optimize(part.written, untraced);
    part.plan = make_plan(part.optimized, untraced, &part.written.graph);
    for (std::size_t i = written.graph.inputs.size(); i < part.plan.inputs.size(); ++i) {
      part.plan.inputs[i].taken = true;
    }
  }
  return parts;
}

}  // namespace croton
