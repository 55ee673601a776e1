// What several contexts make of values that each has its own of.
#include <croton/croton.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

using namespace croton;
using Catch::Matchers::Contains;

namespace {

/// One context a rank, in turn.
std::vector<std::string> contexts_for(int ranks) {
  std::vector<std::string> names;
  for (int r = 0; r < ranks; ++r) names.push_back(r % 2 == 0 ? "dev0" : "dev1");
  return names;
}

std::vector<Variable> values_of(const std::vector<Array>& arrays) {
  std::vector<Variable> values;
  const std::vector<std::string> contexts = contexts_for(static_cast<int>(arrays.size()));
  for (std::size_t r = 0; r < arrays.size(); ++r) {
    values.push_back(shared(arrays[r], {.target = contexts[r]}));
  }
  return values;
}

std::vector<Array> run(const std::vector<Variable>& outputs) {
  const Outputs out = function({}, outputs)();
  return {out.begin(), out.end()};
}

/// Whole numbers, so that every order of additions gives the same bits.
Array whole_numbers(const Shape& shape, DType dtype, int rank) {
  std::vector<double> v(static_cast<std::size_t>(shape.numel()));
  for (std::size_t i = 0; i < v.size(); ++i) {
    v[i] = is_bool(dtype)
               ? static_cast<double>((i + static_cast<std::size_t>(rank)) % 2)
               : static_cast<double>((i * 7 + static_cast<std::size_t>(rank) * 5) % 4 + 1);
  }
  return Array::from<double>(v, shape).astype(dtype);
}

std::vector<double> numbers(const Array& a) {
  return a.to_host().astype(DType::float64).to_vector<double>();
}

}  // namespace

TEST_CASE("all_reduce combines in every dtype, shape and number of ranks") {
  const std::vector<Shape> shapes{{}, {5}, {0, 3}, {7, 2}, {2, 1, 3}, {1, 2, 2, 2}};
  for (const int ranks : {1, 2, 3, 4, 8}) {
    for (const DType dtype : {DType::float32, DType::float64, DType::float16, DType::bfloat16,
                              DType::int8, DType::int32, DType::int64, DType::boolean}) {
      const Shape& shape =
          shapes[(static_cast<std::size_t>(dtype) + static_cast<std::size_t>(ranks)) %
                 shapes.size()];
      std::vector<Array> arrays;
      for (int r = 0; r < ranks; ++r) arrays.push_back(whole_numbers(shape, dtype, r));
      std::vector<Variable> outputs;
      for (const CollectiveOp op : {CollectiveOp::sum, CollectiveOp::max, CollectiveOp::min}) {
        for (const Variable& v : all_reduce(values_of(arrays), op)) outputs.push_back(v);
      }
      const std::vector<Array> got = run(outputs);
      std::vector<double> sum = numbers(arrays[0]), max = sum, min = sum;
      for (int r = 1; r < ranks; ++r) {
        const std::vector<double> v = numbers(arrays[static_cast<std::size_t>(r)]);
        for (std::size_t i = 0; i < v.size(); ++i) {
          sum[i] = is_bool(dtype) ? std::max(sum[i], v[i]) : sum[i] + v[i];
          max[i] = std::max(max[i], v[i]);
          min[i] = std::min(min[i], v[i]);
        }
      }
      for (std::size_t k = 0; k < got.size(); ++k) {
        INFO(ranks << " ranks, " << name_of(dtype) << ", output " << k);
        CHECK(got[k].dtype() == dtype);
        CHECK(got[k].shape() == shape);
        const std::size_t op = k / static_cast<std::size_t>(ranks);
        CHECK(numbers(got[k]) == (op == 0 ? sum : op == 1 ? max : min));
      }
    }
  }
}

TEST_CASE("all_reduce averages, with weights and without, and multiplies") {
  const std::vector<Array> arrays{{2.0, 8.0}, {4.0, 0.0}, {9.0, 1.0}};
  const std::vector<Variable> v = values_of(arrays);
  CHECK(numbers(run(all_reduce(v, CollectiveOp::mean))[2]) == std::vector<double>{5, 3});
  CHECK(numbers(run(all_reduce(v, CollectiveOp::prod))[1]) == std::vector<double>{72, 0});
  // The mean over 1..7 on four ranks, not the mean of means.
  const Array rows = Array::arange(1, 8).astype(DType::float32);
  const Variable x = shared(rows, {.target = "dev0"});
  std::vector<Variable> means, counts;
  for (const Variable& part : scatter(x, contexts_for(4))) {
    means.push_back(transfer(mean(part), part.context()));
    counts.push_back(part.shape(0));
  }
  CHECK(run({reduce(means, CollectiveOp::mean, 3,
                    {.contexts = contexts_for(4), .weights = counts})})[0]
            .item<float>() == 4.0f);
  // A rank without rows has no say, not even with NaN.
  const Array nan = std::numeric_limits<float>::quiet_NaN(), six = 6.0f;
  const std::vector<Variable> some = values_of({nan, six});
  const Variable none = shared(Array(std::int64_t{0})), three = shared(Array(std::int64_t{3}));
  CHECK(run(all_reduce(some, CollectiveOp::mean, {.weights = {none, three}}))[0].item<float>() ==
        6.0f);
}

TEST_CASE("narrow floats are combined in float32 and rounded once") {
  const Array big = Array({2048.0}).astype(DType::float16),
              one = Array({1.0}).astype(DType::float16);
  CHECK(numbers(run(all_reduce(values_of({big, one, one}), CollectiveOp::sum))[0])[0] == 2050);
}

TEST_CASE("NaN, infinities and the sign of zero go through collectives") {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  const Array a = {nan, inf, inf, -0.0, 1.0}, b = {1.0, 1.0, -inf, -0.0, nan};
  const std::vector<double> sum = numbers(run(all_reduce(values_of({a, b})))[1]);
  CHECK((std::isnan(sum[0]) && sum[1] == inf && std::isnan(sum[2]) && std::isnan(sum[4])));
  CHECK((sum[3] == 0 && std::signbit(sum[3])));
  const std::vector<double> max =
      numbers(run(all_reduce(values_of({a, b, b}), CollectiveOp::max))[0]);
  CHECK((std::isnan(max[0]) && max[1] == inf && std::isnan(max[4])));
}

TEST_CASE("rows are gathered, scattered and exchanged, whatever their number") {
  for (const auto& [rows, sizes] : {std::pair<int, std::vector<int>>{7, {2, 2, 2, 1}},
                                    {5, {3, 2}},
                                    {3, {1, 1, 1, 0}},
                                    {0, {0, 0}},
                                    {9, {2, 1, 1, 1, 1, 1, 1, 1}},
                                    {10, {3, 3, 2, 2}}}) {
    const std::vector<std::string> contexts = contexts_for(static_cast<int>(sizes.size()));
    const Array all = whole_numbers({rows, 3}, DType::float32, 1);
    for (const bool resizable : {false, true}) {
      const Shared x = shared(all, {.target = "dev1", .resizable = resizable});
      const std::vector<Variable> parts = scatter(x, contexts);
      std::vector<Variable> outputs = parts;
      for (const Variable& v : all_gather(parts, false, {.contexts = contexts})) {
        outputs.push_back(v);
      }
      outputs.push_back(gather(parts, 1, false, {.contexts = contexts}));
      const std::vector<Array> got = run(outputs);
      for (std::size_t r = 0; r < sizes.size(); ++r) CHECK(got[r].shape()[0] == sizes[r]);
      for (std::size_t k = sizes.size(); k < got.size(); ++k) {
        CHECK(array_equal(got[k].to_host(), all));
      }
    }
  }
  const std::vector<Variable> v = values_of({Array({1.0, 2.0, 3.0}), Array({4.0, 5.0, 6.0})});
  std::vector<Array> got = run(all_to_all(v));
  CHECK(numbers(got[0]) == std::vector<double>{1, 2, 4, 5});
  CHECK(numbers(got[1]) == std::vector<double>{3, 6});
  got = run(reduce_scatter(v, CollectiveOp::sum));
  CHECK(numbers(got[0]) == std::vector<double>{5, 7});
  CHECK(numbers(got[1]) == std::vector<double>{9});
  CHECK(run(all_gather(v, true))[1].shape() == Shape({2, 3}));
  CHECK(numbers(run(broadcast(v[0], {"dev1", "dev0"}))[0]) == std::vector<double>{1, 2, 3});
  // Seen transposed.
  const Shared m = shared(whole_numbers({3, 2}, DType::float32, 0), {.target = "dev0"});
  const std::vector<Variable> turned =
      all_gather({m.T(), m.T()}, false, {.contexts = {"dev0", "dev1"}});
  const Array twice = run({concatenate({m.T(), m.T()})})[0];
  CHECK(array_equal(run(turned)[1].to_host(), twice.to_host()));
}

TEST_CASE("gradients go through collectives in both conventions") {
  const std::vector<Array> arrays{{1.0, 2.0}, {3.0, 4.0}, {5.0, 6.0}};
  for (const int ranks : {2, 3}) {
    const std::vector<Variable> v = values_of({arrays.begin(), arrays.begin() + ranks});
    for (const CollectiveGradient gradient :
         {CollectiveGradient::total, CollectiveGradient::once}) {
      const std::vector<Variable> sums = all_reduce(v, CollectiveOp::sum, {.gradient = gradient});
      Variable loss;
      for (int r = 0; r < ranks; ++r) {
        const Variable part = transfer(sum(sums[static_cast<std::size_t>(r)] * (r + 1.0f)), "cpu");
        loss = loss.defined() ? loss + part : part;
      }
      for (int r = 0; r < ranks; ++r) {
        const double all = ranks * (ranks + 1) / 2.0;
        const double wanted = gradient == CollectiveGradient::total ? all : r + 1.0;
        const Function f =
            function({}, grad(loss, v[static_cast<std::size_t>(r)]), {.keep_on_device = true});
        CHECK(f.output_contexts()[0] == contexts_for(ranks)[static_cast<std::size_t>(r)]);
        CHECK(numbers(f()[0]) == std::vector<double>{wanted, wanted});
      }
    }
    const std::vector<Variable> means =
        all_reduce(v, CollectiveOp::mean, {.gradient = CollectiveGradient::once});
    CHECK(numbers(run({grad(sum(means[0]), v[0])})[0])[0] == Approx(1.0 / ranks));
    const std::vector<Variable> joined =
        all_gather(v, false, {.gradient = CollectiveGradient::once});
    const Array factors = Array::arange(2 * ranks).astype(DType::float32);
    CHECK(numbers(run({grad(sum(joined[1] * factors), v[1])})[0]) == std::vector<double>{2, 3});
  }
}

TEST_CASE("gradients of collectives agree with differences") {
  const Variable a = tensor("a", DType::float64, {4}), b = tensor("b", DType::float64, {4}),
                 c = tensor("c", DType::float64, {4});
  const CollectiveOptions three{.contexts = contexts_for(3)};
  std::vector<Array> at{Array({0.5, -1.0, 2.0, 0.25}), Array({1.5, 0.75, -0.5, 1.0}),
                        Array({-2.0, 1.25, 0.3, 2.5})};
  for (Array& value : at) value = value.astype(DType::float64);
  Variable loss;
  const auto add = [&](const std::vector<Variable>& results) {
    for (std::size_t r = 0; r < results.size(); ++r) {
      const Variable part = transfer(sum(sin(results[r]) * (r + 1.0)), "cpu");
      loss = loss.defined() ? loss + part : part;
    }
  };
  for (const CollectiveOp op : {CollectiveOp::sum, CollectiveOp::mean, CollectiveOp::max,
                                CollectiveOp::min, CollectiveOp::prod}) {
    add(all_reduce({a, b, c}, op, three));
  }
  add(reduce_scatter({a, b, c}, CollectiveOp::sum, three));
  add(all_gather({a, b, c}, false, three));
  add(all_to_all({a, b, c}, three));
  add(scatter(a, three.contexts));
  add(broadcast(b, three.contexts));
  const Function value = function({a, b, c}, loss);
  const std::vector<Variable> inputs{a, b, c};
  const Outputs slopes = function(inputs, grad(loss, inputs))(at[0], at[1], at[2]);
  constexpr double kStep = 1e-5;
  for (std::size_t k = 0; k < 3; ++k) {
    for (std::size_t i = 0; i < 4; ++i) {
      double ends[2];
      for (const int side : {0, 1}) {
        std::vector<Array> moved = at;
        std::vector<double> v = numbers(at[k]);
        v[i] += side == 0 ? -kStep : kStep;
        moved[k] = Array::from<double>(v, {4});
        ends[side] = value.call(moved)[0].item<double>();
      }
      // Second order: the error is some kStep^2, and what rounding adds is below 1e-16 / kStep.
      CHECK(numbers(slopes[k])[i] == Approx((ends[1] - ends[0]) / (2 * kStep)).epsilon(1e-7));
    }
  }
}

TEST_CASE("collectives say what is wrong") {
  const std::vector<Variable> v = values_of({Array({1.0}), Array({2.0})});
  const Variable open = vector("open"), n = shared(Array({1, 2}), {.target = "dev0"});
  const auto says = [](const auto& make, const std::string& text) {
    CHECK_THROWS_AS(make(), GraphError);
    CHECK_THROWS_WITH(make(), Contains(text) && Contains("collectives.cpp:"));
  };
  says([&] { all_reduce({}); }, "[all_reduce] a value for each rank is expected: got none");
  says([&] { all_reduce({v[0], Variable()}); }, "the value of rank 1 is an empty Variable");
  says([&] { all_reduce({v[0], open}); }, "the value of rank 1 names no context");
  says([&] { all_reduce({v[0], n}); }, "the values differ in type: rank 0 has float32");
  says([&] { all_reduce({n, n}, CollectiveOp::mean); }, "the mean of int64");
  says([&] { all_reduce(v, CollectiveOp::sum, {.contexts = {"dev0"}}); },
       "2 values and 1 contexts");
  says([&] { all_reduce(v, CollectiveOp::sum, {.weights = {n(0), n(1)}}); }, "weights are for");
  says([&] { all_reduce(v, CollectiveOp::mean, {.weights = {n(0)}}); }, "2 values and 1 weights");
  says([&] { all_reduce(v, CollectiveOp::mean, {.weights = {n, n}}); }, "must be a scalar");
  says([&] { all_reduce(v, CollectiveOp::max, {.gradient = CollectiveGradient::once}); },
       "is for sums and means");
  says([&] { reduce(v, CollectiveOp::sum, 2); }, "[reduce] the root is rank 2, and there are 2");
  says([&] { reduce(v, CollectiveOp::sum, 0, {.gradient = CollectiveGradient::once}); },
       "is for all_reduce and all_gather");
  says([&] { scatter(n(0), {"dev0", "dev1"}); }, "[scatter] scalars have no rows");
  says([&] { broadcast(v[0], {}); }, "[broadcast] a value for each rank");
}
