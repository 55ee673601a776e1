// The function that trains a small network, as a user would write it.
#pragma once

#include <croton/croton.h>

#include <vector>

namespace croton::bench {

/// Inputs, outputs and updates of one training step of a network 64 -> 128 -> 64 -> 10 with
/// momentum.
struct TrainingGraph {
  std::vector<Variable> inputs;
  std::vector<Variable> outputs;
  std::vector<Update> updates;
};

TrainingGraph training_graph();

}  // namespace croton::bench
