// Functions on two contexts beside one, and beside what two threads of this machine reach at all;
// in a process of their own, whose contexts have one thread each.
#include <croton/croton.h>
#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <oneapi/dnnl/dnnl.hpp>
#include <thread>

#include "tests/bench/bench.h"
#include "tests/child_output.h"

namespace croton::bench {
namespace {

struct Model {
  std::vector<Variable> inputs;
  Variable cost;
  std::vector<Shared> parameters;
  std::vector<Array> arguments;
  Optimizer rule() const { return sgd(cost, parameters, {.learning_rate = 1e-4f}); }
};

Array numbers(const Shape& shape, std::uint64_t seed) {
  const double most = 1 / std::sqrt(static_cast<double>(shape[shape.size() - 1]));
  return random_uniform(shape, {.seed = seed, .dtype = DType::float32, .low = -most, .high = most});
}

constexpr std::int64_t kRows = 2048, kWide = 512, kLayers = 3;

Model mlp(std::int64_t rows = kRows, std::int64_t wide = kWide, std::int64_t layers = kLayers) {
  Model m;
  const Variable x = matrix("x", DType::float32), t = matrix("t", DType::float32);
  Variable h = x;
  for (std::int64_t i = 0; i < layers; ++i) {
    m.parameters.push_back(shared(numbers({wide, wide}, static_cast<std::uint64_t>(i))));
    h = dot(h, m.parameters.back());
    if (i + 1 < layers) h = relu(h);
  }
  m.inputs = {x, t};
  m.cost = mean(square(h - t));
  m.arguments = {numbers({rows, wide}, 91), numbers({rows, wide}, 92)};
  return m;
}

constexpr std::int64_t kSequences = 512, kUnits = 256, kSteps = 6;

Model lstm() {
  Model m;
  const Variable x = tensor3("x", DType::float32), t = matrix("t", DType::float32);
  const Shared w = shared(numbers({kUnits, 4 * kUnits}, 1));
  const Shared u = shared(numbers({kUnits, 4 * kUnits}, 2));
  const Shared b = shared(numbers({4 * kUnits}, 3));
  Variable h = zeros(Sizes{x.shape(0), kUnits}), c = zeros(Sizes{x.shape(0), kUnits});
  for (int step = 0; step < kSteps; ++step) {
    const Variable z = dot(x(Slice(), step), w) + dot(h, u) + b;
    const auto gate = [&](int k) { return z(Slice(), Slice(k * kUnits, (k + 1) * kUnits)); };
    c = sigmoid(gate(0)) * c + sigmoid(gate(1)) * tanh(gate(2));
    h = sigmoid(gate(3)) * tanh(c);
  }
  m.inputs = {x, t};
  m.cost = mean(square(h - t));
  m.parameters = {w, u, b};
  m.arguments = {numbers({kSequences, kSteps, kUnits}, 4), numbers({kSequences, kUnits}, 5)};
  return m;
}

DataParallel on_contexts(const Model& m, std::vector<std::string> contexts, bool train = true,
                         std::optional<Config> config = {}) {
  DataParallelOptions options{.contexts = std::move(contexts), .config = std::move(config)};
  if (train) options.updates = m.rule();
  return data_parallel({m.inputs.begin(), m.inputs.end()}, {{"cost", m.cost}}, options);
}

/// What a layer's products and a loop over what it gives take in plain code: forward, and backward
/// with respect to weights and values, `times` times. `rows` is how many this thread has.
class PlainLayer {
 public:
  PlainLayer(std::int64_t rows, std::int64_t in, std::int64_t out, std::int64_t times)
      : rows_(rows), in_(in), out_(out), times_(times), x_(size(rows, in)), w_(size(in, out)) {
    y_.resize(size(rows, out));
  }
  void run() {
    omp_set_num_threads(1);
    for (std::int64_t i = 0; i < times_; ++i) {
      dnnl_sgemm('N', 'N', rows_, out_, in_, 1, x_.data(), in_, w_.data(), out_, 0, y_.data(),
                 out_);
      for (float& y : y_) y = y / (1.0f + std::abs(y));
      dnnl_sgemm('T', 'N', in_, out_, rows_, 1, x_.data(), in_, y_.data(), out_, 0, w_.data(),
                 out_);
      dnnl_sgemm('N', 'T', rows_, in_, out_, 1, y_.data(), out_, w_.data(), out_, 0, x_.data(),
                 in_);
      for (float& x : x_) x = x / (1.0f + std::abs(x));
    }
  }

 private:
  static std::size_t size(std::int64_t a, std::int64_t b) {
    return static_cast<std::size_t>(a * b);
  }
  std::int64_t rows_, in_, out_, times_;
  std::vector<float> x_, w_, y_;
};

nlohmann::json json_of(const Times& t) { return {t.min, t.median, t.repeats}; }
Times times_from(const nlohmann::json& j) { return {j[0], j[1], j[2]}; }

nlohmann::json json_of(const Row& row) {
  nlohmann::json j = {
      {"name", row.name}, {"times", json_of(row.times)},    {"amount", row.amount},
      {"unit", row.unit}, {"floor_ratio", row.floor_ratio}, {"floor_seconds", row.floor_seconds},
      {"note", row.note}};
  if (row.limit) {
    j["limit"] = {row.limit->name, json_of(row.limit->times), row.limit->amount};
  }
  return j;
}

Row row_from(const nlohmann::json& j) {
  Row row{j["name"], times_from(j["times"]), j["amount"], j["unit"]};
  if (j.contains("limit")) {
    row.limit = Limit{j["limit"][0], times_from(j["limit"][1]), j["limit"][2]};
  }
  row.floor_ratio = j["floor_ratio"];
  row.floor_seconds = j["floor_seconds"];
  row.note = j["note"];
  return row;
}

/// One context, two, and the plain layer on one thread and on two, in turns.
void add_reach(const Options& options, const std::string& name, const std::function<Model()>& make,
               PlainLayer all, PlainLayer half, nlohmann::json& rows) {
  const Model plain_model = make(), one_model = make(), two_model = make();
  const Function plain =
      function(plain_model.inputs, {{"cost", plain_model.cost}}, {.updates = plain_model.rule()});
  const DataParallel one = on_contexts(one_model, {"dev0"});
  const DataParallel two = on_contexts(two_model, {"dev0", "dev1"});
  PlainLayer other_half = half;
  Turns turns(options.repeats());
  const auto in_plain = turns.add([&] { plain.call(plain_model.arguments); });
  const auto on_one = turns.add([&] { one.call(one_model.arguments); });
  const auto on_two = turns.add([&] { two.call(two_model.arguments); });
  const auto thread = turns.add([&] { all.run(); });
  const auto threads = turns.add([&] {
    std::thread other([&] { other_half.run(); });
    half.run();
    other.join();
  });
  turns.run();
  const auto ratio = [&](std::size_t a, std::size_t b, double Times::*which) {
    return turns.times(a).*which / (turns.times(b).*which);
  };
  Row single{name + ", one context", turns.times(on_one)};
  single.limit = Limit{"function()", turns.times(in_plain)};
  single.floor_ratio = 1 / 1.02;
  rows.push_back(json_of(single));
  Row row{name + ", two contexts", turns.times(on_two)};
  Times ceiling = turns.times(on_one);
  ceiling.min /= ratio(thread, threads, &Times::min);
  ceiling.median /= ratio(thread, threads, &Times::median);
  row.limit = Limit{"two threads", ceiling};
  row.floor_ratio = 0.95;
  row.note = fmt::format(
      "x {:.3f} of one context (median {:.3f}), where plain loops reach x {:.3f} "
      "({:.3f}) on two threads",
      ratio(on_one, on_two, &Times::min), ratio(on_one, on_two, &Times::median),
      ratio(thread, threads, &Times::min), ratio(thread, threads, &Times::median));
  rows.push_back(json_of(row));
}

/// A link on which what a step sends takes half as long as the backward pass.
void add_hidden(const Options& options, nlohmann::json& rows) {
  constexpr std::int64_t kLatency = 20;
  const Model m = mlp(1024, 512, 12);
  const std::vector<std::string> contexts = {"dev0", "dev1"};
  const Config fast = current_config().with("link_bandwidth", std::int64_t{1} << 50);
  const DataParallel forward = on_contexts(m, contexts, false, fast);
  const DataParallel unhindered = on_contexts(m, contexts, true, fast);
  Turns first(5);
  const auto costs = first.add([&] { forward.call(m.arguments); });
  const auto steps = first.add([&] { unhindered.call(m.arguments); });
  first.run();
  const double backward = first.times(steps).median - first.times(costs).median;
  const auto statistics = unhindered.statistics();
  const double bytes = static_cast<double>(statistics.bytes_copied) / 2;
  const double waits = 1e-6 * kLatency * statistics.messages / 2;
  const double wanted = std::max(backward / 2 - waits, 1e-4);
  const Config slow = current_config()
                          .with("link_latency_us", kLatency)
                          .with("link_bandwidth", static_cast<std::int64_t>(bytes / wanted));
  const DataParallel throttled = on_contexts(m, contexts, true, slow);
  Turns turns(options.repeats());
  const auto without = turns.add([&] { unhindered.call(m.arguments); });
  const auto with = turns.add([&] { throttled.call(m.arguments); });
  turns.run();
  const double messages = throttled.statistics().messages / 2.0;
  const double sending = wanted + 1e-6 * kLatency * messages;
  const auto hidden = [&](double Times::*which) {
    return 1 - (turns.times(with).*which - turns.times(without).*which) / sending;
  };
  Row row{"mlp, two contexts, slow link", turns.times(with)};
  row.limit = Limit{"as fast as it goes", turns.times(without)};
  row.floor_seconds = turns.times(without).min + 0.15 * sending;
  row.note = fmt::format(
      "{:.3f} of {:.2f} ms of sending is hidden (median {:.3f}); backward {:.2f} ms, {} messages "
      "of {:.2f} MiB in all each way",
      hidden(&Times::min), 1e3 * sending, hidden(&Times::median), 1e3 * backward, messages,
      bytes / (1 << 20));
  rows.push_back(json_of(row));
}

void add_all_reduce(const Options& options, nlohmann::json& rows) {
  for (const std::int64_t kilobytes : {1, 16, 256, 4096, 65536}) {
    const std::int64_t n = kilobytes * 256;
    std::vector<Shared> from, to;
    for (const char* context : {"dev0", "dev1"}) {
      from.push_back(shared(numbers({n}, from.size()), {.target = context}));
      to.push_back(shared(Array::zeros({n}, DType::float32), {.target = context}));
    }
    const std::vector<Variable> sums = all_reduce({from[0], from[1]});
    const Function f = function({}, {}, {.updates = {{to[0], sums[0]}, {to[1], sums[1]}}});
    std::vector<float> a(static_cast<std::size_t>(n)), b(a.size());
    Turns turns(options.repeats());
    const auto ours = turns.add([&] { f(); });
    const auto copies = turns.add([&] { std::memcpy(b.data(), a.data(), 4 * b.size()); });
    turns.run();
    const auto bytes = static_cast<double>(4 * n);
    Row row{fmt::format("all_reduce of {} KiB on two contexts", kilobytes), turns.times(ours),
            bytes, "GB/s"};
    row.limit = Limit{"memcpy", turns.times(copies), bytes};
    rows.push_back(json_of(row));
  }
}

}  // namespace

int measure_in_this_process(const Options& options) {
  nlohmann::json rows = nlohmann::json::array();
  add_reach(
      options, "mlp", [] { return mlp(); }, {kRows, kWide, kWide, kLayers},
      {kRows / 2, kWide, kWide, kLayers}, rows);
  add_reach(options, "lstm", lstm, {kSequences, 2 * kUnits, 4 * kUnits, kSteps},
            {kSequences / 2, 2 * kUnits, 4 * kUnits, kSteps}, rows);
  add_hidden(options, rows);
  add_all_reduce(options, rows);
  fmt::print("{}\n", rows.dump());
  return 0;
}

void measure_parallel(const Options& options, Report& report) {
  report.section("training on two contexts of the CPU, one thread each");
  if (std::thread::hardware_concurrency() < 2) {
    report.note("left out: this machine has one core");
    return;
  }
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string command = fmt::format(
      "CROTON_FLAGS='contexts=dev0->cpu;dev1->cpu,threads=1,cache=off' '{}' --parallel{}", program,
      options.quick ? " --quick" : "");
  for (const auto& row : nlohmann::json::parse(test::output_of(command))) {
    report.add(row_from(row));
  }
}

}  // namespace croton::bench
