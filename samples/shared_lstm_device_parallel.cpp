// One LSTM reads two sequences, one on each context; what it makes of them is joined on the CPU and
// trained on. The same on one context alone gives the same numbers, bit by bit.
//
//   CROTON_FLAGS="contexts=dev0->cuda0;dev1->cuda1" ./shared_lstm_device_parallel
//   CROTON_FLAGS="contexts=dev0->cpu;dev1->cpu" ./shared_lstm_device_parallel
//
// Contexts are taken in turn: with one name both sequences are read there.
#include <croton/croton.h>

#include <iostream>
#include <string>
#include <vector>

using namespace croton;

namespace {

constexpr int kTime = 4, kRows = 16, kInputs = 6, kHidden = 8, kSteps = 25;

/// The weights, which live on the host.
struct Lstm {
  Shared input = shared(random_normal({kInputs, 4 * kHidden}, {.seed = 1, .stddev = 0.3}),
                        {.name = "input", .target = "cpu"});
  Shared hidden = shared(random_normal({kHidden, 4 * kHidden}, {.seed = 2, .stddev = 0.3}),
                         {.name = "hidden", .target = "cpu"});
  Shared bias = shared(Array::zeros({4 * kHidden}), {.name = "bias", .target = "cpu"});
  Shared output = shared(random_normal({2 * kHidden}, {.seed = 3, .stddev = 0.3}),
                         {.name = "output", .target = "cpu"});

  /// The last state for a sequence (time, rows, inputs), computed on a context.
  Variable read(const Variable& sequence, const std::string& context) const {
    const ContextScope on(context);
    // One copy of the weights for all steps, and one gradient that goes back.
    const Variable w = input.transfer(context), u = hidden.transfer(context);
    const Variable b = bias.transfer(context);
    Variable h = zeros({kRows, kHidden}), c = zeros({kRows, kHidden});
    for (int t = 0; t < kTime; ++t) {
      const Variable gates = dot(sequence(t), w) + dot(h, u) + b;
      const auto gate = [&](int k) {
        return gates(Slice(), Slice(k * kHidden, (k + 1) * kHidden));
      };
      c = sigmoid(gate(0)) * c + sigmoid(gate(1)) * tanh(gate(2));
      h = sigmoid(gate(3)) * tanh(c);
    }
    return h;
  }
};

/// The losses of all steps, and the weights behind them.
std::vector<Array> train(const std::string& left, const std::string& right) {
  const Lstm lstm;
  const Shape shape({kTime, kRows, kInputs});
  const Shared a = shared(random_normal(shape, {.seed = 4}), {.name = "a", .target = left});
  const Shared b = shared(random_normal(shape, {.seed = 5}), {.name = "b", .target = right});
  Variable loss;
  const Variable read_a = lstm.read(a, left), read_b = lstm.read(b, right);
  {
    const ContextScope on("cpu");
    const Variable both = concatenate({read_a, read_b}, 1);
    // Which sequence has the larger sum?
    const Variable target = cast(gt(sum(a, {0, 2}), sum(b, {0, 2})), DType::float32);
    loss = mean(binary_crossentropy(sigmoid(dot(both, lstm.output)), target));
  }
  std::vector<Update> updates;
  const std::vector<Shared> weights{lstm.input, lstm.hidden, lstm.bias, lstm.output};
  const std::vector<Variable> g = grad(loss, {lstm.input, lstm.hidden, lstm.bias, lstm.output});
  for (std::size_t k = 0; k < weights.size(); ++k) {
    updates.push_back({weights[k], weights[k] - 0.5f * g[k]});
  }
  // The sums of products, too, in one order for all numbers of threads.
  const Function step = function(
      {}, loss,
      {.updates = updates, .name = "step", .config = current_config().with("deterministic", true)});
  std::vector<Array> results;
  for (int i = 0; i < kSteps; ++i) results.push_back(step()[0]);
  for (const Shared& w : weights) results.push_back(w.get_value());
  return results;
}

int run() {
  const ContextMap bound = current_config().contexts();
  const std::string left = bound.empty() ? "cpu" : bound[0].name;
  const std::string right = bound.size() < 2 ? left : bound[1].name;
  const std::vector<Array> single = train(left, left), parallel = train(left, right);
  std::cout << "loss on " << left << " and " << right << ": " << parallel[0] << " before, "
            << parallel[kSteps - 1] << " after " << kSteps << " steps\n";
  bool equal = true;
  for (std::size_t k = 0; k < single.size(); ++k) {
    equal = equal && array_equal(single[k], parallel[k]);
  }
  std::cout << (equal ? "the same as on " : "NOT the same as on ") << left << " alone, "
            << "bit by bit: " << single.size() << " arrays\n";
  return equal ? 0 : 1;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const Error& error) {
    std::cerr << "shared_lstm_device_parallel: " << error.what() << '\n';
    return 1;
  }
}
