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
}
