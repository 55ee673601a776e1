// Gradients at ties, kinks and limits: each row of the table in docs/gradients.md.
#include <fstream>
#include <functional>
#include <map>
#include <set>

#include "croton/cumulative.h"
#include "croton/grad.h"
#include "croton/indexing.h"
#include "croton/jacobian.h"
#include "croton/math.h"
#include "croton/nn.h"
#include "croton/reduce.h"
#include "croton/sort.h"
#include "croton/statistics.h"
#include "croton/tensor.h"
#include "tests/data_folder.h"
#include "tests/ops/op_cases.h"

using namespace croton;
using namespace croton::test;

namespace {

using Slopes = std::vector<double>;
constexpr double kInf = INFINITY;

/// Vectors at a point.
struct Point {
  Variable x = floats({kAnyDim}, "x"), y = floats({kAnyDim}, "y");
  Values at;

  explicit Point(const Slopes& xs, const Slopes& ys = {1}) : at{{x, reals(xs)}, {y, reals(ys)}} {}
  Slopes by(const Variable& wrt, const Variable& result) const {
    return value(grad(sum(result), wrt, {.disconnected_inputs = Disconnected::ignore}), at)
        .to_vector<double>();
  }
  Slopes by_x(const Variable& result) const { return by(x, result); }
  Slopes by_y(const Variable& result) const { return by(y, result); }
  /// The Hessian by x.
  Slopes second(const Variable& result) const {
    return value(hessian(sum(result), x), at).to_vector<double>();
  }
};

/// Checks by row of the table, named by the row's first column.
using Rows = std::map<std::string, std::function<void()>>;

void add_elementwise(Rows& rows) {
  rows["`maximum(a, b)`, `minimum(a, b)` at a tie"] = [] {
    const Point p({-2, 0, 2}, {0, 0, 0});
    CHECK(p.by_x(maximum(p.x, p.y)) == Slopes{0, 1, 1});
    CHECK(p.by_y(maximum(p.x, p.y)) == Slopes{1, 0, 0});
    CHECK(p.by_x(minimum(p.x, p.y)) == Slopes{1, 1, 0});
    CHECK(p.by_y(minimum(p.x, p.y)) == Slopes{0, 0, 1});
  };
  rows["`clip(x, low, high)`"] = [] {
    const Point p({-3, -2, -1, 0, 1}, {1, 1, 1, 1, 1});
    CHECK(p.by_x(clip(p.x, -2, 0)) == Slopes{0, 1, 1, 1, 0});
    CHECK(p.by_y(clip(p.x, -2 * p.y, p.y - 1)) == Slopes{-2, 0, 0, 0, 1});
  };
  rows["`abs` at 0, `sign`"] = [] {
    const Point p({-2, 0, 2});
    CHECK(p.by_x(abs(p.x)) == Slopes{-1, 0, 1});
    CHECK(p.by_x(sign(p.x)) == Slopes{0, 0, 0});
  };
  rows["`copysign(a, b)`"] = [] {
    const Point p({-2, 0, 2, 2}, {-1, -1, -1, 3});
    CHECK(p.by_x(copysign(p.x, p.y)) == Slopes{1, 0, -1, 1});
    CHECK(p.by_y(copysign(p.x, p.y)) == Slopes{0, 0, 0, 0});
  };
  rows["`relu(x, alpha)` at 0"] = [] {
    const Point p({-2, 0, 2});
    CHECK(p.by_x(relu(p.x)) == Slopes{0, 0.5, 1});
    CHECK(p.by_x(relu(p.x, 0.5)) == Slopes{0.5, 0.75, 1});
  };
  rows["`floor`, `ceil`, `trunc`, `round`, `floor_divide`"] = [] {
    const Point p({-1.5, 0, 2});
    const auto trunc_half = [&] { return trunc_divide(p.x, 2); };
    for (const Variable& v : {floor(p.x), ceil(p.x), trunc(p.x), round(p.x),
                              round_half_away_from_zero(p.x), floor_divide(p.x, 2), trunc_half()}) {
      CHECK(p.by_x(v) == Slopes{0, 0, 0});
    }
  };
  rows["`x % y`"] = [] {
    const Point p({5, 5, 6, -5}, {2, -2, 3, 2});
    CHECK(p.by_x(mod(p.x, p.y)) == Slopes{1, 1, 1, 1});
    CHECK(p.by_y(mod(p.x, p.y)) == Slopes{-2, 3, -2, 3});
  };
  rows["comparisons, tests such as `isnan`, casts to integers and bools"] = [] {
    const Point p({1, NAN}, {1, 1});
    for (const Variable& v : {lt(p.x, p.y), isnan(p.x), cast(p.x, DType::int32)}) {
      CHECK(p.by_x(cast(v, DType::float64)) == Slopes{0, 0});
      CHECK_THROWS_AS(grad(sum(cast(v, DType::float64)), p.x), GraphError);
    }
  };
  rows["`where(c, a, b)`"] = [] {
    const Point p({0, -1, 4});
    CHECK(p.by_x(where(gt(p.x, 0), sqrt(p.x), 3 * p.x)) == Slopes{3, 3, 0.25});
    CHECK(p.by_x(where(gt(p.x, 0), log(p.x), 0)) == Slopes{0, 0, 0.25});
  };
  rows["`sqrt`, `pow(x, p)` for p < 1 at 0, `log` at 0"] = [] {
    const Point p({0});
    for (const Variable& v : {sqrt(p.x), pow(p.x, 0.25), log(p.x)}) {
      CHECK(p.by_x(v) == Slopes{kInf});
    }
  };
  rows["`pow(a, b)` by `a`"] = [] {
    const Point p({0, 0, 0, 3, NAN, kInf}, {0, 1, 2, 0, 0, 0});
    CHECK(p.by_x(pow(p.x, p.y)) == Slopes{0, 1, 0, 0, 0, 0});
    CHECK(p.by_x(pow(p.x, 0)) == Slopes(6, 0.0));
  };
  rows["`pow(a, b)` by `b`"] = [] {
    const Point p({0, 0, 1, 4}, {0, 2, 5, 0});
    CHECK(p.by_y(pow(p.x, p.y)) == Slopes{0, 0, 0, std::log(4.0)});
  };
  rows["`hypot(a, b)` at the origin"] = [] {
    const Point p({0}, {0});
    CHECK(p.by_x(hypot(p.x, p.y)) == Slopes{0});
    CHECK(p.by_y(hypot(p.x, p.y)) == Slopes{0});
  };
  rows["`arctan2(y, x)` at the origin"] = [] {
    const Point p({0}, {0});
    CHECK(std::isnan(p.by_x(arctan2(p.y, p.x))[0]));
    CHECK(std::isnan(p.by_y(arctan2(p.y, p.x))[0]));
  };
  rows["`logaddexp(a, b)` of one infinity twice"] = [] {
    const Point p({-kInf, kInf, -kInf, 1}, {-kInf, kInf, kInf, 1});
    CHECK(p.by_x(logaddexp(p.x, p.y)) == Slopes{0.5, 0.5, 0, 0.5});
    CHECK(p.by_y(logaddexp2(p.x, p.y)) == Slopes{0.5, 0.5, 1, 0.5});
  };
  rows["`xlogx`, `xlogy` at x = 0"] = [] {
    const Point p({0, 0, 0, 0}, {4, 0, -1, kInf});
    CHECK(p.by_x(xlogy(p.x, p.y)) == Slopes{std::log(4.0), 0, 0, 0});
    CHECK(p.by_y(xlogy(p.x, p.y)) == Slopes{0, 0, 0, 0});
    CHECK(p.by_x(xlogx(p.x)) == Slopes{0, 0, 0, 0});
  };
}

void add_reductions(Rows& rows) {
  rows["`max(x)`, `min(x)` at ties"] = [] {
    const Point p({2, 1, 2});
    CHECK(p.by_x(max(p.x)) == Slopes{1, 0, 1});
    CHECK(p.by_x(min(-p.x)) == Slopes{-1, 0, -1});
    CHECK(p.by_x(max(p.x, none, {.where = lt(p.x, 2)})) == Slopes{0, 1, 0});
  };
  rows["`cummax(x)`, `cummin(x)` at ties"] = [] {
    const Point p({2, 1, 2, 1});
    CHECK(p.by_x(cummax(p.x, 0)) == Slopes{2, 0, 2, 0});
    CHECK(p.by_x(cummin(p.x, 0)) == Slopes{1, 2, 0, 1});
  };
  rows["`sort`, `topk`, `median` at ties"] = [] {
    const Point p({2, 1, 2, 1}, {1, 10, 100, 1000});
    CHECK(p.by_x(p.y * croton::sort(p.x)) == Slopes{100, 1, 1000, 10});
    CHECK(p.by_x(topk(p.x, 1).first) == Slopes{1, 0, 0, 0});
    CHECK(p.by_x(median(p.x(Slice(0, 3)))) == Slopes{1, 0, 0, 0});
  };
  rows["`prod`, `cumprod` with zeros"] = [] {
    const Point p({2, 0, 4});
    CHECK(p.by_x(prod(p.x)) == Slopes{0, 8, 0});
    CHECK(p.second(prod(p.x)) == Slopes{0, 4, 0, 4, 0, 2, 0, 2, 0});
    CHECK(p.by_x(cumprod(p.x, 0)(2)) == Slopes{0, 8, 0});
    CHECK(p.second(cumprod(p.x, 0)(2)) == Slopes{0, 4, 0, 4, 0, 2, 0, 2, 0});
    const Point zeros({0, 3, 0});
    CHECK(zeros.by_x(prod(zeros.x)) == Slopes{0, 0, 0});
    CHECK(zeros.second(prod(zeros.x)) == Slopes{0, 0, 3, 0, 0, 0, 3, 0, 0});
  };
  rows["`norm` of zeros"] = [] {
    const Point p({0, 0});
    for (const double order : {0.5, 1.0, 2.0, 3.0}) {
      INFO("order " << order);
      CHECK(p.by_x(norm(p.x, order)) == Slopes{0, 0});
    }
    CHECK(p.by_x(norm(p.x)) == Slopes{0, 0});
    CHECK(p.by_x(norm(p.x, kInf)) == Slopes{0, 0});
  };
  rows["`std` of equal numbers"] = [] {
    const Point p({3, 3, 3});
    CHECK(p.by_x(croton::std(p.x)) == Slopes{0, 0, 0});
  };
  rows["`logsumexp` of -inf alone"] = [] {
    const Point p({-kInf, -kInf});
    CHECK(p.by_x(logsumexp(p.x)) == Slopes{0, 0});
  };
  rows["`softmax`, `log_softmax`, `logsumexp` with some -inf"] = [] {
    const Point p({-kInf, 0, 0});
    CHECK(p.by_x(softmax(p.x)(1)) == Slopes{0, 0.25, -0.25});
    CHECK(p.by_x(log_softmax(p.x)(1)) == Slopes{0, 0.5, -0.5});
    CHECK(p.by_x(logsumexp(p.x)) == Slopes{0, 0.5, 0.5});
  };
  rows["`log(softmax(x))` where the softmax is 0"] = [] {
    const Point p({0, -1000}, {3, 5});
    const Variable s = softmax(p.x);
    CHECK(p.by_x(p.y * log(s)) == Slopes{-5, 5});
    CHECK(p.by_x(p.y * log(s) + p.y * s) == Slopes{-5, 5});
    CHECK(p.by(s, log(s)) == Slopes{1, kInf});
  };
}

void add_writes(Rows& rows) {
  rows["`set_subtensor` with an index given twice"] = [] {
    const Point p({2, 1, 2}, {5, 5, 5});
    const Variable twice = set_subtensor(p.y({0, 0, 1}), p.x);
    CHECK(p.by_x(twice) == Slopes{0, 1, 1});
    CHECK(p.by_y(twice) == Slopes{0, 0, 1});
  };
  rows["`max_subtensor`, `min_subtensor` at a tie"] = [] {
    const Point p({5, 5, 2}, {5, 2, 1});
    CHECK(p.by_x(max_subtensor(p.y({0, 0, 1}), p.x)) == Slopes{1, 1, 1});
    CHECK(p.by_y(max_subtensor(p.y({0, 0, 1}), p.x)) == Slopes{1, 1, 1});
    CHECK(p.by_y(min_subtensor(p.y({0, 0, 1}), p.x)) == Slopes{1, 1, 1});
  };
  rows["`mul_subtensor` with zeros"] = [] {
    const Point p({0, 3, 2}, {5, 0, 1});
    const Variable y = mul_subtensor(p.y({0, 0, 1}), p.x);  // 5 * 0 * 3, 0 * 2, 1
    CHECK(p.by_x(y) == Slopes{15, 0, 0});
    CHECK(p.by_y(y) == Slopes{0, 2, 1});
    CHECK(p.second(y) == Slopes{0, 5, 0, 5, 0, 0, 0, 0, 0});
  };
  rows["reading with an index given twice, `inc_subtensor`"] = [] {
    const Point p({2, 1, 2}, {5, 5, 5});
    CHECK(p.by_x(p.x({0, 0, 2})) == Slopes{2, 0, 1});
    CHECK(p.by_x(inc_subtensor(p.y({0, 0, 1}), p.x)) == Slopes{1, 1, 1});
    CHECK(p.by_y(inc_subtensor(p.y({0, 0, 1}), p.x)) == Slopes{1, 1, 1});
  };
  rows["broadcasting"] = [] {
    const Point p({2}, {5, 6, 7});
    CHECK(p.by_x(p.y * specify_shape(p.x, {1})) == Slopes{18});
  };
}

/// The first column of the table at the end of docs/gradients.md.
std::set<std::string> rows_of_page() {
  std::ifstream in(data_folder() + "/../../docs/gradients.md");
  REQUIRE(in);
  std::set<std::string> rows;
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("| where | gradient |")) inside = true;
    if (!inside || !line.starts_with("| ") || line.starts_with("| ---")) continue;
    const std::string row = line.substr(2, line.find(" | ") - 2);
    if (row != "where") CHECK(rows.insert(row).second);
  }
  return rows;
}

}  // namespace

TEST_CASE("gradients at ties, kinks and limits are those of the table",
          "[ops][grad][conventions]") {
  Rows rows;
  add_elementwise(rows);
  add_reductions(rows);
  add_writes(rows);
  const std::set<std::string> page = rows_of_page();
  for (const std::string& row : page) {
    INFO(row << ": a row of docs/gradients.md without a test");
    CHECK(rows.contains(row));
  }
  for (const auto& [row, check] : rows) {
    INFO(row);
    CHECK(page.contains(row));
    check();
  }
}
