#include "runtime/shared_state.h"

#include <fmt/format.h>

#include <atomic>
#include <mutex>
#include <new>
#include <shared_mutex>
#include <utility>

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
  if (!child) return;
  // The call that holds it goes on in the parent; values are only ever swapped as a whole, but one
  // place after the other: one of them has it here, be it the old or the new one.
  if (lock.held_alone()) {
    bool found = value.has_value();
    for (SharedCopy& copy : others) {
      // Not given back: what that takes may not be there yet.
      if (std::exchange(found, found || copy.value.has_value())) new (&copy.value) Array();
    }
  }
  lock.reset();
}

std::string SharedState::title() const {
  return name.empty() ? fmt::format("shared variable {}", id) : name;
}

Array* SharedState::place_on(Context& context) {
  if (&context == home) return &value;
  const std::lock_guard hold(lock);
  for (SharedCopy& copy : others) {
    if (copy.context == &context) return &copy.value;
  }
  return &others.emplace_front(SharedCopy{&context, {}}).value;
}

const Array* SharedState::nearest(bool host_memory) const {
  const Array* other = nullptr;
  const auto suits = [&](const Context& context, const Array& array) {
    if (!array.has_value() || context.device().failed()) return false;
    if (other == nullptr) other = &array;
    return context.device().host_memory() == host_memory;
  };
  if (suits(*home, value)) return &value;
  for (const SharedCopy& copy : others) {
    if (suits(*copy.context, copy.value)) return &copy.value;
  }
  return other;
}

const Array& SharedState::any() const {
  if (value.has_value()) return value;
  for (const SharedCopy& copy : others) {
    if (copy.value.has_value()) return copy.value;
  }
  return value;
}

void SharedState::replace(Array& other) noexcept {
  std::swap(value, other);
  for (SharedCopy& copy : others) copy.value = Array();
  lost.clear();
}

std::string SharedState::why_lost() const {
  if (!lost.empty() || nearest(true) != nullptr) return lost;
  for (const SharedCopy& copy : others) {
    if (copy.value.has_value()) return copy.context->device().failure();
  }
  return home->device().failure();
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
    value = *state.nearest(true);
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
  state.replace(placed);
}

}  // namespace croton
