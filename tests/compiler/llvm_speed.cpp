// Prints what compiling costs and how fast generated loops run; hidden, run it by name:
// test_compiler "[speed]". CPU time of this thread, so that neighbours matter less.
#include <time.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <functional>

#include "compiler/kernel/builder.h"
#include "compiler/kernel/math.h"
#include "tests/compiler/jit_kernel.h"

using namespace croton;
using namespace croton::kernel;
using croton::test::JitModule;

namespace {

double cpu_ms() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
}

double median(std::function<void()> work, int repeats = 15) {
  std::vector<double> times;
  for (int i = 0; i < repeats; ++i) {
    double start = cpu_ms();
    work();
    times.push_back(cpu_ms() - start);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

constexpr std::int64_t kBlock = 4096;

/// out = f(a, b, c, d) in blocks of kBlock float32.
Kernel fused(std::function<Expr(Builder&, const std::vector<Expr>&)> f, int unroll = 1) {
  Builder b;
  std::vector<int> in;
  for (int i = 0; i < 4; ++i) in.push_back(b.buffer(DType::float32, false));
  int out = b.buffer(DType::float32, true);
  Expr start = b.block() * kBlock;
  Expr count = b.binary(Binary::min, b.size(0) - start, b.i64(kBlock));
  Expr lanes = b.begin_lanes(count, {}, unroll);
  std::vector<Expr> x;
  for (int buffer : in) x.push_back(b.load(buffer, start, b.i64(1)));
  b.store(out, start, b.i64(1), f(b, x));
  b.end(lanes);
  return b.finish();
}

Expr transcendental(const std::vector<Expr>& x, double shift) {
  Expr a = x[0];
  return kernel::tanh(a * x[1] + x[2] + shift) * kernel::sigmoid(x[3]) + kernel::exp(-(a * a));
}

Kernel reduction(Fold fold, int unroll, bool columns) {
  Builder b;
  int in = b.buffer(DType::float32, false);
  for (int i = 0; i < 3; ++i) b.buffer(DType::float32, false);
  int out = b.buffer(DType::float32, true);
  std::vector<Accumulator> a = {{fold, DType::float32}};
  bool pair = fold == Fold::argmax;
  if (!columns) {
    Expr lanes = b.begin_lanes(b.size(0), a, unroll);
    b.accumulate(lanes, 0, b.load(in, b.i64(0), b.i64(1)), pair ? lanes : Expr{});
    b.end(lanes);
    b.store(out, b.i64(0), b.i64(0), b.result(lanes, 0));
    return b.finish();
  }
  // 16 rows of n / 16 columns.
  Expr n = b.binary(Binary::shr, b.size(0), b.i64(4));
  Expr lanes = b.begin_lanes(n, {}, unroll);
  Expr rows = b.begin_loop(b.i64(16), a);
  b.accumulate(rows, 0, b.load(in, rows * n, b.i64(1)), pair ? rows : Expr{});
  b.end(rows);
  b.store(out, b.i64(0), b.i64(1), b.result(rows, 0));
  b.end(lanes);
  return b.finish();
}

void measure(const char* name, const Kernel& kernel) {
  TargetInfo target = host_target();
  const Kernel* pointer = &kernel;
  std::string text, object;
  double emit = median([&] { text = codegen::emit_llvm({&pointer, 1}, target); });
  double compile = median([&] { object = compile_cpu_object(text, target); });
  double load = median([&] { load_cpu_object(object); });
  auto module = load_cpu_object(object);
  CpuKernel entry = module->kernel(kernel.name);
  void* buffers[5];
  for (void*& buffer : buffers) {
    auto* x = static_cast<float*>(std::aligned_alloc(64, kBlock * sizeof(float)));
    for (int i = 0; i < kBlock; ++i) x[i] = static_cast<float>(i % 200) * 0.01f - 1.0f;
    buffer = x;
  }
  std::int64_t sizes[] = {kBlock}, error[3] = {};
  constexpr int kCalls = 200;
  double best = 1e9;
  for (int repeat = 0; repeat < 30; ++repeat) {
    double start = cpu_ms();
    for (int i = 0; i < kCalls; ++i) entry(buffers, sizes, 0, 1, error);
    best = std::min(best, cpu_ms() - start);
  }
  std::printf(
      "%-14s %4zu nodes  text %6zu B  object %5zu B  emit %5.3f  compile %6.2f  "
      "load %5.3f ms  L1 %6.3f ns/element\n",
      name, kernel.nodes.size(), text.size(), object.size(), emit, compile, load,
      best * 1e6 / kCalls / kBlock);
  for (void* buffer : buffers) std::free(buffer);
}

}  // namespace

TEST_CASE("speed of compiling and of generated loops", "[.][speed]") {
  double start = cpu_ms();
  compile_cpu_object("define void @k() { ret void }", host_target());
  std::printf("opening the plug-in %.1f ms, with the first compilation %.1f ms\n",
              cpu_compiler_open_ms(), cpu_ms() - start);
  auto add = [](Builder&, const std::vector<Expr>& x) { return x[0] + x[1]; };
  auto ten = [](Builder& b, const std::vector<Expr>& x) {
    Expr q = x[0] * x[1] + x[2];
    Expr s = b.unary(Unary::sqrt, b.unary(Unary::abs, x[3]) + 1.0);
    return b.select(q < s, q / s, q - s) * x[3] + b.binary(Binary::max, x[0], x[2]);
  };
  auto heavy = [](Builder&, const std::vector<Expr>& x) { return transcendental(x, 0); };
  measure("add", fused(add));
  measure("arithmetic", fused(ten));
  measure("fused", fused(heavy));
  measure("fused x 2", fused(heavy, 2));
  measure("exp", fused([](Builder&, const std::vector<Expr>& x) { return kernel::exp(x[0]); }));
  for (int unroll : {1, 4, 8}) {
    std::string times = " x " + std::to_string(unroll);
    measure(("sum" + times).c_str(), reduction(Fold::sum, unroll, false));
    measure(("max" + times).c_str(), reduction(Fold::max, unroll, false));
    measure(("argmax" + times).c_str(), reduction(Fold::argmax, unroll, false));
    measure(("columns" + times).c_str(), reduction(Fold::sum, unroll, true));
  }
  std::vector<Kernel> kernels;
  std::vector<const Kernel*> pointers;
  for (int i = 0; i < 16; ++i) {
    kernels.push_back(
        fused([i](Builder&, const std::vector<Expr>& x) { return transcendental(x, i); }));
  }
  for (const Kernel& k : kernels) pointers.push_back(&k);
  std::string text = codegen::emit_llvm(pointers, host_target());
  std::printf("sixteen fused kernels in one module: %.1f ms\n",
              median([&] { compile_cpu_object(text, host_target()); }, 5));
}
