// Reads handwritten digits with a network of three layers that all contexts train together, each on
// its rows of every batch. Without named contexts it is a program for one device.
//
//   CROTON_FLAGS="contexts=dev0->cuda0;dev1->cuda1" ./data_parallel_mlp [FOLDER with digits.csv.gz]
//
// Ends with status 1 when a step differs from that of one device by more than rounding, or the
// accuracy on images that were not trained on is below 95 %.
#include <croton/croton.h>

#include <cmath>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "digits.h"

using namespace croton;

namespace {

constexpr int kEpochs = 30;
constexpr std::int64_t kBatch = 100;  // the last one is smaller

/// Parameters, and what is made of them.
struct Network {
  std::vector<Shared> parameters;
  Variable x = tensor("x", DType::float32, {kAnyDim, Digits::kPixels});
  Variable t = vector("t", DType::int64);
  Variable cost, right;

  Network() {
    Variable h = x;
    const std::size_t sizes[] = {Digits::kPixels, 96, 48, 10};
    for (int i = 0; i < 3; ++i) {
      const std::string layer = "layer" + std::to_string(i);
      const double scale = std::sqrt(2.0 / double(sizes[i]));
      const Shared w = shared(
          random_normal({sizes[i], sizes[i + 1]}, {.seed = std::uint64_t(i + 1), .stddev = scale}),
          {.name = layer + ".w"});
      const Shared b = shared(Array::zeros({sizes[i + 1]}), {.name = layer + ".b"});
      h = dot(i == 0 ? h : relu(h), w) + b;
      parameters.insert(parameters.end(), {w, b});
    }
    cost = mean(cross_entropy_from_logits(h, t));
    for (const Shared& p : parameters) {
      if (p.ndim() == 2) cost = cost + 1e-4f * sum(square(p));
    }
    right = mean(cast(eq(argmax(h, 1), t), DType::float32));
  }
  std::vector<Update> step() const {
    return momentum(cost, parameters, {.learning_rate = 0.05f, .momentum = 0.9});
  }
};

/// The largest difference of two values of one parameter.
float largest_difference(const Array& a, const Array& b) {
  float largest = 0;
  const std::vector<float> p = a.to_vector<float>(), q = b.to_vector<float>();
  for (std::size_t i = 0; i < p.size(); ++i) largest = std::max(largest, std::abs(p[i] - q[i]));
  return largest;
}

int run(const std::string& folder) {
  const Digits digits(folder + "/digits.csv.gz");
  const auto batch = [&](std::int64_t from) {
    const std::int64_t to = std::min<std::int64_t>(from + kBatch, std::int64_t(digits.trained));
    return std::vector<Array>{digits.images.slice(0, from, to), digits.labels.slice(0, from, to)};
  };

  const Network single, network;
  const Function one = function({single.x, single.t}, single.cost, {.updates = single.step()});
  const DataParallel train =
      data_parallel({network.x, network.t}, {{"cost", network.cost}}, {.updates = network.step()});
  const DataParallel test = data_parallel({network.x, network.t}, {{"right", network.right}});
  std::printf("%zu contexts", train.contexts().size());
  for (const std::string& name : train.contexts()) std::printf(" %s", name.c_str());
  std::printf("\n");

  one.call(batch(0));
  train.call(batch(0));
  float difference = 0;
  for (std::size_t i = 0; i < network.parameters.size(); ++i) {
    difference = std::max(difference, largest_difference(network.parameters[i].get_value(),
                                                         single.parameters[i].get_value()));
  }
  const bool same = difference < 1e-6f;
  std::printf("the first step is that of one device%s\n", same ? "" : ": NO");

  for (int epoch = 1; epoch <= kEpochs; ++epoch) {
    float cost = 0;
    for (std::int64_t at = 0; at < std::int64_t(digits.trained); at += kBatch) {
      cost = train.call(batch(at))["cost"].item<float>();
    }
    if (epoch % 10 == 0 || epoch == 1) std::printf("epoch %2d  cost %.4f\n", epoch, cost);
  }
  const std::vector<Array> all{digits.images, digits.labels};
  const float right =
      test.call(all, {.batch = {std::int64_t(digits.trained), std::int64_t(digits.rows)}})["right"]
          .item<float>();
  std::printf("%zu held-out images: %.2f %% right\n", digits.rows - digits.trained, 100 * right);
  return same && right >= 0.95f ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? argv[1] : CROTON_SAMPLE_DATA);
  } catch (const std::exception& error) {
    std::cerr << "data_parallel_mlp: " << error.what() << '\n';
    return 1;
  }
}
