// Second derivatives of every op against finite differences of the first ones, in float64.
#include "croton/grad.h"
#include "croton/math.h"
#include "croton/reduce.h"
#include "tests/ops/op_cases.h"

using namespace croton;
using namespace croton::test;

TEST_CASE("second derivatives of every op agree with differences of the first", "[ops][grad]") {
  constexpr double kStep = 1e-5;
  std::mt19937 random(51);
  for (OpCase& c : differentiable_cases(true, 50)) {
    INFO(c.text());
    const std::vector<Variable> wrt = float_inputs(c);
    const Array weights =
        drawn_values(value(c.y, c.values).shape(), {-1, 1}, DType::float64, random);
    const std::vector<Variable> slopes =
        grad(sum(c.y * weights), wrt, {.disconnected_inputs = Disconnected::ignore});
    std::vector<Variable> v;
    for (const Variable& x : wrt) {
      v.push_back(input(DType::float64, x.static_shape(), "v"));
      c.values[v.back()] = drawn_values(c.values.at(x).shape(), {-1, 1}, DType::float64, random);
    }
    const std::vector<Variable> second =
        Rop(slopes, wrt, v, {.disconnected = Disconnected::ignore});
    Values up = c.values, down = c.values;
    for (std::size_t k = 0; k < wrt.size(); ++k) {
      up[wrt[k]] = moved(c.values.at(wrt[k]), kStep, c.values.at(v[k]));
      down[wrt[k]] = moved(c.values.at(wrt[k]), -kStep, c.values.at(v[k]));
    }
    for (std::size_t k = 0; k < wrt.size(); ++k) {
      INFO("input " << k);
      const std::vector<double> got = value(second[k], c.values).to_vector<double>();
      const std::vector<double> high = value(slopes[k], up).to_vector<double>();
      const std::vector<double> low = value(slopes[k], down).to_vector<double>();
      REQUIRE(got.size() == high.size());
      for (std::size_t i = 0; i < got.size(); ++i) {
        const double want = (high[i] - low[i]) / (2 * kStep);
        CHECK(got[i] == Approx(want).epsilon(1e-4).margin(1e-6));
      }
    }
  }
}
