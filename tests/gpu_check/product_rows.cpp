// Products of matrices and the training step of a network, beside cuBLASLt called directly.
#include <fmt/format.h>

#include <cmath>

#include "tests/gpu_check/gpu_check.h"
#include "tests/gpu_check/raw_gpu.h"

namespace croton::gpu_check {
namespace {

// Small whole numbers, so that sums of products are exact in float32. They grow with their length,
// up to some 8200 at 8192: narrower results are rounded.
double left(std::int64_t i, std::int64_t k) { return static_cast<double>((i + 2 * k) % 3); }
double right(std::int64_t k, std::int64_t j) { return static_cast<double>((3 * k + j) % 5 - 1); }
double bias_at(std::int64_t j) { return static_cast<double>(j % 4); }

template <class F>
Array matrix_of(std::int64_t n, DType dtype, F&& at) {
  std::vector<float> values(static_cast<std::size_t>(n * n));
  // Every 15th row is the same in both factors: copying takes a fraction of the time.
  for (std::int64_t i = 0; i < n * n; ++i) {
    const auto place = static_cast<std::size_t>(i);
    values[place] = i < 15 * n ? static_cast<float>(at(i / n, i % n))
                               : values[place - static_cast<std::size_t>(15 * n)];
  }
  return Array::from<float>(values, {n, n}).astype(dtype);
}

Array bias_of(std::int64_t n, DType dtype) {
  std::vector<float> values(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) {
    values[static_cast<std::size_t>(i)] = static_cast<float>(bias_at(i));
  }
  return Array::from<float>(values).astype(dtype);
}

struct ProductKind {
  const char* name;
  DType dtype;
  bool tf32;
};
constexpr ProductKind kKinds[] = {{"float32", DType::float32, false},
                                  {"TF32", DType::float32, true},
                                  {"float16", DType::float16, false},
                                  {"bfloat16", DType::bfloat16, false}};

/// Some elements of the product against sums in double; rounded once where the result is narrow.
std::string product_fault(const Array& got, bool with_bias) {
  const std::int64_t n = got.shape()[0];
  const bool narrow = got.dtype() != DType::float32;
  const double tolerance = narrow ? (got.dtype() == DType::float16 ? 0x1p-11 : 0x1p-8) : 0;
  for (std::int64_t sample = 0; sample < 64; ++sample) {
    const std::int64_t i = sample * 131 % n, j = sample * 257 % n;
    double wanted = with_bias ? bias_at(j) : 0;
    for (std::int64_t k = 0; k < n; ++k) wanted += left(i, k) * right(k, j);
    const double value =
        got.slice(0, i, i + 1).slice(1, j, j + 1).astype(DType::float64).reshape({}).item<double>();
    if (!(std::abs(value - wanted) <= tolerance * std::max(1.0, std::abs(wanted)))) {
      return fmt::format("element ({}, {}) is {}, not {}", i, j, value, wanted);
    }
  }
  return {};
}

void measure_product(const Options& options, const RawGpu& gpu, const ProductKind& kind,
                     std::int64_t size, bool with_bias, Results& results) {
  const std::int64_t n = options.rehearse ? size / 64 : size;
  const std::string name =
      fmt::format("{} x {}, {}{}", size, size, kind.name, with_bias ? ", bias" : "");
  const Array a = matrix_of(n, kind.dtype, left), b = matrix_of(n, kind.dtype, right);
  const Array bias = with_bias ? bias_of(n, kind.dtype) : Array();
  const Config config = current_config().with("allow_tf32", kind.tf32 ? "on" : "off");
  const Shared x = shared(a), y = shared(b);
  const Variable product = with_bias ? dot(x, y) + shared(bias) : dot(x, y);
  const Function f = function({}, product, {.config = config, .keep_on_device = true});
  const RawProduct raw(gpu, a, b, bias, kind.tf32);
  const Pair times = measure_pair(
      options, [&] { f(); }, [] { sync(); }, [&] { raw.run(); }, [&] { gpu.wait(); });
  const double flop = 2.0 * static_cast<double>(n) * static_cast<double>(n * n);
  results.report.add({name,
                      times.ours,
                      flop,
                      "GFLOP/s",
                      bench::Limit{"cuBLASLt", times.limit, flop},
                      0.95,
                      0,
                      {}});
  results.check(name, product_fault(f()[0].to_host(), with_bias));
}

struct Network {
  Function train;
  double flop = 0;
};

/// A network of three layers whose last one starts at zero, so that the first cost is known.
Network network(std::int64_t batch, std::int64_t width, bool tf32) {
  const std::int64_t sizes[] = {784, width, width, 10};
  const Shared images =
      shared(random_uniform({batch, 784}, {.seed = 1, .dtype = DType::float32}), {.name = "x"});
  std::vector<std::int64_t> digits(static_cast<std::size_t>(batch));
  for (std::size_t i = 0; i < digits.size(); ++i) digits[i] = static_cast<std::int64_t>(i % 10);
  const Shared labels = shared(Array::from<std::int64_t>(digits), {.name = "y"});
  std::vector<Shared> parameters;
  Variable hidden = images;
  double products = 0;
  for (int layer = 0; layer < 3; ++layer) {
    const std::int64_t in = sizes[layer], out = sizes[layer + 1];
    const double spread = layer == 2 ? 0 : std::sqrt(2.0 / static_cast<double>(in));
    const Shared w = shared(random_normal(
        {in, out},
        {.seed = 7u + static_cast<unsigned>(layer), .dtype = DType::float32, .stddev = spread}));
    const Shared b = shared(Array::zeros({out}, DType::float32));
    hidden = dot(hidden, w) + b;
    if (layer < 2) hidden = relu(hidden);
    parameters.insert(parameters.end(), {w, b});
    // Forwards, the gradient of the weights, and, but for the first layer, that of its operand.
    products += 2.0 * static_cast<double>(batch * in * out) * (layer == 0 ? 2 : 3);
  }
  const Variable cost = mean(cross_entropy_from_logits(hidden, labels));
  const std::vector<Variable> g =
      grad(cost, std::vector<Variable>(parameters.begin(), parameters.end()));
  std::vector<Update> updates;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    updates.push_back({parameters[i], parameters[i] - 0.01f * g[i]});
  }
  const Config config = current_config().with("allow_tf32", tf32 ? "on" : "off");
  return {function({}, cost, {.updates = updates, .config = config, .keep_on_device = true}),
          products};
}

void measure_network(const Options& options, const RawGpu& gpu, bool tf32, Results& results) {
  const std::int64_t batch = options.rehearse ? 20 : 4096, width = options.rehearse ? 32 : 4096;
  const Network net = network(batch, width, tf32);
  const float first = net.train()[0].to_host().item<float>();
  const std::int64_t n = options.rehearse ? 64 : 4096;
  const RawProduct raw(gpu, matrix_of(n, DType::float32, left), matrix_of(n, DType::float32, right),
                       Array(), tf32);
  const Pair times = measure_pair(
      options, [&] { net.train(); }, [] { sync(); }, [&] { raw.run(); }, [&] { gpu.wait(); });
  const std::string name = fmt::format("MLP step, {}", tf32 ? "TF32" : "float32");
  const double flop = 2.0 * static_cast<double>(n) * static_cast<double>(n * n);
  bench::Row row{
      name, times.ours, net.flop, "GFLOP/s", bench::Limit{"cuBLASLt 4096", times.limit, flop},
      0,    0,          {}};
  row.note =
      fmt::format("784-{0}-{0}-10 on a batch of {1}: forwards, gradients, updates", width, batch);
  results.report.add(std::move(row));
  const float last = net.train()[0].to_host().item<float>();
  std::string fault;
  if (std::abs(first - std::log(10.0)) > 1e-5) {
    fault = fmt::format("the first cost is {}, not ln 10", first);
  } else if (!(last < first)) {
    fault = fmt::format("the cost went from {} to {}", first, last);
  }
  results.check(name, fault);
}

}  // namespace

void measure_products(const Options& options, Results& results) {
  results.report.section("products");
  const RawGpu gpu;
  for (const ProductKind& kind : kKinds) {
    for (const std::int64_t size : {512, 1024, 2048, 4096, 8192}) {
      for (const bool with_bias : {false, true}) {
        measure_product(options, gpu, kind, size, with_bias, results);
      }
    }
  }
  for (const bool tf32 : {false, true}) measure_network(options, gpu, tf32, results);
}

}  // namespace croton::gpu_check
