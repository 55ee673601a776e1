// The text of the CUDA emitter, and what it means on the host.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "compiler/codegen/cuda.h"
#include "compiler/codegen/cuda_barriers.h"
#include "compiler/codegen/cuda_expression.h"
#include "compiler/codegen/cuda_index.h"
#include "compiler/kernel/builder.h"
#include "compiler/kernel/evaluate.h"
#include "croton/error.h"

using namespace croton;
using namespace croton::codegen;
using Catch::Matchers::Contains;
using kernel::Builder;
using kernel::Expr;
using kernel::Fold;
using kernel::Kernel;
using kernel::kNone;

namespace {

std::string emit(const Kernel& k) {
  const Kernel* list[] = {&k};
  return emit_cuda(list);
}

// The text of the kernel without what programs share.
std::string body_of(const std::string& text) { return text.substr(text.find("extern \"C\"")); }

// x + alpha * y over chunks of 1000 elements.
Kernel axpy() {
  Builder b(128);
  const int x = b.buffer(DType::float32, false), y = b.buffer(DType::float32, false);
  const int out = b.buffer(DType::float32, true);
  const Expr base = b.bounded(b.block() * 1000);
  const Expr lanes = b.begin_lanes(b.binary(kernel::Binary::min, b.size(0) - base, b.i64(1000)));
  const Expr product = b.load(y, base, b.i64(1)) * 0.1;
  b.store(out, base, b.i64(1), b.load(x, base, b.i64(1)) + product, {}, true);
  b.end(lanes);
  Kernel k = b.finish();
  k.name = "axpy";
  return k;
}

// The sum of each row, with a check on the number of columns.
Kernel row_sum() {
  Builder b(256);
  const int in = b.buffer(DType::float32, false), out = b.buffer(DType::float32, true);
  const Expr n = b.size(0);
  b.check(n <= 4096, "{value} columns, at most {bound}", n, b.i64(4096));
  const Expr lanes = b.begin_lanes(n, {{Fold::sum, DType::float32, kNone}});
  b.accumulate(lanes, 0, b.load(in, b.block() * n, b.i64(1)));
  b.end(lanes);
  b.store(out, b.block(), b.i64(0), b.result(lanes, 0));
  Kernel k = b.finish();
  k.name = "row_sum";
  return k;
}

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

}  // namespace

TEST_CASE("the text of an elementwise kernel", "[cuda]") {
  CHECK(body_of(emit(axpy())) == R"(extern "C" __global__ void __launch_bounds__(128) axpy(
    const f32* __restrict__ b0,
    const f32* __restrict__ b1,
    f32* __restrict__ b2,
    long long size0 WIDE_BLOCKS) {
  END_OF_GRID
  const idx n0 = (idx)size0;
  const idx v0 = BLOCK;
  const idx v2 = v0 * 1000;
  const idx v4 = n0 - v2;
  const idx v5 = 1000 < v4 ? 1000 : v4;
  const idx m8 = v5 / 4 * 4;
  #pragma unroll 1
  for (idx c8 = threadIdx.x * 4; c8 < m8; c8 += 128 * 4) {
    const pack<f32, 4> p9_0 = load_pack<f32, 4>(b1 + v2 + c8);
    const f32 v9_0 = p9_0.a;
    const f32 v9_1 = p9_0.b;
    const f32 v9_2 = p9_0.c;
    const f32 v9_3 = p9_0.d;
    const pack<f32, 4> p10_0 = load_pack<f32, 4>(b0 + v2 + c8);
    const f32 v10_0 = p10_0.a;
    const f32 v10_1 = p10_0.b;
    const f32 v10_2 = p10_0.c;
    const f32 v10_3 = p10_0.d;
    const f32 v11_0 = fmaf(v9_0, 0x1.99999ap-4f, v10_0);
    const f32 v11_1 = fmaf(v9_1, 0x1.99999ap-4f, v10_1);
    const f32 v11_2 = fmaf(v9_2, 0x1.99999ap-4f, v10_2);
    const f32 v11_3 = fmaf(v9_3, 0x1.99999ap-4f, v10_3);
    store_pack<f32>(b2 + v2 + c8, v11_0, v11_1, v11_2, v11_3);
  }
  #pragma unroll 1
  for (idx c8 = m8 + threadIdx.x; c8 < v5; c8 += 128) {
    const f32 v9 = b1[v2 + c8];
    const f32 v10 = b0[v2 + c8];
    const f32 v11 = fmaf(v9, 0x1.99999ap-4f, v10);
    __stcs(&b2[v2 + c8], v11);
  }
}
)");
}

TEST_CASE("the text of a row reduction", "[cuda]") {
  CHECK(body_of(emit(row_sum())) == R"(extern "C" __global__ void __launch_bounds__(256) row_sum(
    const f32* __restrict__ b0,
    f32* __restrict__ b1,
    long long size0 WIDE_BLOCKS,
    long long* error) {
  END_OF_GRID
  const idx n0 = (idx)size0;
  const bool v2 = n0 <= 4096ll;
  if (threadIdx.x == 0 && !v2) report(error, 0, n0, 4096ll);
  const idx v5 = BLOCK;
  const idx v6 = (idx)((uidx)n0 * (uidx)v5);
  f32 a7_0 = 0.0f;
  const idx m7 = ((v6) & 3) == 0 ? n0 / 4 * 4 : 0;
  #pragma unroll 1
  for (idx c7 = threadIdx.x * 4; c7 < m7; c7 += 256 * 4) {
    const pack<f32, 4> p8_0 = load_pack<f32, 4>(b0 + v6 + c7);
    const f32 v8_0 = p8_0.a;
    const f32 v8_1 = p8_0.b;
    const f32 v8_2 = p8_0.c;
    const f32 v8_3 = p8_0.d;
    a7_0 = a7_0 + ((v8_0 + v8_1) + (v8_2 + v8_3));
  }
  #pragma unroll 1
  for (idx c7 = m7 + threadIdx.x; c7 < n0; c7 += 256) {
    const f32 v8 = b0[v6 + c7];
    a7_0 = a7_0 + v8;
  }
  for (i32 d = 16; d > 0; d >>= 1) {
    const f32 o0 = __shfl_xor_sync(0xffffffffu, a7_0, d);
    a7_0 = a7_0 + o0;
  }
  __shared__ f32 s7_0[8];
  if (threadIdx.x % 32 == 0) {
    s7_0[threadIdx.x / 32] = a7_0;
  }
  __syncthreads();
  a7_0 = s7_0[threadIdx.x % 8];
  for (i32 d = 4; d > 0; d >>= 1) {
    const f32 o0 = __shfl_xor_sync(0xffffffffu, a7_0, d);
    a7_0 = a7_0 + o0;
  }
  if (threadIdx.x == 0) b1[v5] = a7_0;
}
)");
}

TEST_CASE("a program holds what its kernels use, once", "[cuda]") {
  const Kernel a = axpy(), s = row_sum();
  const Kernel* both[] = {&a, &s};
  const std::string text = emit_cuda(both);
  CHECK(text.starts_with("typedef signed char i8;\n"));
  CHECK(count(text, "extern \"C\"") == 2);
  CHECK(count(text, "void report(") == 1);
  CHECK(count(text, "min_nan") == 0);
  CHECK(text == emit_cuda(both));
  CHECK(emit_cuda({}).find("extern") == std::string::npos);
  const Kernel* twice[] = {&a, &a};
  CHECK_THROWS_AS(emit_cuda(twice), InternalError);
}

TEST_CASE("a block has a power of two of threads", "[cuda]") {
  for (const int threads : {0, 1, 16, 96, 2048}) {
    Kernel k = axpy();
    k.threads = threads;
    CHECK_THROWS_WITH(emit(k), Contains("power of two"));
  }
}

TEST_CASE("arguments are restrict unless they may overlap", "[cuda]") {
  Builder b;
  const int in = b.buffer(DType::float32, false), other = b.buffer(DType::float32, false);
  const int out = b.buffer(DType::float32, true, in);
  const Expr zero = b.i64(0);
  b.store(out, zero, zero, b.load(in, zero, zero) + b.load(other, zero, zero));
  const std::string text = emit(b.finish());
  CHECK_THAT(text, Contains("const f32* b0,\n"));
  CHECK_THAT(text, Contains("const f32* __restrict__ b1,\n"));
  CHECK_THAT(text, Contains("f32* b2 WIDE_BLOCKS) {\n"));
}

TEST_CASE("literals are exact", "[cuda]") {
  const auto real = [](DType t, double value) {
    return cuda_literal(t, kernel::bits_of(t, value));
  };
  const auto whole = [](DType t, std::int64_t value) {
    return cuda_literal(t, kernel::bits_of_integer(t, value));
  };
  CHECK(real(DType::float32, 0.5) == "0.5f");
  CHECK(real(DType::float32, 3) == "3.0f");
  CHECK(real(DType::float32, -0.0) == "(-0.0f)");
  CHECK(real(DType::float32, 0.1) == "0x1.99999ap-4f");
  CHECK(real(DType::float64, 0.1) == "0.1");
  CHECK(real(DType::float64, 1.0 / 3) == "0x1.5555555555555p-2");
  CHECK(real(DType::float32, HUGE_VAL) == "__uint_as_float(0x7f800000u)");
  CHECK(real(DType::float64, -HUGE_VAL) == "__longlong_as_double(0xfff0000000000000ll)");
  CHECK(real(DType::float16, 1) == "((f16)0x3c00)");
  CHECK(whole(DType::int8, -128) == "((i8)-128)");
  CHECK(whole(DType::int32, INT32_MIN) == "(-2147483647 - 1)");
  CHECK(whole(DType::int64, INT64_MIN) == "(-9223372036854775807ll - 1)");
  CHECK(whole(DType::int64, -1) == "(-1ll)");
  CHECK(whole(DType::uint64, -1) == "18446744073709551615ull");
  CHECK(whole(DType::boolean, 1) == "true");
}

TEST_CASE("barriers stand where threads read what others wrote", "[cuda]") {
  Builder b(64);
  const int in = b.buffer(DType::float32, false), out = b.buffer(DType::float32, true);
  const Expr n = b.size(1), zero = b.i64(0), one = b.i64(1);
  const int array = b.local(DType::float32, b.i64(100));
  const auto copy = [&](int from, int to) {
    const Expr lanes = b.begin_lanes(n);
    b.store(to, zero, one, b.load(from, zero, one));
    b.end(lanes);
  };
  SECTION("one write needs none") {
    copy(in, array);
    CHECK(count(emit(b.finish()), "__syncthreads") == 0);
  }
  SECTION("between a write and a read") {
    copy(in, array);
    copy(array, out);
    CHECK(count(emit(b.finish()), "__syncthreads") == 1);
  }
  SECTION("between a read and a write") {
    copy(in, array);
    copy(array, out);
    copy(in, array);
    CHECK(count(emit(b.finish()), "__syncthreads") == 2);
  }
  SECTION("reads need none") {
    copy(in, out);
    const int second = b.local(DType::float32, b.i64(100));
    copy(in, second);
    CHECK(count(emit(b.finish()), "__syncthreads") == 0);
  }
  SECTION("around a loop") {
    const Expr loop = b.begin_loop(b.size(0));
    copy(in, array);
    copy(array, out);
    b.end(loop);
    CHECK(count(emit(b.finish()), "__syncthreads") == 2);
  }
  SECTION("stores of the first thread follow one another") {
    b.store(array, zero, zero, b.load(in, zero, zero));
    b.store(array, one, zero, b.load(in, one, zero));
    CHECK(count(emit(b.finish()), "__syncthreads") == 0);
  }
  SECTION("all threads read what the first one stored") {
    b.store(array, zero, zero, b.load(in, zero, zero));
    b.store(out, zero, zero, b.load(array, zero, zero));
    CHECK(count(emit(b.finish()), "__syncthreads") == 1);
  }
  SECTION("a fold in a loop waits for its last result to be read") {
    const Expr loop = b.begin_loop(b.size(0));
    const Expr lanes = b.begin_lanes(n, {{Fold::sum, DType::float32, kNone}});
    b.accumulate(lanes, 0, b.load(in, loop, one));
    b.end(lanes);
    b.store(out, loop, zero, b.result(lanes, 0));
    b.end(loop);
    CHECK(count(emit(b.finish()), "__syncthreads") == 2);
  }
}

TEST_CASE("a fold waits for the warp where a block has but one", "[cuda]") {
  Builder b(256);
  b.stretch();
  const int in = b.buffer(DType::float32, false), out = b.buffer(DType::float32, true);
  const Expr lanes = b.begin_lanes(b.size(0), {{Fold::sum, DType::float32, kNone}});
  b.accumulate(lanes, 0, b.load(in, b.i64(0), b.i64(1)));
  b.end(lanes);
  b.store(out, b.i64(0), b.i64(0), b.result(lanes, 0));
  CHECK_THAT(emit(b.finish()), Contains("}\n  else __syncwarp();\n"));
}

TEST_CASE("no name is that of a type", "[cuda]") {
  // Lanes with arrays in registers, of every number up to 70.
  for (int before = 0; before < 70; ++before) {
    Builder b(32);
    const int in = b.buffer(DType::float32, false), out = b.buffer(DType::float32, true);
    const Expr n = b.i64(64), zero = b.i64(0), one = b.i64(1);
    const int kept = b.local(DType::float32, n);
    for (int i = 0; i < before; ++i) b.store(out, b.block(), zero, b.load(in, b.block(), zero));
    Expr lanes = b.begin_lanes(n);
    b.store(kept, zero, one, b.load(in, zero, one));
    b.end(lanes);
    lanes = b.begin_lanes(n);
    b.store(out, zero, one, b.load(kept, zero, one));
    b.end(lanes);
    const std::string text = emit(b.finish());
    CHECK_THAT(text, Contains("for (i32 "));
    for (const char* type : {"i8", "i16", "i32", "i64"}) {
      INFO(type);
      CHECK_THAT(text, !Contains("i32 " + std::string(type) + " ="));
    }
  }
}

TEST_CASE("an index may be negative where a divisor is", "[cuda]") {
  // Sizes are less than 2^30: the result lies between -3 and 2 times that.
  Builder b;
  const int out = b.buffer(DType::int64, true);
  const Expr quotient = b.binary(kernel::Binary::min, b.block() / b.size(0), b.i64(0));
  const Expr value = quotient - b.size(1) - b.size(2);
  b.store(out, b.i64(0), b.i64(0), value);
  const Kernel k = b.finish();
  const std::vector<IndexType> types = index_types(k);
  const auto stored = std::find_if(k.nodes.begin(), k.nodes.end(),
                                   [](const kernel::Node& n) { return n.op == kernel::Op::store; });
  REQUIRE(stored != k.nodes.end());
  CHECK(types[static_cast<std::size_t>(stored->in[2])] == IndexType::none);
}

TEST_CASE("what addresses are made of is looked at once", "[cuda]") {
  Builder b;
  const int in = b.buffer(DType::float32, false), out = b.buffer(DType::float32, true);
  Expr start = b.block();
  for (int i = 0; i < 100; ++i) start = start + (start + b.size(i));
  const Expr lanes = b.begin_lanes(b.size(0));
  b.store(out, start, b.i64(1), b.load(in, start, b.i64(1)));
  b.end(lanes);
  CHECK_THAT(emit(b.finish()), Contains("__global__"));
}

TEST_CASE("shared memory whose size the launch decides", "[cuda]") {
  SECTION("arrays of constant size are declared") {
    Builder b;
    b.local(DType::float64, b.i64(100));
    const Kernel k = b.finish();
    CHECK(cuda_shared_bytes(k, {}) == 0);
    CHECK_THAT(emit(k), Contains("__shared__ __align__(16) f64 b0[100];"));
  }
  SECTION("others follow one another at multiples of 16") {
    Builder b;
    b.local(DType::float32, b.size(0) * 2 + 1);
    b.local(DType::uint8, b.binary(kernel::Binary::max, b.size(1), b.i64(4)));
    const Kernel k = b.finish();
    const std::int64_t sizes[] = {5, 1};
    CHECK(cuda_shared_bytes(k, sizes) == 48 + 16);
    const std::string text = emit(k);
    CHECK_THAT(text, Contains("f32* const b0 = (f32*)(shared_memory + 0);"));
    CHECK_THAT(text, Contains("u8* const b1 = (u8*)(shared_memory + (0 + (((v"));
    CHECK_THROWS_AS(cuda_shared_bytes(k, std::span(sizes, 1)), InternalError);
  }
  SECTION("too much to declare") {
    Builder b;
    b.local(DType::float64, b.i64(6000));
    CHECK(cuda_shared_bytes(b.finish(), {}) == 0);
    Builder c;
    c.local(DType::float64, c.i64(6000));
    c.local(DType::float64, c.i64(200));
    CHECK(cuda_shared_bytes(c.finish(), {}) == 48000 + 1600);
  }
}
