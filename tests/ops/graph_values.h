// Values of graphs by the references of their ops: what the tests of this folder compare with
// NumPy's results, independently of fusion and code generation.
#pragma once

#include <catch2/catch.hpp>
#include <vector>

#include "compiler/graph/graph.h"
#include "compiler/graph/op.h"
#include "croton/error.h"
#include "ops/evaluate.h"

namespace croton::test {

using Values = VariableMap<Array>;

/// The value of a graph; checks that each node's type is what its value has.
inline Array value(const Variable& y, Values values = {}) {
  const Variable outputs[] = {y};
  for (const Node* node : topological_order(outputs)) {
    if (values.contains(node->out())) continue;
    std::vector<Array> inputs;
    for (const Variable& input : node->inputs) inputs.push_back(values.at(input));
    INFO(node->op->name);
    const std::vector<Array> results = evaluate(*node, inputs);
    REQUIRE(results.size() == node->outputs.size());
    for (std::size_t k = 0; k < results.size(); ++k) {
      const Type& type = node->outputs[k];
      REQUIRE(results[k].dtype() == type.dtype);
      REQUIRE(results[k].ndim() == type.shape.size());
      for (std::size_t axis = 0; axis < type.shape.size(); ++axis) {
        if (type.shape[axis] != kAnyDim) REQUIRE(results[k].shape()[axis] == type.shape[axis]);
      }
      values[node->out(static_cast<int>(k))] = results[k];
    }
  }
  return values.at(y);
}

inline Variable input(DType dtype, const Shape& shape, const char* name = "x") {
  return make_input({dtype, shape}, name, Loc::current());
}
inline Variable floats(const Shape& shape, const char* name = "x") {
  return input(DType::float64, shape, name);
}

/// 0, 1, 2, ... in a shape.
inline Array counting(const Shape& shape, DType dtype = DType::float64) {
  return Array::arange(shape.numel(), dtype).reshape(shape);
}

/// The message of the error that `f` throws.
template <class E, class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace croton::test
