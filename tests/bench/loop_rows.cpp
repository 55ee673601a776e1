// Kernels built by hand: what the emitter, LLVM and the loader take, and how fast their loops run
// on one thread with everything in the first cache.
#include <fmt/format.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compiler/codegen/llvm.h"
#include "compiler/kernel/builder.h"
#include "compiler/kernel/math.h"
#include "runtime/cpu/jit.h"
#include "runtime/target.h"
#include "tests/bench/bench.h"

namespace croton::bench {
namespace {

using namespace croton::kernel;

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

/// Memory for the arguments of a kernel.
class Buffers {
 public:
  Buffers() {
    for (void*& buffer : pointers_) {
      auto* x = static_cast<float*>(std::aligned_alloc(64, kBlock * sizeof(float)));
      for (int i = 0; i < kBlock; ++i) x[i] = static_cast<float>(i % 200) * 0.01f - 1.0f;
      buffer = x;
    }
  }
  ~Buffers() {
    for (void* buffer : pointers_) std::free(buffer);
  }
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;
  void** pointers() { return pointers_; }

 private:
  void* pointers_[5] = {};
};

void add_rows(const Options& options, Report& report, const std::string& name,
              const Kernel& kernel) {
  const TargetInfo target = host_target();
  const Kernel* pointer = &kernel;
  const std::string text = codegen::emit_llvm({&pointer, 1}, target);
  const std::string object = compile_cpu_object(text, target);
  const auto module = load_cpu_object(object);
  const CpuKernel entry = module->kernel(kernel.name);
  Buffers buffers;
  std::int64_t sizes[] = {kBlock}, error[3] = {};
  Turns turns(options.repeats());
  const std::size_t runs = turns.add([&] { entry(buffers.pointers(), sizes, 0, 1, error); });
  const std::size_t emit = turns.add([&] { codegen::emit_llvm({&pointer, 1}, target); });
  const std::size_t compile = turns.add([&] { compile_cpu_object(text, target); });
  const std::size_t load = turns.add([&] { load_cpu_object(object); });
  turns.run();
  report.add({name, turns.times(runs), kBlock, "Gelement/s"});
  report.add({"  emit", turns.times(emit)});
  report.add({"  compile", turns.times(compile)});
  Row loaded{"  load", turns.times(load)};
  loaded.note = fmt::format("{} nodes, {} bytes of text, {} of code", kernel.nodes.size(),
                            text.size(), object.size());
  report.add(std::move(loaded));
}

}  // namespace

void measure_loops(const Options& options, Report& report) {
  report.section("kernels of 4096 float32, one thread");
  const auto add = [](Builder&, const std::vector<Expr>& x) { return x[0] + x[1]; };
  const auto ten = [](Builder& b, const std::vector<Expr>& x) {
    const Expr q = x[0] * x[1] + x[2];
    const Expr s = b.unary(Unary::sqrt, b.unary(Unary::abs, x[3]) + 1.0);
    return b.select(q < s, q / s, q - s) * x[3] + b.binary(Binary::max, x[0], x[2]);
  };
  const auto heavy = [](Builder&, const std::vector<Expr>& x) { return transcendental(x, 0); };
  add_rows(options, report, "add", fused(add));
  add_rows(options, report, "arithmetic", fused(ten));
  add_rows(options, report, "fused", fused(heavy));
  add_rows(options, report, "fused x 2", fused(heavy, 2));
  add_rows(options, report, "exp",
           fused([](Builder&, const std::vector<Expr>& x) { return kernel::exp(x[0]); }));
  for (const int unroll : {1, 4, 8}) {
    const std::string times = fmt::format(" x {}", unroll);
    add_rows(options, report, "sum" + times, reduction(Fold::sum, unroll, false));
    add_rows(options, report, "max" + times, reduction(Fold::max, unroll, false));
    add_rows(options, report, "argmax" + times, reduction(Fold::argmax, unroll, false));
    add_rows(options, report, "columns" + times, reduction(Fold::sum, unroll, true));
  }
}

}  // namespace croton::bench
