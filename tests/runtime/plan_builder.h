// Builds plans by hand, as the compiler would.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/plan.h"
#include "runtime/shared_state.h"

namespace croton::test {

class PlanBuilder {
 public:
  explicit PlanBuilder(std::string name, std::vector<std::string> contexts = {"cpu"}) {
    plan.name = std::move(name);
    plan.contexts = std::move(contexts);
  }

  /// An input and its slot.
  std::int32_t input(const std::string& name, DType dtype, const Shape& shape,
                     std::int32_t context = 0) {
    const auto index = static_cast<std::int32_t>(plan.inputs.size());
    plan.inputs.push_back({name, dtype, shape, false});
    std::vector<Dim> dims;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      dims.push_back(shape[i] == kAnyDim ? plan.dims.input_size(index, static_cast<int>(i))
                                         : Dim(shape[i]));
    }
    return slot(SlotKind::input, index, dtype, dims, context);
  }
  std::int32_t shared(std::shared_ptr<SharedState> state, std::int32_t context = 0) {
    std::vector<Dim> dims;
    for (const std::int64_t s : state->shape) dims.push_back(s);
    plan.shareds.push_back(state);
    return slot(SlotKind::shared, static_cast<std::int32_t>(plan.shareds.size() - 1), state->dtype,
                dims, context);
  }
  std::int32_t constant(const Array& value, std::int32_t context = 0) {
    std::vector<Dim> dims;
    for (const std::int64_t s : value.shape()) dims.push_back(s);
    plan.constants.push_back(value);
    return slot(SlotKind::constant, static_cast<std::int32_t>(plan.constants.size() - 1),
                value.dtype(), dims, context);
  }
  std::int32_t temporary(DType dtype, const std::vector<Dim>& dims, std::int32_t context = 0) {
    return slot(SlotKind::temporary, 0, dtype, dims, context);
  }
  std::int32_t result(DType dtype, const std::vector<Dim>& dims, std::int32_t context = 0) {
    return slot(SlotKind::result, 0, dtype, dims, context);
  }
  std::int32_t view(std::int32_t of, const std::vector<Dim>& dims) {
    const Slot& s = plan.slots[static_cast<std::size_t>(of)];
    return slot(SlotKind::view, of, s.dtype, dims, s.context);
  }

  Dim size(int input, int axis) { return plan.dims.input_size(input, axis); }

  /// A kernel of a module of its own.
  std::int32_t kernel(const std::string& name, std::vector<std::string> checks = {},
                      std::int32_t context = 0) {
    plan.modules.push_back({context, "text of " + name, {name}});
    plan.kernels.push_back(
        {name, static_cast<std::int32_t>(plan.modules.size() - 1), -1, std::move(checks)});
    return static_cast<std::int32_t>(plan.kernels.size() - 1);
  }

  /// A launch with one size argument, the number of elements; blocks of one element.
  Step& launch(std::int32_t kernel, const std::vector<std::int32_t>& slots, Dim elements,
               std::int32_t outputs = 1, std::int32_t context = 0) {
    Step step;
    step.kind = Step::Kind::launch;
    step.context = context;
    step.slots = slots;
    step.outputs = outputs;
    step.kernel = kernel;
    step.sizes = {plan.dims.ref(elements)};
    step.blocks = plan.dims.ref(elements);
    step.work = plan.dims.ref(elements);
    step.misalignment = plan.dims.ref(Dim(0));
    step.label = plan.kernels[static_cast<std::size_t>(kernel)].name;
    plan.steps.push_back(step);
    return plan.steps.back();
  }
  Step& copy(std::int32_t target, std::int32_t source, std::vector<std::int32_t> after = {}) {
    Step step;
    step.kind = Step::Kind::copy;
    step.context = plan.slots[static_cast<std::size_t>(source)].context;
    step.slots = {target, source};
    step.after = std::move(after);
    plan.steps.push_back(step);
    return plan.steps.back();
  }
  Step& library(const std::string& name, const Attrs& attrs, const std::vector<std::int32_t>& slots,
                std::int32_t context = 0) {
    Step step;
    step.kind = Step::Kind::library;
    step.context = context;
    step.slots = slots;
    step.name = name;
    step.attrs = attrs;
    plan.steps.push_back(step);
    return plan.steps.back();
  }

  Plan plan;

 private:
  std::int32_t slot(SlotKind kind, std::int32_t index, DType dtype, const std::vector<Dim>& dims,
                    std::int32_t context) {
    Slot s;
    s.kind = kind;
    s.index = index;
    s.dtype = dtype;
    s.context = context;
    for (const Dim& d : dims) s.shape.push_back(plan.dims.ref(d));
    plan.slots.push_back(s);
    return static_cast<std::int32_t>(plan.slots.size() - 1);
  }
};

}  // namespace croton::test
