#include "tests/bench/training_graph.h"

namespace croton::bench {

TrainingGraph training_graph() {
  std::vector<Shared> parameters;
  const auto parameter = [&](const Shape& shape) {
    const auto seed = static_cast<std::uint64_t>(parameters.size());
    parameters.push_back(shared(random_normal(shape, {.seed = seed, .dtype = DType::float32})));
    return parameters.back();
  };
  const Shared images = shared(random_uniform({1438, 64}, {.dtype = DType::float32}));
  const Shared digits = shared(Array::zeros({1438}, DType::int64));
  const Variable x = tensor("x", DType::float32, {kAnyDim, 64}), y = vector("y", DType::int64);
  Variable hidden = x;
  const std::int64_t sizes[] = {64, 128, 64, 10};
  for (int layer = 0; layer < 3; ++layer) {
    const Shared w = parameter({sizes[layer], sizes[layer + 1]});
    const Shared b = parameter({sizes[layer + 1]});
    hidden = dot(hidden, w) + b;
    if (layer < 2) hidden = relu(hidden);
  }
  const Variable probabilities = softmax(hidden);
  const Variable cost = mean(categorical_crossentropy(probabilities, y));
  const Variable right = mean(eq(argmax(probabilities, 1), y));
  const Variable batch = vector("batch", DType::int64), rate = scalar("rate", DType::float32);
  TrainingGraph graph{{batch, rate}, {cost, right}, {}};
  const std::vector<Variable> gradients =
      grad(cost, std::vector<Variable>(parameters.begin(), parameters.end()));
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Shared& p = parameters[i];
    const Shared velocity = shared(Array::zeros(p.static_shape(), DType::float32));
    const Variable next = 0.9 * velocity - rate * gradients[i];
    graph.options.updates.push_back({velocity, next});
    graph.options.updates.push_back({p, p + next});
  }
  graph.options.givens = {{x, images(batch)}, {y, digits(batch)}};
  return graph;
}

}  // namespace croton::bench
