#include "runtime/shared_state.h"

#include <fmt/format.h>

#include <atomic>
#include <mutex>
#include <shared_mutex>

#include "croton/error.h"
#include "runtime/array_access.h"
#include "runtime/context.h"
#include "runtime/runtime.h"

namespace croton {
namespace {

std::atomic<std::uint64_t> next_id{1};

Array placed_copy(Context& home, const Array& value) {
  return home.bring(value.to_host().contiguous());
}

}  // namespace

SharedState::SharedState() : ForkAware(ForkLevel::executable), id(next_id++) {}
SharedState::~SharedState() = default;

void SharedState::after_fork(bool child) noexcept {
  // The call that holds it goes on in the parent; values are only ever swapped as a whole.
  if (child) lock.reset();
}

std::string SharedState::title() const {
  return name.empty() ? fmt::format("shared variable {}", id) : name;
}

std::string SharedState::why_lost() const {
  return lost.empty() && home->device().failed() ? home->device().failure() : lost;
}

std::shared_ptr<SharedState> make_shared_state(std::shared_ptr<Runtime> runtime, const Array& value,
                                               std::string name, std::string_view context,
                                               bool resizable) {
  Context& home = runtime->context(context);
  auto state = std::make_shared<SharedState>();
  state->name = std::move(name);
  state->context = home.name();
  state->dtype = value.dtype();
  state->shape = value.shape();
  if (resizable) {
    for (std::int64_t& size : state->shape) size = kAnyDim;
  }
  state->resizable = resizable;
  state->home = &home;
  state->value = placed_copy(home, value);
  state->runtime = std::move(runtime);
  return state;
}

Array get_value(const SharedState& state) {
  Array value;
  {
    state.lock.lock_shared();
    const std::shared_lock hold(state.lock, std::adopt_lock);
    if (const std::string lost = state.why_lost(); !lost.empty()) {
      throw DeviceError(
          fmt::format("[get_value] the value of {} was lost: {}; give it a new one "
                      "with set_value",
                      state.title(), lost));
    }
    value = state.value;
  }
  return value.to_host();
}

void set_value(SharedState& state, const Array& value) {
  if (value.dtype() != state.dtype) {
    throw UserError(
        fmt::format("[set_value] wrong dtype for {}: got {}, expected {}; convert it "
                    "with astype(DType::{})",
                    state.title(), name_of(value.dtype()), name_of(state.dtype),
                    is_bool(state.dtype) ? "boolean" : name_of(state.dtype)));
  }
  const bool fits =
      state.resizable ? value.ndim() == state.shape.size() : value.shape() == state.shape;
  if (!fits) {
    throw UserError(fmt::format(
        "[set_value] wrong shape for {}: got {}, expected {}{}", state.title(),
        value.shape().to_string(), state.shape.to_string(),
        state.resizable ? "" : "; make it with .resizable = true if its shape is to change"));
  }
  Array placed = placed_copy(*state.home, value);
  const std::lock_guard hold(state.lock);
  std::swap(state.value, placed);
  state.lost.clear();
}

}  // namespace croton
