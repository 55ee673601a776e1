#pragma once

#include <cstdint>
#include <vector>

#include "croton/export.h"
#include "croton/tensor.h"
#include "croton/variable.h"

// Reading and writing parts of a value; x(...) itself is a method of Variable. An index out of
// bounds is a GraphError where it is known when the graph is built, else a CallError.
//
// x(mask), with a bool array over the first axes, takes the entries where it is true. How many
// there are follows from values: functions run in parts where the mask is no constant.
namespace croton {

// Reading.
/// What an index out of bounds means; in bounds negative ones count from the end.
enum class IndexMode : std::uint8_t {
  raise,  ///< an error
  wrap,   ///< its remainder by the size
  clip,   ///< the nearest entry; negative ones are the first
};

/// Entries of x at integer indices, along an axis or, with none, in the flattened operand: the axes
/// of `indices` take its place; a scalar drops it. Negative indices count from the end.
CROTON_API Variable take(const Operand& x, const Operand& indices, const Axis& axis = none,
                         IndexMode mode = IndexMode::raise);

/// For each place of `indices` the entry of x along the axis that it names; the other axes go
/// along. Both have the same number of axes; a size known to be 1 broadcasts.
CROTON_API Variable take_along_axis(const Operand& x, const Operand& indices, int axis = -1);
/// The same, where `indices` may be shorter than x along the other axes: the rest is left out.
CROTON_API Variable gather(const Operand& x, const Operand& indices, int axis);
/// The parts of x whose places are the vectors along the last axis of `indices`: they index the
/// axes of x from `batch` on. The first `batch` axes of both go along.
CROTON_API Variable gather_nd(const Operand& x, const Operand& indices, int batch = 0);
/// Entries along an axis (with none: of the flattened operand) where the condition, a vector, is
/// not 0; what it is too short for is left out.
CROTON_API Variable compress(const Operand& condition, const Operand& x, const Axis& axis = none);
/// At each place an entry of the choice that the integer there names; all broadcast together.
CROTON_API Variable choose(const Operand& x, const Parts& choices,
                           IndexMode mode = IndexMode::raise);
/// The flattened operand where the condition, of as many elements or fewer, is not 0.
CROTON_API Variable extract(const Operand& condition, const Operand& x);
/// The places of entries that are not 0, in their order: an int64 vector for each axis. NaN is not
/// 0.
CROTON_API std::vector<Variable> nonzero(const Operand& x);
/// The same in the flattened operand.
CROTON_API Variable flatnonzero(const Operand& x);
/// The same as rows of a matrix.
CROTON_API Variable argwhere(const Operand& x);
/// The entries that are not 0.
CROTON_API Variable nonzero_values(const Operand& x);

struct UniqueResult {
  Variable values;   ///< in order, each once; a vector
  Variable index;    ///< where in the flattened operand each is first: int64
  Variable inverse;  ///< for each element the place of its value: int64, in the operand's shape
  Variable counts;   ///< how often each is there: int64
};
/// The different elements; NaN equals NaN. What is not used is not computed.
CROTON_API UniqueResult unique(const Operand& x);

// Writing. `part` is the result of indexing: set_subtensor(x(0), v) is x with x(0) replaced. The
// value broadcasts to the part's shape, and its dtype must not lose anything in x's.
/// x with a part replaced. Where an index occurs twice the last one wins.
CROTON_API Variable set_subtensor(const Operand& part, const Operand& value);
/// The same, adding the value; what is given for an index that occurs twice is added twice.
CROTON_API Variable inc_subtensor(const Operand& part, const Operand& value);
/// The same, multiplying by it. The gradient is right at zeros; the second one counts them as
/// fixed.
CROTON_API Variable mul_subtensor(const Operand& part, const Operand& value);
/// The same with the larger, the smaller one; NaN wins. The gradient goes to all that are equal to
/// the result.
CROTON_API Variable max_subtensor(const Operand& part, const Operand& value);
CROTON_API Variable min_subtensor(const Operand& part, const Operand& value);

/// What a write does with the entry that is there.
enum class WriteMode : std::uint8_t { set, add, mul, max, min };

/// x with each value written to the entry along the axis that its index names. `values` broadcast
/// to the shape of `indices`, which may be shorter than x along the other axes.
CROTON_API Variable scatter(const Operand& x, const Operand& indices, const Operand& values,
                            int axis = 0, WriteMode mode = WriteMode::set);
/// x with values written to the parts whose places are the vectors along the last axis of
/// `indices`.
CROTON_API Variable scatter_nd(const Operand& x, const Operand& indices, const Operand& values,
                               WriteMode mode = WriteMode::set);
/// The counterpart of take_along_axis: x with the values put where it reads.
CROTON_API Variable put_along_axis(const Operand& x, const Operand& indices, const Operand& values,
                                   int axis = -1);

// Indices.
/// Places in a flattened array of these sizes as places along its axes; as in NumPy, negative ones
/// and those beyond its end are CallErrors.
CROTON_API std::vector<Variable> unravel_index(const Operand& indices, const Sizes& sizes);
/// Places along axes of these sizes as places in the flattened array.
CROTON_API Variable ravel_multi_index(const Parts& indices, const Sizes& sizes,
                                      IndexMode mode = IndexMode::raise);
/// For a permutation of 0, 1, ... the one that undoes it, along the last axis.
CROTON_API Variable inverse_permutation(const Operand& permutation);
/// The entries of the last axis in the order of a permutation, or in that which undoes it; the
/// other axes broadcast.
CROTON_API Variable permute_row_elements(const Operand& x, const Operand& permutation,
                                         bool inverse = false);

}  // namespace croton
