// Scalar ops, compiled and run on the default device: against NumPy and SciPy, and in the narrow
// dtypes against their references; compiled gradients against the references of their graphs.
#include <map>
#include <random>

#include "compiler/rewrite/trace.h"
#include "croton/function.h"
#include "croton/grad.h"
#include "croton/reduce.h"
#include "ops/evaluate.h"
#include "tests/ops/scalar_fixtures.h"

using namespace croton;
using namespace croton::test;

namespace {

void check_compiled(const Block& block, DType real) {
  const Variable y = node_of(block, real, {kAnyDim});
  const std::vector<Variable>& inputs = y.node()->inputs;
  std::vector<Array> arguments;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    arguments.push_back(column(block, k, inputs[k].dtype()));
  }
  const Function f = function(inputs, y, {.on_unused = OnUnused::ignore});
  const Array result = f.call(arguments)[0];
  REQUIRE(result.dtype() == y.dtype());
  REQUIRE(result.size() == static_cast<std::int64_t>(block.rows.size()));
  CHECK(f.statistics().launches <= 1);
  if (!is_float(y.dtype())) {
    INFO(block.op << " of " << name_of(block.dtype) << " gave " << result);
    CHECK(array_equal(result, column(block, inputs.size(), y.dtype())));
    return;
  }
  const std::vector<double> got = result.astype(DType::float64).to_vector<double>();
  for (std::size_t row = 0; row < got.size(); ++row) {
    const double want = std::strtod(block.rows[row].back().c_str(), nullptr);
    INFO(describe(block, block.rows[row], real) << ", got " << got[row]);
    CHECK(close(got[row], want, tolerance(block.op, real), real, absolute_scale(block.op)));
  }
}

/// An op's example as a graph of vectors, with values.
struct Trial {
  Variable y;
  VariableMap<Array> values;
  std::vector<Array> arguments;

  Trial(const OpDef& op, const Example& example, DType dtype, std::mt19937& random) {
    std::vector<Variable> inputs;
    for (std::size_t k = 0; k < example.shapes.size(); ++k) {
      const bool condition = op.name == "where" && k == 0;
      const auto [low, high] = example.range[k];
      std::vector<double> list;
      for (int i = 0; i < 37; ++i) {
        const double v = std::uniform_real_distribution<double>(low, high)(random);
        list.push_back(condition ? std::floor(v) : v);
      }
      const DType mine = condition ? DType::boolean : dtype;
      inputs.push_back(make_input({mine, {kAnyDim}}, "x", Loc::current()));
      arguments.push_back(Array::from<double>(list).astype(mine));
      values[inputs.back()] = arguments.back();
    }
    y = apply(op, inputs, example.attrs, Loc::current());
  }

  Array reference(const Variable& v) const {
    const Variable outputs[] = {v};
    return evaluate(outputs, values)[0];
  }
  Array compiled(const Variable& v) const {
    return function(y.node()->inputs, v, {.on_unused = OnUnused::ignore}).call(arguments)[0];
  }
};

bool takes_floats(const OpDef& op) { return op.scalar_reference.real != nullptr; }

}  // namespace

TEST_CASE("compiled scalar ops give the values of NumPy", "[ops][conformance]") {
  for (const Block& block : read_blocks()) {
    check_compiled(block, DType::float64);
    const bool floats = is_float(block.dtype) || is_float(block.result);
    if (floats && is_rounded_in_float32(block)) check_compiled(block, DType::float32);
  }
}

TEST_CASE("compiled scalar ops round narrow floats once", "[ops][conformance]") {
  std::mt19937 random(3);
  for (const OpDef* op : OpRegistry::instance().all()) {
    if (op->form != OpForm::scalar || !takes_floats(*op)) continue;
    for (const Example& example : op->examples) {
      for (const DType dtype : {DType::float16, DType::bfloat16}) {
        const Trial trial(*op, example, dtype, random);
        const Array got = trial.compiled(trial.y);
        const Array want = trial.reference(trial.y);
        INFO(op->name << " of " << name_of(dtype) << "\ngot " << got << "\nwant " << want);
        REQUIRE(got.dtype() == trial.y.dtype());
        // Where float32 is not exact the last digit may fall on the other side.
        CHECK(allclose(got, want, is_float(got.dtype()) ? spacing(got.dtype()) : 0, 1e-6, true));
      }
    }
  }
}

TEST_CASE("compiled gradients of scalar ops are those of the references", "[ops][conformance]") {
  std::mt19937 random(4);
  for (const OpDef* op : OpRegistry::instance().all()) {
    if (op->form != OpForm::scalar || op->grad == nullptr) continue;
    for (const Example& example : op->examples) {
      const Trial trial(*op, example, DType::float64, random);
      if (!is_float(trial.y.dtype())) continue;
      for (std::size_t k = 0; k < trial.y.node()->inputs.size(); ++k) {
        const Variable& x = trial.y.node()->inputs[k];
        if (!is_float(x.dtype()) || lacks_gradient(op->name, k)) continue;
        const Variable slope = grad(sum(trial.y), x);
        const Array got = trial.compiled(slope);
        const Array want = trial.reference(slope);
        INFO(op->name << "\ngot " << got << "\nwant " << want);
        const bool narrow = trial.y.dtype() == DType::float16 || trial.y.dtype() == DType::bfloat16;
        CHECK(allclose(got, want, narrow ? 1e-2 : 1e-6, 1e-9, true));
      }
    }
  }
}
