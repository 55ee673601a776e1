// The same expressions on a GPU and on the CPU.
#pragma once

#include <croton/croton.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstddef>
#include <cstring>
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

/// Whether two numbers differ by at most `relative` of the larger one, or of 1. NaN is near NaN
/// only, an infinity only itself.
inline bool near(double a, double b, double relative) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (std::isinf(a) || std::isinf(b)) return a == b;
  return std::abs(a - b) <= relative * std::max({std::abs(a), std::abs(b), 1.0});
}

/// Numbers that are near each other; with `relative` 0 the same bits, except that any NaN is as
/// good as another.
inline void check_close(const Array& got_anywhere, const Array& wanted_anywhere, double relative) {
  const Array got = got_anywhere.to_host().contiguous();
  const Array wanted = wanted_anywhere.to_host().contiguous();
  REQUIRE(got.dtype() == wanted.dtype());
  REQUIRE(got.shape() == wanted.shape());
  const std::vector<double> a = got.astype(DType::float64).to_vector<double>();
  const std::vector<double> b = wanted.astype(DType::float64).to_vector<double>();
  const std::size_t size = size_of(got.dtype());
  const auto* p = static_cast<const std::byte*>(got.raw_data());
  const auto* q = static_cast<const std::byte*>(wanted.raw_data());
  for (std::size_t i = 0; i < a.size(); ++i) {
    const bool same = std::memcmp(p + i * size, q + i * size, size) == 0;
    const bool nan = std::isnan(a[i]) && std::isnan(b[i]);
    if (same || nan || (relative != 0 && near(a[i], b[i], relative))) continue;
    INFO("element " << i << ": got " << a[i] << ", wanted " << b[i]);
    CHECK(same);
    return;
  }
}

/// Checks what a GPU gives against the CPU.
inline void check_on_both(const std::vector<Array>& values, const Build& build, double relative = 0,
                          const char* gpu = "dev0") {
  const std::vector<Array> wanted = on_host([&] { return outputs_on("host", values, build); });
  if (keeps_host_values()) return;
  const std::vector<Array> got = outputs_on(gpu, values, build);
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
