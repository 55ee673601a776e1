#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
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
/// Moves one axis to another place, or several; the others keep their order.
CROTON_API Variable moveaxis(const Operand& x, int source, int destination);
CROTON_API Variable moveaxis(const Operand& x, const std::vector<int>& source,
                             const std::vector<int>& destination);
/// Inserts axes of size 1 at these places of the result.
CROTON_API Variable expand_dims(const Operand& x, const Axis& axis);
/// Drops axes, which must have size 1: all those whose size is known to be 1, or those given.
CROTON_API Variable squeeze(const Operand& x, const Axis& axis = none);
/// At least so many axes; new ones as NumPy puts them: (1, n) for a vector with two axes, and
/// (1, n, 1) with three, (m, n, 1) for a matrix.
CROTON_API Variable atleast_1d(const Operand& x);
CROTON_API Variable atleast_2d(const Operand& x);
CROTON_API Variable atleast_3d(const Operand& x);
/// New axes of size 1 in front of, behind, or among those of x.
CROTON_API Variable shape_padleft(const Operand& x, int count = 1);
CROTON_API Variable shape_padright(const Operand& x, int count = 1);
CROTON_API Variable shape_padaxis(const Operand& x, int axis);

// Order of entries.
/// Entries in reverse, along all axes or those given.
CROTON_API Variable flip(const Operand& x, const Axis& axis = none);
/// The same along axis 1, along axis 0.
CROTON_API Variable fliplr(const Operand& x);
CROTON_API Variable flipud(const Operand& x);
/// k quarter turns in the plane of two axes, from the first towards the second.
CROTON_API Variable rot90(const Operand& x, int k = 1, int first = 0, int second = 1);
/// Entries moved on along axes, those at an end coming in at the other: a shift for each axis, or
/// one for all of them; with no axis in the flattened operand. Shifts may be negative or symbolic.
CROTON_API Variable roll(const Operand& x, const Sizes& shifts, const Axis& axis = none);
template <Integer T>
Variable roll(const Operand& x, T shift, const Axis& axis = none) {
  return roll(x, Sizes{Size(shift)}, axis);
}

// Shapes.
/// The same elements, row-major, in another shape; one size may be -1. A different number of
/// elements is a GraphError when it is known, else a CallError.
CROTON_API Variable reshape(const Operand& x, const Sizes& sizes);
/// One axis with all elements.
CROTON_API Variable flatten(const Operand& x);
/// The last axes as one, so that `ndim` are left.
CROTON_API Variable flatten(const Operand& x, int ndim);
CROTON_API Variable ravel(const Operand& x);
/// Repeats along axes whose size is known to be 1, and along new ones in front.
CROTON_API Variable broadcast_to(const Operand& x, const Sizes& sizes);
/// Each operand in the shape to which they broadcast together; dtypes stay.
CROTON_API std::vector<Variable> broadcast_arrays(const Parts& parts);
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
/// Joined along axis 1 (vectors along axis 0), along axis 0 as rows, along axis 2; vectors as
/// columns of a matrix. As in NumPy.
CROTON_API Variable hstack(const Parts& parts);
CROTON_API Variable vstack(const Parts& parts);
CROTON_API Variable dstack(const Parts& parts);
CROTON_API Variable column_stack(const Parts& parts);

// Copies.
/// The operand laid side by side, `counts[k]` times along axis k; counts are aligned at the right,
/// and where there are more of them than axes, new axes come in front.
CROTON_API Variable tile(const Operand& x, const Sizes& counts);
/// The operand `times` times, one after the other, along one axis.
CROTON_API Variable tile_axis(const Operand& x, const Size& times, int axis);
template <Integer T>
Variable tile(const Operand& x, T times) {
  return tile(x, Sizes{Size(times)});
}
template <Integer T>
Variable tile(const Operand& x, T times, int axis) {
  return tile_axis(x, Size(times), axis);
}
/// Each entry along an axis (with none: of the flattened operand) so many times: an integer,
/// or a vector with a count for each entry; a count must not be negative.
CROTON_API Variable repeat(const Operand& x, const Operand& counts, const Axis& axis = none);

// Parts.
/// Parts of these sizes along an axis, one after the other. A size may be 0 or symbolic; their sum
/// must be that of the axis: GraphError where both are known, else CallError.
CROTON_API std::vector<Variable> split(const Operand& x, const Sizes& sizes, int axis = 0);
CROTON_API std::vector<Variable> split_evenly(const Operand& x, std::int64_t parts, int axis = 0);
/// Parts of equal size; the size of the axis must be a multiple.
template <Integer T>
std::vector<Variable> split(const Operand& x, T parts, int axis = 0) {
  return split_evenly(x, static_cast<std::int64_t>(parts), axis);
}
/// Parts of about equal size: the first ones are longer by one where the axis is no multiple.
CROTON_API std::vector<Variable> array_split(const Operand& x, std::int64_t parts, int axis = 0);

// Borders.
enum class PadMode : std::uint8_t {
  constant,     ///< the given values
  edge,         ///< the entry at the edge
  linear_ramp,  ///< from the given values at the outside to the entry at the edge
  maximum,      ///< of the entries along the axis, or of `stat_length` of them next to the edge
  mean,         ///< the same, rounded for integers
  median,       ///< the same, rounded for integers
  minimum,      ///< the same
  reflect,      ///< mirrored at the entry at the edge
  symmetric,    ///< mirrored behind it
  wrap,         ///< from the other end
  empty,        ///< whatever; so far zeros
};

/// How much comes before and behind each axis: one number for all, one pair for all axes, or a
/// pair an axis. Numbers or symbolic integers.
struct PadWidths {
  template <Integer T>
  PadWidths(T width) : pairs{{Size(width), Size(width)}} {}
  PadWidths(std::initializer_list<std::pair<Size, Size>> list) : pairs(list) {}
  PadWidths(std::vector<std::pair<Size, Size>> list) : pairs(std::move(list)) {}
  std::vector<std::pair<Size, Size>> pairs;
};

struct PadOptions {
  /// constant and linear_ramp: the values before and behind, one pair for all axes or one an axis;
  /// scalars, which may be symbolic.
  std::vector<std::pair<Operand, Operand>> values = {{0, 0}};
  /// maximum, mean, median, minimum: how many entries count on each side; all of them where none is
  /// given.
  std::vector<std::pair<Size, Size>> stat_length = {};
};

/// x with a border, one axis after the other as in NumPy.
CROTON_API Variable pad(const Operand& x, const PadWidths& widths, PadMode mode = PadMode::constant,
                        const PadOptions& options = {});

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
/// start, start + step, ... before `stop`. Bounds and the step may be symbolic integers; floating
/// ones must be numbers.
CROTON_API Variable arange(const Operand& start, const Operand& stop, const Operand& step = 1,
                           std::optional<DType> dtype = {});
/// `count` values from start to stop in equal steps, along a new first axis; without `endpoint` the
/// last one is a step before stop. Bounds may be arrays, which broadcast. floatX where no bound is
/// symbolic and no dtype is given; whole dtypes are rounded down.
CROTON_API Variable linspace(const Operand& start, const Operand& stop, const Size& count = 50,
                             bool endpoint = true, std::optional<DType> dtype = {});
/// base to the power of linspace.
CROTON_API Variable logspace(const Operand& start, const Operand& stop, const Size& count = 50,
                             double base = 10, bool endpoint = true,
                             std::optional<DType> dtype = {});
/// From start to stop with a constant ratio; both have the same sign and are not 0.
CROTON_API Variable geomspace(const Operand& start, const Operand& stop, const Size& count = 50,
                              bool endpoint = true, std::optional<DType> dtype = {});
/// The coordinates of a grid, one array for each vector. As in NumPy the first two axes are swapped
/// unless `matrix_order` ("ij"); `sparse` leaves sizes of 1 that broadcast to the grid.
CROTON_API std::vector<Variable> meshgrid(const Parts& parts, bool matrix_order = false,
                                          bool sparse = false);
/// The coordinates of the grid of these ranges, each with a stop; `ogrid` leaves sizes of 1.
CROTON_API std::vector<Variable> mgrid(const std::vector<Slice>& slices, Loc loc = Loc::current());
CROTON_API std::vector<Variable> ogrid(const std::vector<Slice>& slices, Loc loc = Loc::current());
/// Of x's shape, each element its position along an axis.
CROTON_API Variable iota_like(const Operand& x, int axis, DType dtype = DType::int64);
/// A new axis of that length: 1 at the place that the integer says, else 0.
CROTON_API Variable one_hot(const Operand& x, const Size& length, std::optional<DType> dtype = {},
                            int axis = -1);

// Diagonals and triangles.
/// 1 where column - row == k, else 0: of n rows and columns, or of other numbers of them.
CROTON_API Variable eye(const Size& n, std::optional<DType> dtype = {}, Loc loc = Loc::current());
CROTON_API Variable eye(const Size& rows, const Size& columns, const Operand& k = 0,
                        std::optional<DType> dtype = {}, Loc loc = Loc::current());
/// The same of a matrix's shape and, unless one is given, dtype.
CROTON_API Variable identity_like(const Operand& x, std::optional<DType> dtype = {});
/// 1 where column - row <= k, else 0.
CROTON_API Variable tri(const Size& rows, const Size& columns, const Operand& k = 0,
                        std::optional<DType> dtype = {}, Loc loc = Loc::current());
/// x where column - row <= k, else 0, in the matrices of the last two axes; k may be symbolic.
CROTON_API Variable tril(const Operand& x, const Operand& k = 0);
/// x where column - row >= k, else 0.
CROTON_API Variable triu(const Operand& x, const Operand& k = 0);
/// The entries with the same place along two axes, shifted along the second one by `offset`, as a
/// new last axis.
CROTON_API Variable diagonal(const Operand& x, std::int64_t offset = 0, int axis1 = 0,
                             int axis2 = 1);
/// The last axis as the diagonal of two, with 0 elsewhere; they stand where the axes say.
CROTON_API Variable alloc_diag(const Operand& x, std::int64_t offset = 0, int axis1 = -2,
                               int axis2 = -1);
/// The diagonal of a matrix, or the matrix with a vector as its diagonal.
CROTON_API Variable diag(const Operand& x, std::int64_t offset = 0);
/// The sum of a diagonal.
CROTON_API Variable trace(const Operand& x, std::int64_t offset = 0, int axis1 = 0, int axis2 = 1);
/// x with the value (a scalar) where all positions are equal.
CROTON_API Variable fill_diagonal(const Operand& x, const Operand& value);
/// The same in a matrix where column - row == offset.
CROTON_API Variable fill_diagonal_offset(const Operand& x, const Operand& value,
                                         std::int64_t offset);

// Functions given by samples; floats.
/// The integral over an axis by trapezoids between samples at the places x (a vector, or of y's
/// shape), or `dx` apart.
CROTON_API Variable trapezoid(const Operand& y, const std::optional<Variable>& x = {},
                              double dx = 1, int axis = -1);
/// Values at x between `values` at increasing `places`, on straight lines; beyond them `left` and
/// `right`, else the first and the last value.
CROTON_API Variable interp(const Operand& x, const Operand& places, const Operand& values,
                           const std::optional<Variable>& left = {},
                           const std::optional<Variable>& right = {});

// Placement.
/// x on another context; x itself when it was made for that one.
CROTON_API Variable transfer(const Operand& x, std::string_view context);

}  // namespace croton
