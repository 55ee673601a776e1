// Results whose sizes follow from values, against NumPy (tests/data/make_nonzero_fixtures.py): by
// the references of their ops and compiled; their gradients; and what is refused.
#include "croton/error.h"
#include "croton/indexing.h"
#include "croton/sort.h"
#include "croton/vectorize.h"
#include "tests/ops/array_fixtures.h"
#include "tests/ops/op_cases.h"

using namespace croton;
using namespace croton::test;
using Catch::Matchers::Contains;

namespace {

template <class F>
auto made(F f) {
  return [f](const Operands& x) { return Operands{f(x)}; };
}

Builders builders() {
  Builders b;
  b["nonzero"] = [](const Operands& x) { return nonzero(x[0]); };
  b["flatnonzero"] = made([](auto& x) { return flatnonzero(x[0]); });
  b["argwhere"] = made([](auto& x) { return argwhere(x[0]); });
  b["nonzero_values"] = made([](auto& x) { return nonzero_values(x[0]); });
  b["mask"] = made([](auto& x) { return x[0](x[1]); });
  b["mask and number"] = made([](auto& x) { return x[0](x[1], 1); });
  b["slice and mask"] = made([](auto& x) { return x[0](Slice(1, none), x[1]); });
  b["mask and array"] = made([](auto& x) { return x[0](x[1], x[2]); });
  b["compress 0"] = made([](auto& x) { return compress(x[1], x[0], 0); });
  b["compress 1"] = made([](auto& x) { return compress(x[1], x[0], 1); });
  b["compress"] = made([](auto& x) { return compress(x[1], x[0]); });
  b["extract"] = made([](auto& x) { return extract(x[1], x[0]); });
  b["set at mask"] = made([](auto& x) { return set_subtensor(x[0](x[1]), x[2]); });
  b["add at mask"] = made([](auto& x) { return inc_subtensor(x[0](x[1]), x[2]); });
  b["repeat 0"] = made([](auto& x) { return repeat(x[0], x[1], 0); });
  b["repeat 1"] = made([](auto& x) { return repeat(x[0], x[1], 1); });
  b["repeat"] = made([](auto& x) { return repeat(x[0], x[1]); });
  b["bincount"] = made([](auto& x) { return bincount(x[0]); });
  b["bincount 6"] = made([](auto& x) { return bincount(x[0], {.minlength = 6}); });
  b["bincount weights"] = made([](auto& x) { return bincount(x[0], {.weights = x[1]}); });
  b["unique"] = [](const Operands& x) {
    const UniqueResult u = unique(x[0]);
    return Operands{u.values, u.index, u.inverse, u.counts};
  };
  return b;
}

}  // namespace

TEST_CASE("sizes that follow from values are NumPy's", "[ops][nonzero][fixtures]") {
  check_fixtures("nonzero_values.txt", builders(), 0);
}

TEST_CASE("gradients of results whose sizes follow from values", "[ops][nonzero][fixtures][grad]") {
  // 0 and NaN are where differences have no limit.
  check_fixture_gradients("nonzero_values.txt", builders(), {"nonzero_values"});
  const Variable x = floats({kAnyDim});
  const Values at{{x, reals({3, 0.5, 3, -2, 0.5, 3})}};
  const Array weights = reals({1, 10, 100});
  // The first of equals is the one that counts.
  CHECK(array_equal(value(grad(sum(unique(x).values * weights), x), at),
                    reals({100.0, 10.0, 0.0, 1.0, 0.0, 0.0})));
  const Variable part = x(gt(x, 0));
  const Variable slope = grad(sum(part * part * part), x);
  CHECK(array_equal(value(slope, at), reals({27.0, 0.75, 27.0, 0.0, 0.75, 27.0})));
  CHECK(array_equal(value(grad(sum(slope), x), at), reals({18.0, 3.0, 18.0, 0.0, 3.0, 18.0})));
}

TEST_CASE("what a mask selects, of each element of a batch", "[ops][nonzero][vectorize]") {
  const Variable x = floats({kAnyDim, kAnyDim});
  const Variable mask = input(DType::boolean, {kAnyDim}, "mask");
  const Values at{{x, reals({1, 2, 3, 4, 5, 6}, {2, 3})}, {mask, Array{true, false, true}}};
  const auto selected = [&](const Operands& in) { return Operands{in[0](mask)}; };
  CHECK(array_equal(value(vmap(selected, {x})[0], at), reals({1, 3, 4, 6}, {2, 2})));
  CHECK_THROWS_WITH(vmap([](const Operands& in) { return Operands{in[0](gt(in[0], 2))}; }, {x}),
                    Contains("[index] how many entries are not 0 may differ") &&
                        Contains("nonzero_fixtures.cpp"));
}

TEST_CASE("selections that cannot be are refused", "[ops][nonzero]") {
  const Variable x = input(DType::int64, {kAnyDim, 2}, "x");
  const Variable mask = input(DType::boolean, {kAnyDim}, "mask");
  const Variable counts = input(DType::int64, {kAnyDim}, "counts");
  const Array rows{{1, 2}, {3, 4}};
  CHECK_THROWS_WITH(function({x, mask}, x(mask)).call({rows, Array{true, false, true}}),
                    Contains("[index] the mask does not fit") && Contains("2 and 3") &&
                        Contains("nonzero_fixtures.cpp"));
  CHECK_THROWS_WITH(function({x, mask}, set_subtensor(x(mask), Array{{1, 2}, {3, 4}, {5, 6}}))
                        .call({rows, Array{true, false}}),
                    Contains("[set_subtensor]") && Contains("3") && Contains("1"));
  CHECK_THROWS_WITH(counts(gt(x, 0)), Contains("[index] a mask with 2 axes for an operand with 1"));
  CHECK_THROWS_WITH(nonzero(make_scalar(DType::int64, 1, Loc::current())),
                    Contains("[nonzero] a scalar has no places"));
  CHECK_THROWS_WITH(compress(x, x), Contains("[compress] a vector of conditions"));
  CHECK_THROWS_WITH(
      function({x, mask}, compress(mask, x, 0)).call({rows, Array{true, false, true}}),
      Contains("[compress] index 2 is out of bounds for axis 0 of size 2"));
  CHECK_THROWS_WITH(function({x, counts}, repeat(x, counts, 0)).call({rows, Array{1, 2, 3}}),
                    Contains("[repeat]") && Contains("2") && Contains("3"));
  CHECK_THROWS_WITH(function({x, counts}, repeat(x, counts, 0)).call({rows, Array{3, -1}}),
                    Contains("[repeat] a count must not be negative: got -1"));
  CHECK_THROWS_WITH(function({counts}, bincount(counts)).call({Array{3, -1}}),
                    Contains("[bincount]") && Contains("out of bounds"));
}
