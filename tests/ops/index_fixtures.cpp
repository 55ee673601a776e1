// Reading and writing at computed places against NumPy (tests/data/make_index_fixtures.py): by the
// references of the ops that they are made of, and compiled; their gradients; and what is refused.
#include "croton/error.h"
#include "croton/indexing.h"
#include "tests/ops/array_fixtures.h"

using namespace croton;
using namespace croton::test;
using Catch::Matchers::Contains;

namespace {

template <class F>
auto made(F f) {
  return [f](const Operands& x) { return Operands{f(x)}; };
}

void add_reads(Builders& b) {
  b["step"] = made([](auto& x) { return x[0](Slice(none, none, x[1])); });
  b["step start"] = made([](auto& x) { return x[0](Slice(x[1], none, x[2])); });
  b["step stop"] = made([](auto& x) { return x[0](Slice(none, x[1], x[2])); });
  b["step start stop"] = made([](auto& x) { return x[0](Slice(x[1], x[2], x[3])); });
  b["step in the middle"] =
      made([](auto& x) { return x[0](Slice(1, none), newaxis, Slice(none, none, x[1])); });
  b["step and array"] = made([](auto& x) { return x[0](Slice(none, none, x[1]), {3, 0, 3}); });
  const Array mask{true, false, true};
  b["mask of rows"] = made([=](auto& x) { return x[0](mask); });
  b["mask of columns"] = made([](auto& x) {
    return x[0](Slice(), Array{false, true, true, false});
  });
  b["mask of all"] = made([](auto& x) {
    return x[0](Array{
        {false, true, false, false}, {true, false, false, true}, {false, false, true, false}});
  });
  b["mask and array"] = made([=](auto& x) { return x[0](mask, {3, 0}); });
  b["no place of a mask"] = made([](auto& x) { return x[0](Array{false, false, false}); });
  b["take"] = made([](auto& x) { return take(x[0], x[1]); });
  for (const auto& [name, mode] : {std::pair{"wrap", IndexMode::wrap}, {"clip", IndexMode::clip}}) {
    b["take " + std::string(name)] = made([mode](auto& x) { return take(x[0], x[1], none, mode); });
    b["take " + std::string(name) + " along 1"] =
        made([mode](auto& x) { return take(x[0], x[1], 1, mode); });
    b["choose " + std::string(name)] = made([mode](auto& x) {
      return choose(x[0], {x[1], x[2], x[3]}, mode);
    });
    b["ravel_multi_index " + std::string(name)] = made([mode](auto& x) {
      return ravel_multi_index({x[0], x[1]}, {2, 3}, mode);
    });
  }
  b["choose"] = made([](auto& x) { return choose(x[0], {x[1], x[2], x[3]}); });
  b["gather along 1"] = made([](auto& x) { return gather(x[0], x[1], 1); });
  b["gather along 0"] = made([](auto& x) { return gather(x[0], x[1], 0); });
  b["gather_nd"] = made([](auto& x) { return gather_nd(x[0], specify_shape(x[1], {kAnyDim, 2})); });
  b["gather_nd of batches"] = made([](auto& x) {
    return gather_nd(x[0], specify_shape(x[1], {kAnyDim, kAnyDim, 2}), 1);
  });
  b["compress along 1"] = made([](auto& x) { return compress(Array{true, false, true}, x[0], 1); });
  b["compress"] = made([](auto& x) {
    return compress(Array{false, true, true, false, true}, x[0]);
  });
}

void add_places(Builders& b) {
  const Array counts{{0, 2, 0}, {3, 0, 4}};
  b["nonzero"] = [=](const Operands&) { return nonzero(counts); };
  b["flatnonzero"] = [=](const Operands&) { return Operands{flatnonzero(counts)}; };
  b["unravel_index 2,3,4"] = [](const Operands& x) { return unravel_index(x[0], {2, 3, 4}); };
  b["ravel_multi_index 2,3"] = made([](auto& x) {
    return ravel_multi_index({x[0], x[1]}, {2, 3});
  });
  b["inverse_permutation"] = made([](auto& x) { return inverse_permutation(x[0]); });
  b["permute_row_elements"] = made([](auto& x) { return permute_row_elements(x[0], x[1]); });
  b["permute_row_elements back"] =
      made([](auto& x) { return permute_row_elements(x[0], x[1], true); });
  b["one_hot 3 in front"] = made([](auto& x) { return one_hot(x[0], 3, DType::float64, 0); });
}

Variable write(const std::string& how, const Variable& part, const Variable& value) {
  if (how == "set") return set_subtensor(part, value);
  if (how == "inc") return inc_subtensor(part, value);
  if (how == "mul") return mul_subtensor(part, value);
  return how == "max" ? max_subtensor(part, value) : min_subtensor(part, value);
}

void add_writes(Builders& b) {
  const Array columns{0, 1, 0, 2};
  for (const std::string how : {"set", "inc", "mul", "max", "min"}) {
    b[how + " rows"] = made([how](auto& x) { return write(how, x[0](x[1]), x[2]); });
    b[how + " columns"] = made([how](auto& x) { return write(how, x[0](Slice(), x[1]), x[2]); });
    b[how + " cells"] = made([=](auto& x) { return write(how, x[0](x[1], columns), x[2]); });
    b[how + " slice"] = made([how](auto& x) { return write(how, x[0](Slice(none, 0, -2)), x[1]); });
    if (how != "inc") {
      b[how + " mask"] = made([how](auto& x) { return write(how, x[0](x[1]), x[2]); });
    }
    b[how + " step"] = made([how](auto& x) { return write(how, x[0](Slice(4, 0, x[1])), x[2]); });
  }
  for (const std::string how : {"max", "min"}) {
    b[how + " NaN"] = made([how](auto& x) { return write(how, x[0](x[1]), x[2]); });
  }
  b["mul zeros"] = made([](auto& x) { return mul_subtensor(x[0](x[1]), x[2]); });
  const std::pair<std::string, WriteMode> modes[] = {{"set", WriteMode::set},
                                                     {"inc", WriteMode::add},
                                                     {"mul", WriteMode::mul},
                                                     {"max", WriteMode::max},
                                                     {"min", WriteMode::min}};
  for (const auto& [name, mode] : modes) {
    for (const int axis : {0, 1}) {
      b["scatter " + name + " along " + std::to_string(axis)] =
          made([mode = mode, axis](auto& x) { return scatter(x[0], x[1], x[2], axis, mode); });
    }
    b["scatter_nd " + name] = made([mode = mode](auto& x) {
      return scatter_nd(x[0], specify_shape(x[1], {kAnyDim, 2}), x[2], mode);
    });
  }
  b["put_along_axis"] = made([](auto& x) { return put_along_axis(x[0], x[1], x[2], 1); });
  b["put_along_axis 7 along 0"] = made([](auto& x) { return put_along_axis(x[0], x[1], 7, 0); });
}

Builders builders() {
  Builders b;
  add_reads(b);
  add_places(b);
  add_writes(b);
  b["trapezoid"] = made([](auto& x) { return trapezoid(x[0]); });
  b["trapezoid 0.5 along 0"] = made([](auto& x) { return trapezoid(x[0], {}, 0.5, 0); });
  b["trapezoid at"] = made([](auto& x) { return trapezoid(x[0], x[1]); });
  b["interp"] = made([](auto& x) { return interp(x[0], x[1], x[2]); });
  b["interp 7,8"] = made([](auto& x) {
    const Variable left = make_scalar(DType::float64, 7, Loc::current());
    return interp(x[0], x[1], x[2], left, left + 1);
  });
  return b;
}

}  // namespace

TEST_CASE("reading and writing at places give NumPy's values", "[ops][index][fixtures]") {
  check_fixtures("index_values.txt", builders(), 1e-6);
}

TEST_CASE("gradients of reading and writing at places", "[ops][index][fixtures][grad]") {
  // Equal candidates, NaN and places where lines meet have no limit of differences.
  std::set<std::string> skip{"max NaN", "min NaN", "interp", "interp 7,8"};
  for (const auto& builder : builders()) {
    const std::string& title = builder.first;
    if (title.starts_with("max ") || title.starts_with("min ") ||
        title.starts_with("scatter max") || title.starts_with("scatter min") ||
        title.starts_with("scatter_nd max") || title.starts_with("scatter_nd min")) {
      skip.insert(title);
    }
  }
  check_fixture_gradients("index_values.txt", builders(), skip);
}

TEST_CASE("masks that only the call knows can be written at", "[ops][index]") {
  const Variable x = input(DType::int64, {kAnyDim, 2}, "x");
  const Variable mask = input(DType::boolean, {kAnyDim}, "mask");
  const Values values{{x, Array{{1, 2}, {3, 4}}}, {mask, Array{false, true}}};
  CHECK(array_equal(value(set_subtensor(x(mask), 0), values), Array{{1, 2}, {0, 0}}));
  CHECK(array_equal(value(inc_subtensor(x(mask), Array{10, 20}), values), Array{{1, 2}, {13, 24}}));
  CHECK(
      array_equal(value(inc_subtensor(x(mask), Array{{10, 20}}), values), Array{{1, 2}, {13, 24}}));
  CHECK_THROWS_WITH(floats({2, 3})(Array{true, false, true}), Contains("a mask of shape (3,)"));
}

TEST_CASE("samples of several dtypes are promoted", "[ops][index]") {
  const Variable y = input(DType::float32, {3}, "y");
  const Variable n = input(DType::int32, {3}, "n");
  const Variable x = input(DType::float64, {3}, "x");
  // Places that float32 does not tell apart.
  const Values values{{y, Array{1., 2., 4.}.astype(DType::float32)},
                      {n, Array{1, 2, 4}.astype(DType::int32)},
                      {x, Array::from<double>({1, 1 + 1e-9, 1 + 3e-9}, {3})}};
  const double places[] = {1, 1 + 1e-9, 1 + 3e-9};
  const double area = (places[1] - places[0]) * 1.5 + (places[2] - places[1]) * 3;
  for (const Variable& samples : {y, n}) {
    const Array got = value(trapezoid(samples, x), values);
    CHECK(got.dtype() == DType::float64);
    CHECK(got.item<double>() == Approx(area).epsilon(1e-12));
  }
  CHECK(trapezoid(y, n).dtype() == DType::float32);
  CHECK(trapezoid(n).dtype() == DType::float32);
  CHECK(value(trapezoid(x, n), values).dtype() == DType::float64);
  const Variable third = make_scalar(DType::float64, 1.0 / 3, Loc::current());
  const Array end = value(interp(y - 9, y, y, third), values);
  CHECK(end.dtype() == DType::float64);
  CHECK(end.to_vector<double>()[0] == 1.0 / 3);
}

TEST_CASE("places that cannot be are refused", "[ops][index]") {
  const Variable x = floats({2, 3});
  const Variable i = input(DType::int64, {2, 3}, "i");
  CHECK_THROWS_WITH(take(x, floats({2})), Contains("[take]") && Contains("must be integers"));
  CHECK_THROWS_WITH(gather(x, input(DType::int64, {2}), 0), Contains("[gather]"));
  CHECK_THROWS_WITH(gather_nd(x, i), Contains("[gather_nd]") && Contains("3 indices for 2 axes"));
  CHECK_THROWS_WITH(gather_nd(x, input(DType::int64, {2, kAnyDim})), Contains("must be known"));
  CHECK_THROWS_WITH(scatter(x, i, input(DType::float64, {2, 2})),
                    Contains("[scatter]") && Contains("stretched"));
  CHECK_THROWS_WITH(scatter(input(DType::float32, {2, 3}), i, x), Contains("lose digits"));
  CHECK_THROWS_WITH(scatter_nd(x, i, 1), Contains("[scatter_nd]"));
  CHECK_THROWS_WITH(ravel_multi_index({i}, {2, 3}), Contains("1 indices for 2 sizes"));
  CHECK_THROWS_WITH(trapezoid(x, floats({2, 3, 1})), Contains("[trapezoid]"));
  CHECK_THROWS_WITH(interp(x, x, x), Contains("[interp]"));
  const Array bad = Array::full({2, 3}, 9, DType::int64);
  const Array v = counting({2, 3});
  const auto called = [&](const Variable& y) {
    return message_of<CallError>([&] {
      function({x, i}, y, {.on_unused = OnUnused::ignore}).call({v, bad});
    });
  };
  CHECK_THAT(called(scatter(x, i, 1.0, 1, WriteMode::max)),
             Contains("[scatter] index 9 is out of bounds for axis 1 of size 3") &&
                 Contains("index_fixtures.cpp"));
  CHECK_THAT(called(take(x, i)), Contains("[take] index 9") && Contains("size 6"));
  CHECK_THAT(called(mul_subtensor(x(i), 2)), Contains("index 9 is out of bounds"));
  for (const Variable& place : unravel_index(i, {3, 3})) {
    CHECK_THAT(called(place), Contains("[unravel_index] index 9") && Contains("size 9"));
  }
  CHECK_THAT(called(unravel_index(i - 10, {2, 3})[1]), Contains("[unravel_index] index -1"));
}
