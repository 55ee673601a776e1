// Functions for neural networks, compiled and run on shapes that fill more than a vector and a
// block, against the reference evaluator; in how many kernels; and what labels out of range give.
#include <catch2/catch.hpp>
#include <random>

#include "compiler/graph/op.h"
#include "croton/error.h"
#include "croton/function.h"
#include "croton/grad.h"
#include "croton/math.h"
#include "croton/nn.h"
#include "croton/reduce.h"
#include "ops/evaluate.h"

using namespace croton;
using Catch::Matchers::Contains;

namespace {

/// Operands of a classifier of `rows` rows and `columns` classes.
struct Batch {
  Variable x, labels, target;
  VariableMap<Array> values;

  Batch(DType dtype, std::int64_t rows, std::int64_t columns, bool known) {
    const Shape shape = known ? Shape{rows, columns} : Shape{kAnyDim, kAnyDim};
    x = make_input({dtype, shape}, "x", Loc::current());
    labels = make_input({DType::int32, {shape[0]}}, "labels", Loc::current());
    target = make_input({dtype, shape}, "target", Loc::current());
    std::mt19937 random(9);
    std::vector<double> logits, classes, odds;
    for (std::int64_t row = 0; row < rows; ++row) {
      classes.push_back(
          std::uniform_int_distribution<int>(0, static_cast<int>(columns) - 1)(random));
      for (std::int64_t column = 0; column < columns; ++column) {
        logits.push_back(std::normal_distribution<double>(0, 3)(random));
        odds.push_back(std::uniform_real_distribution<double>(0, 1)(random));
      }
    }
    values[x] = Array::from<double>(logits, {rows, columns}).astype(dtype);
    labels_array() = Array::from<double>(classes).astype(DType::int32);
    values[target] = Array::from<double>(odds, {rows, columns}).astype(dtype);
  }

  Array& labels_array() { return values[labels]; }
  Array reference(const Variable& y) const {
    const Variable outputs[] = {y};
    return evaluate(outputs, values)[0];
  }
  Function compiled(const Variable& y) const {
    return function({x, labels, target}, y, {.on_unused = OnUnused::ignore});
  }
  Array run(const Function& f) const {
    return f(values.at(x), values.at(labels), values.at(target))[0];
  }
};

struct Case {
  const char* name;
  Variable (*build)(const Batch&);
};

constexpr Case kCases[] = {
    {"softmax", [](const Batch& b) { return softmax(b.x); }},
    {"log_softmax", [](const Batch& b) { return log_softmax(b.x); }},
    {"logsumexp", [](const Batch& b) { return logsumexp(b.x); }},
    {"layer_norm", [](const Batch& b) { return layer_norm(b.x, 2, 1); }},
    {"cross_entropy_from_logits",
     [](const Batch& b) { return cross_entropy_from_logits(b.x, b.labels); }},
    {"categorical_crossentropy of a softmax",
     [](const Batch& b) { return categorical_crossentropy(softmax(b.x), b.labels); }},
    {"categorical_crossentropy of probabilities",
     [](const Batch& b) { return categorical_crossentropy(softmax(b.x), b.target); }},
    {"binary_crossentropy",
     [](const Batch& b) { return binary_crossentropy(sigmoid(b.x), b.target); }},
};

void check_case(const Case& c, const Batch& batch, DType dtype) {
  const double close = dtype == DType::float64 ? 1e-12 : 2e-5;
  const Variable y = c.build(batch);
  const Function f = batch.compiled(y);
  INFO(c.name << " in " << name_of(dtype));
  CHECK(allclose(batch.run(f), batch.reference(y), close, close, true));
  CHECK(f.statistics().launches == 1);
  const Variable slope = grad(mean(y * y), batch.x);
  CHECK(
      allclose(batch.run(batch.compiled(slope)), batch.reference(slope), close * 10, close, true));
}

}  // namespace

TEST_CASE("compiled functions for neural networks give their values", "[ops][nn][conformance]") {
  for (const DType dtype : {DType::float32, DType::float64}) {
    for (const bool known : {true, false}) {
      for (const auto& [rows, columns] : {std::pair{3, 5}, {67, 131}, {5, 1030}, {300, 17}}) {
        const Batch batch(dtype, rows, columns, known);
        INFO(rows << " rows, " << columns << " columns, sizes " << (known ? "known" : "unknown"));
        for (const Case& c : kCases) check_case(c, batch, dtype);
      }
    }
  }
}

TEST_CASE("rows may lie along any axis", "[ops][nn][conformance]") {
  const Batch batch(DType::float64, 67, 131, false);
  const Variable rows[] = {softmax(batch.x, 0), log_softmax(batch.x, 0),
                           logsumexp(batch.x, 0, true), layer_norm(batch.x, 2, 1, 0)};
  for (const Variable& y : rows) {
    INFO(y.node()->op->name);
    CHECK(allclose(batch.run(batch.compiled(y)), batch.reference(y), 1e-12, 1e-12, true));
    const Variable slope = grad(mean(y * y), batch.x);
    CHECK(allclose(batch.run(batch.compiled(slope)), batch.reference(slope), 1e-10, 1e-14, true));
  }
}

TEST_CASE("a label out of range is an error of the call", "[ops][nn][conformance]") {
  Batch batch(DType::float32, 67, 11, false);
  const Variable loss = cross_entropy_from_logits(batch.x, batch.labels);
  const Function f = batch.compiled(loss);
  const Function slope = batch.compiled(grad(sum(loss), batch.x));
  const Array right = batch.labels_array();
  const Array first = batch.run(f);
  for (const int label : {11, -1, 2000000000}) {
    Array wrong = right.copy();
    wrong.mutable_data<std::int32_t>()[40] = label;
    batch.labels_array() = wrong;
    const std::string text = std::to_string(label);
    for (const Function* function : {&f, &slope}) {
      CHECK_THROWS_AS(batch.run(*function), CallError);
      CHECK_THROWS_WITH(batch.run(*function), Contains("[cross_entropy_from_logits] label " + text +
                                                       " is out of range") &&
                                                  Contains("< 11"));
    }
  }
  batch.labels_array() = right;
  CHECK(array_equal(batch.run(f), first));
}
