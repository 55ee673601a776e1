// Constant arithmetic against values worked out by hand.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>

#include "compiler/kernel/evaluate.h"

using namespace croton;
using namespace croton::kernel;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t kMin64 = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMax64 = std::numeric_limits<std::int64_t>::max();

Node node(Op op, DType dtype, int sub = 0) {
  Node n;
  n.op = op;
  n.dtype = dtype;
  n.sub = static_cast<std::uint8_t>(sub);
  return n;
}

std::int64_t integers(Binary op, DType t, std::int64_t a, std::int64_t b) {
  const std::uint64_t bits[3] = {bits_of_integer(t, a), bits_of_integer(t, b), 0};
  const DType result = op >= Binary::eq ? DType::boolean : t;
  return as_integer(result, evaluate(node(Op::binary, result, int(op)), t, bits).value());
}

double floats(Binary op, DType t, double a, double b) {
  const std::uint64_t bits[3] = {bits_of(t, a), bits_of(t, b), 0};
  const DType result = op >= Binary::eq ? DType::boolean : t;
  return as_double(result, evaluate(node(Op::binary, result, int(op)), t, bits).value());
}

double unary(Unary op, DType t, double a) {
  const std::uint64_t bits[3] = {bits_of(t, a), 0, 0};
  return as_double(t, evaluate(node(Op::unary, t, int(op)), t, bits).value());
}

std::uint64_t cast_bits(DType from, std::uint64_t bits, DType to) {
  return evaluate(node(Op::cast, to), from, {bits, 0, 0}).value();
}

std::int64_t to_integer(double value, DType to) {
  return as_integer(to, cast_bits(DType::float64, bits_of(DType::float64, value), to));
}

bool negative_zero(double x) { return x == 0 && std::signbit(x); }

}  // namespace

TEST_CASE("integer arithmetic wraps and truncates", "[kernel]") {
  CHECK(integers(Binary::add, DType::int8, 127, 1) == -128);
  CHECK(integers(Binary::sub, DType::uint8, 0, 1) == 255);
  CHECK(integers(Binary::mul, DType::int16, 300, 300) == 24464);  // 90000 - 65536
  CHECK(integers(Binary::mul, DType::int64, kMax64, 2) == -2);
  CHECK(integers(Binary::div, DType::int32, -7, 2) == -3);
  CHECK(integers(Binary::rem, DType::int32, -7, 2) == -1);
  CHECK(integers(Binary::rem, DType::int32, 7, -2) == 1);
  CHECK(integers(Binary::div, DType::uint8, 200, 3) == 66);
  for (DType t : {DType::int8, DType::int64, DType::uint8, DType::uint64}) {
    CHECK(integers(Binary::div, t, 5, 0) == 0);
    CHECK(integers(Binary::rem, t, 5, 0) == 0);
  }
  CHECK(integers(Binary::div, DType::int8, -128, -1) == -128);
  CHECK(integers(Binary::rem, DType::int8, -128, -1) == 0);
  CHECK(integers(Binary::div, DType::int64, kMin64, -1) == kMin64);
  CHECK(integers(Binary::rem, DType::int64, kMin64, -1) == 0);
  CHECK(integers(Binary::min, DType::int32, -1, 1) == -1);
  CHECK(integers(Binary::min, DType::uint32, -1, 1) == 1);
  CHECK(integers(Binary::max, DType::uint64, -1, 1) == -1);  // the largest uint64
  CHECK(integers(Binary::lt, DType::uint64, -1, 1) == 0);
  CHECK(integers(Binary::lt, DType::int64, -1, 1) == 1);
  CHECK(integers(Binary::le, DType::int8, 3, 3) == 1);
  CHECK(integers(Binary::mul_hi, DType::uint32, 0xffffffff, 0xffffffff) == 0xfffffffe);
}

TEST_CASE("shifts beyond the width give zero or the sign", "[kernel]") {
  CHECK(integers(Binary::shl, DType::int8, 1, 7) == -128);
  CHECK(integers(Binary::shl, DType::int8, 1, 8) == 0);
  CHECK(integers(Binary::shl, DType::int64, 1, 64) == 0);
  CHECK(integers(Binary::shl, DType::int32, 1, -1) == 0);
  CHECK(integers(Binary::shr, DType::int32, -8, 1) == -4);
  CHECK(integers(Binary::shr, DType::int32, -8, 32) == -1);
  CHECK(integers(Binary::shr, DType::int32, -8, -3) == -1);
  CHECK(integers(Binary::shr, DType::int32, 8, 99) == 0);
  CHECK(integers(Binary::shr, DType::uint8, 0x80, 7) == 1);
  CHECK(integers(Binary::shr, DType::uint64, -1, 63) == 1);
}

TEST_CASE("bool arithmetic is logic", "[kernel]") {
  CHECK(integers(Binary::bit_and, DType::boolean, 1, 0) == 0);
  CHECK(integers(Binary::bit_or, DType::boolean, 1, 0) == 1);
  CHECK(integers(Binary::bit_xor, DType::boolean, 1, 1) == 0);
  CHECK(integers(Binary::eq, DType::boolean, 0, 0) == 1);
  CHECK(integers(Binary::ne, DType::boolean, 0, 0) == 0);
  CHECK(unary(Unary::logical_not, DType::boolean, 0) == 1);
}

TEST_CASE("float arithmetic follows IEEE 754", "[kernel]") {
  for (DType t : {DType::float32, DType::float64}) {
    CHECK(std::isnan(floats(Binary::min, t, kNaN, 1)));
    CHECK(std::isnan(floats(Binary::min, t, 1, kNaN)));
    CHECK(std::isnan(floats(Binary::max, t, 1, kNaN)));
    CHECK(floats(Binary::max, t, -1, 2) == 2);
    CHECK(floats(Binary::div, t, 1, 0) == kInf);
    CHECK(floats(Binary::div, t, -1, 0) == -kInf);
    CHECK(std::isnan(floats(Binary::div, t, 0, 0)));
    CHECK(floats(Binary::rem, t, -7, 2) == -1);
    CHECK(floats(Binary::rem, t, 5.5, -2) == 1.5);
    CHECK(std::isnan(floats(Binary::rem, t, 1, 0)));
    CHECK(floats(Binary::rem, t, 1, kInf) == 1);
    CHECK(floats(Binary::eq, t, kNaN, kNaN) == 0);
    CHECK(floats(Binary::ne, t, kNaN, kNaN) == 1);
    CHECK(floats(Binary::le, t, kNaN, 1) == 0);
    CHECK(unary(Unary::round, t, 2.5) == 2);
    CHECK(unary(Unary::round, t, 3.5) == 4);
    CHECK(negative_zero(unary(Unary::round, t, -0.5)));
    CHECK(unary(Unary::floor, t, -1.5) == -2);
    CHECK(unary(Unary::ceil, t, -1.5) == -1);
    CHECK(unary(Unary::trunc, t, -1.5) == -1);
    CHECK(negative_zero(unary(Unary::neg, t, 0)));
    CHECK(std::isnan(unary(Unary::sqrt, t, -1)));
    CHECK(unary(Unary::abs, t, -kInf) == kInf);
  }
  CHECK(floats(Binary::add, DType::float32, 16777216, 1) == 16777216);
  CHECK(floats(Binary::mul, DType::float32, 0x1p-126, 0.5) == 0x1p-127);  // subnormals stay
}

TEST_CASE("fma rounds once", "[kernel]") {
  const double a = 1 + 0x1p-12;
  const auto bits = [](double x) { return bits_of(DType::float32, x); };
  const auto fused = evaluate(node(Op::fma, DType::float32), DType::float32,
                              {bits(a), bits(a), bits(-1 - 0x1p-11)});
  CHECK(as_double(DType::float32, fused.value()) == 0x1p-24);
}

TEST_CASE("casts from float to integer truncate and saturate", "[kernel]") {
  CHECK(to_integer(-1.9, DType::int32) == -1);
  CHECK(to_integer(300, DType::int8) == 127);
  CHECK(to_integer(-300, DType::int8) == -128);
  CHECK(to_integer(-1, DType::uint8) == 0);
  CHECK(to_integer(255.9, DType::uint8) == 255);
  CHECK(to_integer(1e30, DType::int64) == kMax64);
  CHECK(to_integer(-1e30, DType::int64) == kMin64);
  CHECK(to_integer(0x1p63, DType::int64) == kMax64);
  CHECK(to_integer(kInf, DType::uint64) == -1);
  CHECK(to_integer(2147483647.5, DType::int32) == 2147483647);
  CHECK(to_integer(4294967295.5, DType::uint32) == 4294967295);
  for (DType t : {DType::int8, DType::uint16, DType::int32, DType::uint64}) {
    CHECK(to_integer(kNaN, t) == 0);
  }
  CHECK(to_integer(kNaN, DType::boolean) == 1);
  CHECK(to_integer(0.25, DType::boolean) == 1);
  CHECK(to_integer(-0.0, DType::boolean) == 0);
  // 2^31 as float32 is beyond int32.
  const std::uint64_t two31 = bits_of(DType::float32, 0x1p31);
  CHECK(as_integer(DType::int32, cast_bits(DType::float32, two31, DType::int32)) == 2147483647);
}

TEST_CASE("casts between integers wrap, to floats round to even", "[kernel]") {
  const auto cast = [](DType from, std::int64_t x, DType to) {
    return cast_bits(from, bits_of_integer(from, x), to);
  };
  CHECK(as_integer(DType::int8, cast(DType::int32, 200, DType::int8)) == -56);
  CHECK(as_integer(DType::uint64, cast(DType::int8, -1, DType::uint64)) == -1);
  CHECK(as_integer(DType::int64, cast(DType::uint32, -1, DType::int64)) == 0xffffffff);
  CHECK(as_integer(DType::boolean, cast(DType::int32, 256, DType::boolean)) == 1);
  CHECK(as_double(DType::float32, cast(DType::int32, 16777217, DType::float32)) == 16777216);
  CHECK(as_double(DType::float32, cast(DType::int32, 16777219, DType::float32)) == 16777220);
  CHECK(as_double(DType::float64, cast(DType::uint64, -1, DType::float64)) == 0x1p64);
  CHECK(bits_of(DType::float16, 65504) == 0x7bff);
  CHECK(bits_of(DType::float16, 65520) == 0x7c00);
  CHECK(bits_of(DType::float16, 0x1p-24) == 1);
  CHECK(bits_of(DType::bfloat16, 1 + 0x1p-8) == 0x3f80);  // half way: to even
  CHECK(bits_of(DType::bfloat16, 1 + 0x1.8p-7) == 0x3f82);
  CHECK(bits_of(DType::float32, 1e300) == 0x7f800000);
  CHECK(as_double(DType::float16, 0x3c01) == 1 + 0x1p-10);
  CHECK(cast_bits(DType::float16, 0x3c00, DType::bfloat16) == 0x3f80);
}
