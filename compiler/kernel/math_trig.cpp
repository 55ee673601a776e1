// Trigonometric functions and their inverses.
#include <cmath>

#include "compiler/kernel/coefficients.h"
#include "compiler/kernel/math.h"
#include "compiler/kernel/math_parts.h"

namespace croton::kernel {
namespace {

// Beyond it the nearest multiple of pi/2 is not an exact double.
constexpr double kLargest = 0x1p50;

// x = quadrant * pi/2 + rest + tail, |rest| < pi/4 (1 + 2^-20).
struct Reduced {
  Expr quadrant;  ///< of bits_type; its two lowest bits count
  Expr rest;
  Expr tail;
  Expr sine;    ///< of the rest
  Expr cosine;  ///< of the rest
};

// NaN beyond kLargest and for infinities.
Expr within_range(const Format& f, Expr x) {
  return f.b.select(f.abs(x) <= f.number(kLargest), x, f.nan());
}

Expr nearest_multiple(Builder& b, Expr x, Expr& bits) {
  const Expr magic = b.constant(DType::float64, 0x1.8p52);
  const Expr shifted = b.fma(x, b.constant(DType::float64, kTwoOverPi[0]), magic);
  bits = b.bitcast(shifted, DType::int64);
  return shifted - magic;
}

// In float64: exact enough for every x in range.
Reduced reduce_single(const Format& f, Expr x) {
  Builder& b = f.b;
  const auto part = [&](int i) { return b.constant(DType::float64, -kHalfPi[i]); };
  const Expr wide = b.cast(within_range(f, x), DType::float64);
  Reduced r;
  Expr bits;
  const Expr n = nearest_multiple(b, wide, bits);
  r.quadrant = b.cast(bits, DType::int32);
  const Expr rest = b.fma(n, part(1), b.fma(n, part(0), wide));
  r.rest = b.cast(rest, DType::float32);
  r.tail = b.cast(rest - b.cast(r.rest, DType::float64), DType::float32);
  return r;
}

// The first step is exact: the difference is a multiple of the last bit of pi/2's first part, and
// small. The rest carries the rounding errors of the other steps along in the tail.
Reduced reduce_double(const Format& f, Expr x) {
  Builder& b = f.b;
  const Expr inside = within_range(f, x);
  Reduced r;
  const Expr n = nearest_multiple(b, inside, r.quadrant);
  const Expr first = b.fma(n, f.number(-kHalfPi[0]), inside);
  const Expr step = n * f.number(kHalfPi[1]);
  r.rest = first - step;
  const Expr step_error = b.fma(n, f.number(kHalfPi[1]), -step);
  const Expr lost = first - r.rest - step - step_error;
  r.tail = b.fma(n, f.number(-kHalfPi[2]), lost);
  return r;
}

Reduced reduce(const Format& f, Expr x) {
  Reduced r = f.single() ? reduce_single(f, x) : reduce_double(f, x);
  Builder& b = f.b;
  const Expr square = r.rest * r.rest;
  const Expr cube = r.rest * square;
  const Expr sine = f.polynomial(square, kSinF32, kSinF64);
  const Expr cosine = f.polynomial(square, kCosF32, kCosF64);
  const Expr one = f.number(1);
  const Expr half = f.number(-0.5);
  const Expr upper = b.fma(square, half, one);
  const Expr lost = b.fma(square, half, one - upper);
  r.sine = r.rest + b.fma(cube, sine, r.tail);
  r.cosine = upper + b.fma(square * square, cosine, b.fma(r.rest, -r.tail, lost));
  return r;
}

// The sine of quadrant * pi/2 + rest.
Expr sine_of(const Format& f, const Reduced& r, Expr quadrant) {
  const Expr odd = (quadrant & f.integer(1)) != f.integer(0);
  const Expr value = f.b.select(odd, r.cosine, r.sine);
  const Expr sign = (quadrant & f.integer(2)) << f.integer(8 * size_of(f.dtype) - 2);
  return f.from_bits(f.to_bits(value) ^ sign);
}

// x where sin(x), tan(x) round to it; also keeps the sign of zero.
Expr or_tiny(const Format& f, Expr x, Expr y) {
  return f.b.select(f.abs(x) < f.number(0x1p-13, 0x1p-28), x, y);
}

// asin(w) with w = x up to 1/2 and sqrt((1 - x)/2) above, for x = |argument|.
struct ArcsinParts {
  Expr big;
  Expr value;
};
ArcsinParts arcsin_parts(const Format& f, Expr size) {
  const Expr big = f.number(0.5) < size;
  const Expr half = f.number(0.5);
  const Expr square = f.b.select(big, f.b.fma(size, -half, half), size * size);
  const Expr w = f.b.select(big, f.b.unary(Unary::sqrt, square), size);
  const Expr p = f.polynomial(square, kArcsinF32, kArcsinF64);
  return {big, f.b.fma(w * square, p, w)};
}

constexpr double kQuarterPi[] = {kHalfPi[0] / 2, kHalfPi[1] / 2};
constexpr double kTanPiOver8 = 0.41421356237309503;  // sqrt(2) - 1
constexpr double kTan3PiOver8 = 2.414213562373095;   // sqrt(2) + 1

// k * pi/4 + sign * atan(numerator / denominator), for a quotient within +-tan(pi/8).
Expr arctan_of(const Format& f, Expr numerator, Expr denominator, Expr k, Expr sign) {
  const Expr t = numerator / denominator;
  const Expr square = t * t;
  const Expr rest = f.b.fma(t * square, f.polynomial(square, kArctanF32, kArctanF64), t);
  const auto [high, low] = f.split(kQuarterPi, 3);
  return f.b.fma(k, high, f.b.fma(k, low, rest * sign));
}

}  // namespace

Expr sin(Expr x) {
  const Format f(x);
  const Reduced r = reduce(f, x);
  return or_tiny(f, x, sine_of(f, r, r.quadrant));
}

Expr cos(Expr x) {
  const Format f(x);
  const Reduced r = reduce(f, x);
  return sine_of(f, r, r.quadrant + f.integer(1));
}

Expr tan(Expr x) {
  const Format f(x);
  const Reduced r = reduce(f, x);
  const Expr odd = (r.quadrant & f.integer(1)) != f.integer(0);
  const Expr over = f.b.select(odd, -r.cosine, r.sine);
  const Expr under = f.b.select(odd, r.sine, r.cosine);
  return or_tiny(f, x, over / under);
}

Expr arcsin(Expr x) {
  const Format f(x);
  const auto [big, value] = arcsin_parts(f, f.abs(x));
  const auto [high, low] = f.split(kHalfPi, 0);
  const Expr above = high - (value + value - low);
  return f.with_sign(f.b.select(big, above, value), x);
}

Expr arccos(Expr x) {
  const Format f(x);
  const auto [big, value] = arcsin_parts(f, f.abs(x));
  const auto [high, low] = f.split(kHalfPi, 0);
  const Expr negative = x < f.number(0);
  const Expr twice = value + value;
  const Expr outer = f.b.select(negative, high + high - (twice - (low + low)), twice);
  const Expr inner = high - (f.b.select(negative, -value, value) - low);
  return f.b.select(big, outer, inner);
}

Expr arctan(Expr x) {
  const Format f(x);
  const Expr size = f.abs(x);
  const Expr one = f.number(1);
  const Expr far = f.number(kTan3PiOver8) < size;
  const Expr middle = f.number(kTanPiOver8) < size;
  const Expr over = f.b.select(far, -one, f.b.select(middle, size - one, size));
  const Expr under = f.b.select(far, size, f.b.select(middle, size + one, one));
  const Expr k = f.b.select(far, f.number(2), f.b.select(middle, one, f.number(0)));
  return f.with_sign(arctan_of(f, over, under, k, one), x);
}

Expr arctan2(Expr y, Expr x) {
  const Format f(x);
  Builder& b = f.b;
  const Expr zero = f.number(0);
  const Expr one = f.number(1);
  const Expr ay = f.abs(y);
  const Expr ax = f.abs(x);
  const Expr steep = ax < ay;
  Expr less = b.select(steep, ax, ay);
  Expr more = b.select(steep, ay, ax);
  // Two infinities are as two ones; two zeros give 0 / 1.
  const Expr infinite = (less == f.infinity()) & (more == f.infinity());
  less = b.select(infinite, one, less);
  more = b.select(infinite, one, b.select(more == zero, one, more));
  // Halved where the sum could overflow.
  const Expr middle = more * f.number(kTanPiOver8) < less;
  const Expr scale = b.select(one < more, f.number(0.5), one);
  const Expr a = less * scale;
  const Expr c = more * scale;
  const Expr over = b.select(middle, a - c, less);
  const Expr under = b.select(middle, a + c, more);
  const Expr left = f.to_bits(x) < f.integer(0);
  Expr k = b.select(middle, one, zero);
  k = b.select(steep, f.number(2) - k, k);
  k = b.select(left, f.number(4) - k, k);
  const Expr sign = b.select(steep != left, -one, one);
  return f.with_sign(arctan_of(f, over, under, k, sign), y);
}

}  // namespace croton::kernel
