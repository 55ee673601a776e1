// Losses, weights and metrics by the names of outputs. Values are from
// tests/data/make_loss_fixtures.py.
#include <croton/croton.h>

#include <catch2/catch.hpp>
#include <functional>
#include <limits>
#include <map>

#include "tests/data_folder.h"
#include "tests/frontend/error_text.h"

using namespace croton;
using namespace croton::test;

namespace {

const std::map<std::string, Array>& fixtures() {
  static const auto* const read =
      new std::map<std::string, Array>(load_npz(data_folder() + "/losses.npz"));
  return *read;
}

const Array& fixture(const std::string& name) { return fixtures().at(name); }
Variable known(const std::string& name) { return constant(fixture(name)); }

double number(const std::string& name) { return fixture(name).item<double>(); }
double number(const Variable& x) {
  return function({}, x)()[0].astype(DType::float64).item<double>();
}

/// The model of the fixtures.
struct Model {
  Variable digit = softmax(known("logits")), parity = known("parity"), place = known("place");
  OutputList outputs = {{"digit", digit}, {"parity", parity}, {"place", place}};
  std::map<std::string, Loss> loss = {{"digit", "sparse_categorical_crossentropy"},
                                      {"parity", "binary_crossentropy"},
                                      {"place", "mse"}};
  std::map<std::string, Variable> targets = {
      {"digit", known("classes")}, {"parity", known("yes")}, {"place", known("at")}};
};

std::vector<std::string> names_of(const OutputList& list) {
  std::vector<std::string> names;
  for (const Output& output : list.list) names.push_back(output.name);
  return names;
}

template <class Action>
std::string text(Action action) {
  return error_text<GraphError>(action);
}

const std::string kHere = "losses.cpp";

}  // namespace

TEST_CASE("losses by name have Keras's values, and the total is their weighted sum") {
  const Model m;
  const std::map<std::string, Loss> loss = m.loss;
  const Variable penalty = constant(Array(0.125).astype(DType::float64));
  const NamedLosses made = named_losses(
      m.outputs, {.loss = loss,
                  .loss_weights = {{"parity", 0.5}, {"digit", 2}, {"place", penalty}},
                  .targets = m.targets,
                  .metrics = {{"digit", {"accuracy"}}, {"parity", {"accuracy", "mse"}}},
                  .regularisation = {penalty, penalty}});
  REQUIRE(loss.size() == 3);
  CHECK(loss.at("place").name == "mse");
  const Outputs out = function({}, made.reported())();
  const auto at = [&](const char* name) { return out[name].item<double>(); };
  const double digit = number("digit.sparse_categorical_crossentropy");
  const double parity = number("parity.binary_crossentropy"), place = number("place.mse");
  CHECK(at("digit_loss") == Approx(digit).epsilon(1e-12));
  CHECK(at("parity_loss") == Approx(parity).epsilon(1e-12));
  CHECK(at("place_loss") == Approx(place).epsilon(1e-12));
  CHECK(at("loss") == Approx(2 * digit + 0.5 * parity + 0.125 * place + 0.25).epsilon(1e-12));
  CHECK(number(made.total) == at("loss"));
  CHECK(number(made.regularisation) == 0.25);
  CHECK(at("digit_accuracy") == Approx(number("digit.accuracy")));
  CHECK(at("parity_accuracy") == Approx(number("parity.accuracy")));
}

TEST_CASE("reported names are the user's, in the order loss, losses, metrics") {
  const Variable x = matrix("x");
  const OutputList outputs = {{"second", x}, {"first", x}};  // two names for one value
  const NamedLosses made = named_losses(
      outputs, {.loss = "mse", .metrics = {Metric("mae"), Metric("largest", [](auto& t, auto& o) {
                                             return max(abs(t - o), 1);
                                           })}});
  CHECK(names_of(made.reported()) == std::vector<std::string>{"loss", "second_loss", "first_loss",
                                                              "second_mae", "second_largest",
                                                              "first_mae", "first_largest"});
  REQUIRE(made.targets.size() == 2);
  CHECK(made.targets[0].first == "second");
  CHECK(made.targets[0].second.name() == "second_target");
  const Function f = function({x, made.target("second"), made.target("first")}, made.reported());
  const Outputs out = f(Array{{1.0, 2.0}}, Array{{2.0, 4.0}}, Array{{1.0, 2.0}});
  CHECK(out["second_loss"].item<float>() == 2.5f);
  CHECK(out["second_largest"].item<float>() == 2.0f);
  CHECK(out["first_mae"].item<float>() == 0.0f);
  CHECK(out["loss"].item<float>() == 2.5f);
}

TEST_CASE("losses, weights, targets and metrics by lists, and one for all") {
  const Variable a = known("place"), at = known("at");
  const OutputList outputs = {{"a", a}, {"b", a}};
  const NamedLosses made =
      named_losses(outputs, {.loss = {"mse", "mae"},
                             .loss_weights = {1.0, 0.25},
                             .targets = {at, at},
                             .metrics = std::vector<std::vector<Metric>>{{"mae"}, {}}});
  CHECK(number(made.total) ==
        Approx(number("place.mse") + 0.25 * number("place.mae")).epsilon(1e-12));
  CHECK(number(made.loss_weights[1]) == 0.25);
  REQUIRE(made.metrics.size() == 1);
  CHECK(made.metrics[0].name == "a_mae");
  const NamedLosses one = named_losses(outputs, {.loss = "mae", .loss_weights = 3, .targets = at});
  CHECK(number(one.total) == Approx(6 * number("place.mae")).epsilon(1e-12));
  const NamedLosses own = named_losses(
      {{"a", a}},
      {.loss = [](const Variable& t, const Variable& o) { return square(t - o); }, .targets = at});
  CHECK(number(own.total) == Approx(number("place.mse")).epsilon(1e-12));
}

TEST_CASE("targets are made for what each loss takes") {
  const Variable x = tensor("x", DType::float64, {kAnyDim, 4});
  const NamedLosses made = named_losses(
      {{"a", softmax(x)}, {"b", softmax(x)}},
      {.loss = {{"a", "sparse_categorical_crossentropy"}, {"b", "categorical_crossentropy"}}});
  CHECK(made.target("a").dtype() == DType::int64);
  CHECK(made.target("a").ndim() == 1);
  CHECK(made.target("b").dtype() == DType::float64);
  CHECK(made.target("b").static_shape() == Shape({kAnyDim, 4}));
  CHECK_THAT(error_text<UserError>([&] { made.target("bb"); }),
             HasAll({"no target for 'bb'", "did you mean 'b'"}));
}

TEST_CASE("sample weights give weighted means, by weights or by rows") {
  const Model m;
  for (const bool by_rows : {false, true}) {
    const NamedLosses made = named_losses(
        m.outputs, {.loss = m.loss,
                    .targets = m.targets,
                    .sample_weights = known("weights"),
                    .metrics = {{"digit", {"accuracy"}}, {"parity", {"accuracy"}}},
                    .weighted_metrics = true,
                    .mean = by_rows ? WeightedMean::by_rows : WeightedMean::by_weights});
    const std::string suffix = by_rows ? " by rows" : " weighted";
    const Outputs out = function({}, made.reported())();
    const auto at = [&](const char* name) { return out[name].item<double>(); };
    CHECK(at("digit_loss") ==
          Approx(number("digit.sparse_categorical_crossentropy" + suffix)).epsilon(1e-12));
    CHECK(at("parity_loss") ==
          Approx(number("parity.binary_crossentropy" + suffix)).epsilon(1e-12));
    CHECK(at("place_loss") == Approx(number("place.mse" + suffix)).epsilon(1e-12));
    CHECK(at("digit_accuracy") == Approx(number("digit.accuracy" + suffix)));
    CHECK(at("parity_accuracy") == Approx(number("parity.accuracy" + suffix)));
  }
  const NamedLosses plain =
      named_losses(m.outputs, {.loss = m.loss,
                               .targets = m.targets,
                               .sample_weights = {{"digit", known("weights")}},
                               .metrics = {{"digit", {"accuracy"}}}});
  CHECK(number(plain.metrics[0].value()) == Approx(number("digit.accuracy")));
  CHECK(number(plain.losses[2].value()) == Approx(number("place.mse")).epsilon(1e-12));
}

TEST_CASE("class weights go by integers, by the largest element, and by yes and no") {
  const Model m;
  const Variable one_hot = croton::one_hot(known("classes"), 4, DType::float64);
  const NamedLosses by_class = named_losses(
      {{"a", m.digit}, {"b", m.digit}, {"c", m.parity}},
      {.loss = {"sparse_categorical_crossentropy", "categorical_crossentropy",
                "binary_crossentropy"},
       .targets = {known("classes"), one_hot, known("yes")},
       .sample_weights = {{"a", known("weights")}, {"b", known("weights")}},
       .class_weights = {
           {"a", fixture("factors")}, {"b", fixture("factors")}, {"c", Array{1.0, 4.0}}}});
  CHECK(number(by_class.losses[0].value()) ==
        Approx(number("digit.sparse_categorical_crossentropy by class")).epsilon(1e-12));
  CHECK(number(by_class.losses[1].value()) ==
        Approx(number("digit.categorical_crossentropy by class")).epsilon(1e-12));
  CHECK(number(by_class.losses[2].value()) ==
        Approx(number("parity.binary_crossentropy by answer")).epsilon(1e-6));

  const NamedLosses outside =
      named_losses({{"a", m.digit}},
                   {.loss = "sparse_categorical_crossentropy", .class_weights = Array{1.0, 1.0}});
  const Function f = function({outside.target("a")}, outside.total);
  CHECK_THAT(error_text<CallError>([&] { f(fixture("classes")); }),
             HasAll({"named_losses", "index 3 is out of bounds", kHere}));
}

TEST_CASE("weights of steps weigh the elements of rows") {
  const Array w = {{1.0, 0.0, 2.0}, {0.0, 0.0, 1.0}};
  const Array y = {{1.0, 5.0, 2.0}, {7.0, 7.0, 3.0}};
  const Variable zero = constant(Array::zeros({2, 3}));
  const NamedLosses made = named_losses(
      {{"a", zero}}, {.loss = "mae", .targets = constant(y), .sample_weights = constant(w)});
  CHECK(number(made.losses[0].sum) == 8);
  CHECK(number(made.losses[0].weight) == 4);
  CHECK(number(made.total) == 2);
}

TEST_CASE("sums and weights of parts of the rows add up to those of all, of none too") {
  const Variable x = matrix("x"), w = vector("w");
  const NamedLosses made = named_losses(
      {{"a", x}},
      {.loss = "mse", .sample_weights = w, .metrics = {"mae"}, .weighted_metrics = true});
  const NamedValue &loss = made.losses[0], &metric = made.metrics[0];
  const Function f = function({x, made.target("a"), w},
                              {loss.sum, loss.weight, metric.sum, metric.weight, loss.value()});
  const Array xs = {{1.0, 2.0}, {3.0, 4.0}, {5.0, 6.0}}, ys = {{2.0, 0.0}, {3.0, 6.0}, {5.0, 8.0}};
  const Array ws = {2.0, 0.0, 1.0};
  const Outputs all = f(xs, ys, ws);
  for (int cut = 0; cut <= 3; ++cut) {
    const Outputs first = f(xs.slice(0, 0, cut), ys.slice(0, 0, cut), ws.slice(0, 0, cut));
    const Outputs rest = f(xs.slice(0, cut, 3), ys.slice(0, cut, 3), ws.slice(0, cut, 3));
    for (std::size_t i = 0; i < 4; ++i) {
      CHECK(first[i].item<float>() + rest[i].item<float>() == all[i].item<float>());
    }
    if (cut == 0) CHECK(first[4].item<float>() == 0);
  }
  CHECK(all[4].item<float>() == Approx((2 * 2.5 + 2) / 3));
}

TEST_CASE("rows of weight 0 count nothing, whatever their loss") {
  const double kInf = std::numeric_limits<double>::infinity();
  const Shared x = shared(Array{{1.0}, {kInf}}, {.name = "x"});
  const NamedLosses made = named_losses({{"a", x}}, {.loss = "mse",
                                                     .targets = constant(Array{{3.0}, {0.0}}),
                                                     .sample_weights = constant(Array{0.5, 0.0})});
  CHECK(number(made.total) == 4);
  x.set_value(Array{{1.0}, {2.0}});
  const NamedLosses none = named_losses({{"a", x}}, {.loss = "mse",
                                                     .targets = constant(Array{{3.0}, {0.0}}),
                                                     .sample_weights = constant(Array{0.0, 0.0})});
  CHECK(number(none.total) == 0);
  CHECK(array_equal(function({}, grad(none.total, x))()[0], Array{{0.0}, {0.0}}));
}

TEST_CASE("gradients of named losses are those of finite differences") {
  const auto total = [](const std::vector<Variable>& x) {
    return named_losses({{"digit", softmax(x[0])}, {"place", x[1]}, {"parity", sigmoid(x[2])}},
                        {.loss = {"sparse_categorical_crossentropy", "mse", "binary_crossentropy"},
                         .loss_weights = {1, 0.5, 2},
                         .targets = {known("classes"), known("at"), known("yes")},
                         .sample_weights = known("weights"),
                         .class_weights = {{"digit", fixture("factors")}},
                         .regularisation = {sum(square(x[1]))}})
        .total;
  };
  verify_grad(total, {fixture("logits"), fixture("place"), fixture("parity")});
}

TEST_CASE("outputs without a loss are said to be so, and may have metrics") {
  const Model m;
  const NamedLosses made =
      named_losses(m.outputs, {.loss = {{"place", "mse"}},
                               .targets = {{"place", known("at")}, {"digit", known("classes")}},
                               .metrics = {{"digit", {"accuracy"}}},
                               .untrained = {"digit", "parity"}});
  CHECK(names_of(made.reported()) ==
        std::vector<std::string>{"loss", "place_loss", "digit_accuracy"});
  CHECK(made.targets.size() == 2);
  CHECK(number(made.metrics[0].value()) == Approx(number("digit.accuracy")));
}

TEST_CASE("accuracies by their own names, and of outputs of one axis") {
  const Model m;
  const Variable one_hot = croton::one_hot(known("classes"), 4, DType::float64);
  const NamedLosses made =
      named_losses({{"a", m.digit}, {"b", m.digit}, {"c", flatten(m.parity)}},
                   {.loss = {"categorical_crossentropy", "sparse_categorical_crossentropy", "mse"},
                    .targets = {one_hot, known("classes"), flatten(known("yes"))},
                    .metrics = {{"a", {"accuracy", "categorical_accuracy"}},
                                {"b", {"sparse_categorical_accuracy"}},
                                {"c", {"accuracy", "binary_accuracy"}}}});
  for (const NamedValue& metric : made.metrics) {
    INFO(metric.name);
    const std::string of = metric.name[0] == 'c' ? "parity.accuracy" : "digit.accuracy";
    CHECK(number(metric.value()) == Approx(number(of)));
  }
}

TEST_CASE("narrow outputs are averaged in float32") {
  const Array ones = Array::ones({4096, 1}, DType::float16);
  const NamedLosses made =
      named_losses({{"a", constant(ones)}},
                   {.loss = "mae", .targets = constant(Array::zeros({4096, 1}, DType::float16))});
  CHECK(made.total.dtype() == DType::float32);
  CHECK(number(made.losses[0].sum) == 4096);
  CHECK(number(made.total) == 1);
}

TEST_CASE("names and lists that do not fit the outputs are errors") {
  const Variable x = matrix("x"), y = vector("y");
  const OutputList outputs = {{"left", x}, {"right", x}};
  const auto message = [&](const NamedLossesOptions& options) {
    return text([&] { named_losses(outputs, options); });
  };
  CHECK_THAT(text([&] { named_losses(std::vector<Variable>{}, {.loss = "mse"}); }),
             HasAll({"[named_losses] there are no outputs", kHere}));
  CHECK_THAT(text([&] {
               named_losses({x, x}, {.loss = "mse"});
             }),
             HasAll({"output 0 has no name", kHere}));
  CHECK_THAT(text([&] {
               named_losses({{"a", x}, {"a", x}}, {.loss = "mse"});
             }),
             HasAll({"two outputs are called 'a'"}));
  CHECK_THAT(text([&] {
               named_losses({{"a", Variable()}}, {.loss = "mse"});
             }),
             HasAll({"output 'a' is an empty Variable"}));
  CHECK_THAT(text([&] {
               named_losses({{"a", sum(x)}}, {.loss = "mse"});
             }),
             HasAll({"output 'a' is a scalar: expected rows"}));
  CHECK_THAT(message({.loss = {{"left", "mse"}, {"rihgt", "mse"}}}),
             HasAll({"loss has 'rihgt', and the outputs are 'left', 'right'; did you mean 'right'?",
                     kHere}));
  CHECK_THAT(message({.loss = {{"left", "mse"}}}),
             HasAll({"loss has nothing for the output 'right'", "`untrained`", kHere}));
  CHECK_THAT(message({}), HasAll({"loss has nothing for the output 'left'"}));
  CHECK_THAT(message({.loss = {{"left", "mse"}, {"left", "mae"}}}),
             HasAll({"loss has 'left' twice"}));
  CHECK_THAT(message({.loss = {"mse"}}), HasAll({"loss has 1 entries for 2 outputs"}));
  CHECK_THAT(message({.loss = {"mse", "mse"}, .untrained = {"left"}}),
             HasAll({"loss has 2 entries for 1 trained outputs"}));
  CHECK_THAT(message({.loss = {{"left", "mse"}, {"right", "mse"}}, .untrained = {"left"}}),
             HasAll({"loss has 'left', which `untrained` names, too"}));
  CHECK_THAT(message({.loss = "mse", .untrained = {"lefd"}}),
             HasAll({"untrained has 'lefd'", "did you mean 'left'"}));
  CHECK_THAT(message({.loss = "mse", .untrained = {"left", "right"}}),
             HasAll({"no output has a loss"}));
  CHECK_THAT(message({.loss = "mse", .loss_weights = {{"left", 0.5}}}),
             HasAll({"loss_weights has nothing for the output 'right': 1 leaves a loss as it is"}));
  CHECK_THAT(message({.loss = "mse", .loss_weights = {{"left", 1}, {"right", 1}, {"up", 1}}}),
             HasAll({"loss_weights has 'up'"}));
  CHECK_THAT(message({.loss = "mse", .loss_weights = {1, 2, 3}}),
             HasAll({"loss_weights has 3 entries for 2 outputs"}));
  CHECK_THAT(message({.loss = "mse", .targets = {{"letf", x}}}),
             HasAll({"targets has 'letf'", "did you mean 'left'"}));
  CHECK_THAT(message({.loss = "mse", .targets = {{"left", x}}, .untrained = {"left"}}),
             HasAll({"targets has 'left', an output without loss and metrics"}));
  CHECK_THAT(message({.loss = "mse", .sample_weights = {{"left", y}}, .untrained = {"left"}}),
             HasAll({"sample_weights has 'left', an output without"}));
  CHECK_THAT(message({.loss = "mse", .class_weights = {{"left", y}}, .untrained = {"left"}}),
             HasAll({"class_weights has 'left', an output without"}));
  CHECK_THAT(message({.loss = "mse", .sample_weights = {{"dwon", y}}}),
             HasAll({"sample_weights has 'dwon'"}));
  CHECK_THAT(message({.loss = "mse", .class_weights = {{"dwon", y}}}),
             HasAll({"class_weights has 'dwon'"}));
  CHECK_THAT(message({.loss = "mse", .metrics = {{"dwon", {"mae"}}}}),
             HasAll({"metrics has 'dwon'"}));
  CHECK_THAT(message({.loss = "mse", .metrics = {"mae", "mae"}}),
             HasAll({"two reported values are called 'left_mae'"}));
}

TEST_CASE("losses, metrics, targets and weights that do not fit are errors") {
  const Variable x = matrix("x"), y = vector("y"), n = matrix("n", DType::int64);
  const auto message = [&](const NamedLossesOptions& options) {
    return text([&] { named_losses({{"a", x}}, options); });
  };
  CHECK_THAT(message({.loss = "msee"}),
             HasAll({"loss 'msee' is unknown", "'mae'", "did you mean 'mse'?", kHere}));
  CHECK_THAT(message({.loss = "accuracy"}), HasAll({"loss 'accuracy' is unknown"}));
  CHECK_THAT(message({.loss = "mse", .metrics = {"acuracy"}}),
             HasAll({"metric 'acuracy' is unknown", "did you mean 'accuracy'?"}));
  CHECK_THAT(message({.loss = "mse", .targets = y}),
             HasAll({"the target of 'a' is float32 (?,)",
                     "'mse' of an output of 2 axes takes a target of 2"}));
  CHECK_THAT(message({.loss = "sparse_categorical_crossentropy", .targets = y}),
             HasAll({"the target of 'a' is float32", "takes integers of 1 axes"}));
  CHECK_THAT(message({.loss = "mse", .targets = Variable()}),
             HasAll({"the target of 'a' is an empty Variable"}));
  CHECK_THAT(text([&] {
               named_losses({{"a", n}}, {.loss = "mse"});
             }),
             HasAll({"the output 'a' is int64", "expected a float"}));
  CHECK_THAT(message({.loss = [](auto& t, auto& o) { return mean(square(t - o)); }}),
             HasAll({"'a_loss' is a scalar: expected one value for each row of 'a'"}));
  CHECK_THAT(message({.loss = [](auto&, auto&) { return Variable(); }}),
             HasAll({"'a_loss' is an empty Variable"}));
  CHECK_THAT(message({.loss = "mse", .sample_weights = sum(x)}),
             HasAll({"sample_weights of 'a' is float32 scalar", "one for each row"}));
  CHECK_THAT(message({.loss = "mse", .sample_weights = gt(y, 0)}),
             HasAll({"sample_weights of 'a' is bool"}));
  CHECK_THAT(message({.loss = [](auto& t, auto& o) { return sum(t - o, 1); }, .sample_weights = x}),
             HasAll({"the weights of 'a' have 2 axes, and 'a_loss' has 1"}));
  CHECK_THAT(message({.loss = "mse", .class_weights = x}),
             HasAll({"class_weights of 'a' is float32", "a vector of numbers"}));
  CHECK_THAT(message({.loss = "mse", .loss_weights = y}),
             HasAll({"the weight of the loss of 'a' is float32 (?,): expected a float scalar"}));
  CHECK_THAT(message({.loss = "mse", .regularisation = {y}}),
             HasAll({"a regularisation term is float32 (?,): expected a float scalar"}));
  CHECK_THAT(message({.loss = "mse", .regularisation = {Variable()}}),
             HasAll({"a regularisation term is an empty Variable"}));
}
