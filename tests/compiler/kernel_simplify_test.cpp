#include <catch2/catch.hpp>
#include <limits>

#include "compiler/kernel/builder.h"

using namespace croton;
using namespace croton::kernel;

namespace {

// A value of any dtype that is not a constant, and a builder around it.
struct Unknown {
  Builder b;
  Expr x, y;

  explicit Unknown(DType dtype) {
    const int in = b.buffer(dtype, false);
    const Expr zero = b.i64(0);
    x = b.load(in, zero, zero);
    y = b.load(in, b.i64(1), zero);
  }
  bool is(Expr e, double value) const { return b.is_constant(e, value); }
  bool same(Expr a, Expr b) const { return a.id == b.id; }
};

bool is_op(Expr e, Binary op) {
  const Node& n = e.builder->node(e.id);
  return n.op == Op::binary && n.sub == static_cast<std::uint8_t>(op);
}

}  // namespace

TEST_CASE("constants are computed", "[kernel]") {
  Builder b;
  CHECK(b.is_constant(b.i64(6) * 7 + 1, 43));
  CHECK(b.is_constant(b.constant(DType::float32, 0.1) + 0.2f, 0.1f + 0.2f));
  CHECK(b.is_constant(b.cast(b.constant(DType::float64, 300.7), DType::int8), 127));
  CHECK(b.is_constant(b.fma(b.constant(DType::float64, 2), b.constant(DType::float64, 3),
                            b.constant(DType::float64, 1)),
                      7));
  CHECK(b.is_constant(b.bitcast(b.constant(DType::float32, 1), DType::int32), 0x3f800000));
  CHECK(b.is_constant(b.i64(3) < 4, 1));
  CHECK(b.node(b.integer(DType::uint64, -1).id).bits == ~std::uint64_t{0});
  CHECK(b.node(b.constant(DType::float16, 1).id).bits == 0x3c00);
  CHECK_FALSE(b.is_constant(b.constant(DType::float32, -0.0), 0.0));
  CHECK_FALSE(b.is_constant(b.constant(DType::float32, 0.1), 0.1));  // not exactly
}

TEST_CASE("integer identities", "[kernel]") {
  for (DType t : {DType::int64, DType::int32, DType::uint8}) {
    Unknown u(t);
    CHECK(u.same(u.x + 0, u.x));
    CHECK(u.same(0 + u.x, u.x));
    CHECK(u.same(u.x - 0, u.x));
    CHECK(u.is(u.x - u.x, 0));
    CHECK(u.same(u.x * 1, u.x));
    CHECK(u.is(u.x * 0, 0));
    CHECK(u.same(u.x / 1, u.x));
    CHECK(u.is(u.x / 0, 0));
    CHECK(u.is(u.x % 1, 0));
    CHECK(u.is(u.x % 0, 0));
    CHECK_FALSE(u.is(u.x / u.x, 1));  // 0 / 0 is 0
    CHECK(u.same(u.x << 0, u.x));
    CHECK(u.is(u.x & 0, 0));
    CHECK(u.same(u.x & -1, u.x));
    CHECK(u.same(u.x | 0, u.x));
    CHECK(u.is(u.x ^ u.x, 0));
    CHECK(u.same(u.x & u.x, u.x));
    CHECK(u.is(u.x == u.x, 1));
    CHECK(u.is(u.x < u.x, 0));
    CHECK(u.same(-(-u.x), u.x));
    CHECK(u.same((u.x + 3) + 4, u.x + 7));
    CHECK(u.same((u.x + 3) - 3, u.x));
    CHECK(u.same((u.x * 3) * 4, u.x * 12));
    CHECK(u.same(u.x + u.y, u.y + u.x));
    CHECK(u.same(u.x - 5, u.x + -5));
  }
}

TEST_CASE("bool identities", "[kernel]") {
  Unknown u(DType::boolean);
  const Expr yes = u.b.integer(DType::boolean, 1);
  const Expr no = u.b.integer(DType::boolean, 0);
  CHECK(u.same(u.x & yes, u.x));
  CHECK(u.is(u.x & no, 0));
  CHECK(u.is(u.x | yes, 1));
  CHECK(u.same(u.x == yes, u.x));
  CHECK(u.same(u.x != yes, !u.x));
  CHECK(u.same(!!u.x, u.x));
  CHECK(is_op(!(u.x == u.y), Binary::ne));
}

TEST_CASE("float identities hold exactly", "[kernel]") {
  for (DType t : {DType::float32, DType::float64}) {
    Unknown u(t);
    CHECK(u.same(u.x * 1.0, u.x));
    CHECK(u.same(u.x / 1.0, u.x));
    CHECK(u.same(u.x + -0.0, u.x));
    CHECK(u.same(u.x - 0.0, u.x));
    CHECK(u.same(u.x * -1.0, -u.x));
    CHECK(u.same(u.x - -u.y, u.x + u.y));
    CHECK(u.same(u.x + -u.y, u.x - u.y));
    CHECK(is_op(u.x / 4.0, Binary::mul));
    CHECK(u.same(u.b.binary(Binary::max, u.x, u.x), u.x));
    CHECK(u.same(u.b.unary(Unary::abs, -u.x), u.b.unary(Unary::abs, u.x)));
    // What would change -0, infinity or NaN stays.
    CHECK(is_op(u.x + 0.0, Binary::add));
    CHECK(is_op(u.x - -0.0, Binary::sub));
    CHECK(is_op(u.x * 0.0, Binary::mul));
    CHECK(is_op(u.x - u.x, Binary::sub));
    CHECK(is_op(u.x / u.x, Binary::div));
    CHECK(is_op(u.x == u.x, Binary::eq));
    CHECK(is_op(u.x / 3.0, Binary::div));
    CHECK(is_op((u.x + 1.0) + 2.0, Binary::add));
    CHECK(u.b.node(((u.x + 1.0) + 2.0).id).in[0] == (u.x + 1.0).id);
    const double smallest = t == DType::float32 ? 0x1p-126 : 0x1p-1022;
    const Expr over = u.x / smallest;
    CHECK((is_op(over, Binary::mul) || is_op(over, Binary::div)));
    CHECK(is_op(u.x / (smallest / 8), Binary::div));  // its reciprocal overflows
  }
}

TEST_CASE("fma, select and casts simplify where that is exact", "[kernel]") {
  Unknown u(DType::float32);
  Builder& b = u.b;
  const Expr one = b.constant(DType::float32, 1);
  CHECK(u.same(b.fma(u.x, one, u.y), u.x + u.y));
  CHECK(u.same(b.fma(one, u.x, u.y), u.x + u.y));
  CHECK(u.same(b.fma(u.x, b.constant(DType::float32, -1), u.y), u.y - u.x));
  CHECK(u.same(b.fma(u.x, u.y, b.constant(DType::float32, -0.0)), u.x * u.y));
  CHECK(b.node(b.fma(u.x, u.y, b.constant(DType::float32, 0)).id).op == Op::fma);
  const Expr less = u.x < u.y;
  CHECK(u.same(b.select(less, u.x, u.x), u.x));
  CHECK(u.same(b.select(b.integer(DType::boolean, 0), u.x, u.y), u.y));
  CHECK(u.same(b.select(!less, u.x, u.y), b.select(less, u.y, u.x)));
  CHECK(u.same(b.cast(u.x, DType::float32), u.x));
  CHECK(u.same(b.cast(b.cast(u.x, DType::float64), DType::float32), u.x));
  CHECK(u.same(b.cast(b.cast(u.x, DType::float64), DType::int32), b.cast(u.x, DType::int32)));
  const Expr half = b.cast(u.x, DType::float16);
  CHECK_FALSE(u.same(b.cast(half, DType::float32), u.x));
  CHECK(u.same(b.bitcast(b.bitcast(u.x, DType::int32), DType::float32), u.x));
  Unknown i(DType::int32);
  CHECK(i.same(i.b.cast(i.b.cast(i.x, DType::float64), DType::int32), i.x));
  CHECK_FALSE(i.same(i.b.cast(i.b.cast(i.x, DType::float32), DType::int32), i.x));
  CHECK_FALSE(i.same(i.b.cast(i.b.cast(i.x, DType::uint64), DType::float32),
                     i.b.cast(i.x, DType::float32)));
  Unknown flag(DType::boolean);
  CHECK(flag.same(flag.b.cast(flag.b.cast(flag.x, DType::float32), DType::boolean), flag.x));
}
