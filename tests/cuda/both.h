// The same expressions on a GPU and on the CPU.
#pragma once

#include <croton/croton.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "tests/host_values.h"

namespace croton::test {

using Build = std::function<std::vector<Variable>(const std::vector<Variable>&)>;

/// The outputs of what `build` makes of shared variables on `context`.
inline std::vector<Array> outputs_on(const char* context, const std::vector<Array>& values,
                                     const Build& build) {
  std::vector<Variable> leaves;
  for (const Array& value : values) leaves.push_back(shared(value, {.target = context}));
  const ContextScope scope(context);
  Function f = function({}, build(leaves));
  for (const std::string& where : f.output_contexts()) CHECK(where == context);
  const Outputs out = f();
  return {out.begin(), out.end()};
}

/// Equal bits, or numbers that differ by at most `relative` of the larger one.
inline void check_close(const Array& got, const Array& wanted, double relative) {
  REQUIRE(got.dtype() == wanted.dtype());
  REQUIRE(got.shape() == wanted.shape());
  const std::vector<double> a = got.astype(DType::float64).to_vector<double>();
  const std::vector<double> b = wanted.astype(DType::float64).to_vector<double>();
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    const double most = std::max(std::abs(a[i]), std::abs(b[i]));
    if (a[i] == b[i] || std::abs(a[i] - b[i]) <= relative * std::max(most, 1.0)) continue;
    INFO("element " << i << ": got " << a[i] << ", wanted " << b[i]);
    CHECK(a[i] == b[i]);
    return;
  }
}

/// Checks what a GPU gives against the CPU.
inline void check_on_both(const std::vector<Array>& values, const Build& build, double relative = 0,
                          const char* gpu = "dev0") {
  const std::vector<Array> got = outputs_on(gpu, values, build);
  const std::vector<Array> wanted = on_host([&] { return outputs_on("host", values, build); });
  REQUIRE(got.size() == wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    INFO("output " << i);
    CHECK(got[i].context() == "cpu");
    check_close(got[i], wanted[i], relative);
  }
}

/// Numbers with all sorts of edges among them.
inline Array floats(const Shape& shape, DType dtype, std::uint64_t seed = 1, bool edges = true) {
  Array a = random_normal(shape, {.seed = seed}).astype(dtype);
  if (!edges || a.size() < 16) return a;
  std::vector<double> v = a.astype(DType::float64).to_vector<double>();
  const double inf = std::numeric_limits<double>::infinity();
  const double some[] = {0.0, -0.0, inf, -inf, std::nan(""), 1.0, -1.0, 65504.0};
  for (std::size_t i = 0; i < std::size(some); ++i) v[2 * i + 1] = some[i];
  return Array::from<double>(v, shape).astype(dtype);
}

inline Array integers(const Shape& shape, DType dtype, int low = -9, int high = 10) {
  Array a = random_uniform(shape, {.seed = 3});
  std::vector<double> v = a.astype(DType::float64).to_vector<double>();
  for (double& x : v) x = std::floor(low + x * (high - low));
  return Array::from<double>(v, shape).astype(dtype);
}

}  // namespace croton::test
