// Work whose limit is the memory: how near it comes to moving the same bytes in a plain sweep.
#include <croton/croton.h>
#include <fmt/format.h>

#include <cmath>
#include <stdexcept>

#include "tests/bench/bench.h"
#include "tests/bench/limits.h"
#include "tests/bench/spawned_kernel.h"

namespace croton::bench {
namespace {

constexpr double kMiB = 1024.0 * 1024.0;

Array numbers(const Shape& shape, std::uint64_t seed) {
  return random_normal(shape, {.seed = seed, .dtype = DType::float32});
}

Variable fused_value(const Variable& a, const Variable& b, const Variable& c, const Variable& d) {
  return tanh(a * b + c) * sigmoid(d) + exp(-a * a);
}

/// A number that is wrong makes the time worthless.
void check_fused(const Function& f, const std::vector<Array>& in, const SpawnedKernel& other) {
  const std::int64_t n = in[0].size();
  const Array out = f.call(in)[0];
  std::vector<float> expected(static_cast<std::size_t>(n));
  other.run(in[0].data<float>(), in[1].data<float>(), in[2].data<float>(), in[3].data<float>(),
            expected.data(), n);
  for (std::int64_t i = 0; i < n; ++i) {
    const float x = out.data<float>()[i], y = expected[static_cast<std::size_t>(i)];
    if (!(std::fabs(x - y) <= 2e-6f * (1 + std::fabs(y)))) {
      throw std::runtime_error(fmt::format("the fused kernel gave {} for {}", x, y));
    }
  }
}

void fused(const Options& options, Report& report, Streams& streams) {
  constexpr std::int64_t n = 16 << 20;
  std::vector<Array> in;
  for (std::uint64_t i = 0; i < 4; ++i) in.push_back(numbers({n}, i + 1));
  const Variable a = vector("a", DType::float32), b = vector("b", DType::float32),
                 c = vector("c", DType::float32), d = vector("d", DType::float32);
  const Function f = function({a, b, c, d}, fused_value(a, b, c, d));
  const SpawnedKernel fast("-ffast-math"), plain("");
  constexpr std::int64_t kPart = 1 << 20;
  std::vector<float> part(static_cast<std::size_t>(kPart));
  const auto spawned = [&](const SpawnedKernel& kernel) {
    kernel.run(in[0].data<float>(), in[1].data<float>(), in[2].data<float>(), in[3].data<float>(),
               part.data(), kPart);
  };
  const bool gcc = plain.usable() && fast.usable();
  if (gcc) {
    std::vector<Array> some;
    for (const Array& x : in) some.push_back(x.slice(0, 0, kPart).copy());
    check_fused(f, some, plain);
  }
  Turns turns(options.repeats());
  const std::size_t ours = turns.add([&] { f.call(in); });
  const std::size_t limit = turns.add([&] { streams.triad(all_threads(), true); });
  const std::size_t cached = turns.add([&] { streams.triad(all_threads(), false); });
  const std::size_t gcc_plain = turns.add([&] {
    if (gcc) spawned(plain);
  });
  const std::size_t gcc_fast = turns.add([&] {
    if (gcc) spawned(fast);
  });
  turns.run();
  const double bytes = 5.0 * 4 * n;
  report.add({"tanh(a*b+c)*sigmoid(d)+exp(-a*a), 16M", turns.times(ours), bytes, "GB/s",
              Limit{"triad-nt", turns.times(limit), streams.triad_bytes()}, 0.75});
  report.add({"  the same against plain triad", turns.times(ours), bytes, "GB/s",
              Limit{"triad", turns.times(cached), streams.triad_bytes()}});
  if (!gcc) {
    report.note("SKIP: no g++ to compile the same kernel with");
    return;
  }
  report.add({"  the same against g++ -O3", turns.times(ours), bytes, "GB/s",
              Limit{"1M in", turns.times(gcc_plain), 5.0 * 4 * kPart}});
  report.add({"  the same against g++ -O3 -ffast-math", turns.times(ours), bytes, "GB/s",
              Limit{"1M in", turns.times(gcc_fast), 5.0 * 4 * kPart}});
}

/// One function of one matrix against a sweep.
struct Sweep {
  const char* name;
  Shape shape;
  double bytes;
  double floor;
  bool reads;  ///< the limit is reading alone
  std::function<Variable(const Variable&)> build;
};

void sweep(const Options& options, Report& report, Streams& streams, const Sweep& s) {
  const Variable x = matrix("x", DType::float32);
  const Function f = function({x}, s.build(x));
  const Array in = numbers(s.shape, 7);
  Turns turns(options.repeats());
  const std::size_t ours = turns.add([&] { f(in); });
  const std::size_t limit = turns.add([&] {
    if (s.reads) {
      streams.read(all_threads());
    } else {
      streams.triad(all_threads(), true);
    }
  });
  turns.run();
  report.add({s.name, turns.times(ours), s.bytes, "GB/s",
              Limit{s.reads ? "read" : "triad-nt", turns.times(limit),
                    s.reads ? streams.read_bytes() : streams.triad_bytes()},
              s.floor});
}

}  // namespace

void measure_memory(const Options& options, Report& report) {
  report.section(fmt::format("bound by memory, {} threads", all_threads()));
  Streams streams(options.quick ? std::size_t{16} << 20 : std::size_t{64} << 20);
  fused(options, report, streams);
  const Array gamma = numbers({1024}, 8), beta = numbers({1024}, 9);
  const Sweep sweeps[] = {
      {"softmax over rows, 4096 x 4096",
       {4096, 4096},
       2 * 64 * kMiB,
       0.5,
       false,
       [](const Variable& x) { return softmax(x, 1); }},
      {"layer norm, 8192 x 1024",
       {8192, 1024},
       2 * 32 * kMiB,
       0.75,
       false,
       [&](const Variable& x) { return layer_norm(x, gamma, beta); }},
      {"sum over axis 0, 8192 x 8192",
       {8192, 8192},
       256 * kMiB,
       0.8,
       true,
       [](const Variable& x) { return sum(x, 0); }},
      {"sum over axis 1, 8192 x 8192",
       {8192, 8192},
       256 * kMiB,
       0.8,
       true,
       [](const Variable& x) { return sum(x, 1); }},
  };
  for (const Sweep& s : sweeps) sweep(options, report, streams, s);
}

}  // namespace croton::bench
