#include "compiler/kernel/math_parts.h"

#include <cmath>

#include "compiler/kernel/coefficients.h"
#include "compiler/kernel/evaluate.h"
#include "croton/error.h"

namespace croton::kernel {
namespace {

constexpr double kSqrtHalf = 0.70710678118654752440;

}  // namespace

Format::Format(Expr x)
    : b(*x.builder),
      dtype(x.dtype()),
      bits_type(dtype == DType::float32 ? DType::int32 : DType::int64),
      mantissa(dtype == DType::float32 ? 23 : 52),
      bias(dtype == DType::float32 ? 127 : 1023) {
  internal_check(dtype == DType::float32 || dtype == DType::float64,
                 "mathematical functions are of float32 or float64");
}

Expr Format::nan() const {
  return b.bits(dtype, single() ? 0x7fc00000u : std::uint64_t{0x7ff8} << 48);
}

Expr Format::sign_mask() const {
  return b.bits(bits_type, single() ? 0x80000000u : std::uint64_t{1} << 63);
}

Expr Format::with_sign(Expr x, Expr sign) const {
  return from_bits(to_bits(x) | (to_bits(sign) & sign_mask()));
}

Expr Format::polynomial(Expr x, Table c) const {
  Expr sum = number(c.back());
  for (std::size_t i = c.size() - 1; i-- > 0;) sum = b.fma(sum, x, number(c[i]));
  return sum;
}

Format::Split Format::split(Table parts, int spare) const {
  int exponent = 0;
  std::frexp(parts[0], &exponent);
  const int digits = mantissa + 1 - spare - exponent;
  const double high = std::ldexp(std::nearbyint(std::ldexp(parts[0], digits)), -digits);
  return {number(high), number(parts[0] - high + parts[1])};
}

Rounded round_scaled(const Format& f, Expr x, Expr scale) {
  // Near 1.5 * 2^mantissa numbers are integers, and the lowest bits of their pattern count them.
  const Expr magic = f.number(std::ldexp(1.5, f.mantissa));
  const Expr shifted = f.b.fma(x, scale, magic);
  return {shifted - magic, f.to_bits(shifted) << f.integer(f.mantissa)};
}

Expr power_of_two(const Format& f, Expr exponent) {
  return f.from_bits(exponent + f.integer(std::int64_t{f.bias} << f.mantissa));
}

Expm1Parts expm1_parts(const Format& f, Expr x) {
  const Rounded n = round_scaled(f, x, f.number(kLog2E[0]));
  const auto [high, low] = f.split(kLn2, 0);
  const Expr r = f.b.fma(n.value, -low, f.b.fma(n.value, -high, x));
  return {n.exponent, f.b.fma(r * r, f.polynomial(r, kExpm1F32, kExpm1F64), r)};
}

LogParts log_parts(const Format& f, Expr x) {
  const Expr lift = f.number(f.mantissa + 1);
  const Expr subnormal = x < f.number(std::ldexp(1.0, 1 - f.bias));
  const Expr lifted = x * f.number(std::ldexp(1.0, f.mantissa + 1));
  const auto [k, fraction] = log_parts_of_normal(f, f.b.select(subnormal, lifted, x));
  return {f.b.select(subnormal, k - lift, k), fraction};
}

LogParts log_parts_of_normal(const Format& f, Expr x) {
  const Expr root = f.integer(as_integer(f.bits_type, bits_of(f.dtype, kSqrtHalf)));
  const Expr above = f.to_bits(x) - root;
  const Expr mask = f.integer((std::int64_t{1} << f.mantissa) - 1);
  const Expr fraction = f.from_bits((above & mask) + root) - f.number(1);
  if (f.single()) return {f.b.cast(above >> f.integer(f.mantissa), f.dtype), fraction};
  // Without a conversion from int64, which few vector units have: the biased exponent becomes the
  // lowest bits of 2^52.
  const Expr shifted = above + f.integer(std::int64_t{f.bias} << f.mantissa);
  const Expr biased = f.b.bitcast(f.b.bitcast(shifted, DType::uint64) >> f.mantissa, f.bits_type);
  const Expr k = f.from_bits(biased | f.to_bits(f.number(0x1p52))) - f.number(0x1p52 + f.bias);
  return {k, fraction};
}

Expr log_rest(const Format& f, Expr x) {
  const Expr square = x * x;
  return square * f.b.fma(x, f.polynomial(x, kLogF32, kLogF64), f.number(-0.5));
}

}  // namespace croton::kernel
