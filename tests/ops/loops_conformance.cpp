// Every op that is not scalar, compiled and run, against its reference; and its gradient, compiled
// and run, against finite differences of the reference: for each example and dtype.
#include <fmt/format.h>

#include <map>

#include "croton/error.h"
#include "croton/grad.h"
#include "croton/math.h"
#include "croton/reduce.h"
#include "tests/ops/batch.h"
#include "tests/ops/layouts.h"
#include "tests/ops/op_random.h"

using namespace croton;
using namespace croton::test;

namespace {

constexpr DType kDTypes[] = {DType::float32, DType::float64, DType::int32,   DType::int64,
                             DType::uint8,   DType::boolean, DType::float16, DType::bfloat16};

/// The inputs of ops that are indices or counts, from this one on; others take every dtype.
int first_index(const std::string& op) {
  static const std::map<std::string, int> table{{"take", 1},          {"take_along_axis", 1},
                                                {"flat_index", 0},    {"philox_uniform", 0},
                                                {"philox_normal", 0}, {"pick", 1},
                                                {"pick_grad", 1}};
  const auto it = table.find(op);
  if (it != table.end()) return it->second;
  return op.ends_with("_take") || op.ends_with("_along_axis") ? 2 : 99;
}

/// One example of an op in a dtype and layout; nothing where the op does not take the dtype. With
/// `known` sizes are static.
std::optional<Trial> make_trial(const OpDef& op, const Example& example, DType dtype, Layout layout,
                                bool known, std::mt19937& random) {
  Trial trial;
  std::vector<Variable> operands;
  for (std::size_t k = 0; k < example.shapes.size(); ++k) {
    const bool index = static_cast<int>(k) >= first_index(op.name);
    const DType own = index ? DType::int64 : dtype;
    LaidOut made = lay_out(
        layout, drawn(example.shapes[k], example.range[k], own, index || !is_float(own), random),
        known);
    trial.inputs.push_back(made.input);
    trial.arguments.push_back(made.argument);
    operands.push_back(made.operand);
  }
  try {
    trial.y = apply(op, operands, example.attrs, Loc::current());
  } catch (const GraphError&) {
    return {};
  }
  trial.title = fmt::format("{} on {} ({}, {} sizes), attributes {}", op.name, name_of(dtype),
                            name_of(layout), known ? "known" : "unknown", example.attrs.to_text());
  return trial;
}

/// The example in every dtype: in plain memory with sizes known and unknown, and in all layouts.
void add_trials(const OpDef& op, const Example& example, std::mt19937& random,
                std::vector<Trial>& trials) {
  static int turn = 0;
  for (const DType dtype : kDTypes) {
    const auto add = [&](Layout layout, bool known) {
      std::optional<Trial> trial = make_trial(op, example, dtype, layout, known, random);
      if (trial) trials.push_back(std::move(*trial));
      return trial.has_value();
    };
    if (!add(Layout::contiguous, true)) continue;
    // An input that needs no dtype of its own decides nothing.
    if (example.shapes.empty()) return;
    for (const Layout layout : layouts_to_try(turn)) add(layout, ++turn % 2 == 0);
  }
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

/// The derivatives of `cost`, compiled and run, against finite differences of its reference.
void check_slopes(const Trial& trial, const Variable& cost) {
  std::vector<std::size_t> moved;
  std::vector<Variable> with_respect_to;
  for (std::size_t k = 0; k < trial.inputs.size(); ++k) {
    if (!is_float(trial.inputs[k].dtype())) continue;
    moved.push_back(k);
    with_respect_to.push_back(trial.inputs[k]);
  }
  const Outputs slopes =
      function(trial.inputs, grad(cost, with_respect_to), {.on_unused = OnUnused::ignore})
          .call(trial.arguments);
  for (std::size_t i = 0; i < moved.size(); ++i) {
    const std::vector<double> slope = slopes[i].to_vector<double>();
    const Array at = trial.arguments[moved[i]];
    REQUIRE(static_cast<std::int64_t>(slope.size()) == at.size());
    for (std::size_t e = 0; e < slope.size(); ++e) {
      const auto cost_at = [&](double step) {
        Trial other = trial;
        other.y = cost;
        other.arguments[moved[i]] = at.copy();
        other.arguments[moved[i]].mutable_data<double>()[e] += step;
        return other.reference().item<double>();
      };
      INFO("operand " << moved[i] << ", element " << e);
      CHECK(slope[e] == Approx((cost_at(1e-5) - cost_at(-1e-5)) / 2e-5).epsilon(1e-5).margin(1e-7));
    }
  }
}

bool is_tried(const OpDef& op) {
  return (op.form == OpForm::loops || op.form == OpForm::library) && !op.examples.empty();
}

}  // namespace

TEST_CASE("compiled ops give the values of their references", "[ops][conformance]") {
  for (const OpDef* op : OpRegistry::instance().all()) {
    if (!is_tried(*op)) continue;
    std::mt19937 random = random_for(op->name, 11);
    std::vector<Trial> trials;
    for (const Example& example : op->examples) add_trials(*op, example, random, trials);
    INFO(op->name);
    CHECK(!trials.empty());
    for_each_result(trials, [](const Trial& trial, const Array& result) {
      const Array expected = trial.reference();
      INFO(trial.title << ", got\n" << result << "\nexpected\n" << expected);
      REQUIRE(result.dtype() == expected.dtype());
      REQUIRE(result.shape() == expected.shape());
      const double rtol = tolerance(expected.dtype());
      CHECK(allclose(result, expected, rtol, rtol, true));
    });
  }
}

TEST_CASE("compiled gradients agree with finite differences", "[ops][conformance][grad]") {
  for (const OpDef* op : OpRegistry::instance().all()) {
    if (!is_tried(*op) || op->grad == nullptr) continue;
    std::mt19937 random = random_for(op->name, 12);
    for (const Example& example : op->examples) {
      const std::optional<Trial> trial =
          make_trial(*op, example, DType::float64, Layout::contiguous, true, random);
      if (!trial || !is_float(trial->y.dtype())) continue;
      const Array weights = drawn(trial->y.static_shape(), {-1, 1}, DType::float64, false, random);
      INFO(trial->title);
      check_slopes(*trial, sum(trial->y * weights));
    }
  }
}
