// Loops, lanes and folds, alone and nested.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "compiler/kernel/builder.h"
#include "tests/compiler/jit_kernel.h"

using namespace croton;
using namespace croton::kernel;
using croton::test::JitModule;

namespace {

enum class Shape { lanes, lanes4, loop, loop_in_lanes, lanes_in_loop };

constexpr std::int64_t kColumns = 3;

/// Folds in[0 .. n) where n is size 0, and writes the result to out[0] (and the index to at[0]).
/// loop_in_lanes takes a matrix of n rows and kColumns columns and folds each column;
/// lanes_in_loop folds each of size 1 rows of length n.
Kernel fold_kernel(Fold fold, DType t, Shape shape) {
  Builder b;
  int in = b.buffer(t, false), out = b.buffer(t, true), at = b.buffer(DType::int64, true);
  Expr n = b.size(0), zero = b.i64(0), one = b.i64(1);
  std::vector<Accumulator> a = {{fold, t}};
  bool pair = fold == Fold::argmin || fold == Fold::argmax;
  auto write = [&](Expr owner, Expr place, Expr stride) {
    b.store(out, place, stride, b.result(owner, 0));
    if (pair) b.store(at, place, stride, b.result(owner, 0, 1));
  };
  if (shape == Shape::loop_in_lanes) {
    Expr columns = b.begin_lanes(b.i64(kColumns));
    Expr rows = b.begin_loop(n, a);
    Expr x = b.load(in, rows * kColumns, one);
    b.accumulate(rows, 0, x, pair ? rows : Expr{});
    b.end(rows);
    write(rows, zero, one);
    b.end(columns);
    return b.finish();
  }
  Expr rows{};
  if (shape == Shape::lanes_in_loop) rows = b.begin_loop(b.size(1));
  Expr start = rows ? rows * n : zero;
  Expr i = shape == Shape::loop ? b.begin_loop(n, a)
                                : b.begin_lanes(n, a, shape == Shape::lanes4 ? 4 : 1);
  Expr x = shape == Shape::loop ? b.load(in, i, zero) : b.load(in, start, one);
  b.accumulate(i, 0, x, pair ? i : Expr{});
  b.end(i);
  write(i, rows ? rows : zero, zero);
  if (rows) b.end(rows);
  return b.finish();
}

/// The fold of n elements `step` apart, straight from the definition; sums and products of small
/// whole numbers are exact, so that their order does not matter.
template <class T>
std::pair<T, std::int64_t> expected_fold(Fold fold, const T* x, std::int64_t n, std::int64_t step) {
  auto nan = [](T v) { return v != v; };
  T value{};
  if (fold == Fold::prod || fold == Fold::all) value = 1;
  bool smallest = fold == Fold::min || fold == Fold::argmin;
  bool extreme = smallest || fold == Fold::max || fold == Fold::argmax;
  std::int64_t at = -1;
  for (std::int64_t i = 0; i < n; ++i) {
    T v = x[i * step];
    if (fold == Fold::sum) value = static_cast<T>(value + v);
    if (fold == Fold::prod) value = static_cast<T>(value * v);
    if (fold == Fold::any) value = value || v;
    if (fold == Fold::all) value = value && v;
    if (!extreme) continue;
    bool better = smallest ? v < value : v > value;
    if (at < 0 || (!nan(value) && (nan(v) || better))) value = v, at = i;
  }
  return {value, at};
}

template <class T>
std::vector<T> samples(Fold fold, std::size_t count, bool with_nan, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<T> x(count);
  for (T& v : x) {
    auto r = static_cast<int>(random() % 41);
    if (fold == Fold::prod) {
      v = static_cast<T>(random() % 60 == 0 && std::is_floating_point_v<T> ? 2 : 1);
    } else if (std::is_same_v<T, bool> || fold == Fold::any || fold == Fold::all) {
      v = static_cast<T>(r < 2 ? fold != Fold::all : fold == Fold::all);
    } else if (std::is_unsigned_v<T>) {
      v = static_cast<T>(r);
    } else {
      v = static_cast<T>(r - 20);
    }
    if constexpr (std::is_floating_point_v<T>) {
      if (with_nan && random() % 50 == 0) v = std::numeric_limits<T>::quiet_NaN();
    }
  }
  return x;
}

template <class T>
bool same(T a, T b) {
  return a == b || (a != a && b != b);
}

template <class T>
void check_folds(DType t, const std::vector<Fold>& folds, const TargetInfo& target) {
  std::int64_t w = host_target().lanes();
  std::vector<Shape> shapes = {Shape::lanes, Shape::lanes4, Shape::loop, Shape::loop_in_lanes,
                               Shape::lanes_in_loop};
  std::vector<Kernel> kernels;
  for (Fold fold : folds) {
    for (Shape shape : shapes) kernels.push_back(fold_kernel(fold, t, shape));
  }
  JitModule module(kernels, target);
  for (std::int64_t n :
       {std::int64_t{0}, std::int64_t{1}, w - 1, w, w + 1, 4 * w, 4 * w + 5, std::int64_t{1000}}) {
    for (bool with_nan : {false, true}) {
      std::size_t which = 0;
      for (Fold fold : folds) {
        bool pair = fold == Fold::argmin || fold == Fold::argmax;
        bool extreme = pair || fold == Fold::min || fold == Fold::max;
        std::vector<T> x = samples<T>(fold, n * kColumns + 1, with_nan, unsigned(n + 3));
        for (Shape shape : shapes) {
          std::size_t results =
              shape == Shape::loop_in_lanes || shape == Shape::lanes_in_loop ? kColumns : 1;
          std::vector<T> out(kColumns);
          std::vector<std::int64_t> at(kColumns);
          module.run(which++, {x.data(), out.data(), at.data()}, {n, kColumns});
          if (n == 0 && extreme) continue;
          for (std::size_t r = 0; r < results; ++r) {
            bool columns = shape == Shape::loop_in_lanes;
            auto [value, index] =
                expected_fold(fold, x.data() + (columns ? r : r * n), n, columns ? kColumns : 1);
            if (!same(out[r], value) || (pair && at[r] != index)) {
              FAIL_CHECK(name_of(fold) << " of " << croton::name_of(t) << ", length " << n
                                       << ", shape " << int(shape) << ": " << +out[r] << " at "
                                       << at[r] << ", expected " << +value << " at " << index);
            }
          }
        }
      }
    }
  }
}

/// x where it is at most 8, else the sum of 1 x, 2 x, ... `turns` x, by a loop that runs only for
/// vectors with such an element.
Kernel rare_loop_kernel(std::int64_t turns) {
  Builder b;
  const int in = b.buffer(DType::float32, false), out = b.buffer(DType::float32, true);
  const Expr lanes = b.begin_lanes(b.size(0));
  const Expr x = b.load(in, b.i64(0), b.i64(1));
  const Expr rare = x > 8;
  const Expr count = b.select(b.unary(Unary::any_lane, rare), b.i64(turns), b.i64(0));
  const Expr loop = b.begin_loop(count, {{Fold::sum, DType::float32}});
  b.accumulate(loop, 0, b.cast(loop + 1, DType::float32) * x);
  b.end(loop);
  b.store(out, b.i64(0), b.i64(1), b.select(rare, b.result(loop, 0), x));
  b.end(lanes);
  return b.finish();
}

const std::vector<Fold> kNumeric = {Fold::sum, Fold::prod,   Fold::min,
                                    Fold::max, Fold::argmin, Fold::argmax};

}  // namespace

TEST_CASE("folds of floats") {
  for (const TargetInfo& target : croton::test::targets()) {
    check_folds<float>(DType::float32, kNumeric, target);
    check_folds<double>(DType::float64, kNumeric, target);
  }
}

TEST_CASE("folds of integers") {
  check_folds<std::int8_t>(DType::int8, kNumeric, host_target());
  check_folds<std::uint16_t>(DType::uint16, kNumeric, host_target());
  check_folds<std::int32_t>(DType::int32, kNumeric, host_target());
  check_folds<std::int64_t>(DType::int64, kNumeric, host_target());
  check_folds<std::uint64_t>(DType::uint64, kNumeric, host_target());
}

TEST_CASE("folds of bools") {
  for (const TargetInfo& target : croton::test::targets()) {
    check_folds<std::uint8_t>(DType::boolean, {Fold::any, Fold::all}, target);
  }
}

TEST_CASE("a loop folds in order from its start value") {
  Builder b;
  int in = b.buffer(DType::float32, false), out = b.buffer(DType::float32, true);
  Expr start = b.load(in, b.i64(0), b.i64(0));
  Expr loop = b.begin_loop(b.size(0), {{Fold::sum, DType::float32, start.id}});
  b.accumulate(loop, 0, b.load(in, loop + 1, b.i64(0)));
  b.end(loop);
  b.store(out, b.i64(0), b.i64(0), b.result(loop, 0));
  JitModule module({b.finish()});
  std::mt19937 random(1);
  std::vector<float> x(200), y(1);
  for (float& v : x) v = std::ldexp(static_cast<float>(random()), static_cast<int>(random() % 20));
  float expected = x[0];
  for (int i = 1; i < 200; ++i) expected += x[i];
  module.run(0, {x.data(), y.data()}, {199});
  CHECK(y[0] == expected);
}

TEST_CASE("short loops of known extent are printed out") {
  for (std::int64_t rows : {0, 1, 4, 8, 9}) {
    // Column sums of a block of rows, the counter being used as a value too.
    Builder b;
    int in = b.buffer(DType::float32, false), out = b.buffer(DType::float32, true);
    Expr n = b.size(0);
    Expr lanes = b.begin_lanes(n);
    Expr loop = b.begin_loop(b.i64(rows), {{Fold::sum, DType::float32}});
    Expr x = b.load(in, loop * n, b.i64(1));
    b.accumulate(loop, 0, x * b.cast(loop + 1, DType::float32));
    b.end(loop);
    b.store(out, b.i64(0), b.i64(1), b.result(loop, 0));
    b.end(lanes);
    JitModule module({b.finish()});
    bool has_loop = module.text().find("loop") != std::string::npos;
    CHECK(has_loop == (rows > 8));
    std::vector<float> x_values(9 * 50), y(50, -1.0f);
    for (std::size_t i = 0; i < x_values.size(); ++i) x_values[i] = static_cast<float>(i % 17);
    module.run(0, {x_values.data(), y.data()}, {50});
    for (int c = 0; c < 50; ++c) {
      float expected = 0;
      for (int r = 0; r < rows; ++r) expected += x_values[r * 50 + c] * static_cast<float>(r + 1);
      CHECK(y[c] == expected);
    }
  }
}

TEST_CASE("a loop inside of lanes folds into the lanes") {
  // The sum of a matrix: rows by the inner loop, columns by lanes, one accumulator of the lanes.
  for (bool known : {false, true}) {
    Builder b;
    int in = b.buffer(DType::int32, false), out = b.buffer(DType::int32, true);
    Expr columns = b.size(0), rows = known ? b.i64(3) : b.size(1);
    Expr lanes = b.begin_lanes(columns, {{Fold::sum, DType::int32}, {Fold::max, DType::int32}});
    Expr loop = b.begin_loop(rows);
    Expr x = b.load(in, loop * columns, b.i64(1));
    b.accumulate(lanes, 0, x);
    b.end(loop);
    b.accumulate(lanes, 1, b.cast(lanes, DType::int32));
    b.end(lanes);
    b.store(out, b.i64(0), b.i64(0), b.result(lanes, 0));
    b.store(out, b.i64(1), b.i64(0), b.result(lanes, 1));
    JitModule module({b.finish()});
    for (std::int64_t n : {1, 15, 16, 17, 100}) {
      std::vector<std::int32_t> x_values(3 * n), y(2);
      std::int32_t expected = 0;
      for (std::size_t i = 0; i < x_values.size(); ++i) {
        x_values[i] = static_cast<std::int32_t>(i * i % 1001);
        expected += x_values[i];
      }
      module.run(0, {x_values.data(), y.data()}, {n, 3});
      CHECK(y[0] == expected);
      CHECK(y[1] == n - 1);
    }
  }
}

TEST_CASE("a row-wise kernel of several stages") {
  // Softmax without its maximum: sum of squares over lanes, a second pass divides by it.
  Builder b;
  int in = b.buffer(DType::float32, false), out = b.buffer(DType::float32, true);
  Expr n = b.size(0), row = b.block() * n;
  Expr first = b.begin_lanes(n, {{Fold::sum, DType::float32}});
  Expr x = b.load(in, row, b.i64(1));
  b.accumulate(first, 0, x * x);
  b.end(first);
  Expr total = b.result(first, 0);
  Expr second = b.begin_lanes(n);
  b.store(out, row, b.i64(1), b.load(in, row, b.i64(1)) / total);
  b.end(second);
  JitModule module({b.finish()});
  for (std::int64_t columns : {1, 16, 37}) {
    std::vector<float> x_values(5 * columns), y(5 * columns);
    for (std::size_t i = 0; i < x_values.size(); ++i) x_values[i] = static_cast<float>(i % 7 + 1);
    module.run(0, {x_values.data(), y.data()}, {columns}, 5);
    bool right = true;
    for (std::int64_t r = 0; r < 5; ++r) {
      float sum = 0;
      for (std::int64_t c = 0; c < columns; ++c) {
        sum += x_values[r * columns + c] * x_values[r * columns + c];
      }
      for (std::int64_t c = 0; c < columns; ++c) {
        right = right && y[r * columns + c] == x_values[r * columns + c] / sum;
      }
    }
    CHECK(right);
  }
}

TEST_CASE("loops nest and carry values across") {
  // Integer matrix product, k innermost, with a running total over everything.
  Builder b;
  int a = b.buffer(DType::int64, false), c = b.buffer(DType::int64, false);
  int out = b.buffer(DType::int64, true), total = b.buffer(DType::int64, true);
  Expr n = b.size(0);
  Expr i = b.begin_loop(n, {{Fold::sum, DType::int64}});
  Expr j = b.begin_loop(n);
  Expr k = b.begin_loop(n, {{Fold::sum, DType::int64}});
  Expr product = b.load(a, i * n + k, b.i64(0)) * b.load(c, k * n + j, b.i64(0));
  b.accumulate(k, 0, product);
  b.accumulate(i, 0, product);
  b.end(k);
  b.store(out, i * n + j, b.i64(0), b.result(k, 0));
  b.end(j);
  b.end(i);
  b.store(total, b.i64(0), b.i64(0), b.result(i, 0));
  JitModule module({b.finish()});
  constexpr std::int64_t kN = 11;
  std::vector<std::int64_t> x(kN * kN), y(kN * kN), z(kN * kN), sum(1);
  for (std::int64_t e = 0; e < kN * kN; ++e) x[e] = e % 13 - 5, y[e] = e % 7 - 2;
  module.run(0, {x.data(), y.data(), z.data(), sum.data()}, {kN});
  std::int64_t expected_total = 0;
  for (std::int64_t r = 0; r < kN; ++r) {
    for (std::int64_t s = 0; s < kN; ++s) {
      std::int64_t expected = 0;
      for (std::int64_t t = 0; t < kN; ++t) expected += x[r * kN + t] * y[t * kN + s];
      CHECK(z[r * kN + s] == expected);
      expected_total += expected;
    }
  }
  CHECK(sum[0] == expected_total);
}

TEST_CASE("blocks run in any split") {
  Builder b;
  int out = b.buffer(DType::int64, true);
  b.store(out, b.block(), b.i64(0), b.block() * b.size(0) + 1);
  Kernel kernel = b.finish();
  const Kernel* pointer = &kernel;
  auto module = load_cpu_object(
      compile_cpu_object(codegen::emit_llvm({&pointer, 1}, host_target()), host_target()));
  CpuKernel entry = module->kernel(kernel.name);
  std::vector<std::int64_t> y(10), error(3);
  void* buffers[] = {y.data()};
  std::int64_t sizes[] = {3};
  for (auto [first, last] : {std::pair{4, 7}, {0, 0}, {0, 4}, {7, 10}}) {
    entry(buffers, sizes, first, last, error.data());
  }
  for (std::int64_t i = 0; i < 10; ++i) CHECK(y[i] == 3 * i + 1);
}

TEST_CASE("the text of a kernel") {
  Builder b;
  int in = b.buffer(DType::float32, false), out = b.buffer(DType::float32, true);
  Expr scale = b.load(in, b.i64(0), b.i64(0));
  Expr lanes = b.begin_lanes(b.i64(40));
  Expr x = b.load(in, b.block() * 40, b.i64(1));
  b.store(out, b.block() * 40, b.i64(1), x * scale);
  b.end(lanes);
  Kernel kernel = b.finish();
  kernel.name = "golden";
  TargetInfo target;
  target.vector_bits = 128;
  const Kernel* pointer = &kernel;
  CHECK(codegen::emit_llvm({&pointer, 1}, target) == R"(
define void @golden(ptr %buffers, ptr %sizes, i64 %first, i64 %last, ptr %error) nounwind {
entry:
  %b0.at = getelementptr ptr, ptr %buffers, i64 0
  %b0 = load ptr, ptr %b0.at, align 8
  %b1.at = getelementptr ptr, ptr %buffers, i64 1
  %b1 = load ptr, ptr %b1.at, align 8
  %some = icmp slt i64 %first, %last
  br i1 %some, label %blocks, label %end
blocks:
  %block = phi i64 [ %first, %entry ], [ %next, %check6 ]
  %v0 = getelementptr float, ptr %b0, i64 0
  %v1 = load float, ptr %v0, align 4, !invariant.load !0
  %v2 = mul i64 %block, 40
  %v8 = getelementptr float, ptr %b0, i64 %v2
  %v11 = insertelement <4 x float> poison, float %v1, i32 0
  %v12 = shufflevector <4 x float> %v11, <4 x float> poison, <4 x i32> zeroinitializer
  %v14 = getelementptr float, ptr %b1, i64 %v2
  br label %main4
main4:
  %v3 = phi i64 [ 0, %blocks ], [ %v16, %main4 ]
  %v9 = getelementptr float, ptr %v8, i64 %v3
  %v10 = load <4 x float>, ptr %v9, align 4, !invariant.load !0
  %v13 = fmul <4 x float> %v12, %v10
  %v15 = getelementptr float, ptr %v14, i64 %v3
  store <4 x float> %v13, ptr %v15, align 4
  %v16 = add nuw nsw i64 %v3, 4
  %v17 = icmp ult i64 %v16, 40
  br i1 %v17, label %main4, label %check6
check6:
  %next = add nsw i64 %block, 1
  %more = icmp slt i64 %next, %last
  br i1 %more, label %blocks, label %end
end:
  ret void
}

!0 = !{}
!1 = !{i32 1}
)");
}

TEST_CASE("loops that run for the vectors that need them", "[llvm]") {
  for (const TargetInfo& target : croton::test::targets()) {
    JitModule module({rare_loop_kernel(5), rare_loop_kernel(100)}, target);
    for (const std::int64_t n : {1, 3, 16, 61, 200}) {
      for (const std::int64_t every : {1, 7, 1000}) {
        std::vector<float> x, out(static_cast<std::size_t>(n));
        for (std::int64_t i = 0; i < n; ++i) {
          x.push_back(static_cast<float>(i % every == every - 1 ? 9 + i : i % 8));
        }
        for (const std::size_t which : {0, 1}) {
          module.run(which, {x.data(), out.data()}, {n});
          const float sum = which == 0 ? 15 : 5050;
          for (std::size_t i = 0; i < x.size(); ++i) {
            INFO("element " << i << " of " << n << ", " << target.vector_bits << " bits");
            REQUIRE(out[i] == (x[i] > 8 ? sum * x[i] : x[i]));
          }
        }
      }
    }
  }
}
