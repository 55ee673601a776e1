// Graphs of many nodes: nothing recurses, nothing is quadratic.
#include <croton/croton.h>

#include <catch2/catch.hpp>
#include <chrono>

using namespace croton;

TEST_CASE("a chain of 1,000,000 nodes is built and destroyed", "[chain]") {
  Variable x = vector("x"), v = x;
  for (int i = 0; i < 1000000; ++i) v = exp(v);
  CHECK(v.ndim() == 1);
  v = x;
  // Shared parts: each node is needed twice.
  for (int i = 0; i < 100000; ++i) v = v * v;
  CHECK(v.ndim() == 1);
}

TEST_CASE("gradients of long chains do not recurse", "[chain]") {
  Variable x = scalar("x"), v = x;
  for (int i = 0; i < 20000; ++i) v = sin(v);
  CHECK(grad(v, x).ndim() == 0);
}

TEST_CASE("a chain of 50,000 nodes compiles and runs", "[chain]") {
  const auto start = std::chrono::steady_clock::now();
  Variable x = vector("x"), v = x;
  for (int i = 0; i < 25000; ++i) v = v * 0.5f + 1.0f;
  Function f = function({x}, v);
  const std::vector<float> result = f(Array({0.0, 8.0}))[0].to_vector<float>();
  CHECK(result[0] == 2.0f);
  CHECK(result[1] == 2.0f);
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  WARN("50,000 nodes: " << time.count() << " s");
}
