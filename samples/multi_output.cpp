// A network with two named heads on one body: from the image of a digit, one tells the digit, the
// other whether it is even. Each head has a loss and a weight of its own; adam trains both. The
// parameters and the optimizer's state are saved half way and loaded again, and training goes on as
// if nothing had happened.
//
//   ./multi_output [FOLDER with digits.csv.gz]
//
// Ends with status 1 when a head is right on less than 95 % of the images that were not trained on.
#include <croton/croton.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

using namespace croton;

namespace {

constexpr std::size_t kPixels = 64;
constexpr int kEpochs = 60;

/// Images of 8 by 8 pixels from 0 to 16 and the digits that they show, a line each; those of every
/// fifth line come last.
struct Digits {
  std::vector<float> pixels;  // row-major, 0 to 1
  std::vector<std::int64_t> labels;

  explicit Digits(const std::string& path) {
    read(path, false);
    read(path, true);
  }

 private:
  void read(const std::string& path, bool fifths) {
    std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
    if (!file) throw std::runtime_error("cannot open " + path + "; pass its folder as an argument");
    std::array<char, 1024> line;
    for (int n = 1; gzgets(file.get(), line.data(), line.size()) != nullptr; ++n) {
      if ((n % 5 == 0) != fifths) continue;
      char* at = line.data();
      for (std::size_t i = 0; i < kPixels; ++i, ++at) {
        pixels.push_back(static_cast<float>(std::strtol(at, &at, 10)) / 16.0f);
      }
      labels.push_back(std::strtol(at, nullptr, 10));
    }
  }
};

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
  const std::size_t rows = digits.labels.size(), trained = rows - rows / 5;
  const Array images = Array::from<float>(digits.pixels, {rows, kPixels});
  const Array labels = Array::from<std::int64_t>(digits.labels);
  std::vector<float> even;
  for (const std::int64_t digit : digits.labels) even.push_back(digit % 2 == 0 ? 1.0f : 0.0f);
  const Array parities = Array::from<float>(even, {rows, 1});

  const Layer body("body", kPixels, 96, 1), which("which", 96, 10, 2), parity("parity", 96, 1, 3);
  const Variable x = tensor("x", DType::float32, {kAnyDim, kPixels});
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
  const std::vector<Variable> inputs = {x, model.target("digit"), model.target("even")};
  const Function train =
      function(inputs, model.reported(), {.updates = optimizer, .name = "train"});
  const Function test = function(inputs, model.reported(), {.name = "test"});

  std::vector<Shared> all = optimizer.state;
  all.insert(all.end(), parameters.begin(), parameters.end());
  const std::string file =
      (std::filesystem::temp_directory_path() / "croton_multi_output.safetensors").string();
  const auto rows_of = [&](const Function& f, std::size_t from, std::size_t to) {
    const auto part = [&](const Array& a) {
      return a.slice(0, static_cast<std::int64_t>(from), static_cast<std::int64_t>(to));
    };
    return f(part(images).contiguous(), part(labels).contiguous(), part(parities).contiguous());
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
    std::cerr << "multi_output: " << error.what() << '\n';
    return 1;
  }
}
