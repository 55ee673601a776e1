// What a data-parallel function takes and gives.
#include "croton/data_parallel.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "tests/parallel/parallel.h"

using namespace croton;
using namespace croton::test;
using Catch::Contains;

namespace {

Array rows_of(std::initializer_list<float> list) { return Array::from<float>(list, {list.size()}); }

}  // namespace

TEST_CASE("the mean of uneven rows is theirs, not that of the contexts' means", "[data_parallel]") {
  const Variable x = vector("x");
  const DataParallel f = data_parallel({x},
                                       {{"one device", mean(x)},
                                        {"of means", mean(x), Combine::mean},
                                        {"sum", sum(x), Combine::sum}},
                                       {.contexts = first_contexts(4)});
  const Outputs out = f(rows_of({1, 2, 3, 4, 5, 6, 7}));
  CHECK(out["one device"].item<float>() == 4);
  CHECK(out["of means"].item<float>() == 4);
  CHECK(out["sum"].item<float>() == 28);
}

TEST_CASE("rows are shared out evenly, larger shares first", "[data_parallel]") {
  const Variable x = vector("x");
  const auto counts = [&](int rows, int contexts) {
    const DataParallel f = data_parallel({x}, {{"rows", x.shape(0), Combine::gather}},
                                         {.contexts = first_contexts(contexts)});
    return f(Array::zeros({rows}))["rows"].to_vector<std::int64_t>();
  };
  using List = std::vector<std::int64_t>;
  CHECK(counts(5, 2) == List{3, 2});
  CHECK(counts(7, 4) == List{2, 2, 2, 1});
  CHECK(counts(9, 8) == List{2, 1, 1, 1, 1, 1, 1, 1});
  CHECK(counts(10, 4) == List{3, 3, 2, 2});
  CHECK(counts(257, 8) == List{33, 32, 32, 32, 32, 32, 32, 32});
  // Contexts without rows do nothing.
  CHECK(counts(3, 4) == List{1, 1, 1});
  CHECK(counts(1, 2) == List{1});
  CHECK(counts(0, 2) == List{0});
}

TEST_CASE("outputs with rows come together in order, under their names", "[data_parallel]") {
  const Variable x = matrix("x"), scale = vector("scale");
  const DataParallel f = data_parallel({x, to_all(scale)},
                                       {{"rows", x * scale},
                                        {"columns", transpose(x)},
                                        {"softmax", softmax(x, 0)},
                                        {"sum", sum(x, 1)}},
                                       {.contexts = first_contexts(3)});
  const Function one = function({x, scale}, {{"rows", x * scale},
                                             {"columns", transpose(x)},
                                             {"softmax", softmax(x, 0)},
                                             {"sum", sum(x, 1)}});
  for (const int rows : {1, 2, 3, 7}) {
    INFO(rows << " rows");
    const Array xv = numbers({rows, 4}, 1), sv = numbers({4}, 2);
    const Outputs got = f(xv, sv), wanted = one(xv, sv);
    REQUIRE(got.size() == wanted.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      CHECK(got.name(i) == wanted.name(i));
      CHECK(within(got[i], wanted[i], 7 * 0x1p-24 * 4));
    }
  }
  // Nothing is an error where it is one on one device.
  const Array none = Array::zeros({0, 4}), sv = numbers({4}, 2);
  CHECK_THROWS_WITH(f(none, sv), Contains("[softmax] nothing to choose from"));
  const DataParallel g =
      data_parallel({x}, {{"rows", x}, {"sum", sum(x, 0)}}, {.contexts = first_contexts(3)});
  const Outputs out = g(none);
  CHECK(out["rows"].shape() == Shape{0, 4});
  CHECK(array_equal(out["sum"], Array::zeros({4})));
}

TEST_CASE("weights of 0 and masks count as on one device", "[data_parallel]") {
  const Variable x = vector("x"), w = vector("w");
  const Variable weighted = sum(x * w) / sum(w);
  const Variable masked = sum(where(gt(w, 0), x, 0.0f)) / sum(cast(gt(w, 0), DType::float32));
  const Variable slope = grad(weighted, w);
  const DataParallel f =
      data_parallel({x, w}, {weighted, masked, slope}, {.contexts = first_contexts(3)});
  // The first context has only weights of 0.
  const Outputs out = f(rows_of({5, 6, 1, 2, 3, 8}), rows_of({0, 0, 1, 2, 1, 0}));
  CHECK(out[0].item<float>() == 2);
  CHECK(out[1].item<float>() == 2);
  CHECK(out[2].to_vector<float>() == std::vector<float>{0.75f, 1, -0.25f, 0, 0.25f, 1.5f});
}

TEST_CASE("dropout has the mask of one device", "[data_parallel]") {
  const auto draw = [](auto make) {
    RandomStream random(7);
    const Variable x = matrix("x");
    const Variable kept = where(random.bernoulli(shape(x), 0.5), x, 0.0f);
    const Variable noise = random.normal({x.shape(0), x.shape(1)});
    return make(x, kept, noise);
  };
  const DataParallel f = draw([](const Variable& x, const Variable& kept, const Variable& noise) {
    return data_parallel({x}, {kept, noise}, {.contexts = first_contexts(3)});
  });
  const Function one = draw([](const Variable& x, const Variable& kept, const Variable& noise) {
    return function({x}, {kept, noise});
  });
  for (const int rows : {7, 2, 5}) {
    const Array xv = numbers({rows, 3}, 1);
    const Outputs got = f(xv), wanted = one(xv);
    CHECK(array_equal(got[0], wanted[0]));
    CHECK(array_equal(got[1], wanted[1]));
  }
  CHECK(f.computed_by_all().empty());
}

TEST_CASE("counters count once, givens and shared values without rows are as ever",
          "[data_parallel]") {
  const Variable x = vector("x"), unit = scalar("unit");
  const Shared calls = shared(Array(std::int64_t{0}), {.name = "calls"});
  const Shared seen = shared(Array(0.0f), {.name = "seen"});
  const DataParallel f = data_parallel({x}, {sum(x * unit)},
                                       {.contexts = first_contexts(4),
                                        .updates = {{calls, calls + 1}, {seen, seen + sum(x)}},
                                        .givens = {{unit, constant(2.0f)}}});
  for (int i = 0; i < 3; ++i)
    CHECK(f.call({rows_of({1, 2, 3, 4, 5, 6})}, {.num_slices = 2})[0].item<float>() == 42);
  CHECK(calls.get_value().item<std::int64_t>() == 3);
  CHECK(seen.get_value().item<float>() == 63);
}

TEST_CASE("a batch is chosen before rows are shared out", "[data_parallel]") {
  const Variable x = vector("x"), all = vector("all");
  const DataParallel f =
      data_parallel({x, to_all(all)}, {{"x", x}, {"all", all}}, {.contexts = first_contexts(3)});
  const std::vector<Array> arguments{rows_of({0, 1, 2, 3, 4}), rows_of({7, 8})};
  const auto rows = [&](const Rows& batch) {
    const Outputs out = f.call(arguments, {.batch = batch});
    CHECK(out["all"].size() == 2);
    return out["x"].to_vector<float>();
  };
  using List = std::vector<float>;
  CHECK(rows(2) == List{0, 1});
  CHECK(rows(0) == List{});
  CHECK(rows(5) == List{0, 1, 2, 3, 4});
  CHECK(rows({1, 4}) == List{1, 2, 3});
  CHECK(rows({-3, -1}) == List{2, 3});
  CHECK(rows(std::vector<std::int64_t>{4, 0, 0, -2}) == List{4, 0, 0, 3});
  CHECK(rows(Array{3, 1}.astype(DType::int32)) == List{3, 1});
  CHECK_THROWS_WITH(rows(6), Contains("row 6 is out of bounds for 5 rows"));
  CHECK_THROWS_WITH(rows(std::vector<std::int64_t>{5}),
                    Contains("row 5 is out of bounds for 5 rows"));
  CHECK_THROWS_WITH(rows(std::vector<std::int64_t>{-6}),
                    Contains("row -6 is out of bounds for 5 rows"));
  CHECK_THROWS_WITH(Rows(rows_of({1})), Contains("rows must be a vector of integers"));
}

TEST_CASE("what is combined in each way, in each dtype", "[data_parallel]") {
  for (const DType dtype : {DType::float16, DType::bfloat16, DType::float32, DType::float64,
                            DType::int8, DType::int32, DType::int64}) {
    INFO(name_of(dtype));
    const Variable x = matrix("x", dtype);
    const Variable row = sum(x, 0, {.dtype = dtype});
    std::vector<ParallelOutput> outputs{
        {"sum", row, Combine::sum},       {"max", max(x, 0), Combine::max},
        {"min", min(x, 0), Combine::min}, {"prod", prod(x, 0, {.dtype = dtype}), Combine::prod},
        {"gather", x, Combine::gather},   {"first", row, Combine::first}};
    if (is_float(dtype)) outputs.emplace_back("mean", mean(x, 0), Combine::mean);
    const DataParallel f = data_parallel({x}, outputs, {.contexts = first_contexts(3)});
    const Array xv = Array({{1, -2}, {2, 3}, {-1, 1}, {3, 0}, {1, 2}}).astype(dtype);
    const auto has = [](const Array& a, std::vector<double> wanted) {
      return a.astype(DType::float64).to_vector<double>() == wanted;
    };
    // A view without rows next to each other.
    for (const Array& argument : {xv, xv.transpose().copy().transpose()}) {
      const Outputs out = f(argument);
      CHECK(has(out["sum"], {6, 4}));
      CHECK(has(out["max"], {3, 3}));
      CHECK(has(out["min"], {-1, -2}));
      CHECK(has(out["prod"], {-6, 0}));
      CHECK(array_equal(out["gather"], xv));
      CHECK(has(out["first"], {3, 1}));
      if (is_float(dtype)) CHECK(within(out["mean"], Array({1.2, 0.8}).astype(dtype), 0x1p-8));
      for (const Array& array : out) CHECK(array.dtype() == dtype);
    }
  }
  const Variable k = vector("k", DType::int64);
  CHECK_THROWS_WITH(
      data_parallel({k}, {{"mean", sum(k), Combine::mean}}, {.contexts = first_contexts(2)}),
      Contains("an output of dtype int64 has no mean"));
}

TEST_CASE("NaN, infinities and the sign of 0 come through", "[data_parallel]") {
  const Variable x = vector("x");
  const DataParallel f = data_parallel({x}, {{"max", max(x)}, {"sum", sum(x)}, {"x", x}},
                                       {.contexts = first_contexts(2)});
  const float nan = std::nanf(""), infinity = INFINITY;
  Outputs out = f(rows_of({1, 2, nan, 0}));
  CHECK(std::isnan(out["max"].item<float>()));
  CHECK(std::isnan(out["sum"].item<float>()));
  out = f(rows_of({1, infinity, -0.0f, 0}));
  CHECK(out["max"].item<float>() == infinity);
  CHECK(std::signbit(out["x"].to_vector<float>()[2]));
  out = f(rows_of({infinity, 1, 1, -infinity}));
  CHECK(std::isnan(out["sum"].item<float>()));
}

TEST_CASE("what needs all rows at once is computed by all, and told", "[data_parallel]") {
  const Variable x = vector("x");
  const DataParallel f =
      data_parallel({x}, {{"sorted", sort(x)}, {"sums", cumsum(x)}, {"at", argmax(x)}},
                    {.contexts = first_contexts(3)});
  const Outputs out = f(rows_of({3, 1, 4, 1, 5}));
  CHECK(out["sorted"].to_vector<float>() == std::vector<float>{1, 1, 3, 4, 5});
  CHECK(out["sums"].to_vector<float>() == std::vector<float>{3, 4, 8, 9, 14});
  CHECK(out["at"].item<std::int64_t>() == 4);
  REQUIRE(f.computed_by_all().size() == 3);
  CHECK_THAT(f.computed_by_all()[0], Contains("data_parallel.cpp:"));
}

TEST_CASE("wrong arguments of data-parallel functions", "[data_parallel]") {
  const Variable x = matrix("x"), t = vector("t"), s = scalar("s");
  const auto contexts = first_contexts(2);
  const DataParallel f =
      data_parallel({x, t}, {sum(x) + sum(t)}, {.contexts = contexts, .name = "f"});
  CHECK_THROWS_WITH(f(Array::zeros({4, 2}), Array::zeros({3})),
                    Contains("[f] argument 0 (\"x\") has 4 rows and argument 1 (\"t\") has 3") &&
                        Contains("to_all(x)"));
  CHECK_THROWS_WITH(f(Array::zeros({4}), Array::zeros({4})),
                    Contains("argument 0 (\"x\") has 1 axes: expected 2"));
  CHECK_THROWS_WITH(f(Array::zeros({4, 2})), Contains("1 arguments were given: expected 2"));
  CHECK_THROWS_AS(f(Array::zeros({4, 2}, DType::float64), Array::zeros({4})), CallError);
  CHECK_THROWS_WITH(f.call({Array::zeros({4, 2}), Array::zeros({4})}, {.num_slices = 0}),
                    Contains("num_slices must be at least 1: got 0"));
  CHECK_THROWS_WITH(DataParallel()(1), Contains("an empty DataParallel"));
  CHECK_THROWS_WITH(data_parallel({s}, {s}, {.contexts = contexts}),
                    Contains("has no rows to share out"));
  CHECK_THROWS_WITH(data_parallel({x}, {x}, {.contexts = {"dev0", "dev0"}}),
                    Contains("'dev0' is given twice"));
  CHECK_THROWS_WITH(data_parallel({x}, {x}, {.contexts = {"nowhere"}}), Contains("nowhere"));
  const Variable known = tensor("known", DType::float32, {4, 2});
  const DataParallel g = data_parallel({known}, {sum(known)}, {.contexts = contexts});
  CHECK(g(Array::ones({4, 2}))[0].item<float>() == 8);
  CHECK_THROWS_WITH(g(Array::ones({5, 2})), Contains("has 5 rows: it was declared with 4"));
  // A value beside the rows that has another number of them.
  const Variable other = vector("other");
  const DataParallel h = data_parallel({t, to_all(other)}, {t + other}, {.contexts = contexts});
  CHECK(h(Array::ones({4}), Array::ones({4}))[0].size() == 4);
  CHECK_THROWS_AS(h(Array::ones({4}), Array::ones({6})), CallError);
  CHECK_THROWS_AS(h(Array::ones({4}), Array::ones({3})), CallError);
}

TEST_CASE("rows that were joined with other axes come apart again", "[data_parallel]") {
  const Variable x = tensor("x", DType::float32, {kAnyDim, 2, 4}), y = vector("y");
  const Variable steps = exp(reshape(x, {-1, 4}));
  const std::vector<Variable> wanted{
      reshape(steps, {x.shape(0), 2, -1}), reshape(steps, {x.shape(0), -1}),
      reshape(steps, {y.shape(0), -1}), reshape(reshape(steps, {-1, 2}), {x.shape(0), -1, 2})};
  const Function one = function({x, y}, wanted, {.on_unused = OnUnused::ignore});
  const DataParallel f =
      data_parallel({x, y}, {wanted[0], wanted[1], wanted[2], wanted[3]},
                    {.contexts = first_contexts(3), .on_unused = OnUnused::ignore});
  CHECK(f.computed_by_all().empty());
  for (const int rows : {7, 3, 1, 0}) {
    const Array values = numbers({rows, 2, 4}, 3), others = numbers({rows}, 4);
    const Outputs got = f(values, others), right = one(values, others);
    for (std::size_t k = 0; k < wanted.size(); ++k) CHECK(array_equal(got[k], right[k]));
  }
}

TEST_CASE("sizes that clash on one device clash on several", "[data_parallel]") {
  const Variable x = matrix("x"), w = matrix("w"), one_row = row("r");
  const auto fails = [&](const Variable& v, const Array& a, const Array& b) {
    const DataParallel f =
        data_parallel({x, to_all(w), to_all(one_row)}, {v},
                      {.contexts = first_contexts(3), .on_unused = OnUnused::ignore});
    CHECK_THROWS_AS(f(a, b, Array::zeros({1, 3})), UserError);
  };
  fails(broadcast_to(x, {5, 3}), Array::ones({6, 3}), Array::ones({6, 3}));
  fails(broadcast_to(x, {w.shape(0), 3}), Array::ones({6, 3}), Array::ones({3, 3}));
  // Each context has one row.
  fails(concatenate({x, one_row}, 1), Array::ones({3, 3}), Array::ones({3, 3}));
}

TEST_CASE("a call that fails changes nothing, and the next one works", "[data_parallel]") {
  const Variable x = vector("x", DType::int64);
  const Shared table = shared(whole_numbers({5}, 1), {.name = "table"});
  const Shared calls = shared(Array(std::int64_t{0}), {.name = "calls"});
  const DataParallel f =
      data_parallel({x}, {{"cost", sum(table(x))}},
                    {.contexts = first_contexts(3),
                     .updates = {{calls, calls + 1}, {table, table - grad(sum(table(x)), table)}}});
  const Array before = table.get_value();
  CHECK_THROWS_WITH(f(Array{0, 1, 2, 3, 9}), Contains("index 9 is out of bounds"));
  CHECK(array_equal(table.get_value(), before));
  CHECK(calls.get_value().item<std::int64_t>() == 0);
  f(Array{0, 1, 2, 3, 4});
  CHECK(calls.get_value().item<std::int64_t>() == 1);
}

TEST_CASE("several threads call a data-parallel function", "[data_parallel]") {
  const Variable x = vector("x");
  const Shared total = shared(Array(0.0f), {.name = "total"});
  const DataParallel f = data_parallel(
      {x}, {sum(x)}, {.contexts = first_contexts(2), .updates = {{total, total + sum(x)}}});
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 10; ++i) {
        const int rows = 1 + (t + i) % 5;
        right += f(Array::ones({rows}))[0].item<float>() == static_cast<float>(rows);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(right == 40);
  CHECK(total.get_value().item<float>() == 4 * 2 * (1 + 2 + 3 + 4 + 5));
}

TEST_CASE("named losses on several contexts", "[data_parallel]") {
  const Variable x = matrix("x");
  const Shared w = shared(numbers({4, 3}, 1), {.name = "w"}),
               v = shared(numbers({4, 1}, 2), {.name = "v"});
  const Variable weights = vector("weights");
  const NamedLosses model =
      named_losses({{"a", softmax(dot(x, w))}, {"b", dot(x, v)}},
                   {.loss = {{"a", "sparse_categorical_crossentropy"}, {"b", "mse"}},
                    .loss_weights = {{"a", 1.0}, {"b", 0.25}},
                    .sample_weights = {{"a", weights}},
                    .metrics = {{"a", {"accuracy"}}, {"b", {"mae"}}},
                    .regularisation = {sum(square(w))}});
  const std::vector<Variable> slopes = grad(model.total, {w, v});
  OutputList reported = model.reported();
  reported.list.emplace_back("slope w", slopes[0]);
  reported.list.emplace_back("slope v", slopes[1]);
  std::vector<ParallelOutput> outputs;
  for (const Output& output : reported.list) outputs.emplace_back(output.name, output.value);
  const std::vector<Variable> inputs{x, model.target("a"), model.target("b"), weights};
  const DataParallel f =
      data_parallel({inputs.begin(), inputs.end()}, outputs, {.contexts = first_contexts(3)});
  const Function one = function(inputs, reported);
  const std::vector<Array> arguments{numbers({7, 4}, 3), Array{0, 1, 2, 2, 1, 0, 1},
                                     numbers({7, 1}, 4), rows_of({0, 0, 0, 1, 2, 0.5, 1})};
  const Outputs got = f.call(arguments), wanted = one.call(arguments);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    INFO(wanted.name(i));
    CHECK(got.name(i) == wanted.name(i));
    CHECK(within(got[i], wanted[i], 2 * 7 * 4 * 0x1p-24));
  }
  CHECK(f.computed_by_all().empty());
}
