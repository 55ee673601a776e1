#pragma once

#include <string_view>
#include <vector>

#include "croton/export.h"
#include "croton/tensor.h"
#include "croton/variable.h"

// Products of matrices, as in NumPy. Operands are cast to their common dtype, which the result has;
// integers wrap, bools are a GraphError. float16 and bfloat16 are multiplied in float32 and rounded
// once.
namespace croton {

/// Sums of products over the last axis of `a` and the last but one of `b` (its only one where it is
/// a vector); the other axes of `a`, then those of `b`, are the result's. With a scalar a product.
CROTON_API Variable dot(const Operand& a, const Operand& b);

/// Matrix products over the last two axes; the axes in front broadcast. A vector is one row on the
/// left, one column on the right, and its axis is not in the result.
CROTON_API Variable matmul(const Operand& a, const Operand& b);

/// a[i] * b[j], of two vectors.
CROTON_API Variable outer(const Operand& a, const Operand& b);

/// Sums of products over the last `axes` axes of `a` and the first `axes` of `b`.
CROTON_API Variable tensordot(const Operand& a, const Operand& b, int axes = 2);
/// The same over pairs of axes: axes_a[i] of `a` with axes_b[i] of `b`.
CROTON_API Variable tensordot(const Operand& a, const Operand& b, const std::vector<int>& axes_a,
                              const std::vector<int>& axes_b);

/// Sums of products by labels of axes: einsum("bij,bjk->bik", {a, b}). Without "->" the result has
/// the labels that occur once, in alphabetical order. A label that one operand has twice is its
/// diagonal, "..." stands for axes that broadcast; so does a size known to be 1. With several
/// operands, pairs with small results are joined first.
CROTON_API Variable einsum(std::string_view subscripts, const Parts& operands);

/// Products of vectors with vectors, of matrices with vectors and of vectors with matrices, in the
/// last axes; the axes in front broadcast.
CROTON_API Variable vecdot(const Operand& a, const Operand& b);
CROTON_API Variable matvec(const Operand& a, const Operand& b);
CROTON_API Variable vecmat(const Operand& a, const Operand& b);

/// dot for each entry along axis 0 of both operands.
CROTON_API Variable batched_dot(const Operand& a, const Operand& b);
/// tensordot for each entry along axis 0 of both; axes are counted with axis 0.
CROTON_API Variable batched_tensordot(const Operand& a, const Operand& b,
                                      const std::vector<int>& axes_a,
                                      const std::vector<int>& axes_b);

}  // namespace croton
