// Where values live and what crosses, as debugprint shows it.
#include <croton/croton.h>

#include <catch2/catch.hpp>

using namespace croton;
using Catch::Matchers::Contains;

TEST_CASE("a function's text shows contexts, transfers and their bytes") {
  Shared a = shared(Array::ones({8, 4}), {.name = "a", .target = "dev0"});
  Shared b = shared(Array::ones({8, 4}), {.name = "b", .target = "dev1"});
  Variable x = matrix("x");
  Function f = function({x}, {tanh(a).transfer("dev1") * b, exp(x)}, {.name = "across"});
  const std::string text = debug_text(f);
  CHECK_THAT(text, Contains("a [id ") && Contains("@dev0 shared") && Contains("@dev1 shared"));
  CHECK_THAT(text, Contains("(128 bytes from dev0)"));
  CHECK_THAT(text, Contains("on dev0, kernel: tanh") && Contains("on dev1, kernel: mul"));
  CHECK_THAT(text, Contains("copy: transfer of 128 bytes from dev0"));
  CHECK(f.output_contexts() == std::vector<std::string>{"dev1", "cpu"});

  Shared c = shared(Array::ones({2, 2}), {.name = "c", .target = "dev0", .resizable = true});
  const Inspection open = inspect(function({}, exp(c).transfer("dev1") + 1));
  CHECK_THAT(open.fused, Contains("4 * c.shape[0] * c.shape[1] bytes from dev0"));
}

TEST_CASE("random numbers do not depend on the context that draws them") {
  for (const char* where : {"dev0", "dev1"}) {
    RandomStream rng(21, where);
    Outputs out = function({}, {rng.uniform({33, 5}), rng.normal({100}, {.mean = 1, .stddev = 2})},
                           {.keep_on_device = true})();
    CHECK(out[0].context() == where);
    CHECK(array_equal(out[0].to_host(), random_uniform({33, 5}, {.seed = 21})));
    RandomStream here(21);
    Outputs same =
        function({}, {here.uniform({33, 5}), here.normal({100}, {.mean = 1, .stddev = 2})})();
    CHECK(array_equal(out[1].to_host(), same[1]));
  }
}
