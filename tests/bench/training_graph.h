// The function that trains the network of samples/mlp.cpp, as that program writes it.
#pragma once

#include <croton/croton.h>

#include <vector>

namespace croton::bench {

struct TrainingGraph {
  std::vector<Variable> inputs;  ///< numbers of the images of a batch, rate of learning
  std::vector<Variable> outputs;
  FunctionOptions options;  ///< updates and givens
};

TrainingGraph training_graph();

}  // namespace croton::bench
