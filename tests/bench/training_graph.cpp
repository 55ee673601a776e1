#include "tests/bench/training_graph.h"

namespace croton::bench {

TrainingGraph training_graph() {
  const Variable x = matrix("x", DType::float32), labels = vector("labels", DType::int64);
  std::vector<Variable> parameters;
  std::vector<Shared> targets, velocities;
  const auto parameter = [&](const Shape& shape, std::uint64_t seed) {
    const Shared s = shared(random_normal(shape, {.seed = seed, .dtype = DType::float32}));
    targets.push_back(s);
    velocities.push_back(shared(Array::zeros(shape, DType::float32)));
    parameters.push_back(s);
    return s;
  };
  Variable hidden = x;
  const std::int64_t sizes[] = {64, 128, 64, 10};
  for (int layer = 0; layer < 3; ++layer) {
    const Shared w = parameter({sizes[layer], sizes[layer + 1]}, static_cast<std::uint64_t>(layer));
    const Shared b = parameter({sizes[layer + 1]}, 10 + static_cast<std::uint64_t>(layer));
    hidden = dot(hidden, w) + b;
    if (layer < 2) hidden = relu(hidden);
  }
  const Variable cost = mean(cross_entropy_from_logits(hidden, labels));
  const Variable errors = mean(cast(ne(argmax(hidden, 1), labels), DType::float32));
  const std::vector<Variable> gradients = grad(cost, parameters);
  TrainingGraph graph{{x, labels}, {cost, errors}, {}};
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const Variable step = 0.9f * velocities[i] - 0.1f * gradients[i];
    graph.updates.push_back({velocities[i], step});
    graph.updates.push_back({targets[i], targets[i] + step});
  }
  return graph;
}

}  // namespace croton::bench
