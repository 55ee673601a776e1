#include "config/nearest_name.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

using namespace croton;

TEST_CASE("the distance of names counts edits, swaps once and case never", "[config]") {
  CHECK(name_distance("", "") == 0);
  CHECK(name_distance("", "abc") == 3);
  CHECK(name_distance("kitten", "sitting") == 3);
  CHECK(name_distance("fuse", "fsue") == 1);
  CHECK(name_distance("floatX", "FLOATx") == 0);
  CHECK(name_distance("abc", "abc_d") == 2);
}

TEST_CASE("the nearest name is suggested, and a far one is not", "[config]") {
  std::vector<std::string> names{"softmax", "softplus", "sum", "optimizer_including"};
  CHECK(nearest_name("softmx", names) == "softmax");
  CHECK(nearest_name("Sum", names) == "sum");
  CHECK(nearest_name("optimizer", names) == "optimizer_including");
  CHECK(nearest_name("zzzz", names).empty());
  CHECK(nearest_name("", std::vector<std::string>{"abc"}).empty());
  CHECK(did_you_mean("softplsu", names) == "; did you mean 'softplus'?");
  CHECK(did_you_mean("zzzz", names).empty());
}
