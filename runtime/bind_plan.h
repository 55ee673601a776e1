#pragma once

#include <memory>

#include "croton/config.h"
#include "runtime/plan.h"
#include "runtime/runtime.h"
#include "runtime/specialize.h"

namespace croton {

/// Opens the contexts of `plan`, puts its constants where they are used and compiles its modules,
/// several side by side.
std::unique_ptr<BoundPlan> bind_plan(Runtime& runtime, Plan plan, const Config& config);

}  // namespace croton
