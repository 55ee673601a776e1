#include "croton/fmt.h"

#include <catch2/catch.hpp>

using namespace croton;

TEST_CASE("fmt prints arrays, shapes and dtypes", "[array]") {
  CHECK(fmt::format("{}", Array{1, 2}) == "[1 2]");
  CHECK(fmt::format("{:>8}", Array(3)) == "       3");
  CHECK(fmt::format("{} {}", Shape({2, 3}), DType::boolean) == "(2, 3) bool");
}
