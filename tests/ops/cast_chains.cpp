// Casts of casts are what one after the other gives, however rules and kernels join them.
#include "croton/context.h"
#include "croton/function.h"
#include "tests/ops/op_cases.h"

using namespace croton;
using namespace croton::test;

namespace {

constexpr DType kAll[] = {DType::boolean, DType::int8,    DType::int16,    DType::int32,
                          DType::int64,   DType::uint8,   DType::uint16,   DType::uint32,
                          DType::uint64,  DType::float16, DType::bfloat16, DType::float32,
                          DType::float64};

}  // namespace

TEST_CASE("casts of casts are cast one after the other", "[ops][cast]") {
  for (const DType from : kAll) {
    const Variable x = input(from, {kAnyDim}, "x");
    std::vector<double> numbers{0, 1, 2, 100, 127};
    if (!is_unsigned(from) && !is_bool(from)) numbers.insert(numbers.end(), {-1, -2, -100, -128});
    if (is_float(from)) numbers.insert(numbers.end(), {0.5, -0.5, 2.75, -2.75, 200, -200, 3e4});
    const Values at{{x, reals(numbers, {static_cast<std::int64_t>(numbers.size())}).astype(from)}};
    std::vector<Variable> chains;
    std::vector<std::string> titles;
    for (const DType middle : kAll) {
      for (const DType to : kAll) {
        chains.push_back(x.astype(middle).astype(to));
        titles.push_back(std::string(name_of(from)) + " " + std::string(name_of(middle)) + " " +
                         std::string(name_of(to)));
      }
    }
    for (const char* mode : {"FAST_RUN", "FAST_COMPILE"}) {
      const Outputs got =
          function({x}, chains, {.config = current_config().with("mode", mode)}).call({at.at(x)});
      for (std::size_t k = 0; k < chains.size(); ++k) {
        INFO(titles[k] << ", " << mode);
        CHECK(array_equal(got[k].to_host(), value(chains[k], at)));
      }
    }
  }
}
