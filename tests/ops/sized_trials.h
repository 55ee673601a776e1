// The same graph on arrays of many sizes and dtypes, exactly as the references of its ops.
#pragma once

#include <cstdlib>
#include <random>

#include "croton/grad.h"
#include "croton/math.h"
#include "croton/reduce.h"
#include "croton/tensor.h"
#include "tests/ops/batch.h"

namespace croton::test {

/// Whole numbers from 0 to `highest`.
inline Array whole_numbers(const Shape& shape, DType dtype, int highest) {
  std::mt19937 random(5);
  std::vector<std::int64_t> values(static_cast<std::size_t>(shape.numel()));
  for (std::int64_t& v : values) v = std::uniform_int_distribution<int>(0, highest)(random);
  return Array::from<std::int64_t>(values, shape).astype(dtype);
}

/// With sizes known and unknown; on devices where compiling takes long, in turn.
inline void add_trials(std::vector<Trial>& trials, Variable (*build)(const Variable&),
                       const Array& x) {
  static int turn = 0;
  for (const bool known : {true, false}) {
    if (std::getenv("CROTON_TEST_LAYOUTS") != nullptr && ++turn % 4 > 0) continue;
    Shape sizes = x.shape();
    for (std::int64_t& size : sizes) size = known || size == 1 ? size : kAnyDim;
    const Variable symbol = input(x.dtype(), sizes);
    const Variable y = build(symbol);
    trials.push_back({y.node()->op->name + " of " + std::string(name_of(x.dtype())) + " " +
                          x.shape().to_string() + (known ? "" : ", unknown"),
                      y,
                      {symbol},
                      {x}});
  }
}

inline void check_exactly(const std::vector<Trial>& trials) {
  for_each_result(trials, [](const Trial& trial, const Array& result) {
    INFO(trial.title);
    REQUIRE(array_equal(result, trial.reference()));
  });
}

/// The gradient of sum(weights * y), compiled, where weights are 1, 2, 3, ...
inline void check_slope(Variable (*build)(const Variable&), const std::vector<double>& at,
                        const std::vector<double>& expected) {
  const Variable x = input(DType::float64, {static_cast<std::int64_t>(at.size())});
  const Variable y = build(x);
  const Variable weights = reshape(arange(y.size(), DType::float64) + 1.0, y.shape());
  const Array result = function({x}, grad(sum(y * weights), x), {.on_unused = OnUnused::ignore})
                           .call({Array::from<double>(at)})[0];
  INFO("got " << result);
  CHECK(allclose(result, Array::from<double>(expected), 1e-10, 1e-12, true));
}

}  // namespace croton::test
