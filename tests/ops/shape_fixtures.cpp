// Functions of shapes, creation and diagonals against NumPy (tests/data/make_shape_fixtures.py): by
// the references of the ops that they are made of, and compiled; their gradients.
#include "croton/error.h"
#include "croton/tensor.h"
#include "tests/ops/array_fixtures.h"

using namespace croton;
using namespace croton::test;
using Catch::Matchers::Contains;

namespace {

constexpr DType kReal = DType::float64;

/// A function of one operand as a builder.
template <class F>
auto one(F f) {
  return [f](const Operands& x) { return Operands{f(x[0])}; };
}

void add_arrangements(Builders& b) {
  b["flip"] = one([](auto x) { return flip(x); });
  b["flip -1"] = one([](auto x) { return flip(x, -1); });
  b["flip 0,2"] = one([](auto x) { return flip(x, {0, 2}); });
  b["fliplr"] = one([](auto x) { return fliplr(x); });
  b["flipud"] = one([](auto x) { return flipud(x); });
  for (const int k : {-1, 0, 1, 2, 3, 5}) {
    b["rot90 " + std::to_string(k)] = one([k](auto x) { return rot90(x, k); });
  }
  b["rot90 1,2"] = one([](auto x) { return rot90(x, 1, 1, 2); });
  b["rot90 -1,0"] = one([](auto x) { return rot90(x, 1, -1, 0); });
  for (const int k : {0, 1, -1, 3, 17, -17}) {
    b["roll " + std::to_string(k)] = one([k](auto x) { return roll(x, k); });
    b["roll " + std::to_string(k) + " along 1"] = one([k](auto x) { return roll(x, k, 1); });
  }
  b["roll 1,-2"] = one([](auto x) { return roll(x, {1, -2}, {0, 1}); });
  b["roll 2 along 0,1"] = one([](auto x) { return roll(x, 2, {0, 1}); });
  b["roll 1,1 along 0,0"] = one([](auto x) { return roll(x, {1, 1}, {0, 0}); });
  b["moveaxis 0,1"] = one([](auto x) { return moveaxis(x, {0, 1}, {-1, 0}); });
  b["moveaxis -1,0"] = one([](auto x) { return moveaxis(x, {-1, 0}, {0, 1}); });
  b["atleast"] = [](const Operands& x) {
    return Operands{atleast_1d(x[0]), atleast_2d(x[0]), atleast_3d(x[0])};
  };
  b["shape_padleft"] = [](const Operands& x) {
    return Operands{shape_padleft(x[0]), shape_padleft(x[0], 2), shape_padleft(x[0], 0)};
  };
  b["shape_padright"] = [](const Operands& x) {
    return Operands{shape_padright(x[0]), shape_padright(x[0], 2), shape_padright(x[0], 0)};
  };
  b["shape_padaxis"] = [](const Operands& x) {
    return Operands{shape_padaxis(x[0], 1), shape_padaxis(x[0], -1), shape_padaxis(x[0], 0)};
  };
  for (const int n : {1, 2, 3}) {
    b["flatten " + std::to_string(n)] = one([n](auto x) { return flatten(x, n); });
  }
  b["broadcast_arrays"] = [](const Operands& x) { return broadcast_arrays(x); };
}

void add_copies(Builders& b) {
  b["tile 2"] = one([](auto x) { return tile(x, 2); });
  b["tile 2,1"] = one([](auto x) { return tile(x, {2, 1}); });
  b["tile 2,3,2"] = one([](auto x) { return tile(x, {2, 3, 2}); });
  b["tile 3,2 of more"] = one([](auto x) { return tile(x, {3, 2}); });
  b["tile 0"] = one([](auto x) { return tile(x, {0, 2}); });
  b["repeat 2"] = one([](auto x) { return repeat(x, 2); });
  b["repeat 2 along 1"] = one([](auto x) { return repeat(x, 2, 1); });
  b["repeat 0 along 0"] = one([](auto x) { return repeat(x, 0, 0); });
  b["repeat 2,0,1 along 1"] = one([](auto x) { return repeat(x, Array{2, 0, 1}, 1); });
  b["repeat 2,0,1 along 0"] = one([](auto x) { return repeat(x, Array{2, 0, 1}, 0); });
  b["split 2,0,3"] = [](const Operands& x) { return split(x[0], {2, 0, 3}, 1); };
  b["split in 3"] = [](const Operands& x) { return split(x[0], 3, 1); };
  b["array_split in 3"] = [](const Operands& x) { return array_split(x[0], 3); };
  b["hstack"] = [](const Operands& x) { return Operands{hstack(x)}; };
  b["vstack"] = [](const Operands& x) { return Operands{vstack(x)}; };
  b["dstack"] = [](const Operands& x) { return Operands{dstack(x)}; };
  b["column_stack"] = [](const Operands& x) { return Operands{column_stack(x)}; };
}

void add_borders(Builders& b) {
  b["pad 2"] = one([](auto x) { return pad(x, 2); });
  b["pad 1,2 values"] = one([](auto x) {
    return pad(x, {{1, 2}, {0, 1}}, PadMode::constant, {.values = {{3, 4}, {5, 6}}});
  });
  const std::map<std::string, PadMode> modes{
      {"edge", PadMode::edge},       {"linear_ramp", PadMode::linear_ramp},
      {"maximum", PadMode::maximum}, {"mean", PadMode::mean},
      {"median", PadMode::median},   {"minimum", PadMode::minimum},
      {"reflect", PadMode::reflect}, {"symmetric", PadMode::symmetric},
      {"wrap", PadMode::wrap}};
  for (const auto& [name, mode] : modes) {
    b["pad " + name] = one([mode](auto x) { return pad(x, {{2, 3}, {1, 0}}, mode); });
    b["pad " + name + " far"] = one([mode](auto x) { return pad(x, {{7, 8}}, mode); });
  }
  for (const std::string name : {"maximum", "mean", "median", "minimum"}) {
    b["pad " + name + " of 2,1"] = one([mode = modes.at(name)](auto x) {
      return pad(x, 2, mode, {.stat_length = {{2, 1}}});
    });
  }
  b["pad linear_ramp to 3,-2"] = one([](auto x) {
    return pad(x, {{3, 4}}, PadMode::linear_ramp, {.values = {{3, -2}}});
  });
}

void add_creation(Builders& b) {
  const auto made = [&](const std::string& title, std::function<Operands()> f) {
    b[title] = [f](const Operands&) { return f(); };
  };
  made("eye 2,4,1", [] { return Operands{eye(2, 4, 1)}; });
  made("eye 4,2,-1", [] { return Operands{eye(4, 2, -1)}; });
  made("tri 3,4,1", [] { return Operands{tri(3, 4, 1)}; });
  made("tri 3,4,-2", [] { return Operands{tri(3, 4, -2)}; });
  for (const int k : {-3, -1, 0, 1, 4}) {
    b["tril " + std::to_string(k)] = one([k](auto x) { return tril(x, k); });
    b["triu " + std::to_string(k)] = one([k](auto x) { return triu(x, k); });
  }
  for (const int n : {0, 1, 2, 5}) {
    made("linspace " + std::to_string(n), [n] {
      return Operands{linspace(1, 3, n, true, kReal), linspace(1, 3, n, false, kReal)};
    });
  }
  made("linspace int", [] { return Operands{linspace(-3, 3, 5, true, DType::int64)}; });
  b["linspace of arrays"] = [](const Operands& x) { return Operands{linspace(x[0], x[1], 4)}; };
  made("logspace", [] {
    return Operands{logspace(0, 2, 5, 10, true, kReal), logspace(1, -1, 4, 2, false, kReal)};
  });
  made("geomspace", [] {
    return Operands{geomspace(1, 1000, 4, true, kReal), geomspace(-8, -1, 4, true, kReal),
                    geomspace(2, 32, 4, false, kReal), geomspace(5, 7, 1, true, kReal)};
  });
  made("linspace narrow", [] {
    return Operands{linspace(0, 1, 7, true, DType::float16),
                    linspace(-3, 2045, 12, true, DType::float16),
                    linspace(0.1, 0.7, 9, true, DType::float32)};
  });
  b["linspace from float64"] = one([](auto x) { return linspace(0, x, 3, true, DType::float32); });
  made("logspace narrow", [] {
    return Operands{logspace(0, 4, 6, 10, true, DType::float16),
                    logspace(-2, 2, 7, 10, true, DType::float32),
                    logspace(0, 2, 5, 10, true, DType::int64)};
  });
  made("geomspace narrow", [] {
    return Operands{geomspace(1, 1e4, 6, true, DType::float16),
                    geomspace(3, 1e30, 7, true, DType::float32),
                    geomspace(1, 1000, 4, true, DType::int64),
                    geomspace(1, 1000000000000000, 16, true, DType::int64),
                    geomspace(-1e6, -1, 7, true, DType::int64),
                    geomspace(-200, -3, 6, true, DType::int64)};
  });
  b["identity_like"] = one([](auto x) { return identity_like(x); });
  b["meshgrid"] = [](const Operands& x) { return meshgrid(x); };
  b["meshgrid ij"] = [](const Operands& x) { return meshgrid(x, true); };
  b["meshgrid sparse"] = [](const Operands& x) { return meshgrid(x, false, true); };
  made("mgrid", [] { return mgrid({Slice(0, 3), Slice(5, 1, -2)}); });
  made("ogrid", [] { return ogrid({Slice(0, 3), Slice(5, 1, -2)}); });
}

void add_diagonals(Builders& b) {
  for (const int k : {-4, -2, -1, 0, 1, 2, 5}) {
    b["diag " + std::to_string(k)] = one([k](auto x) { return diag(x, k); });
  }
  for (const int k : {-2, 0, 1}) {
    b["diagonal " + std::to_string(k)] = one([k](auto x) { return diagonal(x, k); });
    b["diagonal " + std::to_string(k) + " of 2,0"] =
        one([k](auto x) { return diagonal(x, k, 2, 0); });
    b["trace " + std::to_string(k)] = one([k](auto x) { return trace(x, k); });
  }
  for (const int k : {-2, 0, 1}) {
    const std::string title = "alloc_diag " + std::to_string(k);
    b[title] = one([k](auto x) { return alloc_diag(x, k); });
    b[title + " at 0,1"] = one([k](auto x) { return alloc_diag(x, k, 0, 1); });
    b[title + " at 2,0"] = one([k](auto x) { return alloc_diag(x, k, 2, 0); });
  }
  for (const int k : {-3, -1, 0, 2, 5}) {
    b["fill_diagonal_offset " + std::to_string(k)] =
        one([k](auto x) { return fill_diagonal_offset(x, 7, k); });
  }
  b["fill_diagonal"] = one([](auto x) { return fill_diagonal(x, 3); });
}

Builders builders() {
  Builders b;
  add_arrangements(b);
  add_copies(b);
  add_borders(b);
  add_creation(b);
  add_diagonals(b);
  return b;
}

}  // namespace

TEST_CASE("functions of shapes give NumPy's values", "[ops][shape][fixtures]") {
  check_fixtures("shape_values.txt", builders(), 1e-12);
}

TEST_CASE("gradients of functions of shapes", "[ops][shape][fixtures][grad]") {
  // Among equal entries the derivative of the largest, smallest or middle one is no limit of
  // differences.
  check_fixture_gradients(
      "shape_values.txt", builders(),
      {"pad maximum", "pad maximum far", "pad maximum of 2,1", "pad median", "pad minimum",
       "pad minimum far", "pad minimum of 2,1", "tril -1", "linspace from float64"});
}

TEST_CASE("counts, shifts, widths and steps may be symbols", "[ops][shape]") {
  const Variable x = input(DType::int64, {kAnyDim, kAnyDim}, "x");
  const Variable n = input(DType::int64, {}, "n");
  const Variable m = input(DType::int32, {}, "m");
  const Array v{{1, 2, 3}, {4, 5, 6}};
  std::vector<Trial> trials;
  std::vector<Array> wanted;
  const auto expect = [&](const Variable& y, const Array& result) {
    trials.push_back({"number " + std::to_string(trials.size()),
                      y,
                      {x, n, m},
                      {v, Array(2), Array(-1).astype(DType::int32)}});
    wanted.push_back(result);
  };
  expect(roll(x, n, 1), Array{{2, 3, 1}, {5, 6, 4}});
  expect(roll(x, {m, n}, {0, 1}), Array{{5, 6, 4}, {2, 3, 1}});
  expect(tile(x, {Size(1), Size(n)}), Array{{1, 2, 3, 1, 2, 3}, {4, 5, 6, 4, 5, 6}});
  expect(repeat(x, n, 1), Array{{1, 1, 2, 2, 3, 3}, {4, 4, 5, 5, 6, 6}});
  expect(split(x, {n, n + m}, 1)[1], Array{{3}, {6}});
  expect(split(x, 3, 1)[1], Array{{2}, {5}});
  expect(pad(x, {{Size(0), n}, {0, 0}}), Array{{1, 2, 3}, {4, 5, 6}, {0, 0, 0}, {0, 0, 0}});
  expect(pad(x, {{0, 0}, {n, 0}}, PadMode::reflect), Array{{3, 2, 1, 2, 3}, {6, 5, 4, 5, 6}});
  expect(tril(x, m), Array{{0, 0, 0}, {4, 0, 0}});
  expect(triu(x, n + m), Array{{0, 2, 3}, {0, 0, 6}});
  expect(eye(n, n - m, m, DType::int64), Array{{0, 0, 0}, {1, 0, 0}});
  expect(arange(0, x.shape(1) * 2, n), Array{0, 2, 4});
  expect(arange(x.shape(1), 0, m), Array{3, 2, 1});
  expect(one_hot(Array{1, 0}, n, DType::int64), Array{{0, 1}, {1, 0}});
  expect(linspace(0, 6, x.shape(1), true, DType::int64), Array{0, 3, 6});
  expect(x(Slice(n + m, x.shape(0)), Slice(none, none, m)), Array{{6, 5, 4}});
  // Shapes and bounds that are worked out in the graph.
  const Variable sizes = x.shape();
  expect(reshape(x, concatenate({sizes(Slice(1, none)), Array{-1}})),
         Array{{1, 2}, {3, 4}, {5, 6}});
  expect(reshape(x, sizes(Slice(none, none, -1))), Array{{1, 2}, {3, 4}, {5, 6}});
  expect(reshape(x, stack({prod(sizes)})), Array{1, 2, 3, 4, 5, 6});
  expect(broadcast_to(n, concatenate({sizes * 0 + n, Array{1}})), Array{{{2}, {2}}, {{2}, {2}}});
  expect(x(0, Slice(where(gt(x.shape(1), 2), 1, 0), max(sizes))), Array{2, 3});
  expect(zeros({clip(sizes(1), 0, 2)}, DType::int64), Array{0, 0});
  for_each_result(trials, [&](const Trial& trial, const Array& got) {
    INFO(trial.title << ", got\n" << got);
    const Array& want = wanted[static_cast<std::size_t>(&trial - trials.data())];
    CHECK(array_equal(got, want));
    CHECK(array_equal(trial.reference(), want));
  });
}

TEST_CASE("functions of shapes refuse what cannot be", "[ops][shape]") {
  const Variable x = floats({2, 3});
  const Variable v = floats({3}, "v");
  const Variable open = floats({kAnyDim}, "open");
  CHECK_THROWS_WITH(flip(x, 2), Contains("[flip]") && Contains("shape_fixtures.cpp"));
  CHECK_THROWS_WITH(fliplr(v), Contains("[fliplr]"));
  CHECK_THROWS_WITH(rot90(x, 1, 0, 0), Contains("[rot90] two different axes"));
  CHECK_THROWS_WITH(roll(x, {1, 2}), Contains("[roll]") && Contains("as many axes"));
  CHECK_THROWS_WITH(roll(x, {1, 2, 3}, {0, 1}), Contains("3 shifts for 2 axes"));
  CHECK_THROWS_WITH(roll(x, v), Contains("[roll]") && Contains("integer"));
  CHECK_THROWS_WITH(moveaxis(x, {0, 1}, {0}), Contains("2 axes to move to 1 places"));
  CHECK_THROWS_WITH(moveaxis(x, {0, 0}, {0, 1}), Contains("[moveaxis]") && Contains("twice"));
  CHECK_THROWS_WITH(flatten(x, 3), Contains("[flatten] 3 axes of 2"));
  CHECK_THROWS_WITH(broadcast_arrays({x, floats({2})}), Contains("[broadcast_arrays]"));
  CHECK_THROWS_WITH(tile(x, {-1}), Contains("[tile] a count must not be negative: got -1"));
  CHECK_THROWS_WITH(repeat(v, Array{1, 2}, 0), Contains("[repeat] 2 counts for axis 0 of size 3"));
  CHECK_THROWS_WITH(repeat(v, Array{1, -2, 1}, 0), Contains("must not be negative: got -2"));
  CHECK_THROWS_WITH(repeat(v, 1.5), Contains("[repeat] counts must be an integer"));
  CHECK_THROWS_WITH(split(x, {1, 1}, 1), Contains("[split]") && Contains("got 2, expected 3"));
  CHECK_THROWS_WITH(split(x, {4, -1}, 1), Contains("must not be negative"));
  CHECK_THROWS_WITH(split(x, 2, 1), Contains("got 2, expected 3"));
  CHECK_THROWS_WITH(split(x, 0), Contains("[split] 0 parts"));
  CHECK_THROWS_WITH(array_split(x, 0), Contains("[array_split] 0 parts"));
  CHECK_THROWS_WITH(pad(x, {{1, 1}, {1, 1}, {1, 1}}), Contains("[pad] 3 pairs of widths for 2"));
  CHECK_THROWS_WITH(pad(x, -1), Contains("[pad] a width must not be negative: got -1"));
  CHECK(value(pad(zeros({2, 3}), {{1, 2}, {0, 1}}, PadMode::empty), {}).shape() == Shape({5, 4}));
  CHECK_THROWS_WITH(pad(floats({0}), 1, PadMode::edge), Contains("nothing to repeat"));
  CHECK_THROWS_WITH(pad(x, 1, PadMode::mean, {.stat_length = {{0, 0}}}), Contains("at least 1"));
  CHECK_THROWS_WITH(tril(v), Contains("[tril] at least two axes"));
  CHECK_THROWS_WITH(tril(x, 0.5), Contains("integer scalar"));
  CHECK_THROWS_WITH(linspace(0, 1, -1), Contains("[linspace] a count must not be negative"));
  CHECK_THROWS_WITH(meshgrid({x}), Contains("[meshgrid] vectors"));
  CHECK_THROWS_WITH(mgrid({Slice(1, none)}), Contains("[mgrid] each slice needs a stop"));
  CHECK_THROWS_WITH(identity_like(v), Contains("[identity_like] a matrix"));
  CHECK_THROWS_WITH(diag(floats({})), Contains("[diag] a vector or a matrix"));
  CHECK_THROWS_WITH(diagonal(x, 0, 1, 1), Contains("[diagonal] two different axes"));
  CHECK_THROWS_WITH(alloc_diag(floats({})), Contains("[alloc_diag]"));
  CHECK_THROWS_WITH(trace(v), Contains("[trace] at least two axes"));
  CHECK_THROWS_WITH(fill_diagonal(v, 0), Contains("[fill_diagonal]"));
  CHECK_THROWS_WITH(fill_diagonal(x, v), Contains("must be a scalar"));
  CHECK_THROWS_WITH(fill_diagonal_offset(v, 0, 1), Contains("[fill_diagonal_offset]"));
  // What shows in the call only.
  const Variable both = concatenate(split(open, {2, 3}));
  CHECK_THROWS_WITH(function({open}, both).call({counting({4})}),
                    Contains("[split]") && Contains("shape_fixtures.cpp"));
  CHECK(array_equal(function({open}, both).call({counting({5})})[0], counting({5})));
}

TEST_CASE("sizes, widths, counts and steps below their least are errors of the call",
          "[ops][shape]") {
  const Variable x = floats({kAnyDim}, "x");
  const Variable one = floats({1}, "one");
  const Variable n = input(DType::int64, {}, "n");
  const Variable m = input(DType::int64, {}, "m");
  const auto call = [&](const Variable& y, int first, int second) {
    return function({x, one, n, m}, y, {.on_unused = OnUnused::ignore})
        .call({counting({5}), counting({1}), Array(first), Array(second)})[0];
  };
  const auto message = [&](const Variable& y, int first, int second) {
    return message_of<CallError>([&] { call(y, first, second); });
  };
  const auto negative = [](const std::string& what, int size) {
    return Contains(what + " must not be negative: got " + std::to_string(size));
  };
  CHECK_THAT(message(split(x, {n, m})[0], 6, -1), negative("[split] a size", -1));
  CHECK_THAT(message(split(x, {n, m})[0], 6, -1), Contains("shape_fixtures.cpp"));
  CHECK_THAT(message(split(x, {n, m, 2})[2], -2, 5), negative("[split] a size", -2));
  CHECK_THAT(message(split(one, {n, m})[0], 1, 2),
             Contains("[split] axis 0 has size 1 instead of 3"));
  CHECK(array_equal(call(split(one, {n, m})[1], 0, 1), counting({1})));
  CHECK(call(split(one, {n, m})[0], 0, 1).shape() == Shape{0});
  for (const PadMode mode : {PadMode::constant, PadMode::edge, PadMode::wrap, PadMode::reflect,
                             PadMode::mean, PadMode::linear_ramp}) {
    CHECK_THAT(message(pad(x, {{n, m}}, mode), -5, 10), negative("[pad] a width", -5));
    CHECK_THAT(message(pad(x, {{n, m}}, mode), 10, -5), negative("[pad] a width", -5));
    CHECK(call(pad(x, {{n, m}}, mode), 0, 2).shape() == Shape{7});
  }
  CHECK_THAT(message(pad(x, 1, PadMode::mean, {.stat_length = {{n, m}}}), 1, 0),
             Contains("[pad] a stat_length must be at least 1: got 0"));
  CHECK_THAT(message(tile(x, {n}), -1, 0), negative("[tile] a count", -1));
  CHECK_THAT(message(repeat(x, n), -2, 0), negative("[repeat] a count", -2));
  CHECK_THAT(message(linspace(0, 1, n), -1, 0), negative("[linspace] a count", -1));
  CHECK_THAT(message(zeros({n, m}), 2, -3), negative("[zeros] a size", -3));
  CHECK_THAT(message(broadcast_to(one, {n}), -1, 0), negative("[broadcast_to] a size", -1));
  CHECK_THAT(message(eye(n, m), -1, 2), negative("a size", -1));
  CHECK_THAT(message(reshape(x, {n, m}), -5, -1), negative("[reshape] a size", -5));
  CHECK_THAT(message(x(Slice(none, none, n)), 0, 0),
             Contains("the step must not be 0") && Contains("shape_fixtures.cpp"));
  CHECK_THAT(message(arange(0, m, n), 0, 3), Contains("[arange] the step must not be 0"));
  CHECK(
      array_equal(call(x(Slice(none, none, n)), -2, 0), Array{4., 2., 0.}.astype(DType::float64)));
}

TEST_CASE("sizes follow casts, bools and checks", "[ops][shape]") {
  const Variable x = input(DType::float32, {kAnyDim}, "x");
  const Variable n = input(DType::int64, {}, "n");
  const Variable m = input(DType::int64, {}, "m");
  const Variable two = stack({n, m});
  const auto call = [&](const Variable& y, int first, int second) {
    return function({x, n, m}, y, {.on_unused = OnUnused::ignore})
        .call({Array::zeros({300}, DType::float32), Array(first), Array(second)})[0];
  };
  // The sum of bools is "or".
  const Variable either = (gt(n, 1) + gt(m, 1)).astype(DType::int64);
  CHECK(call(zeros({either}), 2, 3).shape() == Shape{1});
  CHECK(call(zeros({either}), 0, 1).shape() == Shape{0});
  CHECK(call(zeros({either + 1}), 0, 9).shape() == Shape{2});
  // 300 is 44 in int8, and 200 is -56.
  const Variable narrow = x.shape().astype(DType::int8);
  CHECK(call(zeros(narrow), 0, 0).shape() == Shape{44});
  CHECK(call(zeros({n.astype(DType::int8)}), 300, 0).shape() == Shape{44});
  CHECK(call(zeros({n.astype(DType::uint8)}), 300, 0).shape() == Shape{44});
  CHECK(call(zeros({n.astype(DType::uint8)}), -1, 0).shape() == Shape{255});
  CHECK(call(zeros({abs(n.astype(DType::int8))}), 200, 0).shape() == Shape{56});
  CHECK(call(zeros({n.astype(DType::int8).astype(DType::int32)}), 300, 0).shape() == Shape{44});
  CHECK(call(zeros({n.astype(DType::boolean).astype(DType::int8)}), 300, 0).shape() == Shape{1});
  // Entries of vectors that were transposed on the way, and of matrices of one element.
  const Variable square = reshape(concatenate({two, two + 4}), {2, 2});
  const Values values{{n, Array(2)}, {m, Array(3)}};
  CHECK(value(zeros(flatten(square.T())), values).shape() == Shape{2, 6, 3, 7});
  CHECK(value(zeros(reshape(expand_dims(expand_dims(n, 0), 0), {1})), values).shape() == Shape{2});
  CHECK(value(zeros(reshape(two(Slice(0, 1))(newaxis), {1})), values).shape() == Shape{2});
  // What checks the length stays below entries that are looked up.
  const Variable any = input(DType::int64, {kAnyDim}, "any");
  const Variable y = zeros(specify_shape(any, {2}));
  CHECK(is_op(y.node()->inputs[1].node()->inputs[0], "specify_shape"));
  CHECK_THROWS(value(zeros(reshape(any, {2})), {{any, Array{4, 5, 6}}}));
}
