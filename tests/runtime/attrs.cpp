#include "runtime/attrs.h"

#include <catch2/catch.hpp>

#include "croton/error.h"

using namespace croton;

TEST_CASE("attributes print in their order") {
  Attrs a = {{"axis", std::int64_t(1)},
             {"alpha", 1.0},
             {"epilogue", std::string("relu")},
             {"axes", std::vector<std::int64_t>{0, 2}}};
  CHECK(a.to_text() == "axis=1, alpha=1.0, epilogue=\"relu\", axes=[0, 2]");
  CHECK(Attrs().to_text().empty());
}

TEST_CASE("attributes are read by type") {
  Attrs a = {{"n", std::int64_t(3)}, {"x", 0.5}};
  CHECK(a.integer("n") == 3);
  CHECK(a.real("x") == 0.5);
  CHECK(a.integer_or("m", 7) == 7);
  CHECK(a.real_or("y", 2.0) == 2.0);
  CHECK(a.text_or("t", "none") == "none");
  CHECK_THROWS_AS(a.integer("m"), InternalError);
  CHECK_THROWS_AS(a.real("n"), InternalError);
  a.set("n", std::int64_t(4));
  CHECK(a.integer("n") == 4);
}

TEST_CASE("equal attributes hash alike, others do not") {
  const Attrs a = {{"n", std::int64_t(3)}}, b = {{"n", std::int64_t(3)}};
  CHECK(a == b);
  CHECK(a.hash() == b.hash());
  CHECK(a.hash() != Attrs({{"n", std::int64_t(4)}}).hash());
  CHECK(a.hash() != Attrs({{"m", std::int64_t(3)}}).hash());
  CHECK(a.hash() != Attrs({{"n", 3.0}}).hash());
  CHECK(Attrs({{"x", 0.0}}).hash() == Attrs({{"x", -0.0}}).hash());
}
