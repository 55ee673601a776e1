// A network with two named heads on one body: from the image of a digit, one tells the digit, the
// other whether it is even. Each head has a loss and a weight of its own; adam trains both, on all
// contexts that the flag `contexts` names, each with its rows of every batch. The parameters and
// the optimizer's state are saved half way and loaded again, and training goes on as if nothing had
// happened.
//
//   ./multi_output_data_parallel [FOLDER with digits.csv.gz]
//
// Ends with status 1 when a head is right on less than 95 % of the images that were not trained on.
#include <croton/croton.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "digits.h"

using namespace croton;

namespace {

constexpr int kEpochs = 60;

struct Layer {
  Shared w, b;
  Layer(const std::string& name, std::size_t inputs, std::size_t outputs, std::uint64_t seed)
      : w(shared(random_normal({inputs, outputs},
                               {.seed = seed, .stddev = std::sqrt(2.0 / double(inputs))}),
                 {.name = name + ".w"})),
        b(shared(Array::zeros({outputs}), {.name = name + ".b"})) {}
  Variable operator()(const Variable& x) const { return dot(x, w) + b; }
};

int run(const std::string& folder) {
  const Digits digits(folder + "/digits.csv.gz");
  const std::size_t rows = digits.rows, trained = digits.trained;
  const Array& images = digits.images;
  const Array& labels = digits.labels;
  std::vector<float> even;
  for (const std::int64_t digit : labels.to_vector<std::int64_t>())
    even.push_back(digit % 2 == 0 ? 1.0f : 0.0f);
  const Array parities = Array::from<float>(even, {rows, 1});

  const Layer body("body", Digits::kPixels, 96, 1), which("which", 96, 10, 2),
      parity("parity", 96, 1, 3);
  const Variable x = tensor("x", DType::float32, {kAnyDim, Digits::kPixels});
  const Variable hidden = relu(body(x));
  const NamedLosses model = named_losses(
      {{"digit", softmax(which(hidden))}, {"even", sigmoid(parity(hidden))}},
      {.loss = {{"digit", "sparse_categorical_crossentropy"}, {"even", "binary_crossentropy"}},
       .loss_weights = {{"digit", 1.0}, {"even", 0.5}},
       .metrics = {"accuracy"},
       .regularisation = {1e-4f * (sum(square(body.w)) + sum(square(which.w)))}});

  const std::vector<Shared> parameters = {body.w, body.b, which.w, which.b, parity.w, parity.b};
  const Shared rate = shared(Array(0.01), {.name = "rate"});
  const std::vector<Variable> slopes = parameter_gradients(model.total, parameters);
  const Optimizer optimizer =
      adam(clip_by_global_norm(slopes, 5.0), parameters, {.learning_rate = rate});
  const std::vector<ParallelInput> inputs = {x, model.target("digit"), model.target("even")};
  const OutputList reported = model.reported();
  const std::vector<ParallelOutput> outputs(reported.list.begin(), reported.list.end());
  const DataParallel train =
      data_parallel(inputs, outputs, {.updates = optimizer, .name = "train"});
  const DataParallel test = data_parallel(inputs, outputs, {.name = "test"});
  std::printf("%zu contexts\n", train.contexts().size());

  std::vector<Shared> all = optimizer.state;
  all.insert(all.end(), parameters.begin(), parameters.end());
  const std::string file = (std::filesystem::temp_directory_path() /
                            ("croton_multi_output_" + std::to_string(getpid()) + ".safetensors"))
                               .string();
  const auto rows_of = [&](const DataParallel& f, std::size_t from, std::size_t to) {
    const Rows batch(static_cast<std::int64_t>(from), static_cast<std::int64_t>(to));
    return f.call({images, labels, parities}, {.batch = batch});
  };

  for (int epoch = 1; epoch <= kEpochs; ++epoch) {
    if (epoch == kEpochs / 2) {
      save_parameters(file, all);
      for (const Shared& s : all) s.set_value(Array::zeros(s.static_shape(), s.dtype()));
      load_parameters(file, all);
      std::filesystem::remove(file);
      std::printf("saved and loaded %zu variables after %lld steps\n", all.size(),
                  static_cast<long long>(optimizer.state[0].get_value().item<std::int64_t>()));
      rate.set_value(Array(0.003));
    }
    Outputs out;
    for (std::size_t at = 0; at < trained; at += 128) {
      out = rows_of(train, at, std::min(at + 128, trained));
    }
    if (epoch % 10 != 0 && epoch != 1) continue;
    std::printf("epoch %2d", epoch);
    for (std::size_t i = 0; i < out.size(); ++i) {
      std::printf("  %s %.3f", std::string(out.name(i)).c_str(), out[i].item<float>());
    }
    std::printf("\n");
  }

  const Outputs out = rows_of(test, trained, rows);
  const float digit = out["digit_accuracy"].item<float>(),
              even_right = out["even_accuracy"].item<float>();
  std::printf("%zu held-out images: digit %.2f %% right, even %.2f %% right\n", rows - trained,
              100 * digit, 100 * even_right);
  return digit >= 0.95f && even_right >= 0.95f ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? argv[1] : CROTON_SAMPLE_DATA);
  } catch (const std::exception& error) {
    std::cerr << "multi_output_data_parallel: " << error.what() << '\n';
    return 1;
  }
}
