// Gradients of every op in float16 and bfloat16, compiled and run, against those in float64.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "compiler/rewrite/trace.h"
#include "croton/grad.h"
#include "croton/linalg.h"
#include "croton/math.h"
#include "croton/nn.h"
#include "croton/reduce.h"
#include "tests/ops/batch.h"
#include "tests/ops/op_cases.h"
#include "tests/ops/op_random.h"

using namespace croton;
using namespace croton::test;

namespace {

/// Values that both narrow dtypes hold.
Array rounded(const Array& a) {
  return is_float(a.dtype()) ? a.astype(DType::bfloat16).astype(a.dtype()) : a;
}

/// The op in a narrow dtype; where it takes none, in float32 between casts, as its public function
/// makes it.
Variable narrow_node(const OpCase& c, const std::vector<Variable>& inputs, DType dtype,
                     std::set<std::string>& wide_only) {
  try {
    return apply(*c.op, inputs, c.attrs, Loc::current());
  } catch (const GraphError&) {
    wide_only.insert(c.op->name);
  }
  std::vector<Variable> wide;
  for (const Variable& x : inputs) {
    wide.push_back(x.dtype() == dtype ? x.astype(DType::float32) : x);
  }
  return apply(*c.op, wide, c.attrs, Loc::current()).astype(dtype);
}

/// Gradients that are wanted, with what they are in float64, and of which op, by title.
struct Narrow {
  std::vector<Trial> trials;
  std::map<std::string, Array> expected;
  std::map<std::string, std::string> ops;
  std::set<std::string> wide_only;

  /// The gradients of one case by each of its float inputs.
  void add(OpCase& c, std::mt19937& random) {
    for (auto& [x, a] : c.values) a = rounded(a);
    const Array weights =
        rounded(drawn_values(value(c.y, c.values).shape(), {-1, 1}, DType::float64, random));
    const std::vector<Variable> wrt = float_inputs(c);
    const std::vector<Variable> slopes = grad(sum(c.y * weights), wrt, kOptions);
    for (const DType dtype : {DType::float16, DType::bfloat16}) {
      Trial trial;
      std::vector<Variable> moved;
      for (const Variable& x : c.inputs) {
        const DType own = x.dtype() == DType::float64 ? dtype : x.dtype();
        trial.inputs.push_back(input(own, x.static_shape(), "x"));
        trial.arguments.push_back(c.values.at(x).astype(own));
        const bool chosen =
            std::any_of(wrt.begin(), wrt.end(), [&](const Variable& v) { return v.same(x); });
        if (chosen) moved.push_back(trial.inputs.back());
      }
      const Variable y = narrow_node(c, trial.inputs, dtype, wide_only);
      const DType result = y.dtype();
      const std::vector<Variable> got = grad(sum(y * weights.astype(result)), moved, kOptions);
      for (std::size_t k = 0; k < got.size(); ++k) {
        REQUIRE(got[k].dtype() == dtype);
        trial.title =
            fmt::format("{} {}: {}, operand {}", trials.size(), name_of(dtype), c.text(), k);
        trial.y = got[k];
        expected[trial.title] = value(slopes[k], c.values);
        ops[trial.title] = c.op->name;
        trials.push_back(trial);
      }
    }
  }

  static inline const GradOptions kOptions{.disconnected_inputs = Disconnected::ignore};
};

/// How many units of the last place of the largest element a gradient may be off. Rules of scalar
/// ops round each step: 1 - y loses what is small, and exp makes the error of a large logarithm
/// a relative one.
double places(const std::string& op) {
  static const std::map<std::string, double> table{
      {"sigmoid", 16}, {"gammainc", 32}, {"gammaincc", 160}};
  const auto it = table.find(op);
  return it == table.end() ? 4 : it->second;
}

void check_close(const Array& got, const Array& exact, DType dtype, double places) {
  REQUIRE(got.shape() == exact.shape());
  // What float16 cannot hold, by itself or before a weight made it smaller, is an infinity there.
  Array want = exact.copy();
  const std::vector<double> values = got.astype(DType::float64).to_vector<double>();
  for (std::size_t i = 0; i < values.size() && dtype == DType::float16; ++i) {
    double& v = want.mutable_data<double>()[i];
    if (std::isinf(values[i]) && std::abs(v) > 0x1p12) v = std::copysign(values[i], v);
  }
  double largest = 0;
  for (const double v : want.to_vector<double>()) {
    if (std::isfinite(v)) largest = std::max(largest, std::abs(v));
  }
  const double slack = places * spacing(dtype);
  CHECK(allclose(got.astype(DType::float64), want, slack, slack * largest, true));
}

}  // namespace

TEST_CASE("gradients in float16 and bfloat16 are those in float64", "[ops][conformance][grad]") {
  Narrow all;
  std::set<std::string> untried;
  for (const OpDef* op : OpRegistry::instance().all()) {
    if (op->grad == nullptr) continue;
    bool tried = false;
    std::mt19937 random = random_for(op->name, 71);
    for (const Example& example : op->examples) {
      std::optional<OpCase> c = op_case(*op, example, true, random);
      if (!c || !is_float(c->y.dtype()) || float_inputs(*c).empty()) continue;
      INFO(c->text());
      CHECK_NOTHROW(all.add(*c, random));
      tried = true;
    }
    if (!tried) untried.insert(op->name);
  }
  // Those without examples hand a value on, or some of it.
  CHECK(untried ==
        std::set<std::string>{"custom_gradient", "delay", "masked", "remat", "transfer"});
  CHECK(all.wide_only == std::set<std::string>{"cummax", "cummin", "cumprod", "cumsum",
                                               "logcumsumexp", "max", "min", "prod", "prod_others",
                                               "recurrence", "sum"});
  for_each_result(all.trials, [&](const Trial& trial, const Array& got) {
    const Array& want = all.expected.at(trial.title);
    INFO(trial.title << ", got\n" << got << "\nexpected\n" << want);
    check_close(got, want, trial.y.dtype(), places(all.ops.at(trial.title)));
  });
}

TEST_CASE("gradients of rows and products exist in narrow floats", "[ops][nn][grad]") {
  std::mt19937 random(72);
  const auto some = [&](const Shape& shape, double limit) {
    return rounded(drawn_values(shape, {-limit, limit}, DType::float64, random));
  };
  const Array at = some({5, 70}, 4), weights = some({5, 70}, 1), column = some({70, 1}, 1);
  using Rule = std::function<Variable(const Variable&)>;
  const std::pair<const char*, Rule> rules[] = {
      {"softmax", [](const Variable& x) { return softmax(x); }},
      {"log_softmax", [](const Variable& x) { return log_softmax(x); }},
      {"logsumexp", [](const Variable& x) { return logsumexp(x, 1, true); }},
      {"layer_norm", [](const Variable& x) { return layer_norm(x, 2, 1); }},
      {"var", [](const Variable& x) { return var(x, 1, {.keepdims = true}); }},
      {"a column", [&](const Variable& x) { return dot(x, column.astype(x.dtype())); }},
  };
  for (const auto& [name, build] : rules) {
    const auto slope = [&](DType dtype) {
      const Variable x = input(dtype, {kAnyDim, 70}, "x");
      const Variable cost = sum(square(build(x)) * weights.astype(dtype));
      return function({x}, grad(cost, x)).call({at.astype(dtype)})[0];
    };
    const Array want = slope(DType::float64);
    for (const DType dtype : {DType::float16, DType::bfloat16}) {
      INFO(name << " in " << name_of(dtype));
      const Array got = slope(dtype);
      REQUIRE(got.dtype() == dtype);
      check_close(got, want, dtype, 4);
    }
  }
}

TEST_CASE("log(softmax(x)) has gradients where softmax rounds to 0", "[ops][grad][narrow]") {
  for (const DType dtype : {DType::float16, DType::bfloat16}) {
    for (const int axis : {0, 1}) {
      const Variable x = input(dtype, {kAnyDim, kAnyDim});
      const Variable slope = grad(sum(log(softmax(x, axis))(0, 0)), x);
      const Array at = reals({-100, 1, 2, 0}, {2, 2}).astype(dtype);
      const Array got = function({x}, slope).call({at})[0].astype(DType::float64);
      INFO(name_of(dtype) << " along " << axis << ": " << got);
      const bool rows = axis == 1;
      CHECK(allclose(got, reals({1, rows ? -1.0 : 0.0, rows ? 0.0 : -1.0, 0}, {2, 2}), 1e-2, 1e-4));
    }
  }
}
