// Every op that is not scalar, compiled and run, against its reference; and its gradient, compiled
// and run, against finite differences of the reference: for each example and dtype.
#include <cmath>
#include <map>
#include <random>

#include "croton/error.h"
#include "croton/function.h"
#include "croton/grad.h"
#include "croton/math.h"
#include "croton/reduce.h"
#include "tests/ops/graph_values.h"

using namespace croton;
using namespace croton::test;

namespace {

/// The inputs of ops that are indices or counts, from this one on; others take every dtype.
int first_index(const std::string& op) {
  static const std::map<std::string, int> table{
      {"take", 1},       {"take_along_axis", 1}, {"set_take", 2},       {"inc_take", 2},
      {"flat_index", 0}, {"inc_along_axis", 2},  {"philox_uniform", 0}, {"philox_normal", 0},
      {"pick", 1},       {"pick_grad", 1}};
  const auto it = table.find(op);
  return it == table.end() ? 99 : it->second;
}

Array drawn(const Shape& shape, std::pair<double, double> range, DType dtype, bool whole,
            std::mt19937& random) {
  const auto [low, high] = range;
  std::vector<double> values(static_cast<std::size_t>(shape.numel()));
  for (double& v : values) {
    v = std::uniform_real_distribution<double>(low, high)(random);
    if (whole) v = std::floor(v);
    if (is_unsigned(dtype)) v = std::abs(v);
    if (is_bool(dtype)) v = std::uniform_int_distribution<int>(0, 1)(random);
  }
  return Array::from<double>(values, shape).astype(dtype);
}

/// One example of an op: the node and the values of its inputs.
struct Case {
  Variable y;
  std::vector<Variable> inputs;
  Values values;
};

/// Nothing where the op does not take the dtype. With `known` sizes are static.
std::optional<Case> make_case(const OpDef& op, const Example& example, DType dtype, bool known,
                              std::mt19937& random) {
  Case c;
  for (std::size_t k = 0; k < example.shapes.size(); ++k) {
    const bool index = static_cast<int>(k) >= first_index(op.name);
    const DType own = index ? DType::int64 : dtype;
    Shape shape = example.shapes[k];
    // A size of 1 that is not known would not broadcast.
    for (std::int64_t& size : shape) {
      if (!known && size != 1) size = kAnyDim;
    }
    c.inputs.push_back(input(own, shape, "x"));
    c.values[c.inputs.back()] =
        drawn(example.shapes[k], example.range[k], own, index || !is_float(own), random);
  }
  try {
    c.y = apply(op, c.inputs, example.attrs, Loc::current());
  } catch (const GraphError&) {
    return {};
  }
  return c;
}

double tolerance(DType dtype) {
  switch (dtype) {
    case DType::float64:
      return 1e-12;
    case DType::float32:
      return 1e-5;
    case DType::float16:
      return 2e-3;
    case DType::bfloat16:
      return 1.6e-2;
    default:
      return 0;
  }
}

std::vector<Array> arguments(const Case& c) {
  std::vector<Array> list;
  for (const Variable& x : c.inputs) list.push_back(c.values.at(x));
  return list;
}

bool is_tried(const OpDef& op) {
  return (op.form == OpForm::loops || op.form == OpForm::library) && !op.examples.empty();
}

}  // namespace

TEST_CASE("compiled ops give the values of their references", "[ops][conformance]") {
  std::mt19937 random(11);
  for (const OpDef* op : OpRegistry::instance().all()) {
    if (!is_tried(*op)) continue;
    int tried = 0;
    for (const Example& example : op->examples) {
      for (const DType dtype : {DType::float32, DType::float64, DType::int32, DType::int64,
                                DType::uint8, DType::boolean, DType::float16, DType::bfloat16}) {
        for (const bool known : {true, false}) {
          const std::optional<Case> c = make_case(*op, example, dtype, known, random);
          if (!c) continue;
          ++tried;
          INFO(op->name << " on " << name_of(dtype) << (known ? " (known" : " (unknown")
                        << " sizes), attributes " << example.attrs.to_text());
          const Array expected = value(c->y, c->values);
          Array result;
          try {
            const Function f = function(c->inputs, c->y, {.on_unused = OnUnused::ignore});
            result = f.call(arguments(*c))[0];
          } catch (const Error& error) {
            FAIL_CHECK(error.what());
            continue;
          }
          INFO("got\n" << result << "\nexpected\n" << expected);
          REQUIRE(result.dtype() == expected.dtype());
          REQUIRE(result.shape() == expected.shape());
          const double rtol = tolerance(expected.dtype());
          CHECK(allclose(result, expected, rtol, rtol, true));
          // An input that needs no dtype of its own decides nothing.
          if (c->inputs.empty()) break;
        }
      }
    }
    INFO(op->name);
    CHECK(tried > 0);
  }
}

TEST_CASE("compiled gradients agree with finite differences", "[ops][conformance][grad]") {
  std::mt19937 random(12);
  for (const OpDef* op : OpRegistry::instance().all()) {
    if (!is_tried(*op) || op->grad == nullptr) continue;
    for (const Example& example : op->examples) {
      std::optional<Case> c = make_case(*op, example, DType::float64, true, random);
      if (!c || !is_float(c->y.dtype())) continue;
      INFO(op->name << ", attributes " << example.attrs.to_text());
      const Array weights = drawn(c->y.static_shape(), {-1, 1}, DType::float64, false, random);
      const Variable cost = sum(c->y * weights);
      for (std::size_t k = 0; k < c->inputs.size(); ++k) {
        const Variable& x = c->inputs[k];
        if (!is_float(x.dtype())) continue;
        std::vector<double> slope;
        try {
          const Function f = function(c->inputs, grad(cost, x), {.on_unused = OnUnused::ignore});
          slope = f.call(arguments(*c))[0].to_vector<double>();
        } catch (const Error& error) {
          FAIL_CHECK(error.what());
          continue;
        }
        const Array kept = c->values[x];
        REQUIRE(static_cast<std::int64_t>(slope.size()) == kept.size());
        for (std::size_t i = 0; i < slope.size(); ++i) {
          Array moved = kept.copy();
          moved.mutable_data<double>()[i] += 1e-5;
          c->values[x] = moved.copy();
          const double up = value(cost, c->values).item<double>();
          moved.mutable_data<double>()[i] -= 2e-5;
          c->values[x] = moved.copy();
          const double down = value(cost, c->values).item<double>();
          INFO("operand " << k << ", element " << i);
          CHECK(slope[i] == Approx((up - down) / 2e-5).epsilon(1e-5).margin(1e-7));
        }
        c->values[x] = kept;
      }
    }
  }
}
