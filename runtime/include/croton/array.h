#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "croton/dtype.h"
#include "croton/export.h"
#include "croton/shape.h"

namespace croton {

class Array;
struct ArrayImpl;

/// One entry of a nested list: a number or a list. Only there to read `Array a = {{1, 2}, {3, 4}}`.
struct Nested {
  std::vector<Nested> items;
  LiteralValue value;
  bool is_list = false;

  template <Literal T>
  Nested(T v) : value(v) {}
  Nested(std::initializer_list<Nested> list) : items(list), is_list(true) {}
};

/// Where arrays outside plain host memory live; contexts implement it. A home outlives its arrays.
class CROTON_API ArrayHome {
 public:
  virtual ~ArrayHome();
  /// The name of the context, as users wrote it.
  virtual std::string_view name() const = 0;
  /// The host can read the memory in place once `wait` has returned.
  virtual bool host_accessible() const = 0;
  /// Returns when all work queued so far has finished; throws what that work threw.
  virtual void wait() = 0;
  /// Copies `bytes` from `source`, memory of this home, to `target` on the host, after all work
  /// queued so far; returns when done.
  virtual void copy_to_host(void* target, const void* source, std::size_t bytes) = 0;
};

namespace detail {
struct ArrayHeader {
  std::atomic<std::uint32_t> refs{0};
};
CROTON_API void destroy_array(ArrayHeader* header) noexcept;
}  // namespace detail

/// A concrete n-d value: dtype, shape, strides and memory. A handle of one pointer with value
/// semantics: copies share memory until one of them is written to. An Array that was default
/// constructed holds nothing; asking it for anything but `has_value` is a UserError.
///
/// There are no operators on arrays: arithmetic is symbolic.
class CROTON_API Array {
 public:
  Array() = default;
  /// From nested lists: integers give int64, floating literals floatX, bools bool; a mixture the
  /// widest of them. A ragged list is a UserError that says where.
  Array(std::initializer_list<Nested> list);
  /// A 0-d array, with the dtype that a list of this one literal would have.
  template <Literal T>
  Array(T value) : Array(scalar(LiteralValue(value))) {}

  Array(const Array& other) noexcept : impl_(other.impl_) {
    if (impl_) impl_->refs.fetch_add(1, std::memory_order_relaxed);
  }
  Array(Array&& other) noexcept : impl_(std::exchange(other.impl_, nullptr)) {}
  Array& operator=(const Array& other) noexcept {
    Array copy(other);
    std::swap(impl_, copy.impl_);
    return *this;
  }
  Array& operator=(Array&& other) noexcept {
    std::swap(impl_, other.impl_);
    return *this;
  }
  ~Array() {
    if (impl_ == nullptr) return;
    // The only handle needs no atomic read-modify-write: nobody else can add one.
    if (impl_->refs.load(std::memory_order_acquire) == 1 ||
        impl_->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      detail::destroy_array(impl_);
    }
  }

  /// Copies `values`, in row-major order, into a new array; as many as the shape has elements.
  template <Element T>
  static Array from(std::span<const std::type_identity_t<T>> values, const Shape& shape) {
    return from_bytes(values.data(), values.size(), dtype_of<T>, shape);
  }
  template <Element T>
  static Array from(std::span<const std::type_identity_t<T>> values) {
    return from<T>(values, {values.size()});
  }
  template <Element T>
  static Array from(std::initializer_list<std::type_identity_t<T>> values, const Shape& shape) {
    return from_bytes(values.begin(), values.size(), dtype_of<T>, shape);
  }

  /// A view of the caller's memory, row-major, without a copy: the memory must outlive this array
  /// and all that shares with it, graphs and functions included, and what is written to it later
  /// shows. From a const pointer, `mutable_data` copies first; else it writes to the caller's
  /// memory.
  template <class T>
  requires Element<std::remove_const_t<T>>
  static Array borrow(T* data, const Shape& shape) {
    return borrow_bytes(const_cast<std::remove_const_t<T>*>(data), dtype_of<std::remove_const_t<T>>,
                        shape, std::is_const_v<T>);
  }

  /// All elements 0; floatX without a dtype. Also the others here.
  static Array zeros(const Shape& shape, std::optional<DType> dtype = {});
  static Array ones(const Shape& shape, std::optional<DType> dtype = {});
  /// Elements are uninitialised.
  static Array empty(const Shape& shape, std::optional<DType> dtype = {});
  /// All elements `value`; without a dtype that of the literal. A value that the dtype cannot hold
  /// is a UserError.
  static Array full(const Shape& shape, LiteralValue value, std::optional<DType> dtype = {});
  /// 0, 1, ... below `stop`.
  static Array arange(LiteralValue stop, std::optional<DType> dtype = {});
  /// start, start + step, ... before `stop`; int64 when all are integers, else floatX.
  static Array arange(LiteralValue start, LiteralValue stop, LiteralValue step = 1,
                      std::optional<DType> dtype = {});
  /// The identity matrix of n rows.
  static Array eye(std::int64_t n, std::optional<DType> dtype = {});
  /// n x m with ones on the k-th diagonal.
  static Array eye(std::int64_t n, std::int64_t m, std::int64_t k = 0,
                   std::optional<DType> dtype = {});
  /// The array in a `.npy` file; see <croton/numpy_io.h> for errors, writing and `.npz`.
  static Array load_npy(const std::string& path);
  /// The array `name` of an `.npz` file.
  static Array load_npz(const std::string& path, std::string_view name);

  bool has_value() const { return impl_ != nullptr; }
  const Shape& shape() const&;
  Shape shape() const&& { return static_cast<const Array&>(*this).shape(); }
  std::size_t ndim() const;
  /// The number of elements.
  std::int64_t size() const;
  std::size_t nbytes() const;
  DType dtype() const;
  /// In elements, one per axis; valid while this handle lives.
  std::span<const std::int64_t> strides() const;
  /// The elements lie in row-major order without gaps.
  bool is_contiguous() const;
  /// The name of the context whose memory this is; "cpu" for plain host memory.
  std::string context() const;

  /// The elements, row-major. A UserError when T is not the dtype, the array is a strided view (use
  /// `contiguous`) or lives on a device (use `to_host`). Valid while this handle lives and nobody
  /// calls `mutable_data`.
  template <Element T>
  const T* data() const {
    return static_cast<const T*>(checked_data(dtype_of<T>));
  }
  /// The same to write to; first makes a copy when other handles share the memory.
  template <Element T>
  T* mutable_data() {
    return static_cast<T*>(checked_mutable_data(dtype_of<T>));
  }
  /// The address of element (0, ..., 0), in the memory of whichever device; no checks.
  const void* raw_data() const;

  /// The elements in row-major order; T must be the dtype.
  template <Element T>
  std::vector<T> to_vector() const {
    const Array values = checked_host(dtype_of<T>);
    const T* p = static_cast<const T*>(values.raw_data());
    return std::vector<T>(p, p + values.size());
  }
  /// The value of an array of one element; T must be the dtype.
  template <Element T>
  T item() const {
    T value;
    read_item(&value, dtype_of<T>);
    return value;
  }
  /// The element at an index, negative ones counted from the end; T must be the dtype.
  template <Element T>
  T at(const Shape& index) const {
    T value;
    read_at(&value, dtype_of<T>, index);
    return value;
  }

  /// The elements converted: to integers by truncation (NaN gives 0, what is out of range the
  /// nearest value), between integers modulo 2^n, to bool by `!= 0`. Shares when nothing changes.
  Array astype(DType dtype) const;
  /// The same elements in another shape; one size may be -1. Shares when contiguous.
  Array reshape(const Shape& shape) const;
  /// A view with the axes reversed.
  Array transpose() const;
  /// A view with the axes in the order given.
  Array transpose(const Shape& axes) const;
  /// A view of start:stop:step along an axis, with Python's meaning of negative and large values.
  Array slice(std::int64_t axis, std::optional<std::int64_t> start,
              std::optional<std::int64_t> stop, std::int64_t step = 1) const;
  /// A view of one entry along axis 0.
  Array operator[](std::int64_t index) const;
  /// A view that repeats axes of size 1, and new ones in front.
  Array broadcast_to(const Shape& shape) const;
  /// New, contiguous memory on the host.
  Array copy() const;
  /// Itself when contiguous, else a contiguous copy on the host.
  Array contiguous() const;
  /// The value in host memory: itself when it is there, shared when the device's memory can be read
  /// in place, else a copy. Waits for the work that computes it.
  Array to_host() const;

 private:
  friend class ArrayAccess;

  static Array scalar(const LiteralValue& value);
  static Array from_bytes(const void* data, std::size_t count, DType dtype, const Shape& shape);
  static Array borrow_bytes(void* data, DType dtype, const Shape& shape, bool read_only);
  const void* checked_data(DType wanted) const;
  void* checked_mutable_data(DType wanted);
  Array checked_host(DType wanted) const;
  void read_item(void* target, DType wanted) const;
  void read_at(void* target, DType wanted, const Shape& index) const;

  detail::ArrayHeader* impl_ = nullptr;
};

/// Prints like NumPy's `str`: up to 8 digits, common widths, lines of 75 characters, `...` above
/// 1,000 elements.
CROTON_API std::ostream& operator<<(std::ostream& out, const Array& array);

/// What `operator<<` prints.
CROTON_API std::string to_string(const Array& array);

/// Same shape, same dtype, and elements that compare equal (NaN does not).
CROTON_API bool array_equal(const Array& a, const Array& b);

/// Same shape and |a - b| <= atol + rtol * |b| everywhere, compared as doubles; NaN equals NaN when
/// `equal_nan`.
CROTON_API bool allclose(const Array& a, const Array& b, double rtol = 1e-5, double atol = 1e-8,
                         bool equal_nan = false);

}  // namespace croton
