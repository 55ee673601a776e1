// Sorting on CPUs, along an axis: equal elements in their order, NaN as the largest.
//
// Attributes: axis (not negative), descending (0 or 1). Operands: the result and one that is not
// used here, both of x's shape, then x. The result of "sort" is of x's dtype, that of "argsort"
// the places of the elements (int64).
#pragma once

#include "runtime/library.h"

namespace croton::cpu {

/// The entries of the library table.
extern const LibraryFunction kSort;
extern const LibraryFunction kArgsort;

}  // namespace croton::cpu
