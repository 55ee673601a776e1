// What the ranks of a group do with each other's values of shared variables.
#include <catch2/catch.hpp>

#include "croton/group.h"
#include "tests/parallel/parallel.h"

using namespace croton;
using namespace croton::test;
using Catch::Contains;

namespace {

using Floats = std::vector<float>;

Array rows_of(const Floats& list) { return Array::from<float>(list); }

/// Gives each rank its own value, and says which.
std::vector<Array> fill(const Group& group, const Shared& shared, const Shape& shape,
                        DType dtype = DType::float32) {
  std::vector<Array> values;
  for (int r = 0; r < group.size(); ++r) {
    values.push_back(whole_numbers(shape, static_cast<unsigned>(r), dtype));
    group.set_value(r, shared, values.back());
  }
  return values;
}

}  // namespace

TEST_CASE("the example of Synkhronos' documentation", "[group]") {
  const Group group(first_contexts(2));
  const Variable x = matrix("x");
  const Shared s = shared(Array::ones({2}), {.name = "s"});
  const GroupFunction f = group.function({x}, {}, {.updates = {{s, sum(x * s, 0)}}});
  f(Array({{1.0, 1.0}, {2.0, 2.0}, {3.0, 3.0}, {4.0, 4.0}}).astype(DType::float32));
  const auto each = [&](float first, float second) {
    CHECK(group.get_value(0, s).to_vector<float>() == Floats{first, first});
    CHECK(group.get_value(1, s).to_vector<float>() == Floats{second, second});
  };
  each(3, 7);
  CHECK(group.reduce(s, CollectiveOp::sum, false).to_vector<float>() == Floats{10, 10});
  each(3, 7);
  group.reduce(s, CollectiveOp::sum);
  each(10, 7);
  s.set_value(rows_of({3, 3}));
  group.all_reduce(s, CollectiveOp::sum);
  each(10, 10);
}

TEST_CASE("each rank's value is set and read", "[group]") {
  for (const int ranks : {1, 2, 3, 4}) {
    INFO(ranks << " ranks");
    const Group group(first_contexts(ranks));
    const Shared a = shared(rows_of({1, 2}), {.name = "a"});
    const Shared b = shared(Array(5.0f), {.name = "b", .resizable = true});
    const std::vector<Array> values = fill(group, a, {2});
    group.broadcast(b);
    for (int r = 0; r < ranks; ++r) {
      const std::vector<Array> both = group.get_value(r, {a, b});
      CHECK(array_equal(both[0], values[static_cast<std::size_t>(r)]));
      CHECK(both[1].item<float>() == 5);
      group.set_value(r, {a, b}, {rows_of({7, 8, 9}), Array(static_cast<float>(r))}, Rows(1, 3));
      CHECK(group.get_value(r, a).to_vector<float>() == Floats{8, 9});
      CHECK(group.get_value(r, b).item<float>() == static_cast<float>(r));
    }
    CHECK(a.get_value().to_vector<float>() == Floats{8, 9});
    CHECK(group.get_lengths(a) == std::vector<std::int64_t>(static_cast<std::size_t>(ranks), 2));
  }
}

TEST_CASE("values are broadcast, and their shapes where they may change", "[group]") {
  for (const int ranks : {1, 2, 3, 4}) {
    INFO(ranks << " ranks");
    const Group group(first_contexts(ranks));
    const Shared a = shared(rows_of({1, 2}), {.resizable = true}), b = shared(Array(5.0f));
    fill(group, a, {2});
    a.set_value(rows_of({4, 5, 6}));
    group.broadcast({a, b});
    CHECK(group.get_shapes(a) == std::vector<Shape>(static_cast<std::size_t>(ranks), Shape{3}));
    group.broadcast({b, a}, {Array(2.0f), rows_of({7})});
    for (int r = 0; r < ranks; ++r) {
      CHECK(group.get_value(r, a).to_vector<float>() == Floats{7});
      CHECK(group.get_value(r, b).item<float>() == 2);
    }
    // Copies are ranks' own.
    group.set_value(ranks - 1, b, Array(3.0f));
    CHECK(b.get_value().item<float>() == (ranks == 1 ? 3 : 2));
  }
}

TEST_CASE("rows are scattered and gathered, bit for bit", "[group]") {
  for (const int ranks : {1, 2, 3, 4}) {
    const Group group(first_contexts(ranks));
    const Shared a = shared(Array::zeros({1, 3}), {.name = "a", .resizable = true});
    const Shared k = shared(Array{0}, {.name = "k", .resizable = true});
    for (const int rows : {7, 4, 2, 1, 0}) {
      INFO(ranks << " ranks, " << rows << " rows");
      const Array values = numbers({rows, 3}, 1);
      group.scatter({a, k}, {values, Array::arange(rows, DType::int64)});
      std::vector<std::int64_t> lengths;
      for (int r = 0; r < ranks; ++r) lengths.push_back(rows / ranks + (r < rows % ranks ? 1 : 0));
      CHECK(group.get_lengths(a) == lengths);
      CHECK(group.get_shapes(k)[0] == Shape{lengths[0]});
      CHECK(array_equal(group.gather(a, false), values));
      CHECK(array_equal(group.gather({a, k}, false)[1], Array::arange(rows, DType::int64)));
      CHECK(group.get_lengths(a) == lengths);
      group.all_gather({a, k});
      for (int r = 0; r < ranks; ++r) CHECK(array_equal(group.get_value(r, a), values));
      CHECK(group.get_value(ranks - 1, k).ndim() == 1);
    }
    group.scatter(a, numbers({7, 3}, 1), std::vector<std::int64_t>{6, -7, 0, 0});
    CHECK(array_equal(group.gather(a, false).slice(0, 3, 4), numbers({7, 3}, 1).slice(0, 0, 1)));
    const Shared same = shared(Array::zeros({2, 2}));
    const std::vector<Array> values = fill(group, same, {2, 2});
    const Array stacked = group.gather(same);
    CHECK(stacked.shape() == Shape{ranks, 2, 2});
    for (int r = 0; r < ranks; ++r) {
      CHECK(array_equal(stacked[r], values[static_cast<std::size_t>(r)]));
    }
  }
}

TEST_CASE("values of all ranks are combined", "[group]") {
  const auto of = [](const Array& a) { return a.astype(DType::float64).to_vector<double>(); };
  for (const DType dtype : {DType::float16, DType::bfloat16, DType::float32, DType::float64,
                            DType::int8, DType::int32, DType::int64}) {
    const bool each = dtype == DType::float32;
    for (const int ranks : each ? std::vector{1, 2, 4} : std::vector{2}) {
      INFO(name_of(dtype) << " on " << ranks << " ranks");
      const Group group(first_contexts(ranks));
      const Shared s = shared(Array::zeros({5}, dtype), {.name = "s"});
      const std::vector<Array> values = fill(group, s, {5}, dtype);
      for (const CollectiveOp op : {CollectiveOp::sum, CollectiveOp::mean, CollectiveOp::max,
                                    CollectiveOp::min, CollectiveOp::prod}) {
        if (op == CollectiveOp::mean && !is_float(dtype)) continue;
        std::vector<double> wanted = of(values[0]);
        for (int r = 1; r < ranks; ++r) {
          const std::vector<double> next = of(values[static_cast<std::size_t>(r)]);
          for (std::size_t i = 0; i < wanted.size(); ++i) {
            double& w = wanted[i];
            const bool adds = op == CollectiveOp::sum || op == CollectiveOp::mean;
            w = adds                       ? w + next[i]
                : op == CollectiveOp::prod ? w * next[i]
                : op == CollectiveOp::max  ? std::max(w, next[i])
                                           : std::min(w, next[i]);
          }
        }
        if (op == CollectiveOp::mean) {
          for (double& w : wanted) w /= ranks;
        }
        for (int r = 0; r < ranks; ++r) group.set_value(r, s, values[static_cast<std::size_t>(r)]);
        CHECK(of(group.reduce(s, op, false)) == wanted);
        for (int r = 0; r < ranks; ++r) {
          CHECK(array_equal(group.get_value(r, s), values[static_cast<std::size_t>(r)]));
        }
        CHECK(of(group.reduce(s, op)) == wanted);
        CHECK(of(s.get_value()) == wanted);
        for (int r = 1; r < ranks; ++r) {
          CHECK(array_equal(group.get_value(r, s), values[static_cast<std::size_t>(r)]));
        }
        s.set_value(values[0]);
        group.all_reduce(s, op);
        for (int r = 0; r < ranks; ++r) CHECK(of(group.get_value(r, s)) == wanted);
      }
    }
  }
  // 2048 + 1 + 1 in float32: 2048 after each step in float16.
  const Group group(first_contexts(3));
  const Shared half = shared(Array({2048.0}).astype(DType::float16));
  for (const int r : {1, 2}) group.set_value(r, half, Array({1.0}).astype(DType::float16));
  CHECK(of(group.reduce(half, CollectiveOp::sum)) == std::vector<double>{2050});
}

TEST_CASE("functions and collectives of a group have the same values", "[group]") {
  const Group group(first_contexts(3));
  const Group other(first_contexts(3));
  const Shared w = shared(Array(1.0f), {.name = "w"});
  const Variable x = vector("x");
  const GroupFunction step = group.function({x}, {}, {.updates = {{w, w + sum(x)}}});
  step(rows_of({1, 2, 3}));
  step(rows_of({1, 2, 3}));
  CHECK(group.gather(w).to_vector<float>() == Floats{3, 5, 7});
  group.all_reduce(w);
  CHECK(group.gather(w).to_vector<float>() == Floats{5, 5, 5});
  const Group copy = group;
  CHECK(copy.get_value(2, w).item<float>() == 5);
  // Another group has ranks of its own, but for rank 0.
  other.set_value(2, w, Array(8.0f));
  CHECK(group.get_value(2, w).item<float>() == 5);
  CHECK(other.get_value(0, w).item<float>() == 5);
}

TEST_CASE("collectives of a group say what is wrong and change nothing", "[group]") {
  const Group group(first_contexts(2));
  const Shared a = shared(rows_of({1, 2}), {.name = "a"}), b = shared(Array(1.0f), {.name = "b"});
  const Shared k = shared(Array{1, 2}, {.name = "k"});
  const Shared free = shared(rows_of({1, 2}), {.name = "free", .resizable = true});
  CHECK_THROWS_WITH(group.broadcast({a, a}), Contains("[broadcast] a is given twice"));
  CHECK_THROWS_WITH(group.all_reduce(Shared()), Contains("[all_reduce] an empty Shared"));
  CHECK_THROWS_WITH(group.get_value(2, a), Contains("[get_value] there is no rank 2: there are 2"));
  CHECK_THROWS_WITH(group.set_value(-1, a, rows_of({1, 2})), Contains("there is no rank -1"));
  CHECK_THROWS_WITH(group.broadcast({a, b}, {rows_of({5, 6})}),
                    Contains("1 arrays were given: expected 2"));
  CHECK_THROWS_WITH(group.broadcast({b, a}, {Array(4.0f), rows_of({1})}),
                    Contains("[broadcast] wrong shape for a") && Contains(".resizable = true"));
  CHECK_THROWS_WITH(group.set_value(1, {b, a}, {Array(4.0f), Array{1, 2}}),
                    Contains("[set_value] wrong dtype for a of rank 1: got int64"));
  CHECK_THROWS_WITH(group.scatter(a, rows_of({1, 2, 3})), Contains("wrong shape for a of rank 1"));
  CHECK_THROWS_WITH(group.scatter(b, rows_of({1, 2})), Contains("b is a scalar and has no rows"));
  CHECK_THROWS_WITH(group.scatter(free, rows_of({1, 2, 3}), 4),
                    Contains("[scatter] batch: array 0: row 4 is out of bounds for 3 rows"));
  CHECK_THROWS_WITH(group.scatter(free, Array()), Contains("array 0 is empty"));
  CHECK_THROWS_WITH(group.all_gather(a), Contains("[all_gather] a would get more rows"));
  CHECK_THROWS_WITH(group.gather(b, false), Contains("[gather] b is a scalar"));
  CHECK_THROWS_WITH(group.all_reduce(k), Contains("mean"));
  group.set_value(1, free, rows_of({1, 2, 3}));
  CHECK_THROWS_AS(group.all_reduce(free), Error);
  CHECK_THROWS_AS(group.gather(free), Error);
  CHECK(group.gather(free, false).to_vector<float>() == Floats{1, 2, 1, 2, 3});
  for (const int r : {0, 1}) {
    CHECK(group.get_value(r, a).to_vector<float>() == Floats{1, 2});
    CHECK(group.get_value(r, b).item<float>() == 1);
  }
}
