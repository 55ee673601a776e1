#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "croton/array.h"
#include "croton/dtype.h"
#include "croton/export.h"
#include "croton/shape.h"

namespace croton {

class Node;
class Index;
class Variable;

/// A place in the user's program, and the op that was asked for there in the user's words, where
/// library code builds nodes of other ops for it.
struct Loc : std::source_location {
  constexpr Loc() = default;
  constexpr Loc(const std::source_location& line) : std::source_location(line) {}
  /// The place for nodes that the library makes for `name` (permanent text). A function that is
  /// itself part of another keeps the name of the outer one.
  constexpr Loc named(std::string_view name) const {
    Loc loc = *this;
    if (loc.op.empty()) loc.op = name;
    return loc;
  }
  std::string_view op;
};

struct None {};
/// "Not given": an open bound of a Slice, all axes of a reduction.
inline constexpr None none{};

struct NewAxis {};
/// Inserts an axis of size 1 when used as an index.
inline constexpr NewAxis newaxis{};

struct Ellipsis {};
/// As many full slices as are needed, when used as an index.
inline constexpr Ellipsis ellipsis{};

struct ReduceOptions;
struct VarOptions;
struct Axis;
class Sizes;

/// A handle to a symbolic value: an output of a node in a graph. Cheap to copy; the node lives as
/// long as a handle or a later node needs it.
class CROTON_API Variable {
 public:
  Variable() = default;
  Variable(const Variable& other);
  Variable(Variable&& other) noexcept;
  ~Variable();
  // Only on lvalues, so that `x(0) = v` does not compile: graphs are immutable; see set_subtensor.
  Variable& operator=(const Variable& other) &;
  Variable& operator=(Variable&& other) & noexcept;

  /// Takes over one output of a node.
  explicit Variable(const Node* node, int output = 0);

  bool defined() const { return node_ != nullptr; }
  DType dtype() const;
  int ndim() const;
  /// Sizes where known, kAnyDim elsewhere.
  const Shape& static_shape() const;
  const std::string& name() const;
  /// The context that this value was asked to live on, empty when it was left open.
  const std::string& context() const;

  // Indexing as in NumPy, with integers, Slice, ellipsis, newaxis, integer Variables and Arrays,
  // and lists of integers. See set_subtensor and inc_subtensor for writing.
  Variable operator()(Index a) const;
  Variable operator()(Index a, Index b) const;
  Variable operator()(Index a, Index b, Index c) const;
  Variable operator()(Index a, Index b, Index c, Index d) const;
  Variable operator()(Index a, Index b, Index c, Index d, Index e) const;
  Variable operator()(Index a, Index b, Index c, Index d, Index e, Index f) const;
  Variable operator()(Index a, Index b, Index c, Index d, Index e, Index f, Index g) const;
  Variable operator()(Index a, Index b, Index c, Index d, Index e, Index f, Index g, Index h) const;

  /// The sizes as an int64 vector.
  Variable shape(Loc loc = Loc::current()) const;
  /// One size as an int64 scalar; negative axes count from the end.
  Variable shape(int axis, Loc loc = Loc::current()) const;
  /// The number of elements as an int64 scalar.
  Variable size(Loc loc = Loc::current()) const;

  /// This value on another context; the value itself when it is there already.
  Variable transfer(std::string_view context, Loc loc = Loc::current()) const;
  /// This value in another dtype.
  Variable astype(DType dtype, Loc loc = Loc::current()) const;
  /// Axes reversed.
  Variable T(Loc loc = Loc::current()) const;

  // The free functions of the same names say what these do.
  Variable sum(const Axis& axis, const ReduceOptions& options, Loc loc = Loc::current()) const;
  Variable sum(const Axis& axis, Loc loc = Loc::current()) const;
  Variable sum(Loc loc = Loc::current()) const;
  Variable mean(const Axis& axis, const ReduceOptions& options, Loc loc = Loc::current()) const;
  Variable mean(const Axis& axis, Loc loc = Loc::current()) const;
  Variable mean(Loc loc = Loc::current()) const;
  Variable prod(const Axis& axis, Loc loc = Loc::current()) const;
  Variable prod(Loc loc = Loc::current()) const;
  Variable max(const Axis& axis, Loc loc = Loc::current()) const;
  Variable max(Loc loc = Loc::current()) const;
  Variable min(const Axis& axis, Loc loc = Loc::current()) const;
  Variable min(Loc loc = Loc::current()) const;
  Variable var(const Axis& axis, const VarOptions& options, Loc loc = Loc::current()) const;
  Variable var(const Axis& axis, Loc loc = Loc::current()) const;
  Variable var(Loc loc = Loc::current()) const;
  Variable argmax(const Axis& axis, Loc loc = Loc::current()) const;
  Variable argmax(Loc loc = Loc::current()) const;
  Variable reshape(const Sizes& sizes, Loc loc = Loc::current()) const;
  Variable flatten(Loc loc = Loc::current()) const;
  /// New order of axes; -1 (`newaxis` in words) inserts an axis of size 1.
  Variable dimshuffle(const std::vector<int>& order, Loc loc = Loc::current()) const;
  /// The standard deviation; for programs that say `using namespace croton`, where a bare `std(x)`
  /// would be ambiguous with the namespace std.
  Variable std(const Axis& axis, const VarOptions& options, Loc loc = Loc::current()) const;
  Variable std(const Axis& axis, Loc loc = Loc::current()) const;
  Variable std(Loc loc = Loc::current()) const;

  // For the library itself.
  friend void release(const Node* node);
  const Node* node() const { return node_; }
  int output() const { return output_; }
  bool same(const Variable& other) const {
    return node_ == other.node_ && output_ == other.output_;
  }

 private:
  const Node* node_ = nullptr;
  int output_ = 0;
};

// A comparison is written eq, ne, lt, le, gt, ge; as a C++ condition a symbolic value has no truth.
Variable operator==(const Variable&, const Variable&) = delete;
Variable operator!=(const Variable&, const Variable&) = delete;
Variable operator<(const Variable&, const Variable&) = delete;
Variable operator<=(const Variable&, const Variable&) = delete;
Variable operator>(const Variable&, const Variable&) = delete;
Variable operator>=(const Variable&, const Variable&) = delete;
Variable operator&&(const Variable&, const Variable&) = delete;
Variable operator||(const Variable&, const Variable&) = delete;

template <class T>
concept Symbol = std::derived_from<T, Variable>;

/// What ops take: a symbolic value, a constant array, or a literal; with the place in the user's
/// program where it was given.
class CROTON_API Operand {
 public:
  Operand(const Variable& variable, Loc loc = Loc::current()) : value_(variable), loc_(loc) {}
  Operand(const Array& array, Loc loc = Loc::current()) : value_(array), loc_(loc) {}
  template <Literal T>
  Operand(T literal, Loc loc = Loc::current()) : value_(LiteralValue(literal)), loc_(loc) {}

  bool is_literal() const { return std::holds_alternative<LiteralValue>(value_); }
  const LiteralValue& literal() const { return std::get<LiteralValue>(value_); }
  const Loc& loc() const { return loc_; }

  /// The same, given to an op that the library builds others for; see Loc::named.
  Operand named(std::string_view op) const {
    Operand operand = *this;
    operand.loc_ = loc_.named(op);
    return operand;
  }

  /// The symbolic value; an array becomes a constant, a literal one of its natural dtype
  /// (bool, int64, floatX).
  Variable variable() const;

 private:
  std::variant<Variable, Array, LiteralValue> value_;
  Loc loc_;
};

/// A bound of a Slice: none, an integer, or an integer scalar Variable.
class CROTON_API Bound {
 public:
  Bound(None) {}
  template <Integer T>
  Bound(T value) : value_(static_cast<std::int64_t>(value)) {}
  Bound(const Variable& variable) : value_(variable) {}

  bool is_none() const { return std::holds_alternative<std::monostate>(value_); }
  const std::int64_t* number() const { return std::get_if<std::int64_t>(&value_); }
  const Variable* variable() const { return std::get_if<Variable>(&value_); }

 private:
  std::variant<std::monostate, std::int64_t, Variable> value_;
};

/// Python's start:stop:step. There is no one-argument form: it would mean stop in Python.
struct CROTON_API Slice {
  Slice() = default;
  Slice(Bound start, Bound stop, Bound step = none)
      : start(std::move(start)), stop(std::move(stop)), step(std::move(step)) {}
  Bound start = none;
  Bound stop = none;
  Bound step = none;
};

/// One index of `x(...)`.
class CROTON_API Index {
 public:
  using Value = std::variant<std::int64_t, Slice, Variable, NewAxis, Ellipsis>;

  template <Integer T>
  Index(T value, Loc loc = Loc::current()) : value_(static_cast<std::int64_t>(value)), loc_(loc) {}
  template <std::same_as<bool> T>
  Index(T, Loc = Loc::current()) = delete;
  Index(const Slice& slice, Loc loc = Loc::current()) : value_(slice), loc_(loc) {}
  Index(const Variable& variable, Loc loc = Loc::current()) : value_(variable), loc_(loc) {}
  template <std::same_as<Array> T>
  Index(const T& array, Loc loc = Loc::current())
      : value_(Operand(array, loc).variable()), loc_(loc) {}
  Index(NewAxis, Loc loc = Loc::current()) : value_(NewAxis{}), loc_(loc) {}
  Index(Ellipsis, Loc loc = Loc::current()) : value_(Ellipsis{}), loc_(loc) {}
  Index(std::initializer_list<int> list, Loc loc = Loc::current());

  const Value& value() const { return value_; }
  const Loc& loc() const { return loc_; }

 private:
  Value value_;
  Loc loc_;
};

/// Axes of a reduction: none (all of them), one, or a list; negative ones count from the end.
struct CROTON_API Axis {
  Axis(None) {}
  template <Integer T>
  Axis(T axis) : axes(std::vector<int>{static_cast<int>(axis)}) {}
  Axis(std::initializer_list<int> list) : axes(std::vector<int>(list)) {}
  Axis(std::vector<int> list) : axes(std::move(list)) {}
  std::optional<std::vector<int>> axes;
};

struct ReduceOptions {
  /// Reduced axes stay, with size 1.
  bool keepdims = false;
  /// dtype of the result and of the accumulation.
  std::optional<DType> dtype = {};
  /// bool mask, broadcast against the operand: elements where it is false do not count.
  std::optional<Variable> where = {};
};

/// A size: a number or an integer scalar Variable.
class CROTON_API Size {
 public:
  Size(const Variable& variable) : value_(variable) {}
  template <Integer T>
  Size(T value) : value_(static_cast<std::int64_t>(value)) {}
  const std::int64_t* number() const { return std::get_if<std::int64_t>(&value_); }
  const Variable* variable() const { return std::get_if<Variable>(&value_); }

 private:
  std::variant<std::int64_t, Variable> value_;
};

/// A shape of numbers and integer Variables, or one integer vector Variable that holds it.
class CROTON_API Sizes {
 public:
  Sizes(std::initializer_list<Size> list) : list_(list) {}
  Sizes(const std::vector<std::int64_t>& list) : list_(list.begin(), list.end()) {}
  Sizes(const Shape& shape) : list_(shape.begin(), shape.end()) {}
  template <Symbol T>
  Sizes(const T& vector) : vector_(vector) {}

  bool is_vector() const { return vector_.defined(); }
  const Variable& vector() const { return vector_; }
  const std::vector<Size>& list() const { return list_; }

 private:
  std::vector<Size> list_;
  Variable vector_;
};

}  // namespace croton
