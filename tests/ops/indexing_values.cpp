// x(...), take, set_subtensor and inc_subtensor: results as NumPy gives them, and what is refused.
#include "croton/error.h"
#include "croton/indexing.h"
#include "croton/math.h"
#include "croton/tensor.h"
#include "ops/build.h"
#include "tests/ops/graph_values.h"

using namespace croton;
using namespace croton::test;
using Catch::Matchers::Contains;

namespace {

/// np.arange(24).reshape(2, 3, 4), of known or of unknown sizes.
struct Cube {
  explicit Cube(bool known) : x(input(DType::int64, known ? Shape{2, 3, 4} : Shape{-1, -1, -1})) {}
  Variable x;
  Array operator()(const Variable& y, Values more = {}) const {
    more[x] = counting({2, 3, 4}, DType::int64);
    return value(y, more);
  }
};

}  // namespace

TEST_CASE("integers, slices, ellipsis and new axes", "[ops][index]") {
  const Cube c(GENERATE(true, false));
  const Variable& x = c.x;
  CHECK(array_equal(c(x(1, 2)), Array{20, 21, 22, 23}));
  CHECK(array_equal(c(x(-1, -3, -2)), Array(14)));
  CHECK(array_equal(c(x(0, Slice(), 1)), Array{1, 5, 9}));
  CHECK(array_equal(c(x(0, 0, Slice(none, none, -1))), Array{3, 2, 1, 0}));
  CHECK(array_equal(c(x(0, 0, Slice(3, 0, -2))), Array{3, 1}));
  CHECK(array_equal(c(x(0, Slice(-2, none), 0)), Array{4, 8}));
  CHECK(array_equal(c(x(ellipsis, 3)), Array{{3, 7, 11}, {15, 19, 23}}));
  CHECK(array_equal(c(x(1, ellipsis, Slice(0, none, 3))), Array{{12, 15}, {16, 19}, {20, 23}}));
  CHECK(c(x(newaxis, 0, ellipsis, newaxis)).shape() == Shape{1, 3, 4, 1});
  CHECK(c(x(Slice(), Slice(1, 100), Slice(-100, 2))).shape() == Shape{2, 2, 2});
  CHECK(c(x(Slice(5, none))).shape() == Shape{0, 3, 4});
  CHECK(c(x(Slice(2, 1))).shape() == Shape{0, 3, 4});
}

TEST_CASE("slices follow Python for every start, stop and step", "[ops][index]") {
  const std::optional<std::int64_t> bounds[] = {{}, -9, -5, -4, -1, 0, 1, 3, 4, 5, 9};
  const auto bound = [](std::optional<std::int64_t> b) { return b ? Bound(*b) : Bound(none); };
  const Array v = counting({4}, DType::int64);
  const Variable known = input(DType::int64, {4});
  const Variable open = input(DType::int64, {kAnyDim});
  const Variable first = input(DType::int32, {}, "first");
  const Variable last = input(DType::int64, {}, "last");
  for (const auto start : bounds) {
    for (const auto stop : bounds) {
      for (const std::int64_t step : {-3, -2, -1, 1, 2, 3}) {
        const Array expected = v.slice(0, start, stop, step).contiguous();
        const Variable y = known(Slice(bound(start), bound(stop), step));
        REQUIRE(y.static_shape() == expected.shape());
        REQUIRE(array_equal(value(y, {{known, v}}), expected));
        const Variable z = open(Slice(bound(start), bound(stop), step));
        REQUIRE(array_equal(value(z, {{open, v}}), expected));
        if (!start || !stop) continue;
        const Variable symbolic = open(Slice(first, last, step));
        REQUIRE(array_equal(
            value(symbolic,
                  {{open, v}, {first, Array(*start).astype(DType::int32)}, {last, Array(*stop)}}),
            expected));
      }
    }
  }
}

TEST_CASE("sizes of 1 stay known", "[ops][index]") {
  const Variable x = floats({5, kAnyDim});
  CHECK(x(Slice(2, 3)).static_shape() == Shape{1, kAnyDim});
  CHECK(x(Slice(), newaxis, Slice(0, 2)).static_shape() == Shape{5, 1, kAnyDim});
  CHECK(x(Slice(none, none, 2), 0).static_shape() == Shape{3});
}

TEST_CASE("arrays as indices", "[ops][index]") {
  const Cube c(GENERATE(true, false));
  const Variable& x = c.x;
  const Variable i = input(DType::int32, {}, "i");
  const Variable rows = input(DType::uint8, {kAnyDim}, "rows");
  const Values values{{i, Array(-1).astype(DType::int32)},
                      {rows, Array{1, 0, 1}.astype(DType::uint8)}};
  CHECK(array_equal(c(x(i, 0), values), Array{12, 13, 14, 15}));
  CHECK(array_equal(c(x(rows, 2, Slice(1, 3)), values), Array{{21, 22}, {9, 10}, {21, 22}}));
  CHECK(array_equal(c(x(0, {0, 2}, 0)), Array{0, 8}));
  CHECK(array_equal(c(x(0, 0, Array{{0, 1}, {-1, 2}})), Array{{0, 1}, {3, 2}}));
  // Several arrays broadcast; adjacent ones stay in place, others go to the front.
  CHECK(array_equal(c(x(Slice(), {0, 1}, {2, 3})), Array{{2, 7}, {14, 19}}));
  CHECK(array_equal(c(x({0, 1}, Slice(), {2, 3})), Array{{2, 6, 10}, {15, 19, 23}}));
  CHECK(c(x(Slice(), Array{{0}, {1}}, {1, 2, 3})).shape() == Shape{2, 2, 3});
  CHECK(c(x({0, 1}, newaxis, {0, 1})).shape() == Shape{2, 1, 4});
  CHECK(c(x(0, Slice(), {0, 1})).shape() == Shape{2, 3});
  CHECK(c(x(newaxis, {0, 1, 1}, ellipsis)).shape() == Shape{1, 3, 3, 4});
  CHECK(array_equal(c(take(x, Array{1}, -1)), Array{{{1}, {5}, {9}}, {{13}, {17}, {21}}}));
}

TEST_CASE("take_along_axis", "[ops][index]") {
  const Variable x = input(DType::int64, {2, 3});
  const Values values{{x, Array{{1, 2, 3}, {4, 5, 6}}}};
  CHECK(array_equal(value(take_along_axis(x, Array{{2}, {-3}}, 1), values), Array{{3}, {4}}));
  CHECK(array_equal(value(take_along_axis(x, Array{{1, 0, 1}}, 0), values), Array{{4, 2, 6}}));
  CHECK(array_equal(value(take_along_axis(x, Array{{1, 0}}), values), Array{{2, 1}, {5, 4}}));
  CHECK_THROWS_WITH(take_along_axis(x, Array{0}), Contains("as many axes"));
  CHECK_THROWS_WITH(take_along_axis(x, Array{{3}}, 1), Contains("index 3 is out of bounds"));
}

TEST_CASE("indices that cannot be are refused", "[ops][index]") {
  const Variable x = floats({2, 3});
  CHECK_THROWS_WITH(x(2), Contains("index 2 is out of bounds for axis 0 of size 2") &&
                              Contains("indexing_values.cpp"));
  CHECK_THROWS_WITH(x(0, -4), Contains("index -4 is out of bounds for axis 1 of size 3"));
  CHECK_THROWS_WITH(x({0, 2}), Contains("index 2 is out of bounds for axis 0 of size 2"));
  CHECK_THROWS_WITH(x(0, 0, 0), Contains("too many indices: got 3 for an operand with 2 axes"));
  CHECK_THROWS_WITH(x(ellipsis, 0, ellipsis), Contains("one ellipsis"));
  CHECK_THROWS_WITH(x(x), Contains("must be an integer: got float64"));
  CHECK_THROWS_WITH(x(Slice(none, none, 0)), Contains("step must not be 0"));
  CHECK_THROWS_WITH(x(Slice(floats({}), none)), Contains("start must be an integer scalar"));
  CHECK_THROWS_WITH(x({0, 1}, {0, 1, 2}), Contains("differ in size"));
}

TEST_CASE("writing to slices", "[ops][index]") {
  const Cube c(GENERATE(true, false));
  const Variable& x = c.x;
  const Array v = counting({2, 3, 4}, DType::int64);
  const Array set = c(set_subtensor(x(0, Slice(1, none), Slice(none, none, -2)), -1));
  CHECK(array_equal(set, Array{{{0, 1, 2, 3}, {4, -1, 6, -1}, {8, -1, 10, -1}},
                               {{12, 13, 14, 15}, {16, 17, 18, 19}, {20, 21, 22, 23}}}));
  CHECK(array_equal(c(inc_subtensor(x(1, 1), Array{1, 2, 3, 4}))[1][1].contiguous(),
                    Array{17, 19, 21, 23}));
  CHECK(array_equal(c(set_subtensor(x(ellipsis), 0)), Array::zeros({2, 3, 4}, DType::int64)));
  CHECK(array_equal(c(set_subtensor(x(0).T(), Array{{9}, {8}, {7}, {6}}))[0].contiguous(),
                    Array{{9, 8, 7, 6}, {9, 8, 7, 6}, {9, 8, 7, 6}}));
  CHECK(array_equal(c(inc_subtensor(x(newaxis, Slice(1, 2), ellipsis), 1))[0].contiguous(),
                    v[0].contiguous()));
  const Variable i = input(DType::int64, {}, "i");
  CHECK(array_equal(c(set_subtensor(x(Slice(), Slice(i, i + 1), 0), 5), {{i, Array(2)}})
                        .slice(2, 0, 1)
                        .contiguous()
                        .reshape({2, 3}),
                    Array{{0, 4, 5}, {12, 16, 5}}));
}

TEST_CASE("writing at arrays of indices", "[ops][index]") {
  const bool known = GENERATE(true, false);
  const Variable x = input(DType::int64, known ? Shape{3, 2} : Shape{-1, -1});
  const Variable v = input(DType::int64, {3}, "v");
  const Values values{{x, Array{{0, 1}, {2, 3}, {4, 5}}}, {v, Array{10, 20, 30}}};
  const auto check = [&](const Variable& y, const Array& expected) {
    CHECK(array_equal(value(y, values), expected));
  };
  // Twice the same index: all are added, the last one is kept.
  check(inc_subtensor(x({2, 0, 2}), v(Slice(), newaxis)), Array{{20, 21}, {2, 3}, {44, 45}});
  check(set_subtensor(x({2, 0, 2}), v(Slice(), newaxis)), Array{{20, 20}, {2, 3}, {30, 30}});
  check(inc_subtensor(x({0, 1, 0}, 1), v), Array{{0, 41}, {2, 23}, {4, 5}});
  check(set_subtensor(x({-1, 0, 1}, {0, 1, 1}), v), Array{{0, 20}, {2, 30}, {10, 5}});
  check(inc_subtensor(x(Slice(), Array{{0, 1}, {0, 0}}), 1), Array{{3, 2}, {5, 4}, {7, 6}});
  check(inc_subtensor(x(Slice(1, none), {0, 0}), 100), Array{{0, 1}, {202, 3}, {204, 5}});
  check(set_subtensor(x(Slice(1, none), {1}), 7), Array{{0, 1}, {2, 7}, {4, 7}});
  check(inc_subtensor(x(newaxis, {0, 0}), 1), Array{{2, 3}, {2, 3}, {4, 5}});
  const Variable i = input(DType::int64, {}, "i");
  CHECK(array_equal(
      value(set_subtensor(x(i), 9), {{x, Array{{0, 1}, {2, 3}, {4, 5}}}, {i, Array(1)}}),
      Array{{0, 1}, {9, 9}, {4, 5}}));
}

TEST_CASE("arrays of indices that are apart are written to in place", "[ops][index]") {
  const Cube c(GENERATE(true, false));
  const Array y = c(inc_subtensor(c.x({0, 1, 0}, Slice(), {1, 2, 1}), Array{{100}, {200}, {300}}));
  Array expected = counting({2, 3, 4}, DType::int64);
  std::int64_t* e = expected.mutable_data<std::int64_t>();
  for (int row = 0; row < 3; ++row) {
    e[row * 4 + 1] += 400;
    e[12 + row * 4 + 2] += 200;
  }
  CHECK(array_equal(y, expected));
}

TEST_CASE("what cannot be written to is refused", "[ops][index]") {
  const Variable x = input(DType::float32, {2, 3});
  CHECK_THROWS_WITH(set_subtensor(x, 0),
                    Contains("[set_subtensor]") && Contains("must be the result of indexing"));
  CHECK_THROWS_WITH(inc_subtensor(exp(x(0)), 0), Contains("'exp'"));
  CHECK_THROWS_WITH(set_subtensor(x(0), floats({3})), Contains("float64") && Contains("astype"));
  CHECK_THROWS_WITH(set_subtensor(x(0), input(DType::float32, {2, 3})),
                    Contains("2 axes for a part with 1"));
  CHECK_THROWS_WITH(set_subtensor(x(0), input(DType::float32, {2})), Contains("stretched"));
  CHECK(set_subtensor(x(0), 1).dtype() == DType::float32);
  CHECK(set_subtensor(x(0), input(DType::float16, {})).dtype() == DType::float32);
  CHECK_THROWS_AS(set_subtensor(input(DType::int8, {2})(0), 300), GraphError);
}
