#include "croton/shared.h"

#include <fmt/format.h>

#include "compiler/graph/node.h"
#include "croton/error.h"
#include "frontend/default_runtime.h"
#include "runtime/runtime.h"
#include "runtime/shared_state.h"

namespace croton {
namespace {

SharedState& state_of(const Variable& variable) {
  if (!variable.defined()) {
    throw UserError("an empty Shared was used: make one with shared(value)");
  }
  return *variable.node()->shared;
}

}  // namespace

Array Shared::get_value() const { return croton::get_value(state_of(*this)); }

void Shared::set_value(const Array& value) const { croton::set_value(state_of(*this), value); }

Shared shared(const Array& value, const SharedOptions& options, Loc loc) {
  const std::shared_ptr<Runtime> runtime = default_runtime();
  std::string target = options.target;
  if (target.empty()) {
    const std::string* scope = build_settings().context;
    target = scope != nullptr ? *scope : runtime->default_context();
  }
  std::shared_ptr<SharedState> state;
  try {
    state = make_shared_state(runtime, value, options.name, target, options.resizable);
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format("{}; asked for by shared at {}", error.what(), to_text(loc)));
  }
  Type type{value.dtype(), value.shape()};
  if (options.resizable) {
    for (std::int64_t& size : type.shape) size = kAnyDim;
  }
  return Shared(make_shared_node(std::move(state), std::move(type), options.name, loc));
}

}  // namespace croton
