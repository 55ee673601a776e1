// Training on several contexts gives what one device gives: bit for bit where sums are exact, else
// up to the rounding of sums.
#include <catch2/catch.hpp>
#include <functional>

#include "tests/parallel/parallel.h"

using namespace croton;
using namespace croton::test;

namespace {

/// A model in one of its copies: inputs, what it reports, and parameters.
struct Model {
  std::vector<ParallelInput> inputs;
  Variable cost;
  std::vector<Shared> parameters;
  std::vector<Array> arguments;
};

using Maker = std::function<Model(int rows)>;

Model linear(int rows) {
  const Variable x = matrix("x"), t = vector("t");
  const Shared w = shared(whole_numbers({5}, 1), {.name = "w"});
  const Shared b = shared(Array(2.0f), {.name = "b"});
  return {{x, t},
          sum(square(dot(x, w) + b - t)),
          {w, b},
          {whole_numbers({rows, 5}, 2), whole_numbers({rows}, 3)}};
}

Model mlp(int rows) {
  const Variable x = matrix("x"), t = vector("t", DType::int64);
  const Shared w = shared(numbers({6, 9}, 1), {.name = "w"}),
               b = shared(numbers({9}, 2), {.name = "b"});
  const Shared v = shared(numbers({9, 4}, 3), {.name = "v"}),
               c = shared(numbers({4}, 4), {.name = "c"});
  const Variable cost = mean(cross_entropy_from_logits(dot(tanh(dot(x, w) + b), v) + c, t)) +
                        0.01f * (sum(square(w)) + sum(square(v)));
  std::vector<std::int64_t> labels;
  for (int i = 0; i < rows; ++i) labels.push_back(i * 7 % 4);
  return {{x, t}, cost, {w, b, v, c}, {numbers({rows, 6}, 5), Array::from<std::int64_t>(labels)}};
}

/// The sequence is the second axis.
Model lstm(int rows) {
  constexpr int kSteps = 3, kInputs = 4, kUnits = 5;
  const Variable x = tensor3("x"), t = matrix("t");
  const Shared w = shared(numbers({kInputs, 4 * kUnits}, 1), {.name = "w"});
  const Shared u = shared(numbers({kUnits, 4 * kUnits}, 2), {.name = "u"});
  const Shared b = shared(numbers({4 * kUnits}, 3), {.name = "b"});
  Variable h = zeros(Sizes{x.shape(0), kUnits});
  Variable c = zeros(Sizes{x.shape(0), kUnits});
  for (int step = 0; step < kSteps; ++step) {
    const Variable z = dot(x(Slice(), step), w) + dot(h, u) + b;
    const auto gate = [&](int k) { return z(Slice(), Slice(k * kUnits, (k + 1) * kUnits)); };
    c = sigmoid(gate(0)) * c + sigmoid(gate(1)) * tanh(gate(2));
    h = sigmoid(gate(3)) * tanh(c);
  }
  return {{x, t},
          mean(square(h - t)),
          {w, u, b},
          {numbers({rows, kSteps, kInputs}, 4), numbers({rows, kUnits}, 5)}};
}

/// Rows of a table, some of them several times.
Model embedding(int rows) {
  const Variable words = matrix("words", DType::int64), t = matrix("t");
  const Shared table = shared(whole_numbers({7, 3}, 1), {.name = "table"});
  std::vector<std::int64_t> list;
  for (int i = 0; i < 2 * rows; ++i) list.push_back(i * i % 7);
  return {{words, t},
          sum(square(sum(table(words), 1) - t)),
          {table},
          {Array::from<std::int64_t>(list, {rows, 2}), whole_numbers({rows, 3}, 2)}};
}

/// A statistic of the whole batch in the middle, and each row's own.
Model normalised(int rows) {
  const Variable x = matrix("x");
  const Shared w = shared(numbers({6, 5}, 1), {.name = "w"}),
               g = shared(numbers({5}, 2), {.name = "g"});
  const Variable h = dot(x, w);
  const Variable over_rows = (h - mean(h, 0)) / sqrt(var(h, 0) + 1e-3f);
  return {{x},
          mean(logsumexp(softmax(over_rows * g, 1), 1)) + max(h) - min(h),
          {w, g},
          {numbers({rows, 6}, 3)}};
}

const std::vector<std::pair<const char*, Maker>>& models() {
  static const std::vector<std::pair<const char*, Maker>> list{{"linear", linear},
                                                               {"mlp", mlp},
                                                               {"lstm", lstm},
                                                               {"embedding", embedding},
                                                               {"normalised", normalised}};
  return list;
}

using Rule = std::function<Optimizer(const Variable& cost, const std::vector<Shared>&)>;

const std::vector<std::pair<const char*, Rule>>& rules() {
  static const std::vector<std::pair<const char*, Rule>> list{
      {"sgd",
       [](const Variable& cost, const auto& p) { return sgd(cost, p, {.learning_rate = 0.125f}); }},
      {"momentum",
       [](const Variable& cost, const auto& p) {
         return momentum(cost, p, {.learning_rate = 0.125f, .momentum = 0.5});
       }},
      {"adam", [](const Variable& cost, const auto& p) { return adam(cost, p); }}};
  return list;
}

std::vector<Variable> symbols(const Model& model) {
  std::vector<Variable> list;
  for (const ParallelInput& input : model.inputs) list.push_back(input.value);
  return list;
}

std::vector<Array> values(const std::vector<Shared>& shareds) {
  std::vector<Array> list;
  for (const Shared& s : shareds) list.push_back(s.get_value());
  return list;
}

/// What training on one device and on several gives: the cost before each step, parameters after.
struct Runs {
  std::vector<Array> one, several;
  FunctionStatistics statistics;
};

Runs train(const Maker& make, const Rule& rule, int rows, int contexts, int steps, int slices) {
  Runs runs;
  {
    const Model model = make(rows);
    const Function f = function(symbols(model), {{"cost", model.cost}},
                                {.updates = rule(model.cost, model.parameters)});
    for (int i = 0; i < steps; ++i) runs.one.push_back(f.call(model.arguments)["cost"]);
    for (Array& v : values(model.parameters)) runs.one.push_back(v);
  }
  const Model model = make(rows);
  const DataParallel f = data_parallel(
      model.inputs, {{"cost", model.cost}},
      {.contexts = first_contexts(contexts), .updates = rule(model.cost, model.parameters)});
  for (int i = 0; i < steps; ++i) {
    runs.several.push_back(f.call(model.arguments, {.num_slices = slices})["cost"]);
  }
  for (Array& v : values(model.parameters)) runs.several.push_back(v);
  runs.statistics = f.statistics();
  CHECK(f.computed_by_all().empty());
  return runs;
}

}  // namespace

TEST_CASE("a step of training on several contexts is that of one device", "[exhaustive]") {
  for (const auto& [name, make] : models()) {
    for (const auto& [rule_name, rule] : rules()) {
      for (const int contexts : {1, 2, 3, 4, 8}) {
        for (const int rows : {8, 11}) {
          INFO(name << " with " << rule_name << " on " << contexts << " contexts, " << rows
                    << " rows");
          const Runs runs = train(make, rule, rows, contexts, 1, 1);
          for (std::size_t i = 0; i < runs.one.size(); ++i) {
            // Sums of at most 11 * 7 terms, and of at most 20 on the way to each of them.
            CHECK(within(runs.several[i], runs.one[i], 2 * 97 * 0x1p-24 * 8));
          }
        }
      }
    }
  }
}

TEST_CASE("sums that are exact give the bits of one device", "[exhaustive]") {
  for (const auto& [name, make] : {models()[0], models()[3]}) {
    for (const int contexts : {1, 2, 3, 4, 8}) {
      for (const int rows : {1, 2, 3, 5, 7, 8, 9, 10, 33}) {
        for (const int slices : {1, 2, 3, 7}) {
          INFO(name << " on " << contexts << " contexts, " << rows << " rows in " << slices);
          const Runs runs = train(make, rules()[0].second, rows, contexts, 1, slices);
          for (std::size_t i = 0; i < runs.one.size(); ++i) {
            CHECK(array_equal(runs.several[i], runs.one[i]));
          }
        }
      }
    }
  }
}

TEST_CASE("each model on two contexts, in slices", "[data_parallel]") {
  for (const auto& [name, make] : models()) {
    INFO(name);
    const Runs runs = train(make, rules()[1].second, 11, 2, 2, 2);
    for (std::size_t i = 0; i < runs.one.size(); ++i) {
      CHECK(within(runs.several[i], runs.one[i], 2 * 2 * 97 * 0x1p-24 * 8));
    }
  }
}

TEST_CASE("twenty steps stay close to those of one device", "[data_parallel]") {
  const Runs runs = train(mlp, rules()[1].second, 257, 4, 20, 1);
  for (std::size_t i = 0; i < runs.one.size(); ++i) {
    CHECK(within(runs.several[i], runs.one[i], 20 * 2 * 257 * 0x1p-24));
  }
}

TEST_CASE("all contexts have the same parameters after each step", "[data_parallel]") {
  const Model model = mlp(10);
  const Shared& w = model.parameters[0];
  const DataParallel train = data_parallel(
      model.inputs, {{"cost", model.cost}},
      {.contexts = first_contexts(3), .updates = rules()[2].second(model.cost, model.parameters)});
  const DataParallel look =
      data_parallel({model.inputs[0]}, {{"w", w, Combine::gather}},
                    {.contexts = first_contexts(3), .on_unused = OnUnused::ignore});
  for (int step = 0; step < 5; ++step) {
    train.call(model.arguments);
    const Array all = look(model.arguments[0])["w"];
    REQUIRE(all.shape() == Shape{18, 9});
    for (int c = 0; c < 3; ++c) {
      CHECK(array_equal(all.slice(0, 6 * c, 6 * c + 6).contiguous(), w.get_value()));
    }
  }
}

TEST_CASE("parameters travel once, and stay", "[data_parallel]") {
  const Model model = mlp(12);
  const DataParallel train = data_parallel(
      model.inputs, {{"cost", model.cost}},
      {.contexts = first_contexts(2), .updates = rules()[0].second(model.cost, model.parameters)});
  train.call(model.arguments);
  const FunctionStatistics first = train.statistics();
  for (int step = 0; step < 3; ++step) train.call(model.arguments);
  const FunctionStatistics later = train.statistics();
  CHECK(first.refreshed_shareds > 0);
  CHECK(later.refreshed_shareds == first.refreshed_shareds);
  CHECK(later.specialisations == 1);
  // A value from outside goes to all contexts again.
  model.parameters[0].set_value(numbers({6, 9}, 9));
  train.call(model.arguments);
  CHECK(train.statistics().refreshed_shareds == first.refreshed_shareds + 2);
}
