#include <catch2/catch.hpp>
#include <limits>

#include "compiler/kernel/builder.h"
#include "croton/error.h"

using namespace croton;
using namespace croton::kernel;

namespace {

// y = f(x) over the elements of a block.
template <class F>
Kernel elementwise(DType dtype, F&& f) {
  Builder b;
  const int in = b.buffer(dtype, false);
  const int out = b.buffer(dtype, true);
  const Expr lanes = b.begin_lanes(b.size(0));
  b.store(out, b.i64(0), b.i64(1), f(b, b.load(in, b.i64(0), b.i64(1))));
  b.end(lanes);
  return b.finish();
}

}  // namespace

TEST_CASE("kernels that differ in what is bounded have two names", "[kernel]") {
  const auto made = [](bool bounded) {
    Builder b;
    const int y = b.buffer(DType::int64, true);
    const Expr place = b.block() * b.size(0);
    if (bounded) b.bounded(place);
    b.store(y, place, b.i64(0), place);
    return b.finish();
  };
  CHECK(to_text(made(true)).find("= int64 bounded mul") != std::string::npos);
  CHECK(made(true).name != made(false).name);
}

TEST_CASE("a kernel prints one node a line, in the order of execution", "[kernel]") {
  Builder b(128);
  const int x = b.buffer(DType::float32, false);
  const int y = b.buffer(DType::float32, true, x);
  const Expr n = b.size(0);
  const Expr row = b.block() * n;
  const Expr sum = b.begin_lanes(n, {{Fold::sum, DType::float32}}, 4);
  b.accumulate(sum, 0, b.load(x, row, b.i64(1)));
  b.end(sum);
  const Expr scale = 1.0f / b.result(sum, 0);
  const Expr lanes = b.begin_lanes(n);
  const Expr value = b.load(x, row, b.i64(1)) * scale;
  const Expr inside = lanes < n;
  b.store(y, row, b.i64(1), value, inside, true);
  b.end(lanes);
  const Kernel kernel = b.finish();
  CHECK(to_text(kernel) == R"(kernel threads=128 sizes=1 {
  b0: float32
  b1: float32 written aliases b0
  %0 = int64 size 0
  %1 = int64 block
  %2 = int64 mul %0 %1
  %3 = int64 1
  %4 = int64 varying lanes %0 unroll 4 [sum float32] {
    %5 = float32 varying load b0[%2 + lane * %3]
    accumulate %4.0 %5
  }
  %7 = float32 result %4.0
  %8 = float32 1
  %9 = float32 div %8 %7
  %10 = int64 varying lanes %0 {
    %11 = float32 varying load b0[%2 + lane * %3]
    %12 = float32 varying mul %9 %11
    %13 = bool varying lt %10 %0
    store streaming b1[%2 + lane * %3] %12 if %13
  }
}
)");
  CHECK(kernel.name.size() == 17);
  CHECK(kernel.name[0] == 'k');
  CHECK(kernel.arguments() == 2);
}

TEST_CASE("equal kernels have equal names, others do not", "[kernel]") {
  const auto plus = [](float c) {
    return elementwise(DType::float32, [c](Builder&, Expr x) { return x + c; });
  };
  CHECK(plus(1).name == plus(1).name);
  CHECK(plus(1).name != plus(2).name);
  CHECK(plus(0.0f).name != plus(-0.0f).name);
}

TEST_CASE("equal values in scope are one node", "[kernel]") {
  Builder b;
  const int in = b.buffer(DType::float32, false);
  const int out = b.buffer(DType::float32, true);
  const Expr n = b.size(0);
  const Expr zero = b.i64(0);
  const Expr one = b.i64(1);
  const Expr outside = b.load(in, zero, one);
  const Expr lanes = b.begin_lanes(n);
  const Expr x = b.load(in, zero, one);
  CHECK(x.id == b.load(in, zero, one).id);
  CHECK(x.id != outside.id);  // the counter is 0 outside of lanes
  CHECK(outside.id == b.load(in, zero, zero).id);
  CHECK((x + outside).id == (outside + x).id);
  CHECK(b.load(out, zero, one).id != b.load(out, zero, one).id);
  CHECK(x.id != b.load(in, zero, one, lanes < n).id);
  const Expr sum = x * x;
  b.store(out, zero, one, sum);
  b.end(lanes);
  const Expr again = b.begin_lanes(n);
  CHECK(b.load(in, zero, one).id != x.id);
  CHECK_THROWS_AS(sum + 1.0f, InternalError);
  b.end(again);
}

TEST_CASE("what does not depend on a loop is computed before it", "[kernel]") {
  Builder b;
  const int out = b.buffer(DType::int64, true);
  const Expr n = b.size(0);
  const Expr loop = b.begin_loop(n);
  const Expr lanes = b.begin_lanes(n);
  const Expr row = loop * n;
  const Expr whole = n * n + 7;
  CHECK_FALSE(row.varying());
  CHECK_FALSE(loop.varying());
  CHECK(lanes.varying());
  b.store(out, row, b.i64(1), whole + lanes);
  b.end(lanes);
  b.end(loop);
  const Kernel kernel = b.finish();
  REQUIRE(kernel.regions.size() == 3);
  // size, product, 7, sum, 1, loop; row and lanes; sum and store
  CHECK(kernel.regions[0].size() == 6);
  CHECK(kernel.regions[1].size() == 2);
  CHECK(kernel.regions[2].size() == 2);
}

TEST_CASE("values vary over lanes when their operands do", "[kernel]") {
  Builder b;
  const int in = b.buffer(DType::float32, false);
  const int index = b.buffer(DType::int64, false);
  const int out = b.buffer(DType::float32, true);
  const Expr n = b.size(0);
  const Expr zero = b.i64(0);
  const Expr lanes = b.begin_lanes(n, {{Fold::max, DType::float32}});
  CHECK_FALSE(b.load(in, zero, zero).varying());
  CHECK(b.load(in, zero, zero, lanes < n).varying());
  CHECK(b.load(in, zero, n).varying());
  CHECK(b.gather(in, b.load(index, zero, b.i64(1))).varying());
  CHECK_FALSE(b.gather(in, n).varying());
  const Expr loop = b.begin_loop(n, {{Fold::sum, DType::float32}});
  CHECK_FALSE(loop.varying());
  b.accumulate(loop, 0, b.load(in, loop, zero));
  CHECK_THROWS_AS(b.result(loop, 0), InternalError);
  b.end(loop);
  CHECK(b.result(loop, 0).varying());
  b.accumulate(lanes, 0, b.result(loop, 0));
  b.end(lanes);
  CHECK_FALSE(b.result(lanes, 0).varying());
  CHECK_THROWS_AS(b.result(loop, 0), InternalError);
  b.store(out, zero, zero, b.result(lanes, 0));
  b.finish();
}

TEST_CASE("what nobody uses is dropped", "[kernel]") {
  Builder b;
  const int in = b.buffer(DType::float32, false);
  const int out = b.buffer(DType::float32, true);
  const Expr lanes = b.begin_lanes(b.size(0), {{Fold::sum, DType::float32}});
  const Expr x = b.load(in, b.i64(0), b.i64(1));
  b.accumulate(lanes, 0, x * x);
  b.store(out, b.i64(0), b.i64(1), x);
  b.end(lanes);
  const Expr idle = b.begin_loop(b.size(1));
  b.gather(in, idle);
  b.end(idle);
  const Kernel kernel = b.finish();
  CHECK(kernel.regions.size() == 2);
  for (const Node& n : kernel.nodes) {
    CHECK(n.op != Op::accumulate);
    CHECK(n.op != Op::loop);
    CHECK(n.op != Op::binary);
  }
  CHECK(kernel.sizes == 2);  // arguments stay
}

TEST_CASE("products that are terms of sums become fused multiply-adds", "[kernel]") {
  const auto count = [](const Kernel& kernel, Op op) {
    int n = 0;
    for (const Node& node : kernel.nodes) n += node.op == op;
    return n;
  };
  const Kernel sum = elementwise(DType::float32, [](Builder&, Expr x) { return x * 3.0f + 1.0f; });
  CHECK(count(sum, Op::fma) == 1);
  CHECK(count(sum, Op::binary) == 0);
  const Kernel minus = elementwise(DType::float64, [](Builder&, Expr x) { return x * 3.0 - x; });
  CHECK(count(minus, Op::fma) == 1);
  CHECK(count(minus, Op::unary) == 1);
  const Kernel from = elementwise(DType::float64, [](Builder&, Expr x) { return 1.0 - x * 3.0; });
  CHECK(count(from, Op::fma) == 1);
  // Two products, a product used twice, and integers stay.
  const Kernel two =
      elementwise(DType::float32, [](Builder&, Expr x) { return x * x - (x + 1.0f) * x; });
  CHECK(count(two, Op::fma) == 0);
  const Kernel twice = elementwise(DType::float32, [](Builder& b, Expr x) {
    const Expr p = x * x;
    return b.binary(Binary::max, p, p + 1.0f);
  });
  CHECK(count(twice, Op::fma) == 0);
  const Kernel integers = elementwise(DType::int32, [](Builder&, Expr x) { return x * 3 + 1; });
  CHECK(count(integers, Op::fma) == 0);
}

TEST_CASE("misuse of a builder is an error at once", "[kernel]") {
  Builder b;
  const int in = b.buffer(DType::float32, false);
  const Expr n = b.size(0);
  const Expr x = b.load(in, n, n);
  CHECK_THROWS_AS(x + n, InternalError);
  CHECK_THROWS_AS(b.buffer(DType::float32, false), InternalError);
  CHECK_THROWS_AS(b.unary(Unary::sqrt, n), InternalError);
  CHECK_THROWS_AS(!n, InternalError);
  CHECK_THROWS_AS(x << x, InternalError);
  CHECK_THROWS_AS(b.select(n, x, x), InternalError);
  CHECK_THROWS_AS(b.bitcast(x, DType::int64), InternalError);
  CHECK_THROWS_AS(b.load(3, n, n), InternalError);
  CHECK_THROWS_AS(b.store(in, n, n, n), InternalError);
  CHECK_THROWS_AS(b.fma(n, n, n), InternalError);
  const Expr half = b.cast(x, DType::float16);
  CHECK_THROWS_AS(half + half, InternalError);
  const Expr lanes = b.begin_lanes(n);
  CHECK_THROWS_AS(b.begin_lanes(n), InternalError);
  CHECK_THROWS_AS(b.local(DType::float32, n), InternalError);
  CHECK_THROWS_AS(b.finish(), InternalError);
  b.end(lanes);
  CHECK_THROWS_AS(lanes + 1, InternalError);
  CHECK_THROWS_AS(b.result(lanes, 0), InternalError);
}
