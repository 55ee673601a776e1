#pragma once

#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "croton/export.h"
#include "croton/variable.h"

// Shapes, joining and creation, as in NumPy. Sizes mix numbers and integer scalar Variables, or are
// one integer vector Variable of known length.
namespace croton {

/// Operands in a list: {a, b, 0}, or a vector of Variables.
struct CROTON_API Parts {
  Parts(std::initializer_list<Operand> parts) : list(parts) {}
  Parts(std::vector<Operand> parts) : list(std::move(parts)) {}
  Parts(const std::vector<Variable>& parts, Loc loc = Loc::current()) {
    for (const Variable& part : parts) list.emplace_back(part, loc);
  }
  std::vector<Operand> list;
};

// Axes.
/// A new order of axes; -1 inserts one of size 1. Axes that are left out must have size 1, known
/// when the graph is built.
CROTON_API Variable dimshuffle(const Operand& x, const std::vector<int>& order);
/// Axes reversed, or in the order given; negative ones count from the end.
CROTON_API Variable transpose(const Operand& x, const std::vector<int>& order = {});
CROTON_API Variable swapaxes(const Operand& x, int a, int b);
/// Moves one axis to another place; the others keep their order.
CROTON_API Variable moveaxis(const Operand& x, int source, int destination);
/// Inserts axes of size 1 at these places of the result.
CROTON_API Variable expand_dims(const Operand& x, const Axis& axis);
/// Drops axes, which must have size 1: all those whose size is known to be 1, or those given.
CROTON_API Variable squeeze(const Operand& x, const Axis& axis = none);

// Shapes.
/// The same elements, row-major, in another shape; one size may be -1. A different number of
/// elements is a GraphError when it is known, else a CallError.
CROTON_API Variable reshape(const Operand& x, const Sizes& sizes);
/// One axis with all elements.
CROTON_API Variable flatten(const Operand& x);
CROTON_API Variable ravel(const Operand& x);
/// Repeats along axes whose size is known to be 1, and along new ones in front.
CROTON_API Variable broadcast_to(const Operand& x, const Sizes& sizes);
/// x, whose sizes are known from here on: kAnyDim leaves one open. A clash is a GraphError or,
/// where it shows in the call, a CallError.
CROTON_API Variable specify_shape(const Operand& x, const Shape& sizes);
/// The sizes as an int64 vector.
CROTON_API Variable shape(const Operand& x);
/// The number of elements as an int64 scalar.
CROTON_API Variable size(const Operand& x);

// Joining. Operands are cast to their common dtype.
/// Operands one after the other along an axis; other sizes must agree.
CROTON_API Variable concatenate(const Parts& parts, int axis = 0);
/// The same, along a new axis; all sizes must agree.
CROTON_API Variable stack(const Parts& parts, int axis = 0);
/// The operand `times` times, one after the other, along an axis.
CROTON_API Variable tile(const Operand& x, std::int64_t times, int axis = 0);
/// Each entry along an axis `times` times.
CROTON_API Variable repeat(const Operand& x, std::int64_t times, int axis = 0);

// Creation; floatX where no dtype is given.
CROTON_API Variable zeros(const Sizes& sizes, std::optional<DType> dtype = {},
                          Loc loc = Loc::current());
CROTON_API Variable ones(const Sizes& sizes, std::optional<DType> dtype = {},
                         Loc loc = Loc::current());
/// All elements `value` (a scalar); its dtype where none is given.
CROTON_API Variable full(const Sizes& sizes, const Operand& value, std::optional<DType> dtype = {});
/// x's shape, and its dtype unless one is given.
CROTON_API Variable zeros_like(const Operand& x, std::optional<DType> dtype = {});
CROTON_API Variable ones_like(const Operand& x, std::optional<DType> dtype = {});
CROTON_API Variable full_like(const Operand& x, const Operand& value,
                              std::optional<DType> dtype = {});
/// 0, 1, ... below `stop`: int64 for an integer (a number or a symbolic scalar), floatX for a
/// number with a fraction, unless a dtype is given.
CROTON_API Variable arange(const Operand& stop, std::optional<DType> dtype = {});
/// start, start + step, ... before `stop`. Bounds may be symbolic integers; floating ones must be
/// numbers.
CROTON_API Variable arange(const Operand& start, const Operand& stop, const Operand& step = 1,
                           std::optional<DType> dtype = {});
/// Of x's shape, each element its position along an axis.
CROTON_API Variable iota_like(const Operand& x, int axis, DType dtype = DType::int64);
/// The identity matrix of n rows.
CROTON_API Variable eye(const Size& n, std::optional<DType> dtype = {}, Loc loc = Loc::current());
/// A new last axis of that length: 1 at the place that the integer says, else 0.
CROTON_API Variable one_hot(const Operand& x, const Size& length, std::optional<DType> dtype = {});

// Placement.
/// x on another context; x itself when it was made for that one.
CROTON_API Variable transfer(const Operand& x, std::string_view context);

}  // namespace croton
