// Tells benign from malignant tumours by logistic regression: the smallest program that trains.
//
//   ./logistic_regression [FOLDER with breast_cancer.csv]
//
// Ends with status 1 when the accuracy on rows that were not trained on is below 95 %.
#include <croton/croton.h>

#include <cstdio>
#include <fstream>
#include <iostream>
#include <random>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

using namespace croton;

namespace {

constexpr std::size_t kFeatures = 30;

struct Rows {
  std::vector<float> features;  // row-major
  std::vector<float> labels;
  std::size_t size() const { return labels.size(); }
};

/// The file's rows in a random order that is always the same.
Rows read_rows(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot open " + path + "; pass its folder as an argument");
  std::string line;
  std::getline(file, line);
  std::vector<std::vector<float>> rows;
  while (std::getline(file, line)) {
    std::istringstream cells(line);
    std::vector<float>& row = rows.emplace_back();
    for (std::string cell; std::getline(cells, cell, ',');) row.push_back(std::stof(cell));
    if (row.size() != kFeatures + 1) {
      throw std::runtime_error(path + ": line " + std::to_string(rows.size() + 1) + " has " +
                               std::to_string(row.size()) + " cells, not 31");
    }
  }
  std::mt19937 generator(7);
  for (std::size_t i = rows.size(); i > 1; --i) std::swap(rows[i - 1], rows[generator() % i]);
  Rows result;
  for (const std::vector<float>& row : rows) {
    result.features.insert(result.features.end(), row.begin(), row.end() - 1);
    result.labels.push_back(row.back());
  }
  return result;
}

Array features_of(const Rows& rows, std::size_t first, std::size_t last) {
  return Array::from<float>(
      std::span(rows.features).subspan(first * kFeatures, (last - first) * kFeatures),
      {last - first, kFeatures});
}

Array labels_of(const Rows& rows, std::size_t first, std::size_t last) {
  return Array::from<float>(std::span(rows.labels).subspan(first, last - first));
}

double train_and_test(const Rows& rows) {
  const std::size_t held_out = rows.size() / 5, trained = rows.size() - held_out;
  const Array train_x = features_of(rows, 0, trained), train_y = labels_of(rows, 0, trained);
  const Array test_x = features_of(rows, trained, rows.size());
  const Array test_y = labels_of(rows, trained, rows.size());

  // Features are standardised by what the training rows have.
  Variable raw = tensor("raw", DType::float32, {kAnyDim, kFeatures});
  Outputs moments = function({raw}, {mean(raw, 0), croton::std(raw, 0)})(train_x);

  Shared w = shared(Array::zeros({kFeatures}), {.name = "w"});
  Shared b = shared(0.0f, {.name = "b"});
  Variable y = vector("y");
  Variable x = (raw - moments[0]) / moments[1];
  Variable probability = sigmoid(dot(x, w) + b);
  Variable cost = mean(binary_crossentropy(probability, y)) + 0.001 * sum(square(w));
  std::vector<Variable> g = grad(cost, {w, b});
  Function train = function(
      {raw, y}, cost, {.updates = {{w, w - 0.5 * g[0]}, {b, b - 0.5 * g[1]}}, .name = "train"});
  Variable right = eq(gt(probability, 0.5), gt(y, 0.5));
  Function accuracy = function({raw, y}, mean(right), {.name = "accuracy"});

  for (int step = 0; step <= 200; ++step) {
    const float value = train(train_x, train_y)[0].item<float>();
    if (step % 50 == 0) std::printf("step %3d  cost %.4f\n", step, value);
  }
  const double train_accuracy = accuracy(train_x, train_y)[0].item<float>();
  const double test_accuracy = accuracy(test_x, test_y)[0].item<float>();
  std::printf("%zu training rows: %.2f %% right\n", trained, 100 * train_accuracy);
  std::printf("%zu held-out rows: %.2f %% right\n", held_out, 100 * test_accuracy);
  return test_accuracy;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::string folder = argc > 1 ? argv[1] : CROTON_SAMPLE_DATA;
    return train_and_test(read_rows(folder + "/breast_cancer.csv")) >= 0.95 ? 0 : 1;
  } catch (const std::exception& error) {
    std::cerr << "logistic_regression: " << error.what() << '\n';
    return 1;
  }
}
