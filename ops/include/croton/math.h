#pragma once

#include <optional>
#include <utility>

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
/// a / b without its fraction; for integers, b = 0 gives 0.
CROTON_API Variable trunc_divide(const Operand& a, const Operand& b);
/// The remainder of trunc_divide, as C's fmod: it has the sign of a. For integers, b = 0 gives 0.
CROTON_API Variable fmod(const Operand& a, const Operand& b);
/// {floor_divide(a, b), mod(a, b)}.
CROTON_API std::pair<Variable, Variable> divmod(const Operand& a, const Operand& b);
/// The smallest whole number not below a / b; for integers, b = 0 gives 0.
CROTON_API Variable ceil_intdiv(const Operand& a, const Operand& b);
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
/// minimum(maximum(x, low), high): `high` wins where low > high, as in NumPy.
CROTON_API Variable clip(const Operand& x, const Operand& low, const Operand& high);
/// x with NaN replaced by `nan`, and infinities by the largest and smallest finite numbers or the
/// numbers given. Integers stay as they are.
CROTON_API Variable nan_to_num(const Operand& x, double nan = 0, std::optional<double> posinf = {},
                               std::optional<double> neginf = {});
/// |a| with the sign of b, where NaN counts as positive; gives floats. The gradient of a is 0 at 0,
/// that of b is 0.
CROTON_API Variable copysign(const Operand& a, const Operand& b);
/// The number of their common dtype that comes next to a on the way to b, and b where they are
/// equal; gives floats. The gradient of a is 1, that of b is 0.
CROTON_API Variable nextafter(const Operand& a, const Operand& b);
/// sqrt(a^2 + b^2) without overflow, infinite where either is; gives floats. The gradient at the
/// origin is 0.
CROTON_API Variable hypot(const Operand& a, const Operand& b);

// Rounding; integers stay as they are. The gradient is zero.
CROTON_API Variable floor(const Operand& x);
CROTON_API Variable ceil(const Operand& x);
/// Towards zero.
CROTON_API Variable trunc(const Operand& x);
/// To the nearest whole number; halves go to the even one.
CROTON_API Variable round(const Operand& x);
/// To the nearest whole number; halves go away from zero.
CROTON_API Variable round_half_away_from_zero(const Operand& x);
/// As round, but gives floats.
CROTON_API Variable rint(const Operand& x);

// Functions that give floats.
CROTON_API Variable sqrt(const Operand& x);
/// The cube root, of negative numbers too.
CROTON_API Variable cbrt(const Operand& x);
CROTON_API Variable exp(const Operand& x);
CROTON_API Variable exp2(const Operand& x);
/// exp(x) - 1, accurate near 0.
CROTON_API Variable expm1(const Operand& x);
CROTON_API Variable log(const Operand& x);
CROTON_API Variable log2(const Operand& x);
CROTON_API Variable log10(const Operand& x);
/// log(1 + x), accurate near 0.
CROTON_API Variable log1p(const Operand& x);
/// log(exp(a) + exp(b)), without overflow.
CROTON_API Variable logaddexp(const Operand& a, const Operand& b);
/// log2(2^a + 2^b), without overflow.
CROTON_API Variable logaddexp2(const Operand& a, const Operand& b);
/// log(1 - exp(x)), accurate for all x <= 0; NaN above.
CROTON_API Variable log1mexp(const Operand& x);
/// x * log(x), and 0 for x = 0, with the gradient 0 there.
CROTON_API Variable xlogx(const Operand& x);
/// x * log(y), and 0 for x = 0 unless y is NaN. Where both are 0 the gradients are 0.
CROTON_API Variable xlogy(const Operand& x, const Operand& y);
/// x * log(1 + y), and 0 for x = 0 unless y is NaN.
CROTON_API Variable xlog1py(const Operand& x, const Operand& y);
/// x * pi / 180 and its inverse.
CROTON_API Variable deg2rad(const Operand& x);
CROTON_API Variable rad2deg(const Operand& x);
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
/// exp(x^2) erfc(x), without underflow.
CROTON_API Variable erfcx(const Operand& x);
/// The inverses of erf and erfc; NaN outside [-1, 1] and [0, 2].
CROTON_API Variable erfinv(const Operand& x);
CROTON_API Variable erfcinv(const Operand& y);
/// The quantile of the normal distribution: the x below which a probability p lies.
CROTON_API Variable ndtri(const Operand& p);
/// The gamma function; NaN at negative whole numbers, infinite at 0.
CROTON_API Variable gamma(const Operand& x);
/// log(|gamma(x)|); infinite at 0 and negative whole numbers.
CROTON_API Variable gammaln(const Operand& x);
/// The derivative of gammaln; NaN at negative whole numbers.
CROTON_API Variable digamma(const Operand& x);
/// The derivative of digamma.
CROTON_API Variable trigamma(const Operand& x);
/// The derivative of order n of digamma, 0 <= n <= 100; others are a GraphError.
CROTON_API Variable polygamma(int n, const Operand& x);
/// The regularised incomplete gamma functions, lower and upper, for a, x >= 0. Only x has a
/// gradient: asking for that of `a` is a GraphError.
CROTON_API Variable gammainc(const Operand& a, const Operand& x);
CROTON_API Variable gammaincc(const Operand& a, const Operand& x);
/// They times gamma(a).
CROTON_API Variable gammal(const Operand& a, const Operand& x);
CROTON_API Variable gammau(const Operand& a, const Operand& x);
/// The probability of more than x in a chi-squared distribution of k degrees of freedom.
CROTON_API Variable chi2sf(const Operand& x, const Operand& k);
/// log(gamma(a) gamma(b) / gamma(a + b)), for a, b >= 0.
CROTON_API Variable betaln(const Operand& a, const Operand& b);
/// The regularised incomplete beta function, for a, b > 0 and x in [0, 1]; accurate for a and b up
/// to about 1000. Only x has a gradient: asking for those of `a` and `b` is a GraphError.
CROTON_API Variable betainc(const Operand& a, const Operand& b, const Operand& x);
/// Modified Bessel functions of the first kind, orders 0 and 1; and exp(-|x|) times them.
CROTON_API Variable i0(const Operand& x);
CROTON_API Variable i1(const Operand& x);
CROTON_API Variable i0e(const Operand& x);
CROTON_API Variable i1e(const Operand& x);
/// Bessel functions of the first kind, orders 0 and 1.
CROTON_API Variable j0(const Operand& x);
CROTON_API Variable j1(const Operand& x);
/// Bessel functions of the second kind, orders 0 and 1; -inf at 0, NaN below.
CROTON_API Variable y0(const Operand& x);
CROTON_API Variable y1(const Operand& x);

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
/// Whether the sign is negative, that of -0 too; false for NaN, whose sign means nothing.
CROTON_API Variable signbit(const Operand& x);
/// Whether |a - b| <= atol + rtol * |b|, or both are the same infinity, or, with `equal_nan`, NaN.
CROTON_API Variable isclose(const Operand& a, const Operand& b, double rtol = 1e-5,
                            double atol = 1e-8, bool equal_nan = false);
/// Whether low <= x <= high; an open end takes < there.
CROTON_API Variable inrange(const Operand& x, const Operand& low, const Operand& high,
                            bool open_low = false, bool open_high = false);

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
inline Variable fix(const Operand& x) { return trunc(x); }
inline Variable round_half_to_even(const Operand& x) { return round(x); }
inline Variable psi(const Operand& x) { return digamma(x); }
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
