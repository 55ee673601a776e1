#pragma once

#include "croton/array.h"
#include "croton/dtype.h"
#include "croton/export.h"
#include "croton/variable.h"

// Elementwise operations, as in NumPy.
//
// Operands broadcast: shapes are aligned at the right, and a size that is known to be 1 when the
// graph is built stretches; other sizes must agree (GraphError, or CallError where they are known
// only in the call). Operands of different dtypes are cast to the promoted one first: an integer
// never widens a float, numbers written in the program take the dtype of what they meet.
// Functions said to "give floats" turn integers and bools into floatX.
namespace croton {

// Arithmetic. On bools, + is "or" and * is "and"; - is a GraphError.
CROTON_API Variable add(const Operand& a, const Operand& b);
CROTON_API Variable sub(const Operand& a, const Operand& b);
CROTON_API Variable mul(const Operand& a, const Operand& b);
/// a / b; gives floats.
CROTON_API Variable true_divide(const Operand& a, const Operand& b);
/// The largest whole number not above a / b. For integers, b = 0 gives 0.
CROTON_API Variable floor_divide(const Operand& a, const Operand& b);
/// The remainder of floor_divide: it has the sign of b. For integers, b = 0 gives 0.
CROTON_API Variable mod(const Operand& a, const Operand& b);
/// a to the power of b. Integer powers wrap around; a negative power of an integer is rounded
/// towards 0, and is a GraphError when the exponent is written as a negative literal.
CROTON_API Variable pow(const Operand& a, const Operand& b);
CROTON_API Variable neg(const Operand& x);
CROTON_API Variable abs(const Operand& x);
/// -1, 0 or 1; NaN for NaN.
CROTON_API Variable sign(const Operand& x);
CROTON_API Variable square(const Operand& x);
/// 1 / x; gives floats.
CROTON_API Variable reciprocal(const Operand& x);

/// The larger operand; NaN if either is. The gradient of a tie goes to `a`.
CROTON_API Variable maximum(const Operand& a, const Operand& b);
/// The smaller operand; NaN if either is. The gradient of a tie goes to `a`.
CROTON_API Variable minimum(const Operand& a, const Operand& b);
/// minimum(maximum(x, low), high): `high` wins where low > high.
CROTON_API Variable clip(const Operand& x, const Operand& low, const Operand& high);

// Rounding; integers stay as they are. The gradient is zero.
CROTON_API Variable floor(const Operand& x);
CROTON_API Variable ceil(const Operand& x);
/// Towards zero.
CROTON_API Variable trunc(const Operand& x);
/// To the nearest whole number; halves go to the even one.
CROTON_API Variable round(const Operand& x);

// Functions that give floats.
CROTON_API Variable sqrt(const Operand& x);
CROTON_API Variable exp(const Operand& x);
CROTON_API Variable exp2(const Operand& x);
/// exp(x) - 1, accurate near 0.
CROTON_API Variable expm1(const Operand& x);
CROTON_API Variable log(const Operand& x);
CROTON_API Variable log2(const Operand& x);
CROTON_API Variable log10(const Operand& x);
/// log(1 + x), accurate near 0.
CROTON_API Variable log1p(const Operand& x);
CROTON_API Variable sin(const Operand& x);
CROTON_API Variable cos(const Operand& x);
CROTON_API Variable tan(const Operand& x);
CROTON_API Variable arcsin(const Operand& x);
CROTON_API Variable arccos(const Operand& x);
CROTON_API Variable arctan(const Operand& x);
/// The angle of the point (x, y), in [-pi, pi].
CROTON_API Variable arctan2(const Operand& y, const Operand& x);
CROTON_API Variable sinh(const Operand& x);
CROTON_API Variable cosh(const Operand& x);
CROTON_API Variable tanh(const Operand& x);
CROTON_API Variable arcsinh(const Operand& x);
CROTON_API Variable arccosh(const Operand& x);
CROTON_API Variable arctanh(const Operand& x);
/// The error function.
CROTON_API Variable erf(const Operand& x);
/// 1 - erf(x), accurate for large x.
CROTON_API Variable erfc(const Operand& x);

// Comparisons give bool. A comparison is never a C++ condition: see where.
CROTON_API Variable lt(const Operand& a, const Operand& b);
CROTON_API Variable le(const Operand& a, const Operand& b);
CROTON_API Variable gt(const Operand& a, const Operand& b);
CROTON_API Variable ge(const Operand& a, const Operand& b);
CROTON_API Variable eq(const Operand& a, const Operand& b);
CROTON_API Variable ne(const Operand& a, const Operand& b);
CROTON_API Variable isnan(const Operand& x);
CROTON_API Variable isinf(const Operand& x);
CROTON_API Variable isfinite(const Operand& x);

// Logic on truth values: of a number, whether it is not 0.
CROTON_API Variable logical_and(const Operand& a, const Operand& b);
CROTON_API Variable logical_or(const Operand& a, const Operand& b);
CROTON_API Variable logical_xor(const Operand& a, const Operand& b);
CROTON_API Variable logical_not(const Operand& x);

// Bits of integers, or of bools; a GraphError for floats.
CROTON_API Variable bitwise_and(const Operand& a, const Operand& b);
CROTON_API Variable bitwise_or(const Operand& a, const Operand& b);
CROTON_API Variable bitwise_xor(const Operand& a, const Operand& b);
CROTON_API Variable bitwise_not(const Operand& x);
/// Integers only; a shift by a negative amount, or by all bits and more, gives 0.
CROTON_API Variable left_shift(const Operand& a, const Operand& b);
/// Integers only; copies of the sign enter from the left. A shift by a negative amount, or by all
/// bits and more, gives 0, or -1 for negative `a`.
CROTON_API Variable right_shift(const Operand& a, const Operand& b);

/// `a` where the condition holds (is not 0), else `b`. No gradient flows to the condition, and
/// none to the branch that was not taken.
CROTON_API Variable where(const Operand& condition, const Operand& a, const Operand& b);

/// x in another dtype. Floats become integers by cutting the fraction off and saturating (NaN gives
/// 0); integers wrap; anything but 0 is true.
CROTON_API Variable cast(const Operand& x, DType dtype);

// x itself, with another gradient.
/// No gradient flows: x counts as disconnected.
CROTON_API Variable disconnected_grad(const Operand& x);
/// The gradient is zero.
CROTON_API Variable zero_grad(const Operand& x);
/// x counts as a constant; the same as zero_grad.
CROTON_API Variable consider_constant(const Operand& x);
/// The gradient is clipped to [low, high].
CROTON_API Variable grad_clip(const Operand& x, double low, double high);
/// The gradient is multiplied by `factor`.
CROTON_API Variable grad_scale(const Operand& x, double factor);

// Other names of the same, as in NumPy.
inline Variable subtract(const Operand& a, const Operand& b) { return sub(a, b); }
inline Variable multiply(const Operand& a, const Operand& b) { return mul(a, b); }
inline Variable divide(const Operand& a, const Operand& b) { return true_divide(a, b); }
inline Variable remainder(const Operand& a, const Operand& b) { return mod(a, b); }
inline Variable power(const Operand& a, const Operand& b) { return pow(a, b); }
inline Variable negative(const Operand& x) { return neg(x); }
inline Variable absolute(const Operand& x) { return abs(x); }

inline Variable operator+(const Operand& a, const Operand& b) { return add(a, b); }
inline Variable operator-(const Operand& a, const Operand& b) { return sub(a, b); }
inline Variable operator*(const Operand& a, const Operand& b) { return mul(a, b); }
inline Variable operator/(const Operand& a, const Operand& b) { return true_divide(a, b); }
inline Variable operator%(const Operand& a, const Operand& b) { return mod(a, b); }
inline Variable operator&(const Operand& a, const Operand& b) { return bitwise_and(a, b); }
inline Variable operator|(const Operand& a, const Operand& b) { return bitwise_or(a, b); }
inline Variable operator^(const Operand& a, const Operand& b) { return bitwise_xor(a, b); }
inline Variable operator<<(const Operand& a, const Operand& b) { return left_shift(a, b); }
inline Variable operator>>(const Operand& a, const Operand& b) { return right_shift(a, b); }
inline Variable operator-(const Operand& x) { return neg(x); }
inline Variable operator~(const Operand& x) { return bitwise_not(x); }

// Arithmetic is symbolic: between Arrays alone it would silently make a graph that nobody runs.
#define CROTON_NO_ARRAY_OPERATOR(symbol)                         \
  Variable operator symbol(const Array&, const Array&) = delete; \
  template <Literal T>                                           \
  Variable operator symbol(const Array&, T) = delete;            \
  template <Literal T>                                           \
  Variable operator symbol(T, const Array&) = delete;
CROTON_NO_ARRAY_OPERATOR(+)
CROTON_NO_ARRAY_OPERATOR(-)
CROTON_NO_ARRAY_OPERATOR(*)
CROTON_NO_ARRAY_OPERATOR(/)
CROTON_NO_ARRAY_OPERATOR(%)
CROTON_NO_ARRAY_OPERATOR(&)
CROTON_NO_ARRAY_OPERATOR(|)
CROTON_NO_ARRAY_OPERATOR(^)
CROTON_NO_ARRAY_OPERATOR(<<)
CROTON_NO_ARRAY_OPERATOR(>>)
#undef CROTON_NO_ARRAY_OPERATOR
Variable operator-(const Array&) = delete;
Variable operator~(const Array&) = delete;

}  // namespace croton
