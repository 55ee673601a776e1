#include "runtime/specialize.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "croton/error.h"
#include "runtime/array_access.h"
#include "runtime/frame.h"
#include "runtime/link_copies.h"
#include "runtime/plan_check.h"
#include "runtime/shared_state.h"

namespace croton {
namespace {

/// A unit of Step::work takes about 0.1 ns, waking a thread about 1 to 20 us.
constexpr std::int64_t kParallelWork = 200'000;
/// Below this a plan is over before workers of other contexts are awake.
constexpr std::int64_t kOverlapWork = 2'000'000;

std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

class Specialiser {
 public:
  Specialiser(BoundPlan& bound, Specialised& out)
      : bound_(bound), plan_(bound.plan), out_(out), values_(plan_.dims.terms().size()) {}

  void run() {
    read_key();
    fill_leaves();
    plan_.dims.evaluate(values_);
    check_equalities();
    size_slots();
    SlotMemory memory(plan_, bound_.contexts, slot_bytes_, bound_.links.slow());
    bind_steps(memory);
    decide_threads();
    if (!out_.on_caller) link_copies(bound_, memory, slot_bytes_, out_);
    memory.lay_out(out_.on_caller, workspaces_);
    out_.results = memory.results();
    out_.arena_bytes = memory.arena_bytes();
    build_table(memory);
    for (const std::int32_t slot : plan_.outputs) out_.outputs.push_back(leaving(memory, slot));
    for (std::size_t u = 0; u < plan_.updates.size(); ++u) {
      check_update(plan_.updates[u]);
      out_.updates.push_back(leaving(memory, plan_.updates[u].slot));
      out_.updates.back().home = bound_.updated[u].context->array_home();
    }
    count(memory);
  }

 private:
  std::int64_t value(DimRef ref) const { return values_[at(ref)]; }

  void read_key() {
    std::size_t next = 0;
    const auto read = [&](std::size_t rank, DType dtype, std::int32_t context, bool reads_value) {
      ArgumentKey key;
      key.dtype = dtype;
      for (std::size_t i = 0; i < rank; ++i) key.shape.push_back(out_.key[next++]);
      key.anywhere = context < 0;
      if (context >= 0) {
        key.home = bound_.contexts[at(context)]->array_home();
        key.host_memory = bound_.contexts[at(context)]->device().host_memory();
      }
      key.reads_value = reads_value;
      if (reads_value) key.value = out_.key[next++];
      return key;
    };
    for (std::size_t i = 0; i < plan_.inputs.size(); ++i) {
      const PlanInput& input = plan_.inputs[i];
      out_.arguments.push_back(
          read(input.shape.size(), input.dtype, bound_.input_context[i], bound_.reads_value[i]));
    }
    for (const std::int32_t s : bound_.keyed_shareds) {
      const SharedState& state = *plan_.shareds[at(s)];
      out_.shareds.push_back(read(state.shape.size(), state.dtype, -1,
                                  bound_.reads_value[plan_.inputs.size() + at(s)]));
    }
  }

  void fill_leaves() {
    std::vector<const ArgumentKey*> keys(plan_.inputs.size() + plan_.shareds.size());
    std::vector<ArgumentKey> fixed(plan_.shareds.size());
    for (std::size_t i = 0; i < plan_.inputs.size(); ++i) keys[i] = &out_.arguments[i];
    for (std::size_t s = 0; s < plan_.shareds.size(); ++s) {
      fixed[s].shape = plan_.shareds[s]->shape;
      keys[plan_.inputs.size() + s] = &fixed[s];
    }
    for (std::size_t k = 0; k < bound_.keyed_shareds.size(); ++k) {
      keys[plan_.inputs.size() + at(bound_.keyed_shareds[k])] = &out_.shareds[k];
    }
    const auto terms = plan_.dims.terms();
    for (std::size_t i = 0; i < terms.size(); ++i) {
      const DimTable::Term& t = terms[i];
      if (t.op == DimOp::input_size) values_[i] = keys[at(t.a)]->shape[at(t.b)];
      if (t.op == DimOp::input_value) values_[i] = keys[at(t.a)]->value;
    }
  }

  void check_equalities() {
    for (const PlanCheck& check : plan_.checks) {
      if (value(check.a) == value(check.b)) continue;
      throw CallError(clash_text(plan_, check, value(check.a), value(check.b)));
    }
  }

  void size_slots() {
    for (const Slot& slot : plan_.slots) {
      Shape shape;
      std::int64_t bytes = static_cast<std::int64_t>(size_of(slot.dtype));
      bool fits = true;
      for (const DimRef ref : slot.shape) {
        shape.push_back(value(ref));
        fits =
            fits && !__builtin_mul_overflow(bytes, std::max<std::int64_t>(value(ref), 1), &bytes);
      }
      if (std::any_of(shape.begin(), shape.end(), [](std::int64_t s) { return s < 0; })) {
        throw CallError(
            fmt::format("[{}] a size comes out negative: got shape ({}), expected sizes of 0 or "
                        "more; check the "
                        "sizes given to slices, reshape, zeros and the like",
                        bound_.title, fmt::join(shape, ", ")));
      }
      if (!fits) {
        throw CallError(
            fmt::format("[{}] too many bytes: a value of shape {} and dtype {} does "
                        "not fit any memory",
                        bound_.title, shape.to_string(), name_of(slot.dtype)));
      }
      if (std::find(shape.begin(), shape.end(), 0) != shape.end()) bytes = 0;
      shapes_.push_back(shape);
      slot_bytes_.push_back(bytes);
    }
  }

  void bind_steps(const SlotMemory& memory) {
    out_.has_checks.assign(bound_.contexts.size(), false);
    out_.awaited.assign(bound_.contexts.size(), false);
    std::vector<bool> awaited(plan_.steps.size());
    for (const Step& step : plan_.steps) {
      for (const std::int32_t s : step.after) {
        if (plan_.steps[at(s)].context != step.context) awaited[at(s)] = true;
      }
    }
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
      const Step& step = plan_.steps[i];
      SpecialisedStep s;
      s.kind = step.kind;
      s.context = step.context;
      s.index = static_cast<std::int32_t>(i);
      s.signals = awaited[i];
      for (const std::int32_t a : step.after) {
        if (plan_.steps[at(a)].context != step.context) s.waits.push_back(a);
      }
      switch (step.kind) {
        case Step::Kind::launch:
          bind_launch(memory, step, s);
          break;
        case Step::Kind::library:
          bind_library(step, s);
          break;
        case Step::Kind::copy:
          s.bytes = memory.moves(step) ? slot_bytes_[at(step.slots[0])] : 0;
          total_work_ += s.bytes / 4;
          // The host's memory is used as soon as the call is over.
          if (s.bytes > 0 && on_host(step.slots[0])) out_.awaited[at(step.context)] = true;
          break;
      }
      const bool idle = step.kind == Step::Kind::copy     ? s.bytes == 0
                        : step.kind == Step::Kind::launch ? s.launch.blocks == 0
                                                          : false;
      if (idle && !s.signals && s.waits.empty()) continue;
      out_.pretends |= bound_.contexts[at(step.context)]->device().pretends();
      if (std::find(out_.active.begin(), out_.active.end(), step.context) == out_.active.end()) {
        out_.active.push_back(step.context);
      }
      out_.steps.push_back(std::move(s));
    }
    for (SpecialisedStep& s : out_.steps) {
      s.launch.sizes = out_.sizes.data() + reinterpret_cast<std::intptr_t>(s.launch.sizes);
    }
  }

  bool on_host(std::int32_t slot) const {
    return bound_.contexts[at(plan_.slots[at(slot)].context)]->device().host_memory();
  }

  void bind_launch(const SlotMemory& memory, const Step& step, SpecialisedStep& s) {
    const PlanKernel& kernel = plan_.kernels[at(step.kernel)];
    Launch& launch = s.launch;
    launch.blocks = value(step.blocks);
    launch.buffer_count = static_cast<std::int32_t>(step.slots.size());
    launch.size_count = static_cast<std::int32_t>(step.sizes.size());
    // An index for now; the vector still grows.
    launch.sizes = reinterpret_cast<const std::int64_t*>(out_.sizes.size());
    for (const DimRef ref : step.sizes) out_.sizes.push_back(value(ref));
    const std::int64_t work = value(step.work);
    total_work_ += work;
    launch.parallel = work >= kParallelWork && launch.blocks > 1;
    launch.checks = !kernel.checks.empty();
    if (launch.checks) {
      out_.has_checks[at(step.context)] = true;
      out_.awaited[at(step.context)] = true;
      s.error = out_.error_groups++;
      out_.checked_steps.resize(at(out_.error_groups), -1);
      out_.checked_steps.back() = s.index;
    }
    const auto optional = [&](DimRef ref, std::int64_t otherwise) {
      return ref < 0 ? otherwise : value(ref);
    };
    launch.threads = static_cast<std::int32_t>(optional(step.threads, kernel.threads));
    launch.packed = static_cast<std::int32_t>(optional(step.packed, 1));
    launch.shared_bytes = optional(step.shared_bytes, 0);
    launch.counted = kernel.packed;
    if (launch.blocks == 0) return;
    if (kernel.indexed && needs_wide(step, launch.blocks)) {
      launch.kernel = bound_.wide_kernel(step.kernel);
      launch.counted = true;
      ++out_.statistics.wide_launches;
      return;
    }
    const bool streams = kernel.streaming_module >= 0 && value(step.misalignment) == 0 &&
                         wants_streaming(memory, step, s.index);
    launch.kernel = streams ? bound_.streaming_kernel(step.kernel) : bound_.kernel(step.kernel);
    if (streams) ++out_.statistics.streaming_launches;
  }

  bool needs_wide(const Step& step, std::int64_t blocks) const {
    bool wide = blocks >= kWideFrom || (step.span >= 0 && value(step.span) >= kWideFrom);
    for (const DimRef ref : step.sizes) {
      wide = wide || value(ref) >= kWideFrom || value(ref) <= -kWideFrom;
    }
    for (const std::int32_t slot : step.slots) {
      const auto size = static_cast<std::int64_t>(size_of(plan_.slots[at(slot)].dtype));
      wide = wide || slot_bytes_[at(slot)] / size >= kWideFrom;
    }
    return wide;
  }

  /// Non-temporal stores pay when what is written has left the cache before anybody reads it, and
  /// was not brought there by being read in this very step.
  bool wants_streaming(const SlotMemory& memory, const Step& step, std::int32_t index) const {
    std::int64_t written = 0;
    for (std::int32_t k = 0; k < step.outputs; ++k) {
      const std::int32_t slot = step.slots[at(k)];
      if (memory.read_after(slot, index)) return false;
      for (std::size_t i = at(step.outputs); i < step.slots.size(); ++i) {
        if (memory.root(step.slots[i]) == memory.root(slot)) return false;
      }
      written += slot_bytes_[at(slot)];
    }
    return written > bound_.contexts[at(step.context)]->device().target().streaming_bytes();
  }

  void bind_library(const Step& step, SpecialisedStep& s) {
    Device& device = bound_.contexts[at(step.context)]->device();
    const LibraryFunction* function = device.library(step.name);
    if (function == nullptr) {
      throw DeviceError(
          fmt::format("[{}] the device {} has no such library function", step.name, device.name()));
    }
    std::vector<OperandType> operands;
    for (const std::int32_t slot : step.slots) {
      operands.push_back({plan_.slots[at(slot)].dtype, shapes_[at(slot)]});
    }
    const std::string reason = function->unsupported(step.attrs, operands);
    if (!reason.empty()) throw CallError(reason);
    s.call = function->prepare(device, step.attrs, operands);
    s.call->one_thread = step.attrs.integer_or("deterministic", 0) != 0;
    total_work_ += s.call->work();
    if (s.call->work() >= kParallelWork) out_.uses_threads = true;
    if (s.call->workspace() > 0) {
      s.workspace = static_cast<std::int32_t>(workspaces_.size());
      workspaces_.push_back({s.index, static_cast<std::int64_t>(s.call->workspace()), {}});
    }
  }

  void decide_threads() {
    bool immediate = true;
    for (const std::int32_t c : out_.active) {
      immediate = immediate && bound_.contexts[at(c)]->device().immediate();
    }
    const bool slow =
        bound_.links.slow() && std::any_of(out_.steps.begin(), out_.steps.end(), [](const auto& s) {
          return s.kind == Step::Kind::copy && s.bytes > 0;
        });
    out_.on_caller =
        !slow && (out_.active.size() <= 1 || (immediate && total_work_ < kOverlapWork));
    for (const SpecialisedStep& s : out_.steps) {
      if (s.kind != Step::Kind::launch || !s.launch.parallel) continue;
      out_.uses_threads = true;
      ++out_.statistics.parallel_launches;
    }
  }

  void place_pointer(const Place& place) {
    const auto position = static_cast<std::int32_t>(out_.table.size());
    void* known = nullptr;
    if (place.source == Place::Source::constant) {
      known = const_cast<void*>(constant_address(place.index));
    } else if (place.source == Place::Source::arena) {
      out_.arena_patches.push_back({position, place});
    } else {
      out_.patches.push_back({position, place});
    }
    out_.table.push_back(known);
  }

  const void* constant_address(std::int32_t index) const {
    return plan_.constants[at(index)].raw_data();
  }

  void build_table(const SlotMemory& memory) {
    out_.checked_steps.resize(at(out_.error_groups), -1);
    for (SpecialisedStep& s : out_.steps) {
      s.arguments = static_cast<std::int32_t>(out_.table.size());
      const std::int32_t itself[] = {s.index};
      for (const std::int32_t i : s.on_link() ? std::span<const std::int32_t>(s.message) : itself) {
        for (const std::int32_t slot : plan_.steps[at(i)].slots) place_pointer(memory.place(slot));
      }
      if (s.workspace >= 0) {
        const Place place = workspaces_[at(s.workspace)].place;
        s.workspace = static_cast<std::int32_t>(out_.table.size());
        place_pointer(place);
      }
    }
  }

  Leaving leaving(const SlotMemory& memory, std::int32_t slot) const {
    const Slot& s = plan_.slots[at(slot)];
    Leaving result{memory.place(slot), s.dtype, shapes_[at(slot)],
                   bound_.contexts[at(s.context)]->array_home()};
    internal_check(result.place.source != Place::Source::arena,
                   "an output or update of a plan is a temporary");
    return result;
  }

  void check_update(const PlanUpdate& update) const {
    const SharedState& state = *plan_.shareds[at(update.shared)];
    const Shape& shape = shapes_[at(update.slot)];
    const bool same = state.resizable ? shape.size() == state.shape.size() : shape == state.shape;
    if (same) return;
    throw CallError(fmt::format(
        "[{}] the update of \"{}\" does not fit: got shape {}, expected {}; make it with "
        ".resizable = true if its shape is to change",
        bound_.title, state.title(), shape.to_string(), state.shape.to_string()));
  }

  void count(const SlotMemory& memory) {
    PlanStatistics& n = out_.statistics;
    n.on_caller = out_.on_caller;
    std::vector<bool> entered(plan_.slots.size());
    for (const Step& step : plan_.steps) {
      ++n.steps;
      if (step.kind == Step::Kind::copy) {
        if (!memory.moves(step)) continue;
        ++n.copies;
        n.bytes_copied += slot_bytes_[at(step.slots[0])];
        continue;
      }
      const bool launch = step.kind == Step::Kind::launch;
      // Of kernels that share a task by sizes, those with nothing to do are not launched.
      if (launch && value(step.blocks) == 0) continue;
      ++(launch ? n.launches : n.library_calls);
      std::vector<std::int32_t> seen;
      for (std::size_t k = 0; k < step.slots.size(); ++k) {
        const std::int32_t root = memory.root(step.slots[k]);
        const std::int64_t bytes = slot_bytes_[at(step.slots[k])];
        if (k < at(step.outputs)) {
          n.bytes_written += bytes;
          continue;
        }
        if (std::find(seen.begin(), seen.end(), root) != seen.end()) continue;
        seen.push_back(root);
        n.bytes_read += bytes;
        const Place::Source source = memory.place(root).source;
        if (source == Place::Source::arena || source == Place::Source::result) continue;
        if (!entered[at(root)]) n.bytes_in += bytes;
        entered[at(root)] = true;
      }
    }
    for (const std::int32_t slot : plan_.outputs) n.bytes_out += slot_bytes_[at(slot)];
    for (const PlanUpdate& update : plan_.updates) n.bytes_out += slot_bytes_[at(update.slot)];
    for (const std::int64_t bytes : out_.arena_bytes) n.arena_bytes += bytes;
    for (const SpecialisedStep& s : out_.steps) {
      if (s.kind == Step::Kind::copy && s.bytes > 0) ++n.messages;
    }
  }

  BoundPlan& bound_;
  const Plan& plan_;
  Specialised& out_;
  std::vector<std::int64_t> values_;
  std::vector<Shape> shapes_;
  std::vector<std::int64_t> slot_bytes_;
  std::vector<Workspace> workspaces_;
  std::int64_t total_work_ = 0;
};

}  // namespace

Specialised::Specialised(BoundPlan& bound, std::vector<std::int64_t> the_key)
    : key(std::move(the_key)) {
  Specialiser(bound, *this).run();
}

Specialised::~Specialised() = default;

std::chrono::nanoseconds LinkSettings::time(std::int64_t bytes) const {
  double ns = 1e3 * static_cast<double>(latency_us);
  if (bandwidth > 0) ns += 1e9 * static_cast<double>(bytes) / static_cast<double>(bandwidth);
  return std::chrono::nanoseconds(static_cast<std::int64_t>(ns));
}

}  // namespace croton
