#include "runtime/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "croton/error.h"
#include "runtime/array_access.h"
#include "runtime/shared_state.h"

namespace croton {
namespace {

std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

std::int64_t integer_at(const void* p, DType dtype) {
  const auto read = [p]<class T>(T value) {
    std::memcpy(&value, p, sizeof value);
    return static_cast<std::int64_t>(value);
  };
  switch (dtype) {
    case DType::boolean:
    case DType::uint8:
      return read(std::uint8_t{});
    case DType::int8:
      return read(std::int8_t{});
    case DType::int16:
      return read(std::int16_t{});
    case DType::int32:
      return read(std::int32_t{});
    case DType::int64:
      return read(std::int64_t{});
    case DType::uint16:
      return read(std::uint16_t{});
    case DType::uint32:
      return read(std::uint32_t{});
    case DType::uint64:
      return read(std::uint64_t{});
    case DType::float16:
    case DType::bfloat16:
    case DType::float32:
    case DType::float64:
      break;
  }
  throw InternalError("internal error: a size is read from a float");
}

std::int64_t integer_of(const ArrayImpl& impl) {
  if (impl.home == nullptr || impl.home->host_accessible()) {
    return integer_at(impl.data, impl.dtype);
  }
  std::int64_t raw = 0;
  impl.home->copy_to_host(&raw, impl.data, size_of(impl.dtype));
  return integer_at(&raw, impl.dtype);
}

std::string title_of(const BoundPlan& bound, std::size_t i) {
  const std::string& name = bound.plan.inputs[i].name;
  return name.empty() ? fmt::format("[{}] argument {}", bound.title, i)
                      : fmt::format("[{}] argument {} (\"{}\")", bound.title, i, name);
}

void check_shape(const BoundPlan& bound, std::size_t i, const Array& a) {
  const Shape& wanted = bound.plan.inputs[i].shape;
  const Shape& got = a.shape();
  if (got.size() != wanted.size()) {
    throw CallError(fmt::format(
        "{} has the wrong number of axes: got {} with shape {}, expected {} as in shape {}",
        title_of(bound, i), got.size(), got.to_string(), wanted.size(), wanted.to_string()));
  }
  for (std::size_t axis = 0; axis < wanted.size(); ++axis) {
    if (wanted[axis] == kAnyDim || wanted[axis] == got[axis]) continue;
    throw CallError(fmt::format(
        "{} has the wrong size along axis {}: got {} in shape {}, expected {} as in shape {}",
        title_of(bound, i), axis, got[axis], got.to_string(), wanted[axis], wanted.to_string()));
  }
}

void check_argument(const BoundPlan& bound, std::size_t i, const Array& a) {
  const PlanInput& wanted = bound.plan.inputs[i];
  if (!a.has_value()) {
    throw CallError(
        fmt::format("{} holds no value: got a default-constructed Array", title_of(bound, i)));
  }
  if (a.dtype() != wanted.dtype) {
    throw CallError(fmt::format(
        "{} has the wrong dtype: got {}, expected {}; convert it with astype(DType::{})",
        title_of(bound, i), name_of(a.dtype()), name_of(wanted.dtype),
        wanted.dtype == DType::boolean ? "boolean" : name_of(wanted.dtype)));
  }
  check_shape(bound, i, a);
}

/// Views may begin anywhere.
bool is_aligned(const ArrayImpl& impl) {
  return reinterpret_cast<std::uintptr_t>(impl.data) % kDeviceAlignment == 0;
}

}  // namespace

bool fits(const Array& argument, const ArgumentKey& key) {
  const ArrayImpl* impl = ArrayAccess::impl(argument);
  if (impl == nullptr || impl->dtype != key.dtype || !(impl->shape == key.shape)) return false;
  if (!key.anywhere) {
    if (!impl->contiguous) return false;
    if (impl->home != key.home) {
      const bool on_host = impl->home == nullptr || impl->home->host_accessible();
      if (!key.host_memory || !on_host) return false;
    } else if (key.home != nullptr && !key.host_memory && !is_aligned(*impl)) {
      return false;
    }
  }
  return !key.reads_value || integer_of(*impl) == key.value;
}

void check_arguments(const BoundPlan& bound, std::span<const Array> arguments) {
  const auto& inputs = bound.plan.inputs;
  if (arguments.size() != inputs.size()) {
    std::string names;
    for (const PlanInput& input : inputs) {
      names += (names.empty() ? "" : ", ") + (input.name.empty() ? "(unnamed)" : input.name);
    }
    throw CallError(fmt::format("[{}] wrong number of arguments: got {}, expected {}{}",
                                bound.title, arguments.size(), inputs.size(),
                                names.empty() ? "" : " (" + names + ")"));
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) check_argument(bound, i, arguments[i]);
}

void placed_arguments(const BoundPlan& bound, std::span<const Array> arguments, int& copied,
                      std::vector<Array>& placed) {
  placed.assign(arguments.begin(), arguments.end());
  for (const SecondInput& s : bound.plan.seconds) placed.push_back(arguments[at(s.input)]);
  for (std::size_t i = 0; i < placed.size(); ++i) {
    Array& a = placed[i];
    const std::int32_t wanted = i < arguments.size()
                                    ? bound.input_context[i]
                                    : bound.plan.seconds[i - arguments.size()].context;
    if (wanted < 0) continue;
    Context& context = *bound.contexts[at(wanted)];
    const ArrayImpl* impl = ArrayAccess::impl(a);
    const bool on_host = impl->home == nullptr || impl->home->host_accessible();
    if (context.device().host_memory()) {
      if (on_host && impl->contiguous) continue;
      a = on_host ? a.contiguous() : a.to_host().contiguous();
    } else {
      if (impl->home == context.array_home() && impl->contiguous && is_aligned(*impl)) continue;
      Array here = context.bring_over(a);
      a = here.has_value() ? std::move(here) : context.bring(a.to_host().contiguous());
    }
    ++copied;
  }
}

void plan_key(const BoundPlan& bound, std::span<const Array> arguments,
              std::vector<std::int64_t>& key) {
  key.clear();
  const auto append = [&](const Array& a, bool reads_value) {
    const ArrayImpl& impl = *ArrayAccess::impl(a);
    key.insert(key.end(), impl.shape.begin(), impl.shape.end());
    if (reads_value) key.push_back(integer_of(impl));
  };
  for (std::size_t i = 0; i < bound.plan.inputs.size(); ++i) {
    append(arguments[i], bound.reads_value[i]);
  }
  for (const std::int32_t s : bound.keyed_shareds) {
    append(bound.plan.shareds[at(s)]->any(), bound.reads_value[bound.plan.inputs.size() + at(s)]);
  }
}

}  // namespace croton
