// Loads and stores of every stride, gathers, masks, streaming stores, local arrays and checks.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "compiler/kernel/builder.h"
#include "tests/compiler/jit_kernel.h"

using namespace croton;
using namespace croton::kernel;
using croton::test::JitModule;

namespace {

const std::vector<std::int64_t>& lengths() {
  static const std::vector<std::int64_t> all = [] {
    std::int64_t w = host_target().lanes();
    return std::vector<std::int64_t>{0, 1, 2, w - 1, w, w + 1, 2 * w, 4 * w - 1, 4 * w + 3, 1000};
  }();
  return all;
}

template <class T>
std::vector<T> numbers(std::size_t count, T first = 1) {
  std::vector<T> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

/// out[base_out + i * stride_out] = in[base_in + i * stride_in] for i < size 0; a stride of
/// kDynamic is size 1.
constexpr std::int64_t kDynamic = 99;

Kernel copy_kernel(DType t, std::int64_t stride_in, std::int64_t stride_out, int unroll = 1) {
  Builder b;
  int in = b.buffer(t, false), out = b.buffer(t, true);
  Expr n = b.size(0), stride = b.size(1), base_in = b.size(2), base_out = b.size(3);
  auto of = [&](std::int64_t s) { return s == kDynamic ? stride : b.i64(s); };
  Expr lanes = b.begin_lanes(n, {}, unroll);
  Expr x = b.load(in, base_in, of(stride_in));
  b.store(out, base_out, of(stride_out), x);
  b.end(lanes);
  return b.finish();
}

template <class T>
void check_copies(DType t, const TargetInfo& target) {
  const std::vector<std::int64_t> strides = {1, 0, -1, 2, 3, kDynamic};
  std::vector<Kernel> kernels;
  for (std::int64_t in : strides) {
    for (std::int64_t out : strides) {
      if (out != 0) kernels.push_back(copy_kernel(t, in, out, kernels.size() % 2 ? 4 : 1));
    }
  }
  JitModule module(kernels, target);
  for (std::int64_t n : lengths()) {
    std::size_t which = 0;
    for (std::int64_t in : strides) {
      for (std::int64_t out : strides) {
        if (out == 0) continue;
        constexpr std::int64_t kStep = 5, kSpan = 5100;
        std::int64_t step_in = in == kDynamic ? kStep : in;
        std::int64_t step_out = out == kDynamic ? kStep : out;
        std::int64_t base_in = step_in < 0 ? 4000 : 3, base_out = step_out < 0 ? 4001 : 2;
        std::vector<T> x = numbers<T>(kSpan), y(kSpan, T{0}), expected(kSpan, T{0});
        for (std::int64_t i = 0; i < n; ++i) {
          expected[base_out + i * step_out] = x[base_in + i * step_in];
        }
        module.run(which++, {x.data(), y.data()}, {n, kStep, base_in, base_out});
        if (y != expected) FAIL_CHECK("strides " << in << " " << out << ", length " << n);
      }
    }
  }
}

}  // namespace

TEST_CASE("copies with all strides") {
  for (const TargetInfo& target : croton::test::targets()) {
    check_copies<std::int8_t>(DType::int8, target);
    check_copies<std::uint16_t>(DType::float16, target);
    check_copies<float>(DType::float32, target);
    check_copies<double>(DType::float64, target);
  }
}

TEST_CASE("bool copies normalise to 0 and 1") {
  JitModule module({copy_kernel(DType::boolean, 1, 1), copy_kernel(DType::boolean, 2, -1)});
  std::vector<std::uint8_t> x = {1, 0, 1, 1, 0, 0, 1, 0, 1, 1, 1, 0, 0, 1, 0, 1, 1, 0, 1, 0};
  std::vector<std::uint8_t> y(20, 9);
  module.run(0, {x.data(), y.data()}, {20, 0, 0, 0});
  CHECK(y == x);
  module.run(1, {x.data(), y.data()}, {10, 0, 0, 19});
  for (int i = 0; i < 10; ++i) CHECK(y[19 - i] == x[2 * i]);
}

TEST_CASE("extents known to the compiler need no guards") {
  for (std::int64_t n : lengths()) {
    for (int unroll : {1, 4}) {
      Builder b;
      int in = b.buffer(DType::float32, false), out = b.buffer(DType::float32, true);
      Expr lanes = b.begin_lanes(b.i64(n), {{Fold::sum, DType::float32}}, unroll);
      Expr x = b.load(in, b.i64(0), b.i64(1));
      b.store(out, b.i64(1), b.i64(1), x * 2);
      b.accumulate(lanes, 0, x);
      b.end(lanes);
      b.store(out, b.i64(0), b.i64(0), b.result(lanes, 0));
      JitModule module({b.finish()});
      std::vector<float> x_values = numbers<float>(1000), y(1002, -1.0f);
      module.run(0, {x_values.data(), y.data()}, {});
      CHECK(y[0] == static_cast<float>(n * (n + 1) / 2));
      bool right = y[n + 1] == -1;
      for (std::int64_t i = 0; i < n; ++i) right = right && y[i + 1] == 2 * x_values[i];
      CHECK(right);
    }
  }
}

TEST_CASE("masks guard loads, stores, gathers and scatters") {
  // Sums pairs from a table by index; an index outside of it is neither read nor written.
  Builder b;
  int index = b.buffer(DType::int64, false), table = b.buffer(DType::float32, false);
  int out = b.buffer(DType::float32, true), spread = b.buffer(DType::float32, true);
  Expr n = b.size(0), length = b.size(1);
  Expr lanes = b.begin_lanes(n);
  Expr i = b.load(index, b.i64(0), b.i64(1));
  Expr inside = (i >= 0) & (i < length);
  Expr x = b.gather(table, i, inside);
  Expr early = b.load(table, b.i64(0), b.i64(1), lanes < length);
  b.store(out, b.i64(0), b.i64(1), x + early, inside);
  b.scatter(spread, i, x, inside);
  b.end(lanes);
  JitModule module({b.finish()});
  for (std::int64_t count : lengths()) {
    std::vector<float> entries = {10, 20, 30, 40, 50};
    std::vector<std::int64_t> indexes(count);
    for (std::int64_t k = 0; k < count; ++k) indexes[k] = k % 9 - 2 + (k % 7 == 0) * 1000000000000;
    std::vector<float> y(count + 1, -1), z(5, -1), expected(count + 1, -1), expected_z(5, -1);
    for (std::int64_t k = 0; k < count; ++k) {
      if (indexes[k] < 0 || indexes[k] >= 5) continue;
      expected[k] = entries[indexes[k]] + (k < 5 ? entries[k] : 0);
      expected_z[indexes[k]] = entries[indexes[k]];
    }
    module.run(0, {indexes.data(), entries.data(), y.data(), z.data()}, {count, 5});
    CHECK(y == expected);
    CHECK(z == expected_z);
  }
}

TEST_CASE("uniform masks guard single elements") {
  Builder b;
  int in = b.buffer(DType::int32, false), out = b.buffer(DType::int32, true);
  Expr on = b.size(0) < 5;
  Expr x = b.load(in, b.size(0), b.i64(0), on);
  b.store(out, b.size(0), b.i64(0), x + 1, on);
  Expr lanes = b.begin_lanes(b.i64(3));
  Expr y = b.load(in, b.size(0), b.i64(0), on);
  b.store(out, b.i64(5), b.i64(1), y + 7);
  b.end(lanes);
  JitModule module({b.finish()});
  std::vector<std::int32_t> x_values = {1, 2, 3, 4, 5}, y_values(8, -1);
  module.run(0, {x_values.data(), y_values.data()}, {3});
  CHECK(y_values == std::vector<std::int32_t>{-1, -1, -1, 5, -1, 11, 11, 11});
  module.run(0, {x_values.data(), y_values.data()}, {std::int64_t{1} << 60});
  CHECK(y_values == std::vector<std::int32_t>{-1, -1, -1, 5, -1, 7, 7, 7});
}

TEST_CASE("lane counters are values") {
  Builder b;
  int out = b.buffer(DType::int64, true);
  Expr lanes = b.begin_lanes(b.size(0), {}, 2);
  b.store(out, b.i64(0), b.i64(1), lanes * 3 + b.block());
  b.scatter(out, lanes + b.size(0), b.i64(-7));
  b.end(lanes);
  JitModule module({b.finish()});
  for (std::int64_t n : lengths()) {
    std::vector<std::int64_t> y(2 * n + 1, 5), expected(2 * n + 1, 5);
    for (std::int64_t i = 0; i < n; ++i) expected[i] = 3 * i, expected[n + i] = -7;
    module.run(0, {y.data()}, {n});
    CHECK(y == expected);
  }
}

TEST_CASE("streaming stores write what ordinary ones write") {
  auto build = [](DType t, bool streaming) {
    Builder b;
    int in = b.buffer(t, false), out = b.buffer(t, true);
    Expr lanes = b.begin_lanes(b.size(0), {}, 2);
    Expr x = b.load(in, b.i64(0), b.i64(1));
    b.store(out, b.i64(0), b.i64(1), x + x, {}, streaming);
    b.end(lanes);
    return b.finish();
  };
  JitModule module(
      {build(DType::float32, true), build(DType::float64, true), build(DType::int8, true)});
  CHECK(module.text().find("!nontemporal") != std::string::npos);
  // What streams out most likely streams in; other kernels do without the extra instructions.
  CHECK(module.text().find("call void @llvm.prefetch") != std::string::npos);
  JitModule usual({build(DType::float32, false)});
  CHECK(usual.text().find("llvm.prefetch") == std::string::npos);
  auto check = [&]<class T>(std::size_t which, T) {
    std::vector<T> x = numbers<T>(1000);
    auto* y = static_cast<T*>(std::aligned_alloc(64, 64 * 130));
    y[999] = 0;
    module.run(which, {x.data(), y}, {999});
    bool right = y[999] == 0;
    for (int i = 0; i < 999; ++i) right = right && y[i] == static_cast<T>(x[i] + x[i]);
    CHECK(right);
    std::free(y);
  };
  check(0, float{});
  check(1, double{});
  check(2, std::int8_t{});
}

TEST_CASE("an output may be the memory of an input") {
  Builder b;
  int in = b.buffer(DType::float32, false), out = b.buffer(DType::float32, true, in);
  Expr lanes = b.begin_lanes(b.size(0));
  Expr x = b.load(in, b.i64(0), b.i64(1));
  b.store(out, b.i64(0), b.i64(1), x + 1);
  b.end(lanes);
  JitModule module({b.finish()});
  CHECK(module.text().find("load <") != std::string::npos);
  CHECK(module.text().find("invariant.load !0\n  %v") == std::string::npos);
  std::vector<float> x_values = numbers<float>(100);
  module.run(0, {x_values.data(), x_values.data()}, {100});
  CHECK(x_values == numbers<float>(100, 2));
}

TEST_CASE("local arrays of known, unknown and large sizes") {
  // Reverses each row of an array through a local array, twice as wide for the second kernel.
  auto build = [](bool fixed) {
    Builder b;
    int in = b.buffer(DType::float32, false), out = b.buffer(DType::float32, true);
    Expr n = fixed ? b.i64(100) : b.size(0);
    int flags = b.local(DType::boolean, n);
    int row = b.local(DType::float32, n * 2);
    Expr start = b.block() * n;
    Expr fill = b.begin_lanes(n);
    Expr x = b.load(in, start, b.i64(1));
    b.store(row, b.i64(0), b.i64(2), x);
    b.store(flags, b.i64(0), b.i64(1), x < 0);
    b.end(fill);
    Expr drain = b.begin_lanes(n);
    Expr y = b.load(row, n * 2 - 2, b.i64(-2));
    Expr negative = b.load(flags, n - 1, b.i64(-1));
    b.store(out, start, b.i64(1), b.select(negative, b.constant(DType::float32, 0), y));
    b.end(drain);
    return b.finish();
  };
  JitModule module({build(true), build(false)});
  CHECK(module.text().find("aligned_alloc") != std::string::npos);
  for (std::int64_t n :
       {std::int64_t{100}, std::int64_t{1}, std::int64_t{33}, std::int64_t{200000}}) {
    std::vector<float> x = numbers<float>(3 * n, -5), y(3 * n);
    bool right = true;
    module.run(n == 100 ? 0 : 1, {x.data(), y.data()}, {n}, 3);
    for (std::int64_t r = 0; r < 3; ++r) {
      for (std::int64_t i = 0; i < n; ++i) {
        right = right && y[r * n + i] == std::max(0.0f, x[r * n + n - 1 - i]);
      }
    }
    CHECK(right);
  }
}

TEST_CASE("a failed check tells the first failing lane") {
  Builder b;
  int index = b.buffer(DType::int64, false), out = b.buffer(DType::int64, true);
  Expr n = b.size(0), bound = b.size(1);
  b.check(n < 500, "too long: {value}", n, b.i64(500));
  Expr lanes = b.begin_lanes(n);
  Expr i = b.load(index, b.block() * n, b.i64(1));
  b.check(i < bound, "index {value} of {bound}", i, bound);
  b.store(out, b.block() * n, b.i64(1), i);
  b.end(lanes);
  JitModule module({b.finish()});
  using Words = std::vector<std::int64_t>;
  std::vector<std::int64_t> x = numbers<std::int64_t>(1000), y(1000);
  CHECK(module.run(0, {x.data(), y.data()}, {100, 101}) == Words{0, 0, 0});
  CHECK(module.run(0, {x.data(), y.data()}, {100, 100}) == Words{2, 100, 100});
  CHECK(module.run(0, {x.data(), y.data()}, {100, 41}) == Words{2, 41, 41});
  CHECK(module.run(0, {x.data(), y.data()}, {3, 2}) == Words{2, 2, 2});
  CHECK(module.run(0, {x.data(), y.data()}, {600, 1000}) == Words{1, 600, 500});
  CHECK(module.run(0, {x.data(), y.data()}, {100, 250}, 4) == Words{2, 250, 250});
  CHECK(y[399] == 400);
}

TEST_CASE("functions of the math library are called for each lane") {
  auto build = [](DType t, bool lanes) {
    Builder b;
    int in = b.buffer(t, false), out = b.buffer(t, true);
    Expr i = lanes ? b.begin_lanes(b.size(0)) : b.begin_loop(b.size(0));
    Expr base = lanes ? b.i64(0) : i;
    Expr x = b.load(in, base, b.i64(1));
    b.store(out, base, b.i64(1), b.call("lgamma", b.call("fmod", x, b.constant(t, 7.5))));
    b.end(i);
    return b.finish();
  };
  JitModule module({build(DType::float32, true), build(DType::float32, false),
                    build(DType::float64, true), build(DType::float64, false)});
  auto check = [&]<class T>(std::size_t which, T) {
    std::vector<T> x = numbers<T>(101), y(101);
    module.run(which, {x.data(), y.data()}, {101});
    for (int i = 0; i < 101; ++i) CHECK(y[i] == std::lgamma(std::fmod(x[i], T(7.5))));
  };
  check(0, float{});
  check(1, float{});
  check(2, double{});
  check(3, double{});
}
