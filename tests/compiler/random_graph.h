// Random graphs for tests.
#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "compiler/graph/graph.h"
#include "compiler/graph/op.h"
#include "croton/croton.h"
#include "ops/evaluate.h"

namespace croton::test {

/// Makes one graph; each value is evaluated as soon as it is made, so that the next op can be
/// chosen to fit its shape.
class RandomGraph {
 public:
  RandomGraph(unsigned seed, DType dtype) : random_(seed), dtype_(dtype) {
    const int inputs = pick(1, 3);
    for (int i = 0; i < inputs; ++i) add_input();
    const int ops = pick(3, 14);
    for (int i = 0; i < ops; ++i) add_op();
    const int outputs = pick(1, 4);
    outputs_.push_back(pool_.back());
    for (int i = 1; i < outputs; ++i) outputs_.push_back(pool_[any()]);
  }

  std::vector<Variable> inputs;
  std::vector<Array> arguments;

  const std::vector<Variable>& outputs() const { return outputs_; }
  const Array& value(const Variable& v) const { return values_.at(v); }

  std::string text() const {
    Graph graph;
    graph.inputs = inputs;
    graph.outputs = outputs_;
    std::string shapes;
    for (const Array& argument : arguments) shapes += argument.shape().to_string() + " ";
    return to_text(graph) + "arguments " + shapes;
  }

 private:
  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  bool flip() { return pick(0, 1) == 1; }
  std::size_t any() {
    return static_cast<std::size_t>(pick(0, static_cast<int>(pool_.size()) - 1));
  }

  Array random_array(const Shape& shape) {
    std::vector<double> values;
    std::uniform_real_distribution<double> uniform(-2, 2);
    for (std::int64_t i = 0; i < shape.numel(); ++i) values.push_back(uniform(random_));
    return Array::from<double>(values, shape).astype(dtype_);
  }

  void add_input() {
    static constexpr std::int64_t kSizes[] = {1, 2, 3, 5, 17, 40};
    Shape actual;
    Shape known;
    const int rank = pick(0, 3);
    for (int axis = 0; axis < rank; ++axis) {
      // Often a size that is there already, so that operands fit.
      std::int64_t size = kSizes[pick(0, 5)];
      if (!arguments.empty() && flip()) {
        const Shape& other = arguments[0].shape();
        const int place = static_cast<int>(other.size()) - rank + axis;
        if (place >= 0) size = other[place];
      }
      actual.push_back(size);
      known.push_back(size == 1 || pick(0, 2) == 0 ? size : kAnyDim);
    }
    inputs.push_back(tensor("x" + std::to_string(inputs.size()), dtype_, known));
    arguments.push_back(random_array(actual));
    values_[inputs.back()] = arguments.back();
    pool_.push_back(inputs.back());
  }

  void keep(const Variable& v) {
    const Variable outputs[] = {v};
    for (const Node* node : topological_order(outputs)) {
      if (values_.contains(node->out())) continue;
      std::vector<Array> operands;
      for (const Variable& input : node->inputs) operands.push_back(values_.at(input));
      const std::vector<Array> results = evaluate(*node, operands);
      for (std::size_t k = 0; k < results.size(); ++k) {
        values_[node->out(static_cast<int>(k))] = results[k];
      }
    }
    if (values_.at(v).size() > 4000) return;
    pool_.push_back(v);
  }

  /// Whether NumPy's broadcasting of the values is what the static shapes allow.
  bool fits(const Variable& a, const Variable& b) const {
    const Shape& x = values_.at(a).shape();
    const Shape& y = values_.at(b).shape();
    for (std::size_t i = 1; i <= std::min(x.size(), y.size()); ++i) {
      const std::int64_t m = x[x.size() - i], n = y[y.size() - i];
      const bool one_a = a.static_shape()[x.size() - i] == 1;
      const bool one_b = b.static_shape()[y.size() - i] == 1;
      if (m != n && !one_a && !one_b) return false;
    }
    return true;
  }

  std::vector<int> some_axes(int rank) {
    std::vector<int> axes;
    for (int axis = 0; axis < rank; ++axis) {
      if (flip()) axes.push_back(axis);
    }
    if (axes.empty()) axes.push_back(pick(0, rank - 1));
    return axes;
  }

  Variable as_float(const Variable& v) { return v.dtype() == dtype_ ? v : v.astype(dtype_); }

  void add_op() {
    const Variable x = as_float(pool_[any()]);
    keep(x);
    const int rank = x.ndim();
    const Shape shape = values_.at(x).shape();
    switch (pick(0, 15)) {
      case 0:
        return keep(tanh(x));
      case 1:
        return keep(sigmoid(x) + 0.5);
      case 2:
        return keep(sqrt(abs(x)));
      case 3:
        return keep(square(x) - x);
      case 4:
      case 5:
      case 6: {
        const Variable y = as_float(pool_[any()]);
        keep(y);
        if (!fits(x, y)) return;
        switch (pick(0, 4)) {
          case 0:
            return keep(x + y);
          case 1:
            return keep(x - y);
          case 2:
            return keep(tanh(x) * y);
          case 3:
            return keep(maximum(x, y));
          default:
            return keep(where(lt(x, y), x, y * 0.5));
        }
      }
      case 7:
      case 8: {
        if (rank == 0 || shape.numel() == 0) return;
        const ReduceOptions options{.keepdims = flip()};
        const Axis axes(some_axes(rank));
        switch (pick(0, 4)) {
          case 0:
            return keep(sum(x, axes, options));
          case 1:
            return keep(mean(x, axes, options));
          case 2:
            return keep(max(x, axes, options));
          case 3:
            return keep(min(x, axes, options));
          default:
            return keep(var(x, axes));
        }
      }
      case 9: {
        if (rank == 0 || shape.numel() == 0) return;
        const int axis = pick(0, rank - 1);
        switch (pick(0, 2)) {
          case 0:
            return keep(softmax(x, axis));
          case 1:
            return keep(log_softmax(x, axis));
          default:
            return keep(argmax(x, axis).astype(dtype_));
        }
      }
      case 10: {
        std::vector<int> order;
        for (int axis = 0; axis < rank; ++axis) order.push_back(axis);
        std::shuffle(order.begin(), order.end(), random_);
        if (rank < 3 && flip()) order.insert(order.begin() + pick(0, rank), -1);
        return keep(dimshuffle(x, order));
      }
      case 11: {
        if (rank == 0 || shape[0] == 0) return;
        const int n = static_cast<int>(shape[0]);
        switch (pick(0, 3)) {
          case 0:
            return keep(x(pick(0, n - 1)));
          case 1:
            return keep(x(Slice(none, none, -1)));
          case 2:
            return keep(x(ellipsis, Slice(pick(-3, 2), none, pick(1, 2))));
          default:
            return keep(x(Slice(pick(0, n), none)));
        }
      }
      case 12:
        if (rank == 0) return;
        return keep(concatenate({x, tanh(x) * 2}, pick(0, rank - 1)));
      case 13:
        return keep(reshape(x, {-1}));
      case 14: {
        if (rank == 0 || shape[0] == 0) return;
        std::vector<std::int64_t> indices;
        for (int i = pick(1, 4); i > 0; --i) {
          indices.push_back(pick(0, static_cast<int>(shape[0]) - 1));
        }
        const Array index = Array::from<std::int64_t>(indices, {indices.size()});
        if (flip()) return keep(x(index));
        return keep(inc_subtensor(x(index), 1.5));
      }
      default: {
        if (rank != 2) return;
        return keep(dot(x, transpose(x)));
      }
    }
  }

  std::mt19937 random_;
  DType dtype_;
  std::vector<Variable> pool_;
  std::vector<Variable> outputs_;
  VariableMap<Array> values_;
};

}  // namespace croton::test
