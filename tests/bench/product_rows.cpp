// Products of matrices against the library called directly.
#include <cblas.h>
#include <croton/croton.h>
#include <fmt/format.h>

#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>

#include "tests/bench/bench.h"

namespace croton::bench {
namespace {

using dnnl::memory;

/// relu?(a . b + bias?) as a program that uses oneDNN itself would do it.
class OneDnnProduct {
 public:
  OneDnnProduct(std::int64_t n, const Array& a, const Array& b, const Array* bias)
      : engine_(dnnl::engine::kind::cpu, 0),
        stream_(engine_),
        out_(static_cast<std::size_t>(n * n)) {
    const auto row_major = memory::format_tag::ab;
    const memory::desc matrix({n, n}, memory::data_type::f32, row_major);
    const memory::desc row({1, n}, memory::data_type::f32, row_major);
    dnnl::primitive_attr attr;
    dnnl::post_ops after;
    if (bias) after.append_eltwise(1.0f, dnnl::algorithm::eltwise_relu, 0.0f, 0.0f);
    attr.set_post_ops(after);
    const dnnl::matmul::desc desc = bias ? dnnl::matmul::desc(matrix, matrix, row, matrix)
                                         : dnnl::matmul::desc(matrix, matrix, matrix);
    product_ = dnnl::matmul(dnnl::matmul::primitive_desc(desc, attr, engine_));
    const auto at = [](const Array& x) { return const_cast<float*>(x.data<float>()); };
    arguments_ = {{DNNL_ARG_SRC, memory(matrix, engine_, at(a))},
                  {DNNL_ARG_WEIGHTS, memory(matrix, engine_, at(b))},
                  {DNNL_ARG_DST, memory(matrix, engine_, out_.data())}};
    if (bias) arguments_.insert({DNNL_ARG_BIAS, memory(row, engine_, at(*bias))});
  }
  void run() {
    product_.execute(stream_, arguments_);
    stream_.wait();
  }

 private:
  dnnl::engine engine_;
  dnnl::stream stream_;
  std::vector<float> out_;
  dnnl::matmul product_;
  std::unordered_map<int, memory> arguments_;
};

double flop(std::int64_t n) { return 2.0 * static_cast<double>(n * n * n); }

int repeats(const Options& options, std::int64_t n) {
  return n >= 2048 && !options.quick ? 15 : options.repeats();
}

Array numbers(const Shape& shape, std::uint64_t seed, DType dtype) {
  return random_uniform(shape, {.seed = seed, .dtype = dtype});
}

void float32_product(const Options& options, Report& report, std::int64_t n, bool epilogue) {
  const Array a = numbers({n, n}, 1, DType::float32), b = numbers({n, n}, 2, DType::float32);
  const Array bias = numbers({n}, 3, DType::float32);
  const Variable x = matrix("x", DType::float32), y = matrix("y", DType::float32),
                 z = vector("z", DType::float32);
  const Function f =
      epilogue ? function({x, y, z}, relu(dot(x, y) + z)) : function({x, y}, dot(x, y));
  OneDnnProduct direct(n, a, b, epilogue ? &bias : nullptr);
  Turns turns(repeats(options, n));
  const std::size_t ours = turns.add([&] {
    if (epilogue) {
      f(a, b, bias);
    } else {
      f(a, b);
    }
  });
  const std::size_t theirs = turns.add([&] { direct.run(); });
  turns.run();
  report.add({fmt::format("float32 {}{}", n, epilogue ? ", bias and relu" : ""), turns.times(ours),
              flop(n), "GFLOP/s", Limit{"oneDNN", turns.times(theirs), flop(n)}, 0.95});
}

void float64_product(const Options& options, Report& report, std::int64_t n) {
  const Array a = numbers({n, n}, 1, DType::float64), b = numbers({n, n}, 2, DType::float64);
  const Variable x = matrix("x", DType::float64), y = matrix("y", DType::float64);
  const Function f = function({x, y}, dot(x, y));
  std::vector<double> out(static_cast<std::size_t>(n * n));
  const int size = static_cast<int>(n);
  Turns turns(repeats(options, n));
  const std::size_t ours = turns.add([&] { f(a, b); });
  const std::size_t theirs = turns.add([&] {
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, size, size, size, 1.0, a.data<double>(),
                size, b.data<double>(), size, 0.0, out.data(), size);
  });
  turns.run();
  report.add({fmt::format("float64 {}", n), turns.times(ours), flop(n), "GFLOP/s",
              Limit{"OpenBLAS", turns.times(theirs), flop(n)}, 0.95});
}

}  // namespace

void measure_products(const Options& options, Report& report) {
  report.section("products of n x n matrices");
  constexpr std::int64_t kSizes[] = {128, 256, 512, 1024, 2048};
  for (const bool epilogue : {false, true}) {
    for (const std::int64_t n : kSizes) float32_product(options, report, n, epilogue);
  }
  for (const std::int64_t n : kSizes) float64_product(options, report, n);
}

}  // namespace croton::bench
