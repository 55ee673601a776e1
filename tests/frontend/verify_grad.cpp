// verify_grad finds gradients that are wrong, says where, and lets right ones pass.
#include <croton/croton.h>

#include <cmath>

#include "tests/frontend/error_text.h"

using namespace croton;
using namespace croton::test;

namespace {

using Variables = std::vector<Variable>;

/// Twice the gradient that it should have, or `factor` times.
Variable wrong(const Variable& x, double factor = 2) {
  return custom_gradient({x}, exp(x), [&](const Variables&, const Variable& y, const Variable& g) {
    return Variables{factor * g * y};
  });
}

Array point(DType dtype) { return Array({{0.5, -1.0, 0.25}, {1.5, 0.0, -0.75}}).astype(dtype); }

}  // namespace

TEST_CASE("verify_grad lets right gradients pass in every dtype", "[grad][verify_grad]") {
  for (const DType dtype : {DType::float64, DType::float32, DType::float16, DType::bfloat16}) {
    INFO(name_of(dtype));
    VerifyGradOptions options;
    if (dtype == DType::bfloat16) options.absolute_tolerance = 0.1;  // 8 bits
    CHECK_NOTHROW(verify_grad([](const Variables& in) { return tanh(in[0]) * 0.5; }, {point(dtype)},
                              options));
  }
  for (const DType dtype : {DType::float64, DType::float32}) {
    const auto f = [](const Variables& in) { return dot(sin(in[0]), exp(in[1])).sum(0); };
    CHECK_NOTHROW(verify_grad(f, {point(dtype), Array(point(dtype).transpose())}));
    // One that is not used, and a scalar result.
    CHECK_NOTHROW(
        verify_grad([](const Variables& in) { return in[0].sum(); }, {point(dtype), point(dtype)}));
  }
}

TEST_CASE("verify_grad says where a gradient is wrong", "[grad][verify_grad]") {
  const auto f = [](const Variables& in) { return in[0] + wrong(in[1]); };
  bool thrown = false;
  try {
    verify_grad(f, {point(DType::float64), point(DType::float64)}, {.seed = 3});
  } catch (const GradientError& error) {
    thrown = true;
    const GradientError::Place& p = error.place();
    CHECK(p.argument == 1);
    CHECK(p.index.size() == 2);
    CHECK(p.analytic == Approx(2 * p.numeric).epsilon(1e-5));
    CHECK(p.absolute_error == Approx(p.numeric).epsilon(1e-4));
    CHECK(p.relative_error == Approx(1 / 3.0).epsilon(1e-4));
    CHECK_THAT(error.what(), HasAll({"[verify_grad]", "argument 1", p.index.to_string()}));
  }
  CHECK(thrown);
  CHECK_THROWS_AS(
      verify_grad([](const Variables& in) { return wrong(in[0]); }, {point(DType::float32)}),
      Error);
  CHECK_THROWS_AS(
      verify_grad([](const Variables& in) { return wrong(in[0], NAN); }, {point(DType::float64)}),
      GradientError);
  // Both tolerances must be exceeded.
  const auto slightly = [](const Variables& in) { return wrong(in[0], 1.01); };
  CHECK_THROWS_AS(verify_grad(slightly, {point(DType::float64)}), GradientError);
  CHECK_NOTHROW(verify_grad(slightly, {point(DType::float64)}, {.relative_tolerance = 0.1}));
  CHECK_NOTHROW(verify_grad(slightly, {point(DType::float64)}, {.absolute_tolerance = 1}));
}

TEST_CASE("verify_grad takes tolerances of 0", "[grad][verify_grad]") {
  const auto twice = [](const Variables& in) { return wrong(in[0]); };
  const auto right = [](const Variables& in) { return tanh(in[0]); };
  const std::vector<Array> at{point(DType::float64)};
  CHECK_THROWS_AS(verify_grad(twice, at, {.absolute_tolerance = 0}), GradientError);
  CHECK_THROWS_AS(verify_grad(twice, at, {.relative_tolerance = 0}), GradientError);
  CHECK_THROWS_AS(verify_grad(twice, at, {.absolute_tolerance = 0, .relative_tolerance = 0}),
                  GradientError);
  CHECK_NOTHROW(verify_grad(right, at, {.absolute_tolerance = 0}));
  CHECK_NOTHROW(verify_grad(right, at, {.relative_tolerance = 0}));
  // No error at all is within 0.
  const auto none = [](const Variables& in) { return zeros_like(in[0]); };
  CHECK_NOTHROW(verify_grad(none, at, {.absolute_tolerance = 0, .relative_tolerance = 0}));
}

TEST_CASE("verify_grad moves values that a small step would leave", "[grad][verify_grad]") {
  const auto f = [](const Variables& in) { return square(in[0]); };
  const auto twice = [](const Variables& in) {
    return custom_gradient({in[0]}, square(in[0]),
                           [](const Variables& x, const Variable&, const Variable& g) {
                             return Variables{4 * g * x[0]};
                           });
  };
  const std::pair<DType, double> cases[] = {{DType::float64, 1e12},
                                            {DType::float32, 8192},
                                            {DType::float32, -1e9},
                                            {DType::bfloat16, 64},
                                            {DType::float16, 128}};
  for (const auto& [dtype, large] : cases) {
    INFO(name_of(dtype) << " " << large);
    const Array at = Array::full({1}, large, dtype);
    // The curvature counts, too: the step is a tenth of a narrow number.
    const VerifyGradOptions options{.relative_tolerance = 0.1};
    CHECK_NOTHROW(verify_grad(f, {at}, options));
    CHECK_THROWS_AS(verify_grad(twice, {at}, options), GradientError);
  }
  // A step of the user's that is lost, and one that is too much for the largest number.
  const auto itself = [](const Variables& in) { return in[0] * 2; };
  CHECK_NOTHROW(verify_grad(itself, {Array::full({1}, 1, DType::float32)},
                            {.eps = 1e-12, .relative_tolerance = 0.5}));
  CHECK_NOTHROW(verify_grad([](const Variables& in) { return in[0] / 4; },
                            {Array::full({1}, 65504, DType::float16)},
                            {.relative_tolerance = 0.1}));
}

TEST_CASE("verify_grad says what it cannot check", "[grad][verify_grad]") {
  const auto f = [](const Variables& in) { return in[0]; };
  CHECK_THAT(error_text<GraphError>([&] {
               verify_grad(f, {Array({1, 2})});
             }),
             HasAll({"[verify_grad]", "int64", "argument 0", "verify_grad.cpp:"}));
  CHECK_THAT(error_text<GraphError>([&] { verify_grad(f, {}); }), HasAll({"got none"}));
  CHECK_THAT(error_text<GraphError>([&] {
               verify_grad([](const Variables& in) { return gt(in[0], 0); },
                           {point(DType::float64)});
             }),
             HasAll({"must give a float"}));
  CHECK_THAT(error_text<GraphError>([&] { verify_grad(f, {point(DType::float64)}, {.eps = 0.0}); }),
             HasAll({"eps", "got 0"}));
  const auto refused = [&](const VerifyGradOptions& options) {
    return error_text<GraphError>([&] { verify_grad(f, {point(DType::float64)}, options); });
  };
  CHECK_THAT(refused({.eps = INFINITY}), HasAll({"eps", "got inf"}));
  CHECK_THAT(refused({.absolute_tolerance = -1e-3}), HasAll({"absolute_tolerance", "got -0.001"}));
  CHECK_THAT(refused({.relative_tolerance = NAN}), HasAll({"relative_tolerance", "got nan"}));
  CHECK_THAT(refused({.tests = 0}), HasAll({"tests", "got 0"}));
}
