#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "croton/array.h"
#include "croton/error.h"
#include "runtime/array_access.h"
#include "runtime/dtype_dispatch.h"

namespace croton {
namespace {

std::string text_of(const LiteralValue& v) {
  switch (v.kind) {
    case DType::boolean:
      return v.integer ? "true" : "false";
    case DType::int64:
      return fmt::format("{}", v.integer);
    case DType::uint64:
      return fmt::format("{}", static_cast<std::uint64_t>(v.integer));
    default:
      return fmt::format("{}", v.real);
  }
}

/// The dtype of an array of such literals.
DType natural_dtype(const LiteralValue& v) { return is_float(v.kind) ? default_float() : v.kind; }

template <class T>
bool fits_integer(const LiteralValue& v) {
  using Limits = std::numeric_limits<T>;
  switch (v.kind) {
    case DType::float64:
      // The upper bound as a power of two, which every float type holds exactly.
      return v.real >= static_cast<double>(Limits::min()) &&
             v.real < 2.0 * static_cast<double>(Limits::max() / 2 + 1) &&
             std::trunc(v.real) == v.real;
    case DType::uint64:
      return std::same_as<T, std::uint64_t>;
    default:
      return std::in_range<T>(v.integer);
  }
}

/// The literal as T; false when T cannot hold it.
template <class T>
bool convert(const LiteralValue& v, T& out) {
  if constexpr (std::same_as<T, bool>) {
    out = v.kind == DType::float64 ? v.real != 0 : v.integer != 0;
    return v.kind == DType::boolean || v.real == 0 || v.real == 1;
  } else if constexpr (is_float(dtype_of<T>)) {
    out = v.kind == DType::float64  ? T(v.real)
          : v.kind == DType::uint64 ? T(static_cast<std::uint64_t>(v.integer))
                                    : T(v.integer);
    return !std::isfinite(v.real) || std::isfinite(static_cast<double>(out));
  } else {
    if (!fits_integer<T>(v)) return false;
    out = v.kind == DType::float64 ? static_cast<T>(v.real) : static_cast<T>(v.integer);
    return true;
  }
}

template <class T>
T must_convert(const LiteralValue& v, const char* where) {
  T out{};
  if (!convert(v, out)) {
    throw UserError(fmt::format("[{}] value does not fit the dtype: got {}, expected a value of {}",
                                where, text_of(v), name_of(dtype_of<T>)));
  }
  return out;
}

Array filled(const Shape& shape, const LiteralValue& value, DType dtype, const char* where) {
  const std::size_t bytes = bytes_of(shape, dtype, where);
  Array result = ArrayAccess::wrap(dtype, shape, host_block(bytes));
  with_type(dtype, [&]<class T>() {
    std::fill_n(reinterpret_cast<T*>(ArrayAccess::impl(result)->data), result.size(),
                must_convert<T>(value, where));
  });
  return result;
}

/// Reads nested lists: first the shape and the dtype, then the values.
class NestedReader {
 public:
  explicit NestedReader(std::initializer_list<Nested> list) {
    measure(list.begin(), list.size(), 0);
    for (std::size_t i = 0; i < depth_; ++i) shape_.push_back(sizes_[i]);
  }

  Array read(std::initializer_list<Nested> list) const {
    const DType dtype = any_float_              ? default_float()
                        : any_huge_             ? DType::uint64
                        : any_integer_ || !any_ ? (any_ ? DType::int64 : default_float())
                                                : DType::boolean;
    if (dtype == DType::uint64 && any_negative_) {
      throw UserError(
          "[Array] no integer dtype holds both negative values and values beyond int64");
    }
    Array result = ArrayAccess::wrap(dtype, shape_, host_block(bytes_of(shape_, dtype, "Array")));
    with_type(dtype, [&]<class T>() {
      T* out = reinterpret_cast<T*>(ArrayAccess::impl(result)->data);
      fill(list.begin(), list.size(), out);
    });
    return result;
  }

 private:
  void measure(const Nested* items, std::size_t n, std::size_t depth) {
    if (depth == kMaxRank) {
      throw UserError(
          fmt::format("[Array] nested list too deep: expected at most {} levels", kMaxRank));
    }
    const std::int64_t count = static_cast<std::int64_t>(n);
    if (!known_[depth]) {
      if (leaf_depth_ && depth >= *leaf_depth_)
        ragged(depth, "is a list where a number was expected");
      known_[depth] = true;
      sizes_[depth] = count;
      depth_ = std::max(depth_, depth + 1);
    } else if (sizes_[depth] != count) {
      ragged(depth, fmt::format("has {} entries where those before have {}", n, sizes_[depth]));
    }
    for (std::size_t i = 0; i < n; ++i) {
      path_[depth] = i;
      if (items[i].is_list) {
        if (leaf_depth_ && depth + 1 >= *leaf_depth_) {
          ragged(depth + 1, "is a list where those before are numbers");
        }
        measure(items[i].items.data(), items[i].items.size(), depth + 1);
      } else {
        note_leaf(items[i].value, depth + 1);
      }
    }
  }

  void note_leaf(const LiteralValue& v, std::size_t depth) {
    if (depth < depth_) ragged(depth, "is a number where those before are lists");
    leaf_depth_ = depth;
    any_ = true;
    any_float_ |= is_float(v.kind);
    any_integer_ |= is_integer(v.kind);
    any_huge_ |= v.kind == DType::uint64;
    any_negative_ |= v.kind == DType::int64 && v.integer < 0;
  }

  [[noreturn]] void ragged(std::size_t depth, const std::string& what) const {
    std::string where = "[Array] ragged nested list: ";
    where += depth == 0 ? "the list " : "entry ";
    for (std::size_t i = 0; i < depth; ++i) where += fmt::format("[{}]", path_[i]);
    throw UserError(where + " " + what + "; all lists of one level must have the same length");
  }

  template <class T>
  static void fill(const Nested* items, std::size_t n, T*& out) {
    for (std::size_t i = 0; i < n; ++i) {
      if (items[i].is_list) {
        fill(items[i].items.data(), items[i].items.size(), out);
      } else {
        *out++ = must_convert<T>(items[i].value, "Array");
      }
    }
  }

  Shape shape_;
  std::size_t depth_ = 0;
  bool known_[kMaxRank] = {};
  std::int64_t sizes_[kMaxRank] = {};
  std::size_t path_[kMaxRank] = {};
  std::optional<std::size_t> leaf_depth_;
  bool any_ = false, any_float_ = false, any_integer_ = false;
  bool any_huge_ = false, any_negative_ = false;
};

/// ceil((stop - start) / step) for integers, without overflow.
std::int64_t integer_steps(std::int64_t start, std::int64_t stop, std::int64_t step) {
  if (step > 0 ? start >= stop : start <= stop) return 0;
  const std::uint64_t distance =
      step > 0 ? static_cast<std::uint64_t>(stop) - static_cast<std::uint64_t>(start)
               : static_cast<std::uint64_t>(start) - static_cast<std::uint64_t>(stop);
  const std::uint64_t stride =
      step > 0 ? static_cast<std::uint64_t>(step) : 0 - static_cast<std::uint64_t>(step);
  const std::uint64_t count = (distance - 1) / stride + 1;
  return count > static_cast<std::uint64_t>(INT64_MAX) ? INT64_MAX
                                                       : static_cast<std::int64_t>(count);
}

}  // namespace

Array::Array(std::initializer_list<Nested> list) : Array(NestedReader(list).read(list)) {}

Array Array::scalar(const LiteralValue& value) {
  return filled({}, value, natural_dtype(value), "Array");
}

Array Array::from_bytes(const void* data, std::size_t count, DType dtype, const Shape& shape) {
  const std::size_t bytes = bytes_of(shape, dtype, "Array::from");
  if (static_cast<std::size_t>(shape.numel()) != count) {
    throw UserError(
        fmt::format("[Array::from] wrong number of values: got {}, expected {} for shape {}", count,
                    shape.numel(), shape.to_string()));
  }
  Array result = ArrayAccess::wrap(dtype, shape, host_block(bytes));
  if (bytes > 0) std::memcpy(ArrayAccess::impl(result)->data, data, bytes);
  return result;
}

Array Array::borrow_bytes(void* data, DType dtype, const Shape& shape, bool read_only) {
  const std::size_t bytes = bytes_of(shape, dtype, "Array::borrow");
  if (bytes == 0) return ArrayAccess::make_host(dtype, shape);
  if (data == nullptr) {
    throw UserError(fmt::format("[Array::borrow] null pointer for shape {}", shape.to_string()));
  }
  if (reinterpret_cast<std::uintptr_t>(data) % size_of(dtype) != 0) {
    throw UserError(
        fmt::format("[Array::borrow] the address is not aligned for {}", name_of(dtype)));
  }
  return ArrayAccess::wrap(dtype, shape, borrowed_block(data, bytes, read_only));
}

Array Array::zeros(const Shape& shape, std::optional<DType> dtype) {
  const DType t = dtype.value_or(default_float());
  const std::size_t bytes = bytes_of(shape, t, "Array::zeros");
  Array result = ArrayAccess::wrap(t, shape, host_block(bytes));
  std::memset(ArrayAccess::impl(result)->data, 0, bytes);
  return result;
}

Array Array::ones(const Shape& shape, std::optional<DType> dtype) {
  return filled(shape, 1, dtype.value_or(default_float()), "Array::ones");
}

Array Array::empty(const Shape& shape, std::optional<DType> dtype) {
  const DType t = dtype.value_or(default_float());
  return ArrayAccess::wrap(t, shape, host_block(bytes_of(shape, t, "Array::empty")));
}

Array Array::full(const Shape& shape, LiteralValue value, std::optional<DType> dtype) {
  return filled(shape, value, dtype.value_or(natural_dtype(value)), "Array::full");
}

Array Array::arange(LiteralValue stop, std::optional<DType> dtype) {
  return arange(0, stop, 1, dtype);
}

Array Array::arange(LiteralValue start, LiteralValue stop, LiteralValue step,
                    std::optional<DType> dtype) {
  const bool integral =
      start.kind == DType::int64 && stop.kind == DType::int64 && step.kind == DType::int64;
  if (step.real == 0 || std::isnan(step.real)) {
    throw UserError(fmt::format("[Array::arange] step must not be {}", text_of(step)));
  }
  std::int64_t count;
  if (integral) {
    count = integer_steps(start.integer, stop.integer, step.integer);
  } else {
    const double steps = std::ceil((stop.real - start.real) / step.real);
    if (!(steps < 0x1p62)) {
      throw UserError(fmt::format("[Array::arange] too many values from {} to {} by {}",
                                  text_of(start), text_of(stop), text_of(step)));
    }
    count = steps > 0 ? static_cast<std::int64_t>(steps) : 0;
  }
  const DType t = dtype.value_or(integral ? DType::int64 : default_float());
  if (is_bool(t)) throw UserError("[Array::arange] dtype must be a number: got bool");
  Array result = ArrayAccess::wrap(t, {count}, host_block(bytes_of({count}, t, "Array::arange")));
  with_type(t, [&]<class T>() {
    T* out = reinterpret_cast<T*>(ArrayAccess::impl(result)->data);
    for (std::int64_t i = 0; i < count; ++i) {
      const LiteralValue v = integral
                                 ? LiteralValue(start.integer + i * step.integer)
                                 : LiteralValue(start.real + static_cast<double>(i) * step.real);
      out[i] = is_float(t) ? T(v.kind == DType::int64 ? T(v.integer) : T(v.real))
                           : must_convert<T>(
                                 v.kind == DType::float64 ? LiteralValue(std::trunc(v.real)) : v,
                                 "Array::arange");
    }
  });
  return result;
}

Array Array::eye(std::int64_t n, std::optional<DType> dtype) { return eye(n, n, 0, dtype); }

Array Array::eye(std::int64_t n, std::int64_t m, std::int64_t k, std::optional<DType> dtype) {
  Array result = zeros({n, m}, dtype);
  with_type(result.dtype(), [&]<class T>() {
    T* out = reinterpret_cast<T*>(ArrayAccess::impl(result)->data);
    if (k <= -n || k >= m) return;
    for (std::int64_t i = k < 0 ? -k : 0; i < n && i + k < m; ++i) out[i * m + i + k] = T(1);
  });
  return result;
}

}  // namespace croton
