// Scalar ops in every dtype, compiled and run on operands in every layout and of sizes at which
// kernels change; and that they give the same bits on every device and in vectors of every width.
#include <fmt/format.h>

#include <cstring>

#include "compiler/rewrite/trace.h"
#include "croton/context.h"
#include "croton/math.h"
#include "croton/random_stream.h"
#include "tests/host_values.h"
#include "tests/ops/batch.h"
#include "tests/ops/layouts.h"
#include "tests/ops/scalar_fixtures.h"

using namespace croton;
using namespace croton::test;

namespace {

constexpr DType kDTypes[] = {DType::boolean, DType::int8,    DType::int16,    DType::int32,
                             DType::int64,   DType::uint8,   DType::uint16,   DType::uint32,
                             DType::uint64,  DType::float16, DType::bfloat16, DType::float32,
                             DType::float64};

/// An op's example on operands of one shape; nothing where the op does not take the dtype.
std::optional<Trial> make_trial(const OpDef& op, const Example& example, DType dtype,
                                const Shape& shape, Layout layout, bool known,
                                std::mt19937& random) {
  Trial trial;
  std::vector<Variable> operands;
  for (std::size_t k = 0; k < example.shapes.size(); ++k) {
    const DType own = op.name == "where" && k == 0 ? DType::boolean : dtype;
    const Array values = drawn(shape, example.range[k], own, !is_float(own), random);
    LaidOut made = lay_out(layout, values, known);
    trial.inputs.push_back(made.input);
    trial.arguments.push_back(made.argument);
    operands.push_back(made.operand);
  }
  try {
    trial.y = apply(op, operands, example.attrs, Loc::current());
  } catch (const GraphError&) {
    return {};
  }
  trial.title = fmt::format("{} of {} {} ({}, {} sizes)", op.name, name_of(dtype),
                            shape.to_string(), name_of(layout), known ? "known" : "unknown");
  return trial;
}

double tolerance_of(const std::string& op, DType dtype) {
  if (!is_float(dtype)) return 0;
  // Where float32 is not exact the last digit of a narrow float may fall on the other side.
  const bool narrow = size_of(dtype) == 2;
  return narrow ? spacing(dtype) : (1 + tolerance(op, dtype)) * spacing(dtype);
}

void check_trials(const std::vector<Trial>& trials, const std::string& op) {
  for_each_result(trials, [&](const Trial& trial, const Array& result) {
    const Array expected = trial.reference();
    INFO(trial.title << ", got\n" << result << "\nexpected\n" << expected);
    REQUIRE(result.dtype() == expected.dtype());
    REQUIRE(result.shape() == expected.shape());
    const double rtol = tolerance_of(op, expected.dtype());
    const double atol = absolute_scale(op) * rtol;
    CHECK(allclose(result, expected, rtol, atol, true));
  });
}

bool is_tried(const OpDef& op) { return op.form == OpForm::scalar && !op.examples.empty(); }

/// Equal bytes; one NaN is like another.
bool same_bits(const Array& a, const Array& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  const std::size_t size = size_of(a.dtype());
  const Array first = a.copy(), second = b.copy();
  const std::vector<double> values = first.astype(DType::float64).to_vector<double>();
  const std::vector<double> others = second.astype(DType::float64).to_vector<double>();
  const auto* x = static_cast<const char*>(first.raw_data());
  const auto* y = static_cast<const char*>(second.raw_data());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i]) && std::isnan(others[i])) continue;
    if (std::memcmp(x + i * size, y + i * size, size) != 0) return false;
  }
  return true;
}

/// Runs what `make` makes on the default device, and on the CPU with the narrowest vectors.
template <class F>
void check_same_bits(F&& make) {
  const std::vector<Array> on_cpu = on_host([&] {
    const ContextScope cpu("cpu");
    const std::vector<Trial> there = make();
    std::vector<Array> values;
    for_each_result(
        there, [&](const Trial&, const Array& result) { values.push_back(result); },
        current_config().with("vector_bits", "128"));
    REQUIRE(values.size() == there.size());
    return values;
  });
  if (keeps_host_values()) return;
  const std::vector<Trial> here = make();
  REQUIRE(on_cpu.size() == here.size());
  std::size_t i = 0;
  for_each_result(here, [&](const Trial& trial, const Array& result) {
    const Array& expected = on_cpu[i++];
    INFO(trial.title << ", got\n" << result << "\nthe CPU gives\n" << expected);
    CHECK(same_bits(result, expected));
  });
  CHECK(i == here.size());
}

}  // namespace

TEST_CASE("compiled scalar ops take operands in every layout", "[ops][conformance]") {
  std::mt19937 random(5);
  int turn = 0;
  for (const OpDef* op : OpRegistry::instance().all()) {
    if (!is_tried(*op)) continue;
    std::vector<Trial> trials;
    for (const DType dtype : kDTypes) {
      for (const Layout layout : layouts_to_try(turn)) {
        std::optional<Trial> trial =
            make_trial(*op, op->examples[0], dtype, {3, 37}, layout, ++turn % 2 == 0, random);
        if (trial) trials.push_back(std::move(*trial));
      }
    }
    INFO(op->name);
    CHECK(!trials.empty());
    check_trials(trials, op->name);
  }
}

TEST_CASE("compiled scalar ops take operands of every size", "[ops][conformance]") {
  std::mt19937 random(6);
  // Nothing, one, less than a vector, more than a block.
  const Shape shapes[] = {{}, {0}, {1}, {3}, {2, 0, 3}, {1, 1}, {5, 1031}};
  int turn = 0;
  for (const OpDef* op : OpRegistry::instance().all()) {
    if (!is_tried(*op)) continue;
    std::vector<Trial> trials;
    for (const DType dtype : {DType::float32, DType::int64}) {
      for (const Shape& shape : shapes) {
        std::optional<Trial> trial = make_trial(*op, op->examples[0], dtype, shape,
                                                Layout::contiguous, ++turn % 2 == 0, random);
        if (trial) trials.push_back(std::move(*trial));
      }
    }
    INFO(op->name);
    check_trials(trials, op->name);
  }
}

TEST_CASE("scalar ops give the bits of the CPU", "[ops][on_device]") {
  const std::vector<Block> blocks = read_blocks();
  for (const DType real : {DType::float64, DType::float32}) {
    check_same_bits([&] {
      std::vector<Trial> trials;
      for (const Block& block : blocks) {
        if (!is_float(block.dtype) && !is_float(block.result) && real == DType::float32) continue;
        Trial trial;
        trial.y = node_of(block, real, {kAnyDim});
        trial.inputs = trial.y.node()->inputs;
        for (std::size_t k = 0; k < trial.inputs.size(); ++k) {
          trial.arguments.push_back(column(block, k, trial.inputs[k].dtype()));
        }
        trial.title = fmt::format("{} of {}, {}", block.op, name_of(block.dtype), name_of(real));
        trials.push_back(std::move(trial));
      }
      return trials;
    });
  }
}

TEST_CASE("narrow and fused elementwise results are the bits of the CPU", "[ops][on_device]") {
  check_same_bits([] {
    std::mt19937 random(7);
    std::vector<Trial> trials;
    for (const OpDef* op : OpRegistry::instance().all()) {
      if (!is_tried(*op)) continue;
      for (const DType dtype : {DType::float16, DType::bfloat16}) {
        std::optional<Trial> trial =
            make_trial(*op, op->examples[0], dtype, {517}, Layout::contiguous, true, random);
        if (trial) trials.push_back(std::move(*trial));
      }
    }
    for (const DType dtype : {DType::float16, DType::float32, DType::float64}) {
      const Variable x = input(dtype, {kAnyDim}), y = input(dtype, {kAnyDim});
      Trial trial{fmt::format("a fused chain in {}", name_of(dtype)), {}, {x, y}, {}};
      for (int k = 0; k < 2; ++k) {
        trial.arguments.push_back(drawn({1000}, {-3, 3}, dtype, false, random));
      }
      // Products and sums that a compiler may contract, unless it is told not to.
      trial.y = tanh(x * y + 1.7) * x - exp(y) / (x * x + 0.3) + sin(x * 3 - y);
      trials.push_back(std::move(trial));
    }
    return trials;
  });
}

TEST_CASE("random streams give the bits of the CPU", "[ops][on_device]") {
  check_same_bits([] {
    std::vector<Trial> trials;
    for (const DType dtype : {DType::float16, DType::float32, DType::float64}) {
      RandomStream rng(21);
      trials.push_back({"uniform", rng.uniform({33, 5}, {.dtype = dtype}), {}, {}});
      trials.push_back(
          {"normal", rng.normal({1003}, {.mean = 1, .stddev = 2, .dtype = dtype}), {}, {}});
    }
    return trials;
  });
}
