#include <fmt/format.h>

#include <algorithm>

#include "croton/array.h"
#include "croton/error.h"
#include "runtime/array_access.h"

namespace croton {
namespace {

/// A view of `base` whose first element is `offset` elements further.
Array view(const Array& base, const Shape& shape, const Strides& strides, std::int64_t offset) {
  const ArrayImpl& a = *ArrayAccess::impl(base);
  return ArrayAccess::wrap_strided(a.dtype, shape, strides, a.block,
                                   a.data + offset * static_cast<std::int64_t>(size_of(a.dtype)),
                                   a.home);
}

std::size_t checked_axis(std::int64_t axis, const Shape& shape, const char* what) {
  const std::int64_t rank = static_cast<std::int64_t>(shape.size());
  if (axis < -rank || axis >= rank) {
    throw UserError(
        fmt::format("[Array] {}: axis out of range: got {}, expected {} to {} for shape {}", what,
                    axis, -rank, rank - 1, shape.to_string()));
  }
  return static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
}

/// Fills in the one size that is -1.
Shape resolve_shape(const Shape& wanted, const Shape& have, std::int64_t size) {
  Shape shape = wanted;
  std::int64_t known = 1;
  std::int64_t* inferred = nullptr;
  for (std::int64_t& s : shape) {
    if (s == -1 && inferred == nullptr) {
      inferred = &s;
    } else if (s < 0) {
      throw UserError(fmt::format(
          "[Array] reshape: sizes must not be negative, only one may be -1: got {} in {}", s,
          wanted.to_string()));
    } else if (__builtin_mul_overflow(known, s, &known)) {
      known = -1;
      break;
    }
  }
  if (inferred != nullptr && known > 0 && size % known == 0) {
    *inferred = size / known;
    known = size;
  }
  if (known != size || (inferred != nullptr && *inferred < 0)) {
    throw UserError(fmt::format("[Array] reshape: {} elements of shape {} do not fit shape {}",
                                size, have.to_string(), wanted.to_string()));
  }
  return shape;
}

}  // namespace

Array Array::reshape(const Shape& wanted) const {
  const Shape target = resolve_shape(wanted, shape(), size());
  const Array base = contiguous();
  return view(base, target, row_major_strides(target), 0);
}

Array Array::transpose() const {
  Shape axes;
  for (std::size_t i = ndim(); i-- > 0;) axes.push_back(static_cast<std::int64_t>(i));
  return transpose(axes);
}

Array Array::transpose(const Shape& axes) const {
  const Shape& have = shape();
  if (axes.size() != have.size()) {
    throw UserError(
        fmt::format("[Array] transpose: wrong number of axes: got {}, expected {} for "
                    "shape {}",
                    axes.size(), have.size(), have.to_string()));
  }
  const ArrayImpl& a = *ArrayAccess::impl(*this);
  Shape result;
  Strides strides{};
  unsigned seen = 0;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::size_t axis = checked_axis(axes[i], have, "transpose");
    if (seen >> axis & 1u) {
      throw UserError(fmt::format("[Array] transpose: axis {} is named twice", axis));
    }
    seen |= 1u << axis;
    result.push_back(have[axis]);
    strides[i] = a.strides[axis];
  }
  return view(*this, result, strides, 0);
}

Array Array::slice(std::int64_t axis, std::optional<std::int64_t> start,
                   std::optional<std::int64_t> stop, std::int64_t step) const {
  Shape result = shape();
  const std::size_t k = checked_axis(axis, result, "slice");
  if (step == 0) throw UserError("[Array] slice: step must not be 0");
  const std::int64_t n = result[k];
  const std::int64_t low = step > 0 ? 0 : -1;
  const std::int64_t high = step > 0 ? n : n - 1;
  const auto clip = [&](std::int64_t v) { return std::clamp(v < 0 ? v + n : v, low, high); };
  const std::int64_t first = start ? clip(*start) : (step > 0 ? low : high);
  const std::int64_t last = stop ? clip(*stop) : (step > 0 ? high : low);
  // Unsigned, since -step overflows for the most negative step.
  const std::uint64_t distance =
      step > 0 ? (last > first ? static_cast<std::uint64_t>(last - first) : 0)
               : (first > last ? static_cast<std::uint64_t>(first - last) : 0);
  const std::uint64_t stride =
      step > 0 ? static_cast<std::uint64_t>(step) : 0 - static_cast<std::uint64_t>(step);
  const std::uint64_t count = distance == 0 ? 0 : (distance - 1) / stride + 1;
  result[k] = static_cast<std::int64_t>(count);
  const ArrayImpl& a = *ArrayAccess::impl(*this);
  Strides strides = a.strides;
  // Strides of arrays without elements mean nothing and may be huge.
  const bool hollow = a.size == 0 || count == 0;
  const std::int64_t offset = hollow ? 0 : first * strides[k];
  if (!hollow && count > 1) strides[k] *= step;
  return view(*this, result, strides, offset);
}

Array Array::operator[](std::int64_t index) const {
  const Shape& have = shape();
  if (have.empty()) throw UserError("[Array] a 0-d array cannot be indexed; use item()");
  const std::int64_t n = have[0];
  if (index < -n || index >= n) {
    throw UserError(
        fmt::format("[Array] index out of bounds on axis 0: got {}, expected {} to {} for shape {}",
                    index, -n, n - 1, have.to_string()));
  }
  const ArrayImpl& a = *ArrayAccess::impl(*this);
  Strides strides{};
  std::copy(a.strides.begin() + 1, a.strides.end(), strides.begin());
  return view(*this, Shape(std::span<const std::int64_t>(have.begin() + 1, have.end())), strides,
              a.size == 0 ? 0 : (index < 0 ? index + n : index) * a.strides[0]);
}

Array Array::broadcast_to(const Shape& target) const {
  const Shape& have = shape();
  bytes_of(target, dtype(), "Array::broadcast_to");
  const ArrayImpl& a = *ArrayAccess::impl(*this);
  bool fits = target.size() >= have.size();
  Strides strides{};
  for (std::size_t i = 0; fits && i < have.size(); ++i) {
    const std::size_t to = i + target.size() - have.size();
    if (have[i] == target[to]) {
      strides[to] = a.strides[i];
    } else {
      fits = have[i] == 1;
    }
  }
  if (!fits) {
    throw UserError(fmt::format("[Array] broadcast_to: shape {} does not broadcast to {}",
                                have.to_string(), target.to_string()));
  }
  return view(*this, target, strides, 0);
}

}  // namespace croton
