// Functions that a program's static objects hold are called and destroyed when main has returned.
#include <croton/croton.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>

using namespace croton;

namespace {

struct Saver {
  Function f;
  bool called = false;

  ~Saver() {
    if (!called) return;
    // Sizes that no call had yet: nothing is there from before.
    const float got = f(Array::full({123}, 2.0f))[0].item<float>();
    if (got == 246.0f) return;
    std::printf("a call of a static object's destructor gave %g, not 246\n",
                static_cast<double>(got));
    std::_Exit(1);
  }
};

Saver saver;

}  // namespace

TEST_CASE("static objects call functions when the program ends") {
  const ContextScope on("dev1");
  Variable x = vector("x");
  saver.f = function({x}, sum(x));
  CHECK(saver.f(Array::ones({100}))[0].item<float>() == 100.0f);
  saver.called = true;
}
