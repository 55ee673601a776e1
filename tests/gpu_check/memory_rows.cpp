// What is bound by memory, as a fraction of the bandwidth of a copy on the GPU.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "tests/gpu_check/gpu_check.h"
#include "tests/gpu_check/raw_gpu.h"

namespace croton::gpu_check {
namespace {

using Row = std::vector<double>;

/// One row of the table.
struct MemoryCase {
  std::string name;
  DType dtype;
  std::int64_t columns;  ///< of the operand
  std::function<Variable(const Variable& x)> build;
  double passes;  ///< over the operand's bytes: 2 where all is read and as much is written
  double floor;   ///< of the copy's bandwidth; 0: none
  std::int64_t rows_of_result;
  double tolerance;
  std::function<Row(std::int64_t row)> expected;
};

/// A row of the operand.
Row operand_row(std::int64_t row, std::int64_t columns) {
  Row values(static_cast<std::size_t>(columns));
  for (std::int64_t i = 0; i < columns; ++i) {
    values[static_cast<std::size_t>(i)] = element(row * columns + i);
  }
  return values;
}

template <class F>
Row mapped(Row values, F&& f) {
  for (double& v : values) v = f(v);
  return values;
}

double total(const Row& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return sum;
}

Row softmax_of(const Row& x) {
  const double most = *std::max_element(x.begin(), x.end());
  const Row powers = mapped(x, [&](double v) { return std::exp(v - most); });
  const double all = total(powers);
  return mapped(powers, [&](double v) { return v / all; });
}

Row normalised(const Row& x) {
  const auto n = static_cast<double>(x.size());
  const double middle = total(x) / n;
  const double spread = total(mapped(x, [&](double v) { return (v - middle) * (v - middle); })) / n;
  return mapped(x, [&](double v) { return (v - middle) / std::sqrt(spread + 1e-5); });
}

Variable chain(const Variable& x) { return exp(-x * x) * 0.5f + tanh(x) * x; }
double chain_of(double x) { return std::exp(-x * x) * 0.5 + std::tanh(x) * x; }

std::vector<MemoryCase> elementwise_cases(std::int64_t n) {
  std::vector<MemoryCase> cases;
  for (const DType dtype : {DType::float32, DType::float16}) {
    // As many bytes in each dtype.
    const std::int64_t count = n * 4 / static_cast<std::int64_t>(size_of(dtype));
    const bool narrow = dtype == DType::float16;
    cases.push_back({fmt::format("elementwise chain, {}", name_of(dtype)), dtype, 4096, chain, 2,
                     0.85, count / 4096, narrow ? 2e-3 : 2e-6,
                     [](std::int64_t row) { return mapped(operand_row(row, 4096), chain_of); }});
  }
  return cases;
}

std::vector<MemoryCase> row_cases(std::int64_t n) {
  std::vector<MemoryCase> cases;
  for (const std::int64_t columns : {1024, 4096, 16384}) {
    const std::int64_t rows = n / columns;
    cases.push_back({fmt::format("softmax, rows of {}", columns), DType::float32, columns,
                     [](const Variable& x) { return softmax(x); }, 2, 0.85, rows, 1e-5,
                     [=](std::int64_t row) { return softmax_of(operand_row(row, columns)); }});
    cases.push_back({fmt::format("layer norm, rows of {}", columns), DType::float32, columns,
                     [](const Variable& x) { return layer_norm(x, 1.0f, 0.0f); }, 2, 0.85, rows,
                     1e-5,
                     [=](std::int64_t row) { return normalised(operand_row(row, columns)); }});
  }
  return cases;
}

std::vector<MemoryCase> fold_cases(std::int64_t n) {
  const std::int64_t columns = 1024, rows = n / columns;
  // Sums grow with the number of elements, their error with its root.
  const auto column_sums = [=](std::int64_t) {
    Row sums(static_cast<std::size_t>(columns), 0.0);
    for (std::int64_t i = 0; i < rows * columns; ++i) {
      sums[static_cast<std::size_t>(i % columns)] += element(i);
    }
    return sums;
  };
  return {
      {"sum of all", DType::float32, columns, [](const Variable& x) { return sum(x * x); }, 1, 0.85,
       1, 1e-5,
       [=](std::int64_t) {
         double all = 0;
         for (std::int64_t i = 0; i < n; ++i) all += double{element(i)} * element(i);
         return Row{all};
       }},
      {"sums of rows of 1024", DType::float32, columns, [](const Variable& x) { return sum(x, 1); },
       1, 0.85, rows, 1e-4,
       [=](std::int64_t row) { return Row{total(operand_row(row, columns))}; }},
      {"sums of columns, 1024 of them", DType::float32, columns,
       [](const Variable& x) { return sum(x, 0); }, 1, 0.85, 1, 1e-4, column_sums},
      {"largest of each row of 1024", DType::float32, columns,
       [](const Variable& x) { return max(x, 1); }, 1, 0.85, rows, 0,
       [=](std::int64_t row) {
         const Row values = operand_row(row, columns);
         return Row{*std::max_element(values.begin(), values.end())};
       }},
  };
}

std::vector<MemoryCase> transpose_cases(std::int64_t n) {
  std::vector<MemoryCase> cases;
  for (const DType dtype : {DType::float32, DType::float16}) {
    const std::int64_t count = n * 4 / static_cast<std::int64_t>(size_of(dtype));
    const std::int64_t columns = n >= 1 << 26 ? 8192 : 128, rows = count / columns;
    cases.push_back({fmt::format("transpose, {}", name_of(dtype)), dtype, columns,
                     [](const Variable& x) { return transpose(x) * 1.5f; }, 2, 0, columns,
                     dtype == DType::float16 ? 1e-3 : 0,
                     [=](std::int64_t row) {
                       Row values(static_cast<std::size_t>(rows));
                       for (std::int64_t i = 0; i < rows; ++i) {
                         values[static_cast<std::size_t>(i)] = 1.5 * element(i * columns + row);
                       }
                       return values;
                     }});
  }
  return cases;
}

Array operand(std::int64_t count, DType dtype, std::int64_t columns) {
  std::vector<float> values(static_cast<std::size_t>(count));
  // Every 251st element is the same: copying takes a fraction of the time.
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = i < 251 ? element(static_cast<std::int64_t>(i)) : values[i - 251];
  }
  return Array::from<float>(values, {count / columns, columns}).astype(dtype);
}

void measure(const Options& options, const RawGpu& gpu, const MemoryCase& c, Results& results) {
  const std::int64_t count = options.elements() * 4 / static_cast<std::int64_t>(size_of(c.dtype));
  const std::size_t bytes = static_cast<std::size_t>(options.elements()) * 4;
  const Shared x = shared(operand(count, c.dtype, c.columns), {.name = "x"});
  const Function f = function({}, c.build(x), {.keep_on_device = true});
  const RawMemory from(gpu, bytes), to(gpu, bytes);
  const Pair times = measure_pair(
      options, [&] { f(); }, [] { sync(); },
      [&] {
        check_driver(cuda::driver()->copy_on_device(to.place(), from.place(), bytes, gpu.stream()),
                     "copying on the GPU");
      },
      [&] { gpu.wait(); });
  const auto size = static_cast<double>(bytes);
  results.report.add({c.name,
                      times.ours,
                      c.passes * size,
                      "GB/s",
                      bench::Limit{"copy", times.limit, 2 * size},
                      c.floor,
                      0,
                      {}});
  results.check(c.name, first_fault(f()[0].to_host(), c.rows_of_result, c.tolerance, c.expected));
}

}  // namespace

void measure_memory(const Options& options, Results& results) {
  results.report.section("memory");
  const RawGpu gpu;
  const std::int64_t n = options.elements();
  for (const auto& list : {elementwise_cases(n), row_cases(n), fold_cases(n), transpose_cases(n)}) {
    for (const MemoryCase& c : list) measure(options, gpu, c, results);
  }
}

}  // namespace croton::gpu_check
