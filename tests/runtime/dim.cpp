#include "runtime/dim.h"

#include <catch2/catch.hpp>
#include <random>

using namespace croton;

namespace {

std::int64_t value_of(const DimTable& table, DimRef ref, std::vector<std::int64_t> inputs) {
  std::vector<std::int64_t> values(table.terms().size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const DimTable::Term& t = table.terms()[i];
    if (t.op == DimOp::input_size) values[i] = inputs.at(static_cast<std::size_t>(t.b));
    if (t.op == DimOp::input_value) values[i] = inputs.at(static_cast<std::size_t>(t.a));
  }
  table.evaluate(values);
  return values[static_cast<std::size_t>(ref)];
}

}  // namespace

TEST_CASE("numbers fold, unknown sizes stay unknown") {
  CHECK((Dim(3) + Dim(4)).is(7));
  CHECK(floor_div(Dim(-7), Dim(2)).is(-4));
  CHECK(floor_mod(Dim(-7), Dim(2)).is(1));
  CHECK(floor_div(Dim(7), Dim(0)).is(0));
  CHECK(less(Dim(1), Dim(2)).is(1));
  CHECK((Dim() + Dim(1)).is_unknown());
  CHECK((Dim() * Dim(0)).is(0));
  CHECK_FALSE(Dim().same(Dim()));
}

TEST_CASE("equal sizes are the same term however they were written") {
  DimTable t;
  const Dim a = t.input_size(0, 0), b = t.input_size(0, 1), c = t.input_size(1, 0);
  CHECK((a + b).same(b + a));
  CHECK(((a + b) + c).same(a + (c + b)));
  CHECK((a * b * c).same(c * (b * a)));
  CHECK((a + b - a).same(b));
  CHECK((a - a).is(0));
  CHECK((a + 3 - 1).same(a + 2));
  CHECK((a * 2 + a * 3).same(a * 5));
  CHECK(((a + b) * 2).same(b * 2 + a * 2));
  CHECK(floor_div(a * 6, 3).same(a * 2));
  CHECK(floor_div(a * 6 + 5, 6).same(a));
  CHECK(floor_div(floor_div(a, 2), 3).same(floor_div(a, 6)));
  CHECK(floor_div(a * b, a).same(b));
  CHECK(floor_div(a * b * 4, b * 2).same(a * 2));
  CHECK(floor_mod(a * 4 + 6, 4).is(2));
  CHECK(floor_mod(a * b, b).is(0));
  CHECK(max(a, 0).same(a));
  CHECK(min(a, a + b).same(a));
  CHECK(min(min(a, b), a).same(min(b, a)));
  CHECK(less(a, 0).is(0));
  CHECK(less(a, a + 1).is(1));
}

TEST_CASE("unified sizes replace one another") {
  DimTable t;
  const Dim a = t.input_size(0, 0), b = t.input_size(1, 0), c = t.input_size(2, 0);
  const Dim product = b * c;
  CHECK(t.unify(a, b));
  CHECK(t.canonical(b).same(t.canonical(a)));
  CHECK((b + 1).same(a + 1));
  CHECK(t.canonical(product).same(t.canonical(a * c)));
  CHECK(t.unify(a, Dim(5)));
  CHECK(t.canonical(b).is(5));
  CHECK(t.canonical(product).same(t.canonical(c * 5)));
  CHECK_FALSE(t.unify(b, Dim(6)));
  CHECK(t.unify(c * 2 + 1, Dim(7)));
  CHECK(t.canonical(c).is(3));
  CHECK(t.canonical(product).is(15));
}

TEST_CASE("a size prints as a formula") {
  DimTable t;
  const Dim a = t.input_size(0, 1), n = t.input_value(2);
  CHECK(t.to_text(a) == "in0.shape[1]");
  CHECK(t.to_text(a * 4) == "(in0.shape[1] * 4)");
  CHECK(t.to_text(min(n, a)) == "min(in0.shape[1], in2)");
  CHECK(t.to_text(a - n - 1) == "((in0.shape[1] - in2) - 1)");
  CHECK(t.to_text(Dim()) == "?");
}

TEST_CASE("simplified terms have the value of the plain formula") {
  std::mt19937 random(7);
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 300; ++round) {
    DimTable t;
    std::vector<std::int64_t> inputs = {1 + pick(9), 1 + pick(9), 1 + pick(9), 1 + pick(9)};
    std::vector<std::pair<Dim, std::int64_t>> pool;
    for (int i = 0; i < 4; ++i) pool.emplace_back(t.input_size(0, i), inputs[std::size_t(i)]);
    for (int step = 0; step < 12; ++step) {
      auto [a, x] = pool[std::size_t(pick(int(pool.size())))];
      auto [b, y] = pool[std::size_t(pick(int(pool.size())))];
      if (pick(3) == 0) b = y = pick(7) - 1;
      const auto floored = [](double v) { return static_cast<std::int64_t>(std::floor(v)); };
      switch (pick(8)) {
        case 0:
          pool.emplace_back(a + b, x + y);
          break;
        case 1:
          pool.emplace_back(a - b, x - y);
          break;
        case 2:
          if (std::abs(x * y) < 10000) pool.emplace_back(a * b, x * y);
          break;
        case 3:
          if (y != 0) pool.emplace_back(floor_div(a, b), floored(double(x) / double(y)));
          break;
        case 4:
          if (y != 0) pool.emplace_back(floor_mod(a, b), x - y * floored(double(x) / double(y)));
          break;
        case 5:
          pool.emplace_back(min(a, b), std::min(x, y));
          break;
        case 6:
          pool.emplace_back(max(a, b), std::max(x, y));
          break;
        default:
          pool.emplace_back(less(a, b), x < y);
          break;
      }
    }
    for (const auto& [dim, expected] : pool) {
      const DimRef ref = t.ref(dim);
      INFO(t.to_text(dim));
      REQUIRE(value_of(t, ref, inputs) == expected);
    }
  }
}

TEST_CASE("long sums stay near-linear") {
  DimTable t;
  Dim total = t.input_size(0, 0);
  for (int i = 1; i < 20000; ++i) total = total + t.input_size(i, 0);
  t.unify(t.input_size(5, 0), Dim(3));
  CHECK_FALSE(t.canonical(total).is_unknown());
  CHECK(t.terms().size() < 2'000'000);
}
