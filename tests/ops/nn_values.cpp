// Functions for neural networks against NumPy and SciPy (tests/data/make_nn_fixtures.py), by the
// reference evaluator; gradients against finite differences.
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <random>
#include <sstream>

#include "compiler/graph/op.h"
#include "croton/error.h"
#include "croton/math.h"
#include "croton/nn.h"
#include "ops/evaluate.h"
#include "tests/data_folder.h"
#include "tests/ops/graph_values.h"

using namespace croton;
using Catch::Matchers::Contains;

namespace {

struct Block {
  std::string name;
  int axis = 0;
  std::vector<Array> arrays;  // operands, then the result
};

/// "sizes | elements"; integers when no element has a point.
Array read_array(const std::string& line) {
  const std::size_t bar = line.find('|');
  Shape shape;
  std::istringstream sizes(line.substr(0, bar));
  for (std::int64_t size; sizes >> size;) shape.push_back(size);
  const std::string rest = line.substr(bar + 1);
  std::istringstream words(rest);
  std::vector<double> values;
  for (std::string word; words >> word;) values.push_back(std::strtod(word.c_str(), nullptr));
  const Array array = Array::from<double>(values, shape);
  return rest.find_first_of(".ni") == std::string::npos ? array.astype(DType::int64) : array;
}

std::vector<Block> read_blocks() {
  std::ifstream in(test::data_folder() + "/nn_values.txt");
  REQUIRE(in);
  std::vector<Block> blocks;
  for (std::string line; std::getline(in, line);) {
    if (line[0] == '@') {
      std::istringstream words(line.substr(1));
      Block& block = blocks.emplace_back();
      words >> block.name >> block.axis;
    } else {
      blocks.back().arrays.push_back(read_array(line));
    }
  }
  return blocks;
}

Variable build(const std::string& name, int axis, const std::vector<Variable>& x) {
  if (name == "softmax") return softmax(x[0], axis);
  if (name == "log_softmax") return log_softmax(x[0], axis);
  if (name == "logsumexp") return logsumexp(x[0], axis);
  if (name == "logsumexp_keepdims") return logsumexp(x[0], axis, true);
  if (name == "pick") return pick(x[0], x[1]);
  if (name == "cross_entropy_from_logits") return cross_entropy_from_logits(x[0], x[1]);
  if (name == "categorical_crossentropy") return categorical_crossentropy(x[0], x[1]);
  if (name == "crossentropy_of_softmax") return categorical_crossentropy(softmax(x[0]), x[1]);
  if (name == "binary_crossentropy") return binary_crossentropy(x[0], x[1]);
  if (name == "crossentropy_of_sigmoid") return binary_crossentropy(sigmoid(x[0]), x[1]);
  if (name == "binary_cross_entropy_from_logits") {
    return binary_cross_entropy_from_logits(x[0], x[1]);
  }
  REQUIRE(name == "layer_norm");
  return layer_norm(x[0], x[1], x[2], axis);
}

Variable input(DType dtype, const Shape& shape) {
  return make_input({dtype, shape}, "x", Loc::current());
}

Shape unknown_like(const Shape& shape) {
  Shape result;
  for (std::size_t k = 0; k < shape.size(); ++k) result.push_back(kAnyDim);
  return result;
}

Array value_of(const Variable& y, const VariableMap<Array>& known) {
  const Variable outputs[] = {y};
  return evaluate(outputs, known)[0];
}

void check(const Block& block, bool static_sizes) {
  std::vector<Variable> inputs;
  VariableMap<Array> known;
  for (std::size_t k = 0; k + 1 < block.arrays.size(); ++k) {
    const Array& array = block.arrays[k];
    const Shape shape = static_sizes ? array.shape() : unknown_like(array.shape());
    inputs.push_back(input(array.dtype(), shape));
    known[inputs.back()] = array;
  }
  const Variable y = build(block.name, block.axis, inputs);
  const Array got = value_of(y, known);
  INFO(block.name << " along " << block.axis << " of\n"
                  << to_string(block.arrays[0]) << "\ngave\n"
                  << to_string(got) << "\ninstead of\n"
                  << to_string(block.arrays.back()));
  CHECK(got.dtype() == DType::float64);
  CHECK(y.ndim() == static_cast<int>(got.ndim()));
  CHECK(allclose(got, block.arrays.back(), 1e-12, 1e-300, true));
}

/// sum(g * f(x)) as the gradient rule sees it, against differences along each element of x.
void check_gradient(const Variable& x, const Variable& y, const Array& at,
                    const VariableMap<Array>& others) {
  std::mt19937 random(11);
  VariableMap<Array> known = others;
  known[x] = at;
  const Array value = value_of(y, known);
  std::vector<double> weights;
  for (std::int64_t k = 0; k < value.size(); ++k) {
    weights.push_back(std::uniform_real_distribution<double>(0.5, 1.5)(random));
  }
  const Variable g = input(y.dtype(), y.static_shape());
  known[g] = Array::from<double>(weights, value.shape());
  const Variable grads[] = {g};
  const Variable slope = y.node()->op->grad({*y.node(), grads})[0];
  REQUIRE(slope.static_shape() == x.static_shape());
  const std::vector<double> got = value_of(slope, known).to_vector<double>();

  const auto projected = [&](std::size_t element, double step) {
    std::vector<double> moved = at.to_vector<double>();
    moved[element] += step;
    known[x] = Array::from<double>(moved, at.shape());
    const std::vector<double> values = value_of(y, known).to_vector<double>();
    double sum = 0;
    for (std::size_t k = 0; k < values.size(); ++k) sum += weights[k] * values[k];
    return sum;
  };
  for (std::size_t k = 0; k < got.size(); ++k) {
    const double want = (projected(k, 1e-6) - projected(k, -1e-6)) / 2e-6;
    INFO(y.node()->op->name << " element " << k);
    CHECK(got[k] == Approx(want).epsilon(1e-5).margin(1e-7));
  }
}

Array random_array(const Shape& shape, double low, double high) {
  std::mt19937 random(5);
  std::vector<double> values;
  for (std::int64_t k = 0; k < shape.numel(); ++k) {
    values.push_back(std::uniform_real_distribution<double>(low, high)(random));
  }
  return Array::from<double>(values, shape);
}

}  // namespace

TEST_CASE("functions for neural networks give the values of SciPy", "[ops][nn]") {
  for (const Block& block : read_blocks()) {
    check(block, true);
    check(block, false);
  }
}

TEST_CASE("gradients of row ops agree with finite differences", "[ops][nn][grad]") {
  for (const char* name : {"softmax", "log_softmax", "logsumexp", "standardize"}) {
    const OpDef& op = OpRegistry::instance().at(name);
    for (const Example& example : op.examples) {
      const Array at = random_array(example.shapes[0], -3, 3);
      const Variable x = input(DType::float64, at.shape());
      check_gradient(x, apply(op, {x}, example.attrs, Loc::current()), at, {});
    }
  }
  for (const Shape& sizes : {Shape{4, 6}, Shape{kAnyDim, kAnyDim}}) {
    const Variable x = input(DType::float64, sizes);
    const Variable labels = input(DType::int32, {sizes[0]});
    const Array chosen = Array{5, 0, 2, 2}.astype(DType::int32);
    check_gradient(x, pick(x, labels), random_array({4, 6}, -3, 3), {{labels, chosen}});
  }
}

TEST_CASE("row ops compute narrow floats in float32", "[ops][nn]") {
  const Variable x = input(DType::float16, {kAnyDim, 4});
  const Variable y = softmax(x);
  CHECK(y.dtype() == DType::float16);
  const std::vector<Variable> smaller = y.node()->op->expand(*y.node());
  REQUIRE(smaller.size() == 1);
  CHECK(smaller[0].dtype() == DType::float16);
  CHECK(smaller[0].node()->op->name == "cast");
  CHECK(smaller[0].node()->inputs[0].dtype() == DType::float32);
}

TEST_CASE("functions for neural networks give floats", "[ops][nn]") {
  const Variable i = input(DType::int32, {3, 4});
  CHECK(softmax(i).dtype() == DType::float32);
  CHECK(logsumexp(i, 0).static_shape() == Shape{4});
  CHECK(logsumexp(i, 1, true).static_shape() == Shape{3, 1});
  CHECK(layer_norm(i, 1, 0).dtype() == DType::float32);
  const Variable x = input(DType::float64, {3, 4});
  CHECK(layer_norm(x, 1, 0).dtype() == DType::float64);
  CHECK(cross_entropy_from_logits(x, input(DType::uint8, {3})).dtype() == DType::float64);
}

TEST_CASE("the cross-entropy of a softmax is computed from the logits", "[ops][nn]") {
  const Variable z = input(DType::float32, {3, 4});
  const Variable loss = categorical_crossentropy(softmax(z), input(DType::int64, {3}));
  REQUIRE(loss.node()->op->name == "sub");
  CHECK(loss.node()->inputs[0].node()->op->name == "logsumexp");
  CHECK(loss.node()->inputs[1].node()->op->name == "pick");
  CHECK(loss.node()->inputs[1].node()->inputs[0].same(z));
}

TEST_CASE("errors of functions for neural networks", "[ops][nn]") {
  const Variable x = input(DType::float32, {3, 4});
  const Variable labels = input(DType::int64, {3});
  std::string error = test::message_of<GraphError>([&] {
#line 6000 "user.cpp"
    softmax(x, 2);
  });
#line 600 "nn_values.cpp"
  CHECK_THAT(error, Contains("[softmax] axis 2 is out of range") && Contains("user.cpp:6000"));
  CHECK_THAT(test::message_of<GraphError>([&] { logsumexp(x, -3); }),
             Contains("[logsumexp] axis -3"));

  error = test::message_of<GraphError>([&] {
#line 6010 "user.cpp"
    categorical_crossentropy(x, input(DType::float32, {3}));
  });
#line 610 "nn_values.cpp"
  CHECK_THAT(error, Contains("[categorical_crossentropy]") && Contains("integer labels") &&
                        Contains("float32") && Contains("user.cpp:6010"));
  CHECK_THAT(test::message_of<GraphError>([&] { categorical_crossentropy(x, 1); }),
             Contains("coding_dist has 2 axes and true_dist 0"));
  CHECK_THAT(test::message_of<GraphError>([&] { pick(x, input(DType::int64, {5})); }),
             Contains("[pick] sizes of values and labels differ along axis 0") && Contains("5"));
  CHECK_THAT(test::message_of<GraphError>([&] { pick(x, input(DType::float32, {3})); }),
             Contains("[pick] labels must be integers"));
  CHECK_THAT(test::message_of<GraphError>([&] { cross_entropy_from_logits(1.5, labels); }),
             Contains("[cross_entropy_from_logits]") && Contains("scalar"));
  CHECK_THAT(test::message_of<GraphError>([&] { layer_norm(x, x, 0); }),
             Contains("[layer_norm] gamma must be a vector"));
  CHECK_THAT(test::message_of<GraphError>([&] { layer_norm(x, input(DType::float32, {5}), 0); }),
             Contains("[layer_norm] sizes of operands") && Contains("5"));

  const Variable picked = pick(x, labels);
  const VariableMap<Array> at{{x, Array::zeros({3, 4}, DType::float32)}, {labels, Array{0, 4, 1}}};
  CHECK_THROWS_AS(value_of(picked, at), CallError);
}
