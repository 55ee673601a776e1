// Functions of a group, whose ranks have values of their own.
#include "croton/group.h"

#include <catch2/catch.hpp>
#include <limits>

#include "tests/parallel/parallel.h"

using namespace croton;
using namespace croton::test;
using Catch::Contains;

namespace {

using Floats = std::vector<float>;
using Integers = std::vector<std::int64_t>;

Array rows_of(const Floats& list) { return Array::from<float>(list); }

/// Which rows each of so many ranks gets: the numbers of the first ones, and of those behind the
/// last.
Integers edges(std::int64_t rows, int ranks) {
  Integers result{0};
  for (int r = 0; r < ranks; ++r) {
    result.push_back(result.back() + rows / ranks + (r < rows % ranks ? 1 : 0));
  }
  return result;
}

}  // namespace

TEST_CASE("a group shares out any number of rows", "[group]") {
  const Variable x = vector("x");
  const auto counts = [&](int rows, int ranks) {
    const Group group(first_contexts(ranks));
    const GroupFunction f = group.function({x}, {{"rows", x.shape(0), Combine::gather}});
    return f(Array::zeros({rows}))["rows"].to_vector<std::int64_t>();
  };
  CHECK(counts(5, 2) == Integers{3, 2});
  CHECK(counts(7, 4) == Integers{2, 2, 2, 1});
  CHECK(counts(9, 8) == Integers{2, 1, 1, 1, 1, 1, 1, 1});
  CHECK(counts(3, 4) == Integers{1, 1, 1});
  CHECK(counts(10, 4) == Integers{3, 3, 2, 2});
  CHECK(counts(1, 2) == Integers{1});
  CHECK(counts(0, 2) == Integers{0});
  CHECK(counts(257, 8) == Integers{33, 32, 32, 32, 32, 32, 32, 32});
}

TEST_CASE("means are weighted by rows", "[group]") {
  const Variable x = vector("x");
  for (const int ranks : {1, 2, 3, 4}) {
    const Group group(first_contexts(ranks));
    const GroupFunction f = group.function({x}, {mean(x)});
    for (const int slices : {1, 2, 3}) {
      CHECK(f.call({rows_of({1, 2, 3, 4, 5, 6, 7})}, {.num_slices = slices})[0].item<float>() == 4);
    }
    // Without rows every rank counts as much.
    const Shared s = shared(Array(3.0f));
    CHECK(group.function({}, {mean(s * 2)})()[0].item<float>() == 6);
  }
}

TEST_CASE("updates are those of each rank, and ranks without rows keep what they have", "[group]") {
  const Variable x = vector("x");
  for (const int ranks : {1, 2, 3, 4}) {
    const Group group(first_contexts(ranks));
    const Shared s = shared(Array(10.0f), {.name = "s"}), n = shared(Array(std::int64_t{0}));
    const GroupFunction f =
        group.function({x}, {{sum(x), Combine::sum}}, {.updates = {{s, s + sum(x)}, {n, n + 1}}});
    const GroupFunction all = group.function({}, {{s, Combine::gather}, {n, Combine::gather}});
    for (const int rows : {7, 2, 1, 0}) {
      INFO(ranks << " ranks, " << rows << " rows");
      Floats values;
      for (int i = 0; i < rows; ++i) values.push_back(static_cast<float>(i + 1));
      const Outputs before = all();
      Floats wanted = before[0].to_vector<float>();
      Integers counted = before[1].to_vector<std::int64_t>();
      const Integers at = edges(rows, ranks);
      for (std::size_t r = 0; r + 1 < at.size(); ++r) {
        for (std::int64_t i = at[r]; i < at[r + 1]; ++i) wanted[r] += static_cast<float>(i + 1);
        counted[r] += at[r + 1] > at[r];
      }
      CHECK(f(rows_of(values))[0].item<float>() == static_cast<float>(rows * (rows + 1) / 2));
      CHECK(all()[0].to_vector<float>() == wanted);
      CHECK(all()[1].to_vector<std::int64_t>() == counted);
      // Rank 0 has the variable itself.
      CHECK(s.get_value().item<float>() == wanted[0]);
    }
  }
}

TEST_CASE("slices are computed from the values before the call, and stored once", "[group]") {
  const Variable x = vector("x");
  for (const int ranks : {1, 2, 3}) {
    for (const int slices : {1, 2, 3, 7}) {
      INFO(ranks << " ranks, " << slices << " slices");
      const Group group(first_contexts(ranks));
      const Shared mean_s = shared(Array(1.0f)), sum_s = shared(Array(1.0f)),
                   max_s = shared(Array(1.0f)), min_s = shared(Array(1.0f)),
                   prod_s = shared(Array(1.0f)), first_s = shared(Array(1.0f));
      const GroupFunction f = group.function({x}, {{sum(x), Combine::sum}},
                                             {.updates = {{mean_s, mean_s + mean(x)},
                                                          {sum_s, sum_s * sum(x), Combine::sum},
                                                          {max_s, max_s + max(x), Combine::max},
                                                          {min_s, min_s + min(x), Combine::min},
                                                          {prod_s, prod_s * prod(x), Combine::prod},
                                                          {first_s, first_s + 1, Combine::first}}});
      Floats values;
      for (int i = 0; i < 4 * ranks; ++i) values.push_back(static_cast<float>(i % 4 + 1));
      CHECK(f.call({rows_of(values)}, {.num_slices = slices})[0].item<float>() ==
            static_cast<float>(10 * ranks));
      const auto each = [&](const Shared& s, float wanted) {
        const Array got = group.function({}, {{s, Combine::gather}})()[0];
        CHECK(got.to_vector<float>() == Floats(static_cast<std::size_t>(ranks), wanted));
      };
      each(mean_s, 3.5);
      each(sum_s, 10);
      each(max_s, 5);
      each(min_s, 2);
      each(prod_s, 24);
      each(first_s, 2);
    }
  }
}

TEST_CASE("rows of sliceable shared variables", "[group]") {
  const Shared data = shared(rows_of({1, 2, 3, 4, 5}), {.name = "data", .resizable = true});
  const Shared labels = shared(rows_of({1, 1, 1, 1, 2}), {.name = "labels", .resizable = true});
  const Shared s = shared(Array(0.0f), {.name = "s"});
  const Variable x = vector("x");
  const Group group(first_contexts(2));
  const GroupFunction f =
      group.function({}, {{"rows", data * labels, Combine::gather}, {"mean", mean(data)}},
                     {.updates = {{s, s + sum(data * labels), Combine::sum}},
                      .sliceable_shareds = {data, labels},
                      .name = "f"});
  const auto rows = [&](const std::vector<Rows>& batch, int slices = 1) {
    return f.call({}, {.batch_s = batch, .num_slices = slices})["rows"].to_vector<float>();
  };
  const std::vector<Rows> last{Rows(3, 5)};
  const auto list = [](std::vector<std::int64_t> of) { return Rows(std::move(of)); };
  CHECK(rows({}) == Floats{1, 2, 3, 4, 10, 1, 2, 3, 4, 10});
  CHECK(rows(last) == Floats{4, 10, 4, 10});
  CHECK(rows({Rows(1), Rows(-2, 5)}) == Floats{1, 4, 10});
  CHECK(rows({list({4, 0, 0}), Rows(1)}, 2) == Floats{10, 1, 1, 1});
  CHECK(rows({Rows(Array{1, -1}.astype(DType::int32))}) == Floats{2, 10, 2, 10});
  // A rank that chooses nothing does nothing, whichever it is.
  const GroupFunction all = group.function({}, {{s, Combine::gather}});
  const Floats before = all()[0].to_vector<float>();
  CHECK(rows({Rows(0), Rows(2)}, 3) == Floats{1, 2});
  CHECK(all()[0].to_vector<float>() == Floats{before[0], before[1] * 2 + 3});
  CHECK(rows({Rows(0)}) == Floats{});
  CHECK(all()[0].to_vector<float>() == Floats{before[0], before[1] * 2 + 3});
  CHECK(f.call({}, {.batch_s = {Rows(1), Rows(1, 4)}})["mean"].item<float>() == 2.5f);
  CHECK_THROWS_WITH(rows({Rows(6)}), Contains("[f] batch_s: rank 0: row 6 is out of bounds for 5"));
  CHECK_THROWS_WITH(rows({Rows(1), list({5})}),
                    Contains("[f] batch_s: rank 1: row 5 is out of bounds for 5"));
  CHECK_THROWS_WITH(rows({Rows(1), Rows(1), Rows(1)}),
                    Contains("batch_s has 3 entries: give one for all ranks, or 2"));
  // Beside arguments.
  const GroupFunction both = group.function({x}, {{x * data, Combine::gather}},
                                            {.sliceable_shareds = {data}, .name = "both"});
  const auto product = [&](const Floats& with, const std::vector<Rows>& batch, int slices = 1) {
    return both.call({rows_of(with)}, {.batch_s = batch, .num_slices = slices})[0]
        .to_vector<float>();
  };
  CHECK(product({1, 2, 3}, {Rows(2), Rows(1)}, 2) == Floats{1, 4, 3});
  CHECK_THROWS_WITH(product({1, 2, 3}, {Rows(2)}),
                    Contains("rank 1 has 1 rows of the arguments and 2 of the sliceable"));
  labels.set_value(rows_of({1, 1}));
  CHECK_THROWS_WITH(rows({}), Contains("rank 0 has 5 rows of data and 2 of labels"));
  CHECK(rows({Rows(2)}) == Floats{1, 2, 1, 2});
}

TEST_CASE("what ranks have is combined in each way, in each dtype", "[group]") {
  for (const DType dtype : {DType::float16, DType::bfloat16, DType::float32, DType::float64,
                            DType::int8, DType::int32, DType::int64, DType::boolean}) {
    INFO(name_of(dtype));
    const bool truth = dtype == DType::boolean;
    const Variable x = matrix("x", dtype);
    const Variable low = min(x, 0);
    std::vector<GroupOutput> outputs{{"gather", x, Combine::gather},
                                     {"max", max(x, 0), Combine::max},
                                     {"min", low, Combine::min},
                                     {"first", low, Combine::first},
                                     {"scalars", max(x), Combine::gather}};
    if (!truth) {
      outputs.emplace_back("sum", sum(x, 0, {.dtype = dtype}), Combine::sum);
      outputs.emplace_back("prod", prod(x, 0, {.dtype = dtype}), Combine::prod);
    }
    if (is_float(dtype)) outputs.emplace_back("mean", mean(x, 0));
    const Group group(first_contexts(3));
    const GroupFunction f = group.function({x}, outputs);
    const Array xv = Array({{1, -2}, {2, 3}, {-1, 1}, {3, 0}, {1, 2}}).astype(dtype);
    const auto has = [&](const Array& a, const std::vector<double>& wanted) {
      CHECK(a.dtype() == dtype);
      return array_equal(a, Array::from<double>(wanted).astype(dtype));
    };
    for (const Array& argument : {xv, xv.transpose().copy().transpose()}) {
      const Outputs out = f(argument);
      CHECK(array_equal(out["gather"], xv));
      if (truth) {
        CHECK(has(out["max"], {1, 1}));
        CHECK(has(out["min"], {1, 0}));
        continue;
      }
      CHECK(has(out["max"], {3, 3}));
      CHECK(has(out["min"], {-1, -2}));
      CHECK(has(out["first"], {1, -2}));
      CHECK(has(out["scalars"], {3, 3, 2}));
      CHECK(has(out["sum"], {6, 4}));
      CHECK(has(out["prod"], {-6, 0}));
      if (is_float(dtype)) CHECK(within(out["mean"], Array({1.2, 0.8}).astype(dtype), 0x1p-8));
    }
  }
}

TEST_CASE("values of every rank, NaN, infinities and -0 are combined", "[group]") {
  const Group group(first_contexts(2));
  for (int rank = 0; rank <= 4; ++rank) {
    const Variable x = tensor("x", DType::float32, Shape(std::vector<std::int64_t>(5, kAnyDim)));
    Variable part = x;
    while (part.ndim() > rank) part = sum(part, -1);
    const GroupFunction f = group.function({x}, {{part, Combine::sum}, {part, Combine::gather}});
    const Array xv = whole_numbers({2, 2, 1, 2, 3}, 1);
    const Function one = function({x}, {part});
    const Array a = one(xv.slice(0, 0, 1))[0], b = one(xv.slice(0, 1, 2))[0];
    const Variable u = constant(a), v = constant(b);
    const Outputs out = f(xv);
    CHECK(array_equal(out[0], function({}, {u + v})()[0]));
    CHECK(out[1].ndim() == static_cast<std::size_t>(std::max(rank, 1)));
  }
  const Variable x = vector("x");
  const GroupFunction f = group.function(
      {x},
      {{"max", max(x), Combine::max}, {"sum", sum(x), Combine::sum}, {"x", x, Combine::gather}});
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  Outputs out = f(rows_of({1, 2, nan, 0}));
  CHECK(std::isnan(out["max"].item<float>()));
  CHECK(std::isnan(out["sum"].item<float>()));
  out = f(rows_of({infinity, 1, -0.0f, -infinity}));
  CHECK(out["max"].item<float>() == infinity);
  CHECK(std::isnan(out["sum"].item<float>()));
  CHECK(std::signbit(out["x"].to_vector<float>()[2]));
}

TEST_CASE("a subset of outputs keeps names, order and updates", "[group]") {
  const Variable x = vector("x");
  const Shared n = shared(Array(std::int64_t{0}));
  const Group group(first_contexts(3));
  const auto [quotient, rest] = divmod(x, 2);
  const GroupFunction f = group.function({x},
                                         {{"sum", sum(x), Combine::sum},
                                          {"high", max(quotient), Combine::max},
                                          {"low", min(rest), Combine::min}},
                                         {.updates = {{n, n + 1}}, .name = "f"});
  const auto subset = [&](std::vector<std::size_t> wanted) {
    return f.call({rows_of({4, 1, 3})}, {.output_subset = std::move(wanted)});
  };
  CHECK(f.output_names() == std::vector<std::string>{"sum", "high", "low"});
  const Outputs out = subset({2, 0});
  REQUIRE(out.size() == 2);
  CHECK(out.name(0) == "low");
  CHECK(out["low"].item<float>() == 0);
  CHECK(out["sum"].item<float>() == 8);
  CHECK(subset({}).size() == 0);
  CHECK(n.get_value().item<std::int64_t>() == 2);
  CHECK_THROWS_WITH(subset({3}), Contains("[f] output_subset: there is no output 3: there are 3"));
  CHECK_THROWS_WITH(subset({0, 0}), Contains("output_subset: output 0 is given twice"));
}

TEST_CASE("a group's batch is chosen before rows are shared out", "[group]") {
  const Variable x = vector("x"), all = vector("all");
  const Group group(first_contexts(3));
  const GroupFunction f = group.function(
      {x, to_all(all)}, {{"x", x, Combine::gather}, {"all", all, Combine::first}}, {.name = "f"});
  const auto rows = [&](const Rows& batch) {
    const Outputs out = f.call({rows_of({0, 1, 2, 3, 4}), rows_of({7, 8})}, {.batch = batch});
    CHECK(out["all"].to_vector<float>() == Floats{7, 8});
    return out["x"].to_vector<float>();
  };
  CHECK(rows(2) == Floats{0, 1});
  CHECK(rows(0) == Floats{});
  CHECK(rows({-3, -1}) == Floats{2, 3});
  CHECK(rows(Rows(std::vector<std::int64_t>{4, 0, 0, -2})) == Floats{4, 0, 0, 3});
  CHECK(rows(Array{3, 1}.astype(DType::int32)) == Floats{3, 1});
  CHECK(rows(Array{3, 1}) == Floats{3, 1});
  CHECK_THROWS_WITH(rows(6), Contains("[f] batch: row 6 is out of bounds for 5 rows"));
  CHECK_THROWS_WITH(rows(Rows(std::vector<std::int64_t>{5})), Contains("row 5 is out of bounds"));
}

TEST_CASE("ranks draw other numbers", "[group]") {
  const Group group(first_contexts(2));
  RandomStream random(3);
  const Variable x = vector("x");
  const Variable drawn = random.uniform(shape(x));
  const GroupFunction f = group.function({x}, {{drawn, Combine::gather}});
  const Floats once = f(Array::zeros({4}))[0].to_vector<float>();
  const Floats again = f(Array::zeros({4}))[0].to_vector<float>();
  CHECK(Floats(once.begin(), once.begin() + 2) != Floats(once.begin() + 2, once.end()));
  CHECK(once != again);
}

TEST_CASE("givens are those of every rank", "[group]") {
  const Variable x = vector("x"), unit = scalar("unit");
  const Shared s = shared(Array(2.0f));
  const Group group(first_contexts(3));
  const GroupFunction f =
      group.function({x}, {{sum(x * unit), Combine::sum}}, {.givens = {{unit, s + 1}}});
  CHECK(f(rows_of({1, 2, 3, 4}))[0].item<float>() == 30);
}

TEST_CASE("wrong arguments of a group's functions", "[group]") {
  const Variable x = matrix("x"), t = vector("t"), s = scalar("s"), k = vector("k", DType::int64);
  const Shared w = shared(Array::zeros({3}), {.name = "w"}), one = shared(Array::zeros({1}));
  const Shared total = shared(Array(std::int64_t{0}), {.name = "total"});
  const Group group(first_contexts(2));
  const GroupFunction f = group.function({x, t}, {sum(x) + sum(t)}, {.name = "f"});
  const Array m = Array::zeros({4, 2}), v = Array::zeros({4});
  CHECK_THROWS_WITH(f(m, Array::zeros({3})),
                    Contains("[f] argument 0 (\"x\") has 4 rows and argument 1 (\"t\") has 3") &&
                        Contains("to_all(x)"));
  CHECK_THROWS_WITH(f(v, v), Contains("argument 0 (\"x\") has 1 axes: expected 2"));
  CHECK_THROWS_WITH(f(m), Contains("1 arguments were given: expected 2"));
  CHECK_THROWS_WITH(f.call({m, v}, {.num_slices = 0}), Contains("num_slices must be at least 1"));
  CHECK_THROWS_WITH(f.call({m, v}, {.batch_s = {Rows(1)}}),
                    Contains("batch_s: the function was made without sliceable_shareds"));
  CHECK_THROWS_WITH(GroupFunction()(1), Contains("an empty GroupFunction"));
  CHECK_THROWS_WITH(group.function({}, {mean(w)}).call({}, {.num_slices = 2}),
                    Contains("nothing can be sliced"));
  CHECK_THROWS_WITH(group.function({to_all(t)}, {mean(t)}).call({v}, {.batch = 1}),
                    Contains("batch: no argument has rows"));
  CHECK_THROWS_WITH(group.function({t}, {{t, Combine::whole}}),
                    Contains("output 0 cannot be Combine::whole") && Contains("group.cpp:"));
  CHECK_THROWS_WITH(group.function({k}, {sum(k)}), Contains("output 0 of dtype int64 has no mean"));
  CHECK_THROWS_WITH(group.function({s}, {s}), Contains("has no rows to share out"));
  CHECK_THROWS_WITH(group.function({t}, {sum(t)}, {.updates = {{w, w * sum(t), Combine::gather}}}),
                    Contains("slices of an update are combined by"));
  CHECK_THROWS_WITH(group.function({t}, {sum(t)}, {.sliceable_shareds = {w}}),
                    Contains("w is sliceable, but the function does not need it"));
  CHECK_THROWS_WITH(group.function({}, {sum(w)}, {.sliceable_shareds = {w, w}}),
                    Contains("w is sliceable twice"));
  CHECK_THROWS_WITH(group.function({}, {sum(one)}, {.sliceable_shareds = {one}}),
                    Contains("is sliceable, but has no rows"));
  CHECK_THROWS_WITH(
      group.function({}, {sum(w)}, {.updates = {{w, w + 1}}, .sliceable_shareds = {w}}),
      Contains("w is sliceable, and cannot be updated"));
  const GroupFunction counts = group.function({k}, {}, {.updates = {{total, total + sum(k)}}});
  CHECK_NOTHROW(counts(Array{1, 2, 3, 4}));
  CHECK_THROWS_WITH(counts.call({Array{1, 2, 3, 4}}, {.num_slices = 2}),
                    Contains("of dtype int64 has no mean"));
  CHECK_THROWS_WITH(Group({"dev0", "dev0"}), Contains("'dev0' is given twice"));
  CHECK_THROWS_WITH(Group({"nowhere"}), Contains("nowhere") && Contains("asked for by Group"));
  CHECK(Group().size() == 8);
}
