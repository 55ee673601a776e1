#include "croton/shape.h"

#include <catch2/catch.hpp>
#include <limits>

#include "croton/error.h"

using namespace croton;

TEST_CASE("shapes take sizes of any integer type", "[shape]") {
  const std::size_t n = 2;
  const unsigned k = 3;
  const short s = 4;
  const Shape shape = {n, k, s, 5};
  CHECK(shape.to_string() == "(2, 3, 4, 5)");
  CHECK(shape.size() == 4);
  CHECK(shape.numel() == 120);
  CHECK(shape == Shape(std::vector<std::int64_t>{2, 3, 4, 5}));
  CHECK(shape == Shape(std::span<const std::int64_t>(shape.begin(), shape.end())));
  CHECK_FALSE(shape == Shape({2, 3, 4}));
  CHECK(Shape({5}).to_string() == "(5,)");
  CHECK(Shape().to_string() == "()");
  CHECK(Shape({}).numel() == 1);
  CHECK(Shape({kAnyDim, 784}).to_string() == "(?, 784)");
  CHECK(Shape({kAnyDim, 784}).numel() == kAnyDim);
  CHECK(Shape({kAnyDim, 0}).numel() == 0);
  CHECK_FALSE(Shape({kAnyDim, 784}).is_static());
}

TEST_CASE("a shape grows up to eight axes", "[shape]") {
  Shape s;
  for (int i = 0; i < 8; ++i) s.push_back(2);
  CHECK(s.numel() == 256);
  CHECK_THROWS_WITH(s.push_back(2), Catch::Contains("got 9") && Catch::Contains("at most 8"));
  CHECK_THROWS_AS(Shape(std::vector<std::int64_t>(9, 1)), UserError);
  CHECK_THROWS_AS(Shape({1, 1, 1, 1, 1, 1, 1, 1, 1}), UserError);
  s.pop_back();
  CHECK(s.size() == 7);
}

TEST_CASE("sizes that overflow are errors", "[shape]") {
  const std::int64_t big = std::int64_t{1} << 40;
  CHECK_THROWS_AS(Shape({big, big}).numel(), UserError);
  CHECK(Shape({big, 0, big}).numel() == 0);
  CHECK_THROWS_WITH(Shape({std::numeric_limits<std::uint64_t>::max()}),
                    Catch::Contains("18446744073709551615"));
}
