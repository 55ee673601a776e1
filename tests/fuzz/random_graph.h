// Random graphs: of ops that meet each other in users' programs, or of all that there are.
#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "compiler/graph/graph.h"
#include "compiler/graph/op.h"
#include "croton/croton.h"
#include "croton/error.h"
#include "ops/evaluate.h"

namespace croton::test {

enum class OpChoice : std::uint8_t {
  common,  ///< arithmetic, reductions, shapes, indexing, on floats of one dtype
  all,     ///< these, and every op of the registry in every dtype
};

/// Makes one graph; each value is evaluated as soon as it is made, so that the next op can be
/// chosen to fit its shape.
class RandomGraph {
 public:
  RandomGraph(unsigned seed, DType dtype, OpChoice choice = OpChoice::common)
      : random_(seed), dtype_(dtype), choice_(choice) {
    const int inputs = pick(1, 3);
    for (int i = 0; i < inputs; ++i) add_input();
    const int ops = pick(3, 14);
    for (int i = 0; i < ops; ++i) {
      if (choice_ == OpChoice::all && flip()) {
        add_registered_op();
      } else {
        add_op();
      }
    }
    if (choice_ == OpChoice::all) {
      outputs_ = unread();
      return;
    }
    const int outputs = pick(1, 4);
    outputs_.push_back(pool_.back());
    for (int i = 1; i < outputs; ++i) outputs_.push_back(pool_[any()]);
  }

  std::vector<Variable> inputs;
  std::vector<Array> arguments;

  const std::vector<Variable>& outputs() const { return outputs_; }
  const VariableMap<Array>& values() const { return values_; }
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

  /// The values that no other one is made from.
  std::vector<Variable> unread() const {
    VariableMap<bool> read;
    for (const Node* node : topological_order(pool_)) {
      for (const Variable& input : node->inputs) read[input] = true;
    }
    std::vector<Variable> result;
    for (const Variable& v : pool_) {
      if (read.emplace(v, true).second) result.push_back(v);
    }
    return result;
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
    switch (pick(0, 16)) {
      case 0:
        return keep(tanh(x));
      case 1:
        return keep(sigmoid(x) + 0.5);
      case 2:
        return keep(sqrt(abs(x) + 0.01));  // at 0 it has no slope
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
      case 15: {
        if (rank == 0 || shape.numel() == 0) return;
        // As many as values say.
        std::vector<int> others;
        for (int axis = 1; axis < rank; ++axis) others.push_back(axis);
        const Variable wanted = gt(rank == 1 ? x : max(x, others), 0.25);
        switch (pick(0, 3)) {
          case 0:
            return keep(x(gt(x, 0.25)));
          case 1:
            return keep(x(wanted));
          case 2:
            return keep(repeat(x, wanted.astype(DType::int64) * pick(1, 2), 0));
          default:
            return keep(unique(x).values);
        }
      }
      default: {
        if (rank != 2) return;
        return keep(dot(x, transpose(x)));
      }
    }
  }

  /// A value of the pool, cast, and with the shape wanted if it has another.
  Variable operand(DType dtype, const Shape& shape) {
    Variable v = pool_[any()];
    if (values_.at(v).shape() != shape) {
      // Its elements, from the start again when there are too few.
      const std::int64_t size = values_.at(v).size();
      std::vector<std::int64_t> places(static_cast<std::size_t>(shape.numel()));
      for (std::size_t i = 0; i < places.size(); ++i) {
        places[i] = size == 0 ? 0 : static_cast<std::int64_t>(i) % size;
      }
      if (size == 0) v = zeros({1}, v.dtype());
      v = reshape(flatten(v)(Array::from<std::int64_t>(places)), shape);
    }
    return v.dtype() == dtype ? v : v.astype(dtype);
  }

  /// `v` with values in a range, smoothly where they are not there already.
  Variable in_range(const Variable& v, std::pair<double, double> range) {
    keep(v);
    const auto [low, high] = range;
    const std::vector<double> now =
        values_.at(v).astype(DType::float64).template to_vector<double>();
    const bool inside =
        std::all_of(now.begin(), now.end(), [&](double x) { return low <= x && x <= high; });
    if (inside || is_bool(v.dtype())) return v;
    if (is_float(v.dtype())) return (sigmoid(v) * (high - low) + low).astype(v.dtype());
    const auto first = static_cast<std::int64_t>(is_unsigned(v.dtype()) ? std::max(low, 0.0) : low);
    const auto count = std::max<std::int64_t>(1, static_cast<std::int64_t>(high) - first);
    return (mod(v.astype(DType::int64), count) + first).astype(v.dtype());
  }

  /// Any op, on operands like those of one of its examples; in the dtype of this graph, or any.
  void add_registered_op() {
    static const std::vector<const OpDef*> ops = [] {
      std::vector<const OpDef*> list;
      for (const OpDef* op : OpRegistry::instance().all()) {
        if (!op->examples.empty() && !op->random) list.push_back(op);
      }
      return list;
    }();
    static constexpr DType kDTypes[] = {DType::boolean, DType::int8,    DType::int32,
                                        DType::int64,   DType::uint8,   DType::uint32,
                                        DType::float32, DType::float64, DType::float16};
    const OpDef& op = *ops[static_cast<std::size_t>(pick(0, static_cast<int>(ops.size()) - 1))];
    const Example& example =
        op.examples[static_cast<std::size_t>(pick(0, static_cast<int>(op.examples.size()) - 1))];
    // Not every op takes every dtype.
    if (flip() && add_registered_op(op, example, dtype_)) return;
    for (int tries = 0; tries < 4; ++tries) {
      if (add_registered_op(op, example, kDTypes[pick(0, std::size(kDTypes) - 1)])) return;
    }
  }

  bool add_registered_op(const OpDef& op, const Example& example, DType dtype) {
    const bool own_shape = op.form == OpForm::scalar && flip();
    const Shape shape = own_shape ? values_.at(pool_[any()]).shape() : Shape{};
    std::vector<Variable> operands;
    for (std::size_t k = 0; k < example.shapes.size(); ++k) {
      const Variable v = operand(dtype, own_shape ? shape : example.shapes[k]);
      // Now and then whatever there is: infinities, NaN, what is outside of the domain.
      operands.push_back(pick(0, 9) == 0 ? v : in_range(v, example.range[k]));
    }
    if (add_applied(op, operands, example.attrs)) return true;
    // Some operands are indices (the last ones) or a condition (the first).
    for (std::size_t k = 0; k < operands.size(); ++k) {
      std::vector<Variable> indexed = operands;
      for (std::size_t i = k; i < indexed.size(); ++i) {
        indexed[i] = in_range(indexed[i].astype(DType::int64), example.range[i]);
      }
      if (add_applied(op, indexed, example.attrs)) return true;
    }
    if (operands.empty()) return false;
    operands[0] = operands[0].astype(DType::boolean);
    return add_applied(op, operands, example.attrs);
  }

  /// Whether the op takes the operands.
  bool add_applied(const OpDef& op, const std::vector<Variable>& operands, const Attrs& attrs) {
    try {
      keep(apply(op, operands, attrs, Loc::current()));
    } catch (const UserError&) {
      return false;
    }
    return true;
  }

  std::mt19937 random_;
  DType dtype_;
  OpChoice choice_;
  std::vector<Variable> pool_;
  std::vector<Variable> outputs_;
  VariableMap<Array> values_;
};

}  // namespace croton::test
