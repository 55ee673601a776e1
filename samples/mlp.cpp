// Reads handwritten digits with a network of three layers, trained by stochastic gradient descent
// with momentum on minibatches.
//
//   ./mlp [FOLDER with digits.csv.gz]
//
// Ends with status 1 when the accuracy on images that were not trained on is below 96 %.
#include <croton/croton.h>
#include <zlib.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

using namespace croton;

namespace {

constexpr std::size_t kPixels = 64;
constexpr std::size_t kClasses = 10;
constexpr int kEpochs = 30;
constexpr std::size_t kBatch = 32;

struct Digits {
  std::vector<float> pixels;  // row-major, 0 to 1
  std::vector<std::int64_t> labels;
  std::size_t size() const { return labels.size(); }
};

template <class T>
void shuffle(std::vector<T>& list, std::mt19937& generator) {
  for (std::size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[generator() % i]);
}

std::vector<std::vector<int>> read_lines(const std::string& path) {
  std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (!file) throw std::runtime_error("cannot open " + path + "; pass its folder as an argument");
  std::vector<std::vector<int>> rows;
  char line[1024];
  while (gzgets(file.get(), line, sizeof line) != nullptr) {
    std::vector<int>& row = rows.emplace_back();
    char* end = line;
    for (const char* at = line;; at = end + 1) {
      row.push_back(static_cast<int>(std::strtol(at, &end, 10)));
      if (*end != ',') break;
    }
    if (row.size() != kPixels + 1 || row.back() < 0 || row.back() > 9) {
      throw std::runtime_error(path + ": line " + std::to_string(rows.size()) + " is no digit");
    }
  }
  int status = Z_OK;
  const char* message = gzerror(file.get(), &status);
  if (status != Z_OK && status != Z_STREAM_END) throw std::runtime_error(path + ": " + message);
  return rows;
}

/// The images in a random order that is always the same.
Digits read_digits(const std::string& path) {
  std::vector<std::vector<int>> rows = read_lines(path);
  std::mt19937 generator(1);
  shuffle(rows, generator);
  Digits result;
  for (const std::vector<int>& row : rows) {
    for (std::size_t i = 0; i < kPixels; ++i) {
      result.pixels.push_back(static_cast<float>(row[i]) / 16.0f);
    }
    result.labels.push_back(row.back());
  }
  return result;
}

struct Layer {
  Shared w, b;
};

Layer make_layer(std::size_t inputs, std::size_t outputs, std::uint64_t seed) {
  const double spread = std::sqrt(2.0 / static_cast<double>(inputs));
  const std::string number = std::to_string(seed);
  return {shared(random_normal({inputs, outputs}, {.seed = seed, .stddev = spread}),
                 {.name = "w" + number}),
          shared(Array::zeros({outputs}), {.name = "b" + number})};
}

/// New values of the parameters and of their velocities.
std::vector<Update> momentum(const Variable& cost, const std::vector<Shared>& parameters,
                             const Variable& rate) {
  const std::vector<Variable> g =
      grad(cost, std::vector<Variable>(parameters.begin(), parameters.end()));
  std::vector<Update> updates;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Shared& p = parameters[i];
    Shared velocity = shared(Array::zeros(p.static_shape()), {.name = "v_" + p.name()});
    const Variable next = 0.9 * velocity - rate * g[i];
    updates.push_back({velocity, next});
    updates.push_back({p, p + next});
  }
  return updates;
}

double train_and_test(const Digits& digits) {
  const std::size_t held_out = digits.size() / 5, trained = digits.size() - held_out;
  const std::span<const float> pixels(digits.pixels);
  const std::span<const std::int64_t> labels(digits.labels);
  Shared train_x = shared(Array::from<float>(pixels.first(trained * kPixels), {trained, kPixels}),
                          {.name = "images"});
  Shared train_y = shared(Array::from<std::int64_t>(labels.first(trained)), {.name = "digits"});
  const Array test_x = Array::from<float>(pixels.subspan(trained * kPixels), {held_out, kPixels});
  const Array test_y = Array::from<std::int64_t>(labels.subspan(trained));

  const Layer first = make_layer(kPixels, 128, 1), second = make_layer(128, 64, 2);
  const Layer last = make_layer(64, kClasses, 3);
  Variable x = tensor("x", DType::float32, {kAnyDim, kPixels});
  Variable y = vector("y", DType::int64);
  Variable hidden = relu(dot(x, first.w) + first.b);
  hidden = relu(dot(hidden, second.w) + second.b);
  Variable probabilities = softmax(dot(hidden, last.w) + last.b);
  Variable cost = mean(categorical_crossentropy(probabilities, y));
  Variable right = eq(argmax(probabilities, 1), y);

  // The images stay where the network is; a call passes the numbers of those in its batch.
  Variable batch = vector("batch", DType::int64), rate = scalar("rate");
  Function train = function(
      {batch, rate}, {{"cost", cost}, {"right", mean(right)}},
      {.updates = momentum(cost, {first.w, first.b, second.w, second.b, last.w, last.b}, rate),
       .givens = {{x, train_x(batch)}, {y, train_y(batch)}},
       .name = "train"});
  Function test = function({x, y}, mean(right), {.name = "test"});

  std::vector<std::int64_t> order(trained);
  std::iota(order.begin(), order.end(), 0);
  std::mt19937 generator(2);
  double accuracy = 0;
  for (int epoch = 1; epoch <= kEpochs; ++epoch) {
    shuffle(order, generator);
    const float speed = 0.05f * static_cast<float>(kEpochs - epoch + 1) / kEpochs;
    double sum_cost = 0;
    int batches = 0;
    for (std::size_t at = 0; at + kBatch <= trained; at += kBatch, ++batches) {
      const Array rows = Array::from<std::int64_t>(std::span(order).subspan(at, kBatch));
      sum_cost += train(rows, speed)["cost"].item<float>();
    }
    accuracy = test(test_x, test_y)[0].item<float>();
    std::printf("epoch %2d  cost %.4f  held-out %.2f %%\n", epoch, sum_cost / batches,
                100 * accuracy);
    std::fflush(stdout);
  }
  return accuracy;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const auto start = std::chrono::steady_clock::now();
    const std::string folder = argc > 1 ? argv[1] : CROTON_SAMPLE_DATA;
    const Digits digits = read_digits(folder + "/digits.csv.gz");
    const double accuracy = train_and_test(digits);
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    std::printf("%zu held-out images: %.2f %% right after %.1f s\n", digits.size() / 5,
                100 * accuracy, time.count());
    return accuracy >= 0.96 ? 0 : 1;
  } catch (const std::exception& error) {
    std::cerr << "mlp: " << error.what() << '\n';
    return 1;
  }
}
