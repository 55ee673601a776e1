// Every registered op on its examples, as small graphs in float64 with values of their inputs.
#pragma once

#include <cmath>
#include <optional>
#include <random>
#include <set>

#include "tests/ops/graph_values.h"
#include "tests/ops/missing_gradients.h"

namespace croton::test {

struct OpCase {
  const OpDef* op = nullptr;
  Attrs attrs;
  Variable y;
  std::vector<Variable> inputs;
  Values values;

  std::string text() const {
    std::string shapes;
    for (const Variable& x : inputs) shapes += " " + x.static_shape().to_string();
    return op->name + " of" + shapes + ", attributes " + attrs.to_text();
  }
};

inline Array drawn_values(const Shape& shape, std::pair<double, double> range, DType dtype,
                          std::mt19937& random) {
  std::vector<double> values(static_cast<std::size_t>(shape.numel()));
  for (double& v : values) {
    v = std::uniform_real_distribution<double>(range.first, range.second)(random);
    if (!is_float(dtype)) v = std::floor(v);
  }
  return Array::from<double>(values, shape).astype(dtype);
}

/// The op on inputs of the first dtypes that it takes: float64 where it can be, else int64, else
/// bool. With `known` sizes are static; a size of 1 always is, since it would not broadcast.
inline std::optional<OpCase> op_case(const OpDef& op, const Example& example, bool known,
                                     std::mt19937& random) {
  const std::size_t count = example.shapes.size();
  int choices = 1;
  for (std::size_t k = 0; k < count; ++k) choices *= 3;
  for (int choice = 0; choice < choices; ++choice) {
    OpCase c{&op, example.attrs, {}, {}, {}};
    int rest = choice;
    for (std::size_t k = count; k-- > 0; rest /= 3) {
      const DType dtypes[] = {DType::float64, DType::int64, DType::boolean};
      Shape shape = example.shapes[k];
      for (std::int64_t& size : shape) {
        if (!known && size != 1) size = kAnyDim;
      }
      c.inputs.insert(c.inputs.begin(), input(dtypes[rest % 3], shape));
    }
    try {
      c.y = apply(op, c.inputs, example.attrs, Loc::current());
    } catch (const GraphError&) {
      continue;
    }
    for (std::size_t k = 0; k < count; ++k) {
      c.values[c.inputs[k]] =
          drawn_values(example.shapes[k], example.range[k], c.inputs[k].dtype(), random);
    }
    return c;
  }
  return {};
}

/// All ops with examples, which the reference evaluator can run.
inline std::vector<OpCase> op_cases(bool known, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<OpCase> cases;
  for (const OpDef* op : OpRegistry::instance().all()) {
    for (const Example& example : op->examples) {
      std::optional<OpCase> c = op_case(*op, example, known, random);
      if (c && can_evaluate(*c->y.node())) cases.push_back(std::move(*c));
    }
  }
  return cases;
}

/// Those whose gradient is that of their value: not the marks that change it.
inline std::vector<OpCase> differentiable_cases(bool known, unsigned seed) {
  static const std::set<std::string> marks{"zero_grad", "grad_clip", "grad_scale"};
  std::vector<OpCase> cases;
  for (OpCase& c : op_cases(known, seed)) {
    if (c.op->grad == nullptr || c.y.dtype() != DType::float64 || marks.contains(c.op->name)) {
      continue;
    }
    bool any = false;
    for (const Variable& x : c.inputs) any = any || is_float(x.dtype());
    if (any) cases.push_back(std::move(c));
  }
  return cases;
}

/// The inputs that have gradients.
inline std::vector<Variable> float_inputs(const OpCase& c) {
  std::vector<Variable> list;
  for (std::size_t k = 0; k < c.inputs.size(); ++k) {
    const Variable& x = c.inputs[k];
    if (is_float(x.dtype()) && !lacks_gradient(c.op->name, k)) list.push_back(x);
  }
  return list;
}

/// A vector, or the numbers in another shape.
inline Array reals(const std::vector<double>& values, const Shape& shape = {kAnyDim}) {
  const bool vector = shape.size() == 1 && shape[0] == kAnyDim;
  return Array::from<double>(values, vector ? Shape{values.size()} : shape);
}

/// `a + scale * b`, elementwise, of float64.
inline Array moved(const Array& a, double scale, const Array& b) {
  std::vector<double> x = a.to_vector<double>();
  const std::vector<double> y = b.to_vector<double>();
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += scale * y[i];
  return reals(x, a.shape());
}

}  // namespace croton::test
