// Gradients, first and second, at points where a rule taken at its word gives NaN though there is a
// limit.
#include "croton/grad.h"
#include "croton/indexing.h"
#include "croton/jacobian.h"
#include "croton/math.h"
#include "croton/nn.h"
#include "croton/reduce.h"
#include "croton/tensor.h"
#include "tests/ops/op_cases.h"

using namespace croton;
using namespace croton::test;

namespace {

using Slopes = std::vector<double>;
constexpr double kInf = INFINITY;

/// A function of a vector at a point.
struct Probe {
  Variable x = floats({kAnyDim}, "x");
  Values at;

  explicit Probe(Slopes point) : at{{x, reals(point)}} {}
  Slopes first(const Variable& cost) const { return value(grad(cost, x), at).to_vector<double>(); }
  /// The Hessian, row by row.
  Slopes second(const Variable& cost) const {
    const Variable matrix = hessian(cost, x, {.disconnected = Disconnected::ignore});
    return value(matrix, at).to_vector<double>();
  }
};

}  // namespace

TEST_CASE("gradients of products with zeros", "[ops][grad][limits]") {
  const auto first = [](const Slopes& point) {
    const Probe p(point);
    return p.first(prod(p.x));
  };
  CHECK(first({2, 3, 4}) == Slopes{12, 8, 6});
  CHECK(first({2, 0, 4}) == Slopes{0, 8, 0});
  CHECK(first({0, 3, 0}) == Slopes{0, 0, 0});
  CHECK(first({0, 0, 0}) == Slopes{0, 0, 0});
  const auto second = [](const Slopes& point) {
    const Probe p(point);
    return p.second(prod(p.x));
  };
  CHECK(second({2, 3, 4}) == Slopes{0, 4, 3, 4, 0, 2, 3, 2, 0});
  CHECK(second({2, 0, 4}) == Slopes{0, 4, 0, 4, 0, 2, 0, 2, 0});
  CHECK(second({0, 3, 0}) == Slopes{0, 0, 3, 0, 0, 0, 3, 0, 0});
  CHECK(second({0, 0, 0}) == Slopes(9, 0.0));
  // The third one, by the sum of all second ones: of x y z that is 2 (x + y + z), of which the
  // gradient is 2 everywhere.
  const Probe p({0, 0, 0});
  CHECK(p.first(sum(hessian(prod(p.x), p.x))) == Slopes{2, 2, 2});
}

TEST_CASE("second derivatives of products over axes", "[ops][grad][limits]") {
  const Variable x = floats({kAnyDim, kAnyDim, kAnyDim});
  const Values at{{x, reals({1, 0, 2, 3, 0, 5, 6, 0, 0, 7, 8, 9}, {2, 3, 2})}};
  // Each row of the Hessian of a product is the gradient of the product of the others.
  const Array got = value(hessian(sum(prod(x, {0, 2})), x), at);
  const std::vector<double> v = at.at(x).to_vector<double>();
  for (int i = 0; i < 12; ++i) {
    for (int j = 0; j < 12; ++j) {
      double want = i != j && i / 2 % 3 == j / 2 % 3 ? 1 : 0;
      for (int k = 0; k < 12; ++k) {
        if (k != i && k != j && k / 2 % 3 == i / 2 % 3) want *= v[static_cast<std::size_t>(k)];
      }
      INFO(i << ' ' << j);
      CHECK(got.to_vector<double>()[static_cast<std::size_t>(12 * i + j)] == want);
    }
  }
}

TEST_CASE("gradients of powers of zero", "[ops][grad][limits]") {
  const Probe p({0});
  const auto both = [&](const Variable& y) {
    return Slopes{p.first(sum(y))[0], p.second(sum(y))[0]};
  };
  CHECK(both(pow(p.x, 0)) == Slopes{0, 0});
  CHECK(both(pow(p.x, 1)) == Slopes{1, 0});
  CHECK(both(pow(p.x, 2)) == Slopes{0, 2});
  CHECK(both(pow(p.x, 3)) == Slopes{0, 0});
  CHECK(both(pow(p.x, 2.5)) == Slopes{0, 0});
  CHECK(both(pow(p.x, 1.5)) == Slopes{0, kInf});
  CHECK(p.first(sum(pow(p.x, 0.5)))[0] == kInf);
  // Exponents that are not known when the graph is built, and gradients by them.
  for (const double e : {0.0, 1.0, 2.0, 3.0, 2.5}) {
    INFO("to the power of " << e);
    const Variable exponent = floats({kAnyDim});
    Values at = p.at;
    at[exponent] = reals({e});
    const Variable y = sum(pow(p.x, exponent));
    const std::vector<Variable> slopes = grad(y, {p.x, exponent});
    CHECK(value(slopes[0], at).to_vector<double>()[0] == (e == 1 ? 1 : 0));
    CHECK(value(slopes[1], at).to_vector<double>()[0] == 0);
    const Array matrix = value(hessian(y, p.x), at);
    CHECK(matrix.to_vector<double>()[0] == (e == 2 ? 2 : 0));
    CHECK(value(hessian(y, exponent), at).to_vector<double>()[0] == 0);
  }
}

TEST_CASE("the branch that was not taken gives no NaN, in second derivatives too",
          "[ops][grad][limits]") {
  const Probe p({0, -1, 4});
  const Variable positive = gt(p.x, 0);
  const auto diagonal = [&](const Variable& cost) {
    const Slopes all = p.second(cost);
    return Slopes{all[0], all[4], all[8]};
  };
  CHECK(p.first(sum(where(positive, sqrt(p.x), 0))) == Slopes{0, 0, 0.25});
  CHECK(diagonal(sum(where(positive, sqrt(p.x), 0))) == Slopes{0, 0, -0.03125});
  CHECK(p.first(sum(where(positive, log(p.x), p.x))) == Slopes{1, 1, 0.25});
  CHECK(diagonal(sum(where(positive, log(p.x), p.x))) == Slopes{0, 0, -0.0625});
  CHECK(diagonal(sum(where(positive, 1 / p.x, 0))) == Slopes{0, 0, 0.03125});
  CHECK(diagonal(sum(where(positive, pow(p.x, 1.5), 0))) == Slopes{0, 0, 0.375});
  // A mask below a reduction.
  CHECK(p.first(sqrt(sum(where(positive, p.x, 0)))) == Slopes{0, 0, 0.25});
}

TEST_CASE("slopes of functions where their rules lose digits or divide infinities",
          "[ops][grad][limits]") {
  // erfcx'(x) by its continued fraction in 60 digits (mpmath).
  const std::vector<double> at{-3, 0, 0.5, 3.75, 4.25, 7.5, 8.5, 20, 1e3, 1e8, 1e100, kInf};
  const std::vector<double> slopes{
      -97237.061503164615265,     -1.1283791670955125739,    -0.51268882290258669903,
      -0.036456257532723531054,   -0.028944331414615332111,  -0.0097737711523623288192,
      -0.0076520845958465943024,  -0.0014052174534598011502, -5.6418873726549666885e-7,
      -5.6418958354775620232e-17, -5.64189583547756269e-201, -0.0};
  const Probe p(at);
  const Slopes got = p.first(sum(erfcx(p.x)));
  for (std::size_t k = 0; k < at.size(); ++k) {
    INFO("erfcx at " << at[k]);
    CHECK(got[k] == Approx(slopes[k]).epsilon(2e-13).margin(0));
  }
  const Variable single = input(DType::float32, {kAnyDim});
  const Array narrow =
      value(grad(sum(erfcx(single)), single), {{single, reals(at).astype(DType::float32)}});
  for (std::size_t k = 0; k + 2 < at.size(); ++k) {
    INFO("erfcx in float32 at " << at[k]);
    CHECK(narrow.to_vector<float>()[k] == Approx(slopes[k]).epsilon(1e-5).margin(0));
  }
  const Variable x = floats({}), y = floats({});
  const auto first = [&](const Variable& of, double a, double b) {
    const Values values{{x, Array::full({}, a, DType::float64)},
                        {y, Array::full({}, b, DType::float64)}};
    Slopes both;
    for (const Variable& slope : grad(of, {x, y}, {.disconnected_inputs = Disconnected::ignore})) {
      both.push_back(value(slope, values).item<double>());
    }
    return both;
  };
  const double half = std::sqrt(0.5);
  CHECK(first(hypot(x, y), kInf, 1) == Slopes{1, 0});
  CHECK(first(hypot(x, y), 2, -kInf) == Slopes{0, -1});
  CHECK(first(hypot(x, y), -kInf, kInf) == Slopes{-half, half});
  CHECK(first(hypot(x, y), 0, 0) == Slopes{0, 0});
  CHECK(first(hypot(x, y), 3, 4) == Slopes{0.6, 0.8});
  CHECK(first(hypot(x, y), 1.5e308, 1.5e308)[0] == Approx(half).epsilon(1e-15));
  CHECK(std::isnan(first(hypot(x, y), NAN, 1)[0]));
  CHECK(first(log1mexp(x), 0.0, 0)[0] == -kInf);
  CHECK(first(log1mexp(x), -0.0, 0)[0] == -kInf);
  CHECK(first(log1mexp(x), -kInf, 0)[0] == 0);
  CHECK(first(log1mexp(x), -1e-9, 0)[0] == Approx(-1e9).epsilon(1e-8));
  CHECK(first(grad(log1mexp(x), x), 0, 0)[0] == -kInf);
  // -exp(x) / (1 - exp(x))^2.
  CHECK(first(grad(log1mexp(x), x), -2, 0)[0] ==
        Approx(-std::exp(-2) / std::pow(1 - std::exp(-2), 2)).epsilon(1e-13));
  CHECK(first(y0(x), 0, 0)[0] == kInf);
  CHECK(first(y1(x), 0, 0)[0] == kInf);
  CHECK(first(nextafter(x, y), 1, 2) == Slopes{1, 0});
}

TEST_CASE("gradients of standard deviations of equal numbers", "[ops][grad][limits]") {
  const Probe same({3, 3, 3});
  CHECK(same.first(croton::std(same.x)) == Slopes{0, 0, 0});
  const Probe p({1, 3});
  CHECK(p.first(croton::std(p.x)) == Slopes{-0.5, 0.5});
  CHECK(std::isnan(value(croton::std(p.x), {{p.x, reals({NAN, 1})}}).item<double>()));
}

TEST_CASE("gradients of softmax and its kin beside -inf", "[ops][grad][limits]") {
  const Probe p({-kInf, 0, 0});
  CHECK(p.first(softmax(p.x)(1)) == Slopes{0, 0.25, -0.25});
  CHECK(p.first(log_softmax(p.x)(1)) == Slopes{0, 0.5, -0.5});
  CHECK(p.first(logsumexp(p.x)) == Slopes{0, 0.5, 0.5});
  CHECK(p.second(logsumexp(p.x)) == Slopes{0, 0, 0, 0, 0.25, -0.25, 0, -0.25, 0.25});
  CHECK(p.second(softmax(p.x)(1)) == Slopes(9, 0.0));
  // Nothing but -inf: the result is -inf whatever one of them does.
  const Probe dead({-kInf, -kInf});
  CHECK(value(logsumexp(dead.x), dead.at).item<double>() == -kInf);
  CHECK(dead.first(logsumexp(dead.x)) == Slopes{0, 0});
  CHECK(dead.second(logsumexp(dead.x)) == Slopes(4, 0.0));
  // One row of several.
  const Variable x = floats({kAnyDim, kAnyDim});
  const Values at{{x, reals({-kInf, -kInf, 0, 0}, {2, 2})}};
  CHECK(value(grad(sum(logsumexp(x)), x), at).to_vector<double>() == Slopes{0, 0, 0.5, 0.5});
  // A loss that looks at some logits only.
  CHECK(p.first(sum(where(isfinite(p.x), log_softmax(p.x), 0))) == Slopes{0, 0, 0});
}

TEST_CASE("first and second derivatives far out", "[ops][grad][limits]") {
  const Probe p({-1000, 1000});
  for (const Variable& y : {sigmoid(p.x), softplus(p.x), tanh(p.x), relu(p.x)}) {
    INFO(y.node()->op->name);
    for (const double slope : p.first(sum(y))) CHECK(std::isfinite(slope));
    for (const double slope : p.second(sum(y))) CHECK(slope == 0);
  }
  CHECK(p.first(sum(softplus(p.x))) == Slopes{0, 1});
}
