// Flags that functions obey.
#include <croton/croton.h>

#include <catch2/catch.hpp>

using namespace croton;
using Catch::Matchers::Contains;

TEST_CASE("dump names a place in the compiler") {
  Variable x = vector("x");
  const auto make = [&](const char* place) {
    return function({x}, x + 1, {.config = current_config().with("dump", place)});
  };
  CHECK_THROWS_AS(make("after:nothing"), ConfigError);
  CHECK_THROWS_WITH(make("after:fues"), Contains("after:fuse") && Contains("dump"));
}

TEST_CASE("vector_bits changes no bit of elementwise results") {
  Variable x = vector("x");
  const Array values = random_uniform({1003}, {.seed = 4});
  std::vector<Array> results;
  for (const int bits : {0, 128, 256, 512}) {
    const Config config = current_config().with("vector_bits", bits);
    results.push_back(function({x}, tanh(x) * exp(-x), {.config = config})(values)[0]);
  }
  for (const Array& result : results) CHECK(array_equal(result, results[0]));
}

TEST_CASE("deterministic runs library calls so that threads do not matter") {
  Variable x = matrix("x");
  const Array values = random_uniform({300, 300}, {.seed = 5});
  const Config config = current_config().with("deterministic", true);
  Function f = function({x}, dot(x, x), {.config = config});
  CHECK(array_equal(f(values)[0], f(values)[0]));
  CHECK(allclose(f(values)[0], function({x}, dot(x, x))(values)[0], 1e-4, 1e-4));
}

TEST_CASE("flags of the process are refused for one function") {
  Variable x = vector("x");
  CHECK_THROWS_AS(function({x}, x, {.config = current_config().with("threads", 1)}), ConfigError);
  CHECK_THROWS_AS(ConfigScope(current_config().with("device", "null")), ConfigError);
}

TEST_CASE("floatX and cast_policy hold in a ConfigScope") {
  {
    ConfigScope scope(current_config().with("floatX", "float64"));
    CHECK(matrix("x").dtype() == DType::float64);
    CHECK((scalar("n", DType::int32) / 2).dtype() == DType::float64);
  }
  CHECK(matrix("x").dtype() == DType::float32);
  ConfigScope scope(current_config().with("cast_policy", "numpy"));
  CHECK((scalar("n", DType::int32) + scalar("x", DType::float32)).dtype() == DType::float64);
}

// Run alone, with CROTON_FLAGS=floatX=float64: see tests/CMakeLists.txt.
TEST_CASE("arrays made before anything else follow the flag floatX", "[.first]") {
  const Array drawn = random_normal({2}, {.seed = 1}), zeros = Array::zeros({2}), list = {0.5};
  CHECK(drawn.dtype() == DType::float64);
  CHECK(zeros.dtype() == DType::float64);
  CHECK(list.dtype() == DType::float64);
  CHECK(matrix("x").dtype() == DType::float64);
}
