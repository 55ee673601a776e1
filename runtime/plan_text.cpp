#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/frame.h"
#include "runtime/plan.h"
#include "runtime/shared_state.h"
#include "runtime/specialize.h"

namespace croton {
namespace {

std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

std::string formula(const Plan& plan, DimRef ref) {
  DimTable& dims = const_cast<DimTable&>(plan.dims);  // `dim` only looks the term up
  return dims.to_text(dims.dim(ref));
}

std::string formulas(const Plan& plan, const std::vector<DimRef>& refs) {
  std::vector<std::string> texts;
  for (const DimRef ref : refs) texts.push_back(formula(plan, ref));
  return fmt::format("({}{})", fmt::join(texts, ", "), texts.size() == 1 ? "," : "");
}

std::string names(const Step& step, std::size_t first, std::size_t last) {
  std::vector<std::string> texts;
  for (std::size_t i = first; i < last; ++i) texts.push_back(fmt::format("%{}", step.slots[i]));
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string source_of(const Plan& plan, const Slot& slot) {
  switch (slot.kind) {
    case SlotKind::input: {
      const std::size_t second = at(slot.index) - plan.inputs.size();
      const std::int32_t input =
          at(slot.index) < plan.inputs.size() ? slot.index : plan.seconds[second].input;
      if (plan.inputs[at(input)].taken) return fmt::format("of an earlier part, input {}", input);
      const std::string& name = plan.inputs[at(input)].name;
      return name.empty() ? fmt::format("input {}", input)
                          : fmt::format("input {} \"{}\"", input, name);
    }
    case SlotKind::shared:
      return fmt::format("shared {}", plan.shareds[at(slot.index)]->title());
    case SlotKind::constant:
      return fmt::format("constant {}", slot.index);
    case SlotKind::temporary:
      return "temporary";
    case SlotKind::result:
      return "result";
    case SlotKind::view:
      return fmt::format("view of %{}", slot.index);
  }
  return {};
}

std::string act_of(const Plan& plan, const Step& step) {
  switch (step.kind) {
    case Step::Kind::launch: {
      const PlanKernel& kernel = plan.kernels[at(step.kernel)];
      return fmt::format("launch {} sizes={} blocks={}", kernel.name, formulas(plan, step.sizes),
                         formula(plan, step.blocks));
    }
    case Step::Kind::library:
      return fmt::format("{}({})", step.name, step.attrs.to_text());
    case Step::Kind::copy:
      return "copy";
  }
  return {};
}

}  // namespace

std::string to_text(const Plan& plan) {
  std::string out = fmt::format("plan {}\n", plan.name.empty() ? "(unnamed)" : plan.name);
  for (std::size_t i = 0; i < plan.slots.size(); ++i) {
    const Slot& slot = plan.slots[i];
    out += fmt::format("  %{} = {}: {} {} on {}\n", i, source_of(plan, slot), name_of(slot.dtype),
                       formulas(plan, slot.shape), plan.contexts[at(slot.context)]);
  }
  for (const PlanCheck& check : plan.checks) {
    out += fmt::format("  check {} == {}\n", formula(plan, check.a), formula(plan, check.b));
  }
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    out += fmt::format("  step {} on {}: {} <- {}: {}", i, plan.contexts[at(step.context)],
                       names(step, 0, at(step.outputs)),
                       names(step, at(step.outputs), step.slots.size()), act_of(plan, step));
    if (!step.after.empty()) out += fmt::format(" after {}", fmt::join(step.after, ", "));
    if (!step.label.empty()) out += fmt::format("  # {}", step.label);
    out += '\n';
  }
  for (std::size_t i = 0; i < plan.outputs.size(); ++i) {
    out += fmt::format("  output {}: %{}\n", i, plan.outputs[i]);
  }
  for (const PlanUpdate& update : plan.updates) {
    out += fmt::format("  update {}: %{}\n", plan.shareds[at(update.shared)]->title(), update.slot);
  }
  return out;
}

std::string Specialised::to_text(const BoundPlan& bound) const {
  std::string out;
  for (const SpecialisedStep& s : steps) {
    const Step& step = bound.plan.steps[at(s.index)];
    out += fmt::format("step {} on {}: ", s.index, bound.plan.contexts[at(s.context)]);
    switch (s.kind) {
      case Step::Kind::launch:
        out += fmt::format("launch {} blocks={}{}", bound.plan.kernels[at(step.kernel)].name,
                           s.launch.blocks, s.launch.parallel ? " parallel" : "");
        break;
      case Step::Kind::library:
        out += fmt::format("{} workspace={}", step.name, s.call->workspace());
        break;
      case Step::Kind::copy:
        out += fmt::format("copy of {} bytes", s.bytes);
        if (s.on_link()) out += fmt::format(" by link, of steps {}", fmt::join(s.message, ", "));
        break;
    }
    if (!s.waits.empty()) out += fmt::format(" waits for {}", fmt::join(s.waits, ", "));
    if (!step.label.empty()) out += fmt::format("  # {}", step.label);
    out += '\n';
  }
  for (std::size_t c = 0; c < arena_bytes.size(); ++c) {
    if (arena_bytes[c] > 0) {
      out += fmt::format("arena on {}: {} bytes\n", bound.plan.contexts[c], arena_bytes[c]);
    }
  }
  return out;
}

}  // namespace croton
