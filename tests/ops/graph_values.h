// Values of graphs by the references of their ops: what the tests of this folder compare with
// NumPy's results, independently of fusion and code generation.
#pragma once

#include <catch2/catch.hpp>
#include <vector>

#include "compiler/graph/graph.h"
#include "compiler/graph/op.h"
#include "ops/reference.h"

namespace croton::test {

using Values = VariableMap<Array>;

/// Applies a scalar op's reference to broadcast operands.
inline Array scalar_value(const Node& node, const std::vector<Array>& inputs) {
  Shape shape;
  std::size_t rank = 0;
  for (const Array& x : inputs) rank = std::max(rank, x.ndim());
  for (std::size_t k = 0; k < rank; ++k) {
    std::int64_t size = 1;
    for (const Array& x : inputs) {
      if (k + x.ndim() < rank) continue;
      const std::int64_t own = x.shape()[k + x.ndim() - rank];
      if (own != 1) size = own;
    }
    shape.push_back(size);
  }
  const ScalarReference& f = node.op->scalar_reference;
  return reference::with_class(inputs.back().dtype(), [&](auto tag) {
    using T = decltype(tag);
    std::vector<std::vector<T>> x;
    for (const Array& input : inputs) x.push_back(reference::values<T>(input.broadcast_to(shape)));
    std::vector<T> result;
    for (std::int64_t i = 0; i < shape.numel(); ++i) {
      T at[3] = {};
      for (std::size_t k = 0; k < x.size(); ++k) at[k] = x[k][static_cast<std::size_t>(i)];
      INFO(node.op->name);
      if constexpr (std::same_as<T, double>) {
        REQUIRE(f.real != nullptr);
        result.push_back(f.real(at));
      } else if constexpr (std::same_as<T, std::int64_t>) {
        REQUIRE(f.integer != nullptr);
        result.push_back(f.integer(at));
      } else if constexpr (std::same_as<T, std::uint64_t>) {
        REQUIRE(f.natural != nullptr);
        result.push_back(f.natural(at));
      } else {
        REQUIRE(f.boolean != nullptr);
        result.push_back(f.boolean(at));
      }
    }
    Array out = Array::empty(shape, dtype_of<T>);
    std::copy(result.begin(), result.end(), out.template mutable_data<T>());
    return out.astype(node.outputs[0].dtype);
  });
}

/// The value of a graph; checks that each node's type is what its value has.
inline Array value(const Variable& y, Values values = {}) {
  const Variable outputs[] = {y};
  for (const Node* node : topological_order(outputs)) {
    if (values.contains(node->out())) continue;
    if (const Array* constant = constant_value(node->out())) {
      values[node->out()] = *constant;
      continue;
    }
    std::vector<Array> inputs;
    for (const Variable& input : node->inputs) inputs.push_back(values.at(input));
    INFO(node->op->name);
    std::vector<Array> results;
    if (node->op->reference != nullptr) {
      results = node->op->reference(*node, inputs);
    } else if (node->op->expand != nullptr) {
      // Inputs of the expansion are those of the node, whose values are known.
      for (const Variable& part : node->op->expand(*node)) results.push_back(value(part, values));
    } else {
      results.push_back(scalar_value(*node, inputs));
    }
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
