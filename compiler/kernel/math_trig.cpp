// Trigonometric functions and their inverses.
#include <array>
#include <cmath>

#include "compiler/kernel/coefficients.h"
#include "compiler/kernel/math.h"
#include "compiler/kernel/math_wide.h"

namespace croton::kernel {
namespace {

// Beyond it the nearest multiple of pi/2 is not an exact double, and reduce_far takes over.
constexpr double kNear = 0x1p50;

// x = quadrant * pi/2 + rest + tail, |rest| < pi/4 (1 + 2^-20).
struct Reduced {
  Expr quadrant;  ///< of bits_type; its two lowest bits count
  Expr rest;
  Expr tail;
  Expr sine;    ///< of the rest
  Expr cosine;  ///< of the rest
};

constexpr double kMagic = 0x1.8p52;  // added to a number, it leaves an integer in the lowest bits

Expr nearest_multiple(Builder& b, Expr x, Expr& bits) {
  const Expr magic = b.constant(DType::float64, kMagic);
  const Expr shifted = b.fma(x, b.constant(DType::float64, kTwoOverPi[0]), magic);
  bits = b.bitcast(shifted, DType::int64);
  return shifted - magic;
}

// The same of numbers beyond kNear (Payne and Hanek), in float64: quadrant is an integral float64.
struct FarReduced {
  Expr quadrant, rest, tail;
};

// One of the numbers, by a counter.
Expr chosen(Builder& b, Expr counter, std::span<const double> numbers) {
  Expr result = b.constant(DType::float64, numbers.back());
  for (std::size_t k = numbers.size() - 1; k-- > 0;) {
    const Expr here = counter == static_cast<std::int64_t>(k);
    result = b.select(here, b.constant(DType::float64, numbers[k]), result);
  }
  return result;
}

// Digits of numbers within +-2 as sums of whole numbers: by 2^-30, 2^-62, 2^-94, and what is left.
constexpr double kDigits[] = {0x1p30, 0x1p62, 0x1p94};
using Digits = std::array<Expr, 4>;

// Those of x modulo 4.
Digits digits_of(Builder& b, Expr x) {
  const auto number = [&](double value) { return b.constant(DType::float64, value); };
  Expr rest = b.fma(b.unary(Unary::round, x * number(0.25)), number(-4), x);
  Digits digits;
  for (int k = 0; k < 3; ++k) {
    digits[k] = b.unary(Unary::round, rest * number(kDigits[k]));
    rest = b.fma(digits[k], number(-1 / kDigits[k]), rest);
  }
  digits[3] = rest;
  return digits;
}

// Those of one part of 2/pi times a number: the product is exact as the sum of two.
Digits digits_of_product(Builder& b, Expr x, Expr part) {
  const Expr high = x * part;
  Digits digits = digits_of(b, high);
  const Digits lower = digits_of(b, b.fma(x, part, -high));
  for (int k = 0; k < 4; ++k) digits[k] = digits[k] + lower[k];
  return digits;
}

// x times 2/pi, of which whole multiples of 4 are left out part by part, from the digits that are
// left; sums of digits are exact.
FarReduced join_digits(const Format& w, const Digits& sums) {
  Builder& b = w.b;
  const Expr quadrant = b.unary(Unary::round, sums[0] * w.number(1 / kDigits[0]));
  const Expr first = b.fma(quadrant, w.number(-kDigits[0]), sums[0]);
  const Double a = sum_of_any(first * w.number(1 / kDigits[0]), sums[1] * w.number(1 / kDigits[1]));
  const Double c = sum_of_any(a.low, sums[2] * w.number(1 / kDigits[2]));
  const Double turn = sum_of_any(a.high, c.high);
  const Double angle = product(b, {turn.high, turn.low + (c.low + sums[3])}, constant(w, kHalfPi));
  return {quadrant, angle.high, angle.low};
}

// Of a number that is known all is known; else by a loop over the parts in one that runs, once,
// only where a lane is `far`.
FarReduced reduce_far(const Format& w, Expr x, Expr far, std::size_t count) {
  Builder& b = w.b;
  const auto parts = std::span(kTwoOverPiParts).first(count);
  if (b.node(x.id).op == Op::constant) {
    const Expr scaled = x * w.number(0x1p-100);
    Digits sums{w.number(0), w.number(0), w.number(0), w.number(0)};
    for (const double part : parts) {
      const Digits more = digits_of_product(b, scaled, w.number(part));
      for (int k = 0; k < 4; ++k) sums[k] = sums[k] + more[k];
    }
    return join_digits(w, sums);
  }
  const Accumulator zero{.fold = Fold::sum, .dtype = DType::float64};
  const Expr once = b.select(b.unary(Unary::any_lane, far), b.i64(1), b.i64(0));
  const Expr outer = b.begin_loop(once, {zero, zero, zero});
  const Expr scaled = x * w.number(0x1p-100);
  const Expr loop = b.begin_loop(b.i64(static_cast<std::int64_t>(count)), {zero, zero, zero, zero});
  const Digits more = digits_of_product(b, scaled, chosen(b, loop, parts));
  for (int k = 0; k < 4; ++k) b.accumulate(loop, k, more[k]);
  b.end(loop);
  Digits sums;
  for (int k = 0; k < 4; ++k) sums[k] = b.result(loop, k);
  const FarReduced found = join_digits(w, sums);
  b.accumulate(outer, 0, found.quadrant);
  b.accumulate(outer, 1, found.rest);
  b.accumulate(outer, 2, found.tail);
  b.end(outer);
  return {b.result(outer, 0), b.result(outer, 1), b.result(outer, 2)};
}

// In float64: exact enough for every float32.
Reduced reduce_single(const Format& f, Expr x) {
  Builder& b = f.b;
  const auto part = [&](int i) { return b.constant(DType::float64, -kHalfPi[i]); };
  const Expr wide = b.cast(x, DType::float64);
  const Format w(wide);
  const Expr far = w.number(kNear) < w.abs(wide);
  Expr bits;
  const Expr n = nearest_multiple(b, wide, bits);
  const FarReduced other = reduce_far(w, wide, far, 4);
  const Expr other_bits = w.to_bits(other.quadrant + w.number(kMagic));
  Reduced r;
  r.quadrant = b.cast(b.select(far, other_bits, bits), DType::int32);
  const Expr near = b.fma(n, part(1), b.fma(n, part(0), wide));
  const Expr rest = b.select(far, other.rest, near);
  r.rest = b.cast(rest, DType::float32);
  r.tail = b.cast(rest - b.cast(r.rest, DType::float64), DType::float32);
  return r;
}

// The first step is exact: the difference is a multiple of the last bit of pi/2's first part, and
// small. The rest carries the rounding errors of the other steps along in the tail.
Reduced reduce_double(const Format& f, Expr x) {
  Builder& b = f.b;
  const Expr far = f.number(kNear) < f.abs(x);
  Reduced r;
  const Expr n = nearest_multiple(b, x, r.quadrant);
  const Expr first = b.fma(n, f.number(-kHalfPi[0]), x);
  const Expr step = n * f.number(kHalfPi[1]);
  r.rest = first - step;
  const Expr step_error = b.fma(n, f.number(kHalfPi[1]), -step);
  const Expr lost = first - r.rest - step - step_error;
  r.tail = b.fma(n, f.number(-kHalfPi[2]), lost);
  const FarReduced other = reduce_far(f, x, far, std::size(kTwoOverPiParts));
  r.quadrant = b.select(far, f.to_bits(other.quadrant + f.number(kMagic)), r.quadrant);
  r.rest = b.select(far, other.rest, r.rest);
  r.tail = b.select(far, other.tail, r.tail);
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

// What is not asked for is never used, and dropped.
Expr sin(Expr x) { return sine_cosine(x).sine; }
Expr cos(Expr x) { return sine_cosine(x).cosine; }

SineCosine sine_cosine(Expr x) {
  const Format f(x);
  const Reduced r = reduce(f, x);
  return {or_tiny(f, x, sine_of(f, r, r.quadrant)), sine_of(f, r, r.quadrant + f.integer(1))};
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
