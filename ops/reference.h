// Common parts of the reference evaluators: plain loops over host arrays, in the widest type of the
// dtype's class (double, int64, uint64, bool).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "croton/array.h"
#include "croton/error.h"

namespace croton::reference {

/// Calls f with a value of the class's type: double, std::int64_t, std::uint64_t or bool.
template <class F>
decltype(auto) with_class(DType dtype, F&& f) {
  if (is_float(dtype)) return f(double{});
  if (is_unsigned(dtype)) return f(std::uint64_t{});
  if (is_integer(dtype)) return f(std::int64_t{});
  return f(bool{});
}

/// The elements in row-major order, converted to T.
template <class T>
std::vector<T> values(const Array& array) {
  return array.astype(dtype_of<T>).template to_vector<T>();
}

/// Positions in row-major order.
class Odometer {
 public:
  explicit Odometer(const Shape& shape) : shape_(shape), at_(shape) {
    for (std::int64_t& i : at_) i = 0;
  }
  const Shape& at() const { return at_; }
  void next() {
    for (std::size_t axis = shape_.size(); axis-- > 0;) {
      if (++at_[axis] < shape_[axis]) return;
      at_[axis] = 0;
    }
  }

 private:
  Shape shape_;
  Shape at_;
};

/// The row-major number of a position.
inline std::int64_t flat_index(const Shape& shape, const Shape& at) {
  std::int64_t flat = 0;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) flat = flat * shape[axis] + at[axis];
  return flat;
}

/// An index that may count from the end as one from the front; CallError when it is out of bounds.
inline std::int64_t checked_index(const std::string& op, std::int64_t index, std::int64_t size) {
  if (index < -size || index >= size) {
    throw CallError("[" + op + "] index " + std::to_string(index) +
                    " is out of bounds for an axis of size " + std::to_string(size));
  }
  return index < 0 ? index + size : index;
}

/// An array of x's dtype and a new shape, whose element at a position is x's element number
/// `source(position)`, or 0 where that is negative.
template <class Source>
Array rearrange(const Array& x, const Shape& shape, Source&& source) {
  const Array from = x.contiguous();
  const std::size_t size = size_of(x.dtype());
  Array result = Array::zeros(shape, x.dtype());
  auto* to = static_cast<char*>(const_cast<void*>(result.raw_data()));
  const auto* bytes = static_cast<const char*>(from.raw_data());
  Odometer position(shape);
  for (std::int64_t i = 0; i < result.size(); ++i, position.next()) {
    const std::int64_t k = source(position.at());
    if (k < 0) continue;
    for (std::size_t j = 0; j < size; ++j) to[i * size + j] = bytes[k * size + j];
  }
  return result;
}

}  // namespace croton::reference
