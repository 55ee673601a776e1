// Functions that C does not have, within their bounds of the values that mpmath gave
// (tests/data/make_math_fixtures.py).
#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <numbers>
#include <sstream>
#include <string>

#include "tests/compiler/math_runs.h"
#include "tests/data_folder.h"

using namespace croton;
using namespace croton::kernel;
using test::error_in_ulp;
using test::Wide;

namespace {

struct Row {
  double x = 0, y = 0, z = 0;
  Wide exact = 0;
};

std::map<std::string, std::vector<Row>> read_values() {
  std::ifstream in(test::data_folder() + "/math_values.txt");
  REQUIRE(in);
  std::map<std::string, std::vector<Row>> blocks;
  std::vector<Row>* block = nullptr;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::vector<std::string> list;
    for (std::string word; words >> word;) list.push_back(word);
    if (list.at(0) == "@") {
      block = &blocks[list.at(1)];
      continue;
    }
    double x[3] = {};
    for (std::size_t k = 0; k + 1 < list.size(); ++k) x[k] = std::strtod(list[k].c_str(), nullptr);
    block->push_back({x[0], x[1], x[2], std::strtold(list.back().c_str(), nullptr)});
  }
  return blocks;
}

Expr build(const std::string& name, int order, std::span<const Expr> x) {
  static const std::map<std::string, Expr (*)(Expr)> kUnary = {{"erfcx", erfcx},
                                                               {"erfinv", erfinv},
                                                               {"erfcinv", erfcinv},
                                                               {"gamma", kernel::gamma},
                                                               {"gammaln", gammaln},
                                                               {"digamma", digamma},
                                                               {"i0", i0},
                                                               {"i1", i1},
                                                               {"i0e", i0e},
                                                               {"i1e", i1e},
                                                               {"j0", kernel::j0},
                                                               {"j1", kernel::j1},
                                                               {"y0", kernel::y0},
                                                               {"y1", kernel::y1},
                                                               {"cbrt", kernel::cbrt},
                                                               {"log1mexp", log1mexp}};
  static const std::map<std::string, Expr (*)(Expr, Expr)> kBinary = {
      {"hypot", kernel::hypot}, {"logaddexp", logaddexp}, {"logaddexp2", logaddexp2},
      {"gammainc", gammainc},   {"gammaincc", gammaincc}, {"betaln", betaln}};
  if (name == "polygamma") return polygamma(order, x[0]);
  if (name == "betainc") return betainc(x[0], x[1], x[2]);
  const auto unary = kUnary.find(name);
  return unary != kUnary.end() ? unary->second(x[0]) : kBinary.at(name)(x[0], x[1]);
}

Wide least(MathBound::Unit unit, const Row& row) {
  const Wide size = std::fabs(row.x);
  switch (unit) {
    case MathBound::Unit::value:
      return 0;
    case MathBound::Unit::one:
      return 1;
    case MathBound::Unit::beta:
      if (row.y < 1 && row.z > 0.95) return 1;
      [[fallthrough]];
    case MathBound::Unit::logarithm:
      return row.exact > 0 ? row.exact * std::max(Wide(1), -std::log(row.exact)) : 0;
    case MathBound::Unit::one_left:
      return row.x < 0 ? 1 : 0;
    case MathBound::Unit::envelope:
      return size > 2 ? std::sqrt(2 * std::numbers::inv_pi_v<Wide> / size) : 0;
    case MathBound::Unit::wave:
      return size > 2 ? std::sqrt(2 * std::numbers::inv_pi_v<Wide> / size) : 1;
    case MathBound::Unit::operand: {
      const Wide more = std::max(size, std::fabs(static_cast<Wide>(row.y)));
      return std::isfinite(more) ? more : 0;
    }
  }
  return 0;
}

struct Worst {
  double error = 0;
  Row row;
  double got = 0;
};

template <class T>
Worst worst_of(const MathBound& bound, const std::vector<Row>& rows, int order) {
  std::vector<std::vector<T>> columns(3);
  std::vector<Row> used;
  for (const Row& row : rows) {
    if (bound.name == "polygamma" && row.y != order) continue;
    // A float32's value is asked for at a float32.
    const double x[] = {row.x, row.y, row.z};
    bool exact = true;
    for (const double v : x) exact = exact && (static_cast<T>(v) == v || std::isnan(v));
    if (!exact) continue;
    for (int k = 0; k < 3; ++k) columns[k].push_back(static_cast<T>(x[k]));
    used.push_back(row);
  }
  const std::string name(bound.name);
  const std::vector<T> got =
      test::run_math<T>([&](std::span<const Expr> x) { return build(name, order, x); }, columns);
  Worst worst;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double error = error_in_ulp(got[i], used[i].exact, least(bound.unit, used[i]));
    if (error > worst.error) worst = {error, used[i], got[i]};
  }
  return worst;
}

/// Calls f(bound, order, worst in float32, worst in float64) for each special function.
template <class F>
void for_each_function(F&& f) {
  const std::map<std::string, std::vector<Row>> values = read_values();
  std::size_t count = 0;
  bool special = false;  // those before have tests of their own, in kernel_math_test.cpp
  for (const MathBound& bound : math_bounds()) {
    special = special || bound.name == "erfcx";
    const auto found = values.find(std::string(bound.name));
    INFO(bound.name);
    CHECK((found != values.end()) == special);
    if (found == values.end()) continue;
    std::vector<int> orders{0};
    if (bound.name == "polygamma") orders = {1, 2, 3, 10, kMostPolygamma};
    for (const int order : orders) {
      f(bound, order, worst_of<float>(bound, found->second, order),
        worst_of<double>(bound, found->second, order));
    }
    ++count;
  }
  CHECK(count == values.size());
}

void check_worst(const MathBound& bound, const Worst& worst, double most) {
  INFO(bound.name << " at " << worst.row.x << ", " << worst.row.y << ", " << worst.row.z
                  << " gives " << worst.got << ", not " << worst.row.exact);
  CHECK(worst.error <= most);
  CHECK(worst.error >= 0.5);  // the points do measure something
}

}  // namespace

TEST_CASE("each special function keeps its bound", "[kernel][math]") {
  for_each_function([](const MathBound& bound, int order, const Worst& single, const Worst& wide) {
    // The error grows with the order, twice as fast at most.
    const double more = 2 * std::max(0, order - 3);
    check_worst(bound, single, bound.float32_ulp);
    check_worst(bound, wide, bound.float64_ulp + more);
  });
}
