// Random numbers that are fresh in each call.
#include <croton/croton.h>

#include <catch2/catch.hpp>
#include <cmath>

using namespace croton;

namespace {

double mean_of(const Array& values) {
  double sum = 0;
  for (const double v : values.astype(DType::float64).to_vector<double>()) sum += v;
  return sum / static_cast<double>(values.size());
}

double variance_of(const Array& values) {
  const double mean = mean_of(values);
  double sum = 0;
  for (const double v : values.astype(DType::float64).to_vector<double>()) {
    sum += (v - mean) * (v - mean);
  }
  return sum / static_cast<double>(values.size());
}

template <class Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const GraphError& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("the first call gives the numbers of random_uniform and random_normal") {
  RandomStream rng(42);
  for (const DType dtype : {DType::float32, DType::float64, DType::float16}) {
    const std::uint64_t stream = rng.states().size();
    Function f = function({}, rng.uniform({5, 7}, {.dtype = dtype}));
    CHECK(array_equal(f()[0],
                      random_uniform({5, 7}, {.seed = 42, .dtype = dtype, .stream = stream})));
  }
  const std::uint64_t stream = rng.states().size();
  Function f = function({}, rng.normal({1001}));
  CHECK(allclose(f()[0], random_normal({1001}, {.seed = 42, .stream = stream}), 1e-5, 1e-6));
}

TEST_CASE("calls go on where the last one ended, and reset starts again") {
  RandomStream rng(1);
  Function f = function({}, rng.uniform({10}));
  const Array first = f()[0], second = f()[0];
  CHECK_FALSE(array_equal(first, second));
  // Ten numbers take three blocks of four.
  CHECK(rng.states()[0].get_value().item<std::int64_t>() == 24);
  const Array all = random_uniform({24}, {.seed = 1});
  CHECK(array_equal(first, all.slice(0, 0, 10)));
  CHECK(array_equal(second, all.slice(0, 12, 22)));
  rng.reset();
  CHECK(array_equal(f()[0], first));
  CHECK(array_equal(f()[0], second));

  RandomStream same(1), other(2);
  CHECK(array_equal(function({}, same.uniform({10}))()[0], first));
  CHECK_FALSE(array_equal(function({}, other.uniform({10}))()[0], first));
}

TEST_CASE("draws are independent, and one draw used twice is one") {
  RandomStream rng(3);
  const std::int64_t n = 20000;
  Variable a = rng.uniform({n}), b = rng.uniform({n});
  Outputs out = function({}, {a, b, a - a, mean((a - 0.5) * (b - 0.5))})();
  CHECK_FALSE(array_equal(out[0], out[1]));
  CHECK(array_equal(out[2], Array::zeros({n})));
  // Within five standard deviations of 0: each product has the variance 1 / 144.
  CHECK(std::abs(out[3].item<float>()) < 5 / 12.0 / std::sqrt(n));
}

TEST_CASE("numbers have the distributions that they should") {
  RandomStream rng(4);
  const std::int64_t n = 100000;
  const double error = 5 / std::sqrt(n);  // five standard deviations of a mean of variance 1
  Outputs out = function(
      {}, {rng.uniform({n}, {.low = -1, .high = 3}), rng.normal({n}, {.mean = 2.0, .stddev = 0.5}),
           rng.bernoulli({n}, 0.25), rng.integers({n}, -2, 3)})();
  CHECK(std::abs(mean_of(out[0]) - 1) < error * 1.2);
  CHECK(variance_of(out[0]) == Approx(16.0 / 12).epsilon(0.02));
  CHECK(std::abs(mean_of(out[1]) - 2) < error * 0.5);
  CHECK(variance_of(out[1]) == Approx(0.25).epsilon(0.03));
  CHECK(out[2].dtype() == DType::boolean);
  CHECK(std::abs(mean_of(out[2]) - 0.25) < error * 0.5);
  CHECK(out[3].dtype() == DType::int64);
  std::vector<int> counts(5);
  for (const std::int64_t v : out[3].to_vector<std::int64_t>()) {
    REQUIRE((v >= -2 && v < 3));
    ++counts[static_cast<std::size_t>(v + 2)];
  }
  for (const int count : counts) CHECK(std::abs(count - n / 5.0) < 5 * std::sqrt(n * 0.16));
}

TEST_CASE("sizes may be symbolic, also through givens") {
  RandomStream rng(5);
  Variable x = matrix("x");
  Variable noise = rng.uniform({x.shape(0), 3});
  Function f = function({x}, {noise, x + 1});
  CHECK(f(Array::zeros({2, 4}))[0].shape() == Shape{2, 3});
  CHECK(rng.states()[0].get_value().item<std::int64_t>() == 8);
  CHECK(f(Array::zeros({5, 1}))[0].shape() == Shape{5, 3});
  CHECK(rng.states()[0].get_value().item<std::int64_t>() == 24);

  Shared data = shared(Array::zeros({4, 4}));
  CHECK(function({}, noise, {.givens = {{x, data}}})()[0].shape() == Shape{4, 3});
  CHECK(rng.states()[0].get_value().item<std::int64_t>() == 36);
}

TEST_CASE("gradients flow to the parameters of a draw") {
  RandomStream rng(6);
  Shared mu = shared(1.5f), sigma = shared(2.0f);
  const std::int64_t n = 64;
  Variable z = rng.normal({n}, {.mean = mu, .stddev = sigma});
  std::vector<Variable> g = grad(sum(z), {mu, sigma});
  Outputs out = function({}, {z, g[0], g[1]})();
  CHECK(out[1].item<float>() == Approx(n));
  // z = mu + sigma * noise
  CHECK(out[2].item<float>() == Approx((mean_of(out[0]) - 1.5) / 2 * n).epsilon(1e-4));
  Variable u = rng.uniform({n}, {.low = mu, .high = sigma});
  Outputs ends = function({}, {u, grad(sum(u), mu), grad(sum(u), sigma)})();
  CHECK(ends[1].item<float>() + ends[2].item<float>() == Approx(n));
}

TEST_CASE("numbers depend neither on threads nor on contexts") {
  // Large enough that several threads take part.
  RandomStream rng(7);
  const std::int64_t n = 1 << 20;
  CHECK(array_equal(function({}, rng.uniform({n}))()[0], random_uniform({n}, {.seed = 7})));
}

TEST_CASE("a given update takes the place of the counter's own, and none is possible") {
  RandomStream rng(8);
  Variable u = rng.uniform({4});
  Shared counter = rng.states()[0];
  function({}, u, {.updates = {{counter, counter + 400}}})();
  CHECK(counter.get_value().item<std::int64_t>() == 400);
  Function still = function({}, u, {.no_default_updates = true});
  CHECK(array_equal(still()[0], still()[0]));
}

TEST_CASE("wrong parameters of draws are errors that name the draw") {
  RandomStream rng(9);
  CHECK(error_of([&] { rng.uniform({3}, {.low = 2, .high = 1}); }).find("[uniform]") == 0);
  CHECK(error_of([&] { rng.normal({3}, {.stddev = -1}); }).find("[normal]") == 0);
  CHECK(error_of([&] { rng.bernoulli({3}, 1.5); }).find("[bernoulli]") == 0);
  CHECK(error_of([&] { rng.integers({3}, 5, 5); }).find("[integers]") == 0);
  CHECK(error_of([&] { rng.integers({3}, 0.5, 5); }).find("integer: got float32") !=
        std::string::npos);
  CHECK_FALSE(error_of([&] { rng.uniform({-3}); }).empty());
  CHECK_FALSE(error_of([&] { rng.uniform({3}, {.dtype = DType::int32}); }).empty());
  CHECK(rng.states().empty());
  CHECK_THROWS_AS(RandomStream(1, "nowhere"), ConfigError);
}
