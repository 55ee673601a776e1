// Update rules against values that NumPy and optax computed; see
// tests/data/make_optimizer_fixtures.py.
#include <croton/croton.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "tests/data_folder.h"
#include "tests/frontend/error_text.h"

using namespace croton;
using namespace croton::test;

namespace {

using Parameters = std::vector<Shared>;
using Rule = std::function<Optimizer(const Variable&, const Parameters&)>;

const std::map<std::string, Array>& fixtures() {
  static const auto* const read =
      new std::map<std::string, Array>(load_npz(data_folder() + "/optimizers.npz"));
  return *read;
}

/// The problem of the fixtures.
struct Problem {
  Array x, y;
  Shared w, b;
  Variable cost;

  explicit Problem(DType dtype) {
    const auto get = [&](const char* name) { return fixtures().at(name).astype(dtype); };
    x = get("x"), y = get("y");
    w = shared(get("w"), {.name = "w"});
    b = shared(get("b"), {.name = "b"});
    const Variable error = tanh(dot(constant(x), w)) + b - constant(y);
    cost = mean(square(error));
  }
};

void check_steps(const std::string& title, const Rule& rule) {
  INFO(title);
  for (const DType dtype : {DType::float64, DType::float32}) {
    const Problem problem(dtype);
    const Function train =
        function({}, problem.cost, {.updates = rule(problem.cost, {problem.w, problem.b})});
    // A step is of the order of the parameter at most, and each rounds a few times.
    const double tolerance = dtype == DType::float64 ? 1e-11 : 1e-5;
    for (int k = 1; k <= 10; ++k) {
      train();
      const auto found = fixtures().find(title + ".w." + std::to_string(k));
      if (found == fixtures().end()) continue;
      const Array w = problem.w.get_value(), b = problem.b.get_value();
      INFO(name_of(dtype) << ", step " << k << ":\n" << w << "\n" << found->second);
      CHECK(allclose(w.astype(DType::float64), found->second, tolerance, tolerance / 10));
      CHECK(allclose(b.astype(DType::float64), fixtures().at(title + ".b." + std::to_string(k)),
                     tolerance, tolerance / 10));
    }
  }
}

std::vector<std::string> state_names(const Optimizer& optimizer) {
  std::vector<std::string> names;
  for (const Shared& state : optimizer.state) names.push_back(state.name());
  return names;
}

/// What a function of these gradients gives.
std::vector<float> clipped(const std::vector<Variable>& gradients) {
  std::vector<float> all;
  for (const Array& g : function({}, gradients)()) {
    for (const float v : g.astype(DType::float32).to_vector<float>()) all.push_back(v);
  }
  return all;
}

constexpr float kInf = std::numeric_limits<float>::infinity();

}  // namespace

TEST_CASE("optimizers take the steps of NumPy's formulas and optax") {
  const auto with = [](const std::string& title, const Rule& rule) { check_steps(title, rule); };
  using V = const Variable&;
  using P = const Parameters&;
  with("sgd", [](V c, P p) { return sgd(c, p); });
  with("sgd at 0.5", [](V c, P p) { return sgd(c, p, {.learning_rate = 0.5}); });
  with("momentum", [](V c, P p) { return momentum(c, p); });
  with("momentum at 0.2",
       [](V c, P p) { return momentum(c, p, {.learning_rate = 0.2, .momentum = 0.5}); });
  with("nesterov_momentum", [](V c, P p) { return nesterov_momentum(c, p); });
  with("nesterov_momentum at 0.2",
       [](V c, P p) { return nesterov_momentum(c, p, {.learning_rate = 0.2, .momentum = 0.5}); });
  with("adagrad", [](V c, P p) { return adagrad(c, p); });
  with("adagrad at 0.3", [](V c, P p) {
    return adagrad(c, p, {.learning_rate = 0.3, .initial_accumulator = 0, .epsilon = 1e-3});
  });
  with("rmsprop", [](V c, P p) { return rmsprop(c, p); });
  with("rmsprop at 0.05", [](V c, P p) {
    return rmsprop(c, p, {.learning_rate = 0.05, .rho = 0.7, .epsilon = 1e-4});
  });
  with("adadelta", [](V c, P p) { return adadelta(c, p); });
  with("adadelta at 0.5", [](V c, P p) {
    return adadelta(c, p, {.learning_rate = 0.5, .rho = 0.8, .epsilon = 1e-3});
  });
  with("adam", [](V c, P p) { return adam(c, p); });
  with("adam at 0.1", [](V c, P p) {
    return adam(c, p, {.learning_rate = 0.1, .beta1 = 0.5, .beta2 = 0.8, .epsilon = 1e-3});
  });
  with("adam without means", [](V c, P p) { return adam(c, p, {.beta1 = 0, .beta2 = 0}); });
  with("adamax", [](V c, P p) { return adamax(c, p); });
  with("adamax at 0.1", [](V c, P p) {
    return adamax(c, p, {.learning_rate = 0.1, .beta1 = 0.5, .beta2 = 0.8, .epsilon = 1e-3});
  });
  with("adamw", [](V c, P p) { return adamw(c, p); });
  with("adamw at 0.1", [](V c, P p) {
    return adamw(
        c, p,
        {.learning_rate = 0.1, .beta1 = 0.5, .beta2 = 0.8, .epsilon = 1e-3, .weight_decay = 0.3});
  });
}

TEST_CASE("optimizers take gradients in place of the cost, one in braces too") {
  const Shared w = shared(Array{1.0, 2.0}, {.name = "w"});
  const Variable g = grad(sum(w * w), w);
  function({}, OutputList{}, {.updates = sgd({g}, {w}, {.learning_rate = 0.25})})();
  CHECK(array_equal(w.get_value(), Array{0.5, 1.0}));
  const Optimizer rule = momentum(std::vector<Variable>{g}, {w}, {.learning_rate = 0.25});
  function({}, OutputList{}, {.updates = rule})();
  CHECK(array_equal(w.get_value(), Array{0.25, 0.5}));
  CHECK(rule.gradients.at(0).same(g));
  CHECK(array_equal(rule.state.at(0).get_value(), Array{-0.25, -0.5}));
}

TEST_CASE("the learning rate may be a shared variable, an input, or of another dtype") {
  const Shared w = shared(Array{4.0}, {.name = "w"});
  const Shared rate = shared(Array(0.25), {.name = "rate"});
  Function train =
      function({}, OutputList{}, {.updates = sgd(sum(w), {w}, {.learning_rate = rate})});
  train();
  CHECK(array_equal(w.get_value(), Array{3.75}));
  rate.set_value(Array(0.5));
  train();
  CHECK(array_equal(w.get_value(), Array{3.25}));

  const Variable speed = scalar("speed", DType::float64);
  Function other = function({speed}, OutputList{},
                            {.updates = momentum(sum(w), {w}, {.learning_rate = speed * 2})});
  other(0.125);
  CHECK(array_equal(w.get_value(), Array{3.0}));
}

TEST_CASE("states are named by parameters, and one counter serves all of them") {
  const Shared w = shared(Array{1.0}, {.name = "w"}), b = shared(Array{1.0}, {.name = "b"});
  const Variable cost = sum(w * b);
  CHECK(sgd(cost, {w, b}).state.empty());
  using Names = std::vector<std::string>;
  CHECK(state_names(momentum(cost, {w, b})) == Names{"w.velocity", "b.velocity"});
  CHECK(state_names(adagrad(cost, {w})) == Names{"w.squares"});
  CHECK(state_names(rmsprop(cost, {w})) == Names{"w.mean_square"});
  CHECK(state_names(adadelta(cost, {w})) == Names{"w.mean_square", "w.mean_square_step"});
  CHECK(state_names(adamax(cost, {w}, {.name = "second"})) ==
        Names{"second.step", "w.mean", "w.norm"});
  const Shared nameless = shared(Array{1.0});
  CHECK(state_names(momentum(sum(nameless), {nameless})) == Names{"parameter0.velocity"});

  const Optimizer rule = adam(cost, {w, b});
  CHECK(state_names(rule) ==
        Names{"adam.step", "w.mean", "w.mean_square", "b.mean", "b.mean_square"});
  CHECK(rule.updates.size() == 7);
  Function train = function({}, OutputList{}, {.updates = rule});
  for (int k = 0; k < 3; ++k) train();
  CHECK(array_equal(rule.state[0].get_value(), Array(3)));
}

TEST_CASE("narrow parameters are stepped in float32 and rounded once") {
  for (const DType dtype : {DType::float16, DType::bfloat16}) {
    const Array start = Array{0.5, -1.25, 3.0}.astype(dtype);
    const Shared narrow = shared(start, {.name = "narrow"});
    const Shared wide = shared(start.astype(DType::float32), {.name = "wide"});
    const auto cost = [](const Variable& p) { return sum(square(p.astype(DType::float32))); };
    const Optimizer rule = adam(cost(narrow), {narrow}, {.learning_rate = 0.125});
    CHECK(rule.state[1].dtype() == DType::float32);
    function({}, OutputList{}, {.updates = rule})();
    function({}, OutputList{}, {.updates = adam(cost(wide), {wide}, {.learning_rate = 0.125})})();
    CHECK(narrow.get_value().dtype() == dtype);
    CHECK(array_equal(narrow.get_value(), wide.get_value().astype(dtype)));
    CHECK_FALSE(array_equal(narrow.get_value(), start));
  }
}

TEST_CASE("a parameter without gradient so far stays where it is") {
  const Shared w = shared(Array{1.0, 2.0}, {.name = "w"});
  const Variable cost = sum(w * Array{0.0, 0.0});
  const auto stays = [&](const Optimizer& rule) {
    function({}, OutputList{}, {.updates = rule})();
    CHECK(array_equal(w.get_value(), Array{1.0, 2.0}));
  };
  stays(adam(cost, {w}));
  stays(adamax(cost, {w}));
  stays(rmsprop(cost, {w}));
  stays(adadelta(cost, {w}));
  stays(adamw(cost, {w}, {.without_decay = {w}}));
  function({}, OutputList{},
           {.updates = adamw(cost, {w}, {.learning_rate = 0.5, .weight_decay = 0.5})})();
  CHECK(array_equal(w.get_value(), Array{0.75, 1.5}));
}

TEST_CASE("a step of adam reads and writes each array once") {
  const Array start = Array::ones({256, 256});
  const Shared w = shared(start, {.name = "w"}), g = shared(start, {.name = "g"});
  const Function train =
      function({}, OutputList{}, {.updates = adamw(std::vector<Variable>{g}, {w})});
  train();
  // Of the scalars, and of the parameter with its gradient and states.
  CHECK(train.statistics().launches <= 3);
  const auto arrays = static_cast<std::int64_t>(start.nbytes());
  CHECK(train.statistics().bytes_read < 4 * arrays + 1000);
  CHECK(train.statistics().bytes_written < 3 * arrays + 1000);
}

TEST_CASE("a resizable parameter has states of its size") {
  const Shared w = shared(Array{1.0, 2.0}, {.name = "w", .resizable = true});
  const Optimizer rule = momentum(sum(w * w), {w}, {.learning_rate = 0.25});
  function({}, OutputList{}, {.updates = rule})();
  CHECK(array_equal(w.get_value(), Array{0.5, 1.0}));
}

TEST_CASE("what optimizers cannot take is an error that says so") {
  const Shared w = shared(Array{1.0, 2.0}, {.name = "w"}), n = shared(Array{1, 2}, {.name = "n"});
  const Variable cost = sum(w * w), g = grad(cost, w);
  using Gradients = std::vector<Variable>;
  const auto text = [](const std::function<void()>& action) {
    return error_text<GraphError>(action);
  };
  const std::string here = "optimizers.cpp";
  CHECK_THAT(text([&] { sgd(cost, {}); }), HasAll({"[sgd]", "no parameters", here}));
  CHECK_THAT(text([&] { sgd(cost, {Shared()}); }), HasAll({"[sgd] parameter 0 is an empty", here}));
  CHECK_THAT(text([&] {
               adam(cost, {w, n});
             }),
             HasAll({"[adam] n is int64: expected a float", here}));
  CHECK_THAT(text([&] { adam(cost, {w, w}); }), HasAll({"[adam] w is given twice", here}));
  CHECK_THAT(text([&] { adam(w * w, {w}); }), HasAll({"[adam]", "scalar", here}));
  CHECK_THAT(text([&] {
               adam(Gradients{g, g}, {w});
             }),
             HasAll({"[adam] 2 gradients came for 1 parameters", here}));
  CHECK_THAT(text([&] { adam(Gradients{Variable()}, {w}); }),
             HasAll({"the gradient of w is an empty Variable", here}));
  CHECK_THAT(text([&] { adam(Gradients{sum(g)}, {w}); }),
             HasAll({"gradient of w has another type: got float32 scalar", "a float of shape (2,)",
                     here}));
  CHECK_THAT(text([&] { adam(Gradients{g(Slice(0, 1))}, {w}); }),
             HasAll({"another type: got float32 (1,)", here}));
  CHECK_THAT(text([&] { adam(Gradients{cast(g, DType::int64)}, {w}); }),
             HasAll({"another type: got int64 (2,)", here}));
  CHECK_THAT(text([&] { sgd(cost, {w}, {.learning_rate = -0.5}); }),
             HasAll({"[sgd] learning_rate is -0.5: expected a finite number, at least 0", here}));
  CHECK_THAT(text([&] { sgd(cost, {w}, {.learning_rate = std::nan("")}); }),
             HasAll({"learning_rate is nan", here}));
  CHECK_THAT(text([&] { sgd(cost, {w}, {.learning_rate = w}); }),
             HasAll({"learning_rate is float32 (2,): expected a float scalar", here}));
  CHECK_THAT(text([&] { momentum(cost, {w}, {.momentum = 1}); }),
             HasAll({"[momentum] momentum is 1: expected at least 0 and below 1", here}));
  CHECK_THAT(text([&] { nesterov_momentum(cost, {w}, {.momentum = -1}); }),
             HasAll({"[nesterov_momentum] momentum is -1", here}));
  CHECK_THAT(text([&] { adagrad(cost, {w}, {.initial_accumulator = -1}); }),
             HasAll({"[adagrad] initial_accumulator is -1", here}));
  CHECK_THAT(text([&] { adagrad(cost, {w}, {.epsilon = kInf}); }),
             HasAll({"epsilon is inf", here}));
  CHECK_THAT(text([&] { rmsprop(cost, {w}, {.rho = 2}); }), HasAll({"[rmsprop] rho is 2", here}));
  CHECK_THAT(text([&] { adadelta(cost, {w}, {.rho = 2}); }), HasAll({"[adadelta] rho is 2", here}));
  CHECK_THAT(text([&] { adam(cost, {w}, {.beta1 = 1}); }), HasAll({"[adam] beta1 is 1", here}));
  CHECK_THAT(text([&] { adamax(cost, {w}, {.beta2 = 1}); }), HasAll({"[adamax] beta2 is 1", here}));
  CHECK_THAT(text([&] { adamw(cost, {w}, {.weight_decay = -1}); }),
             HasAll({"[adamw] weight_decay is -1", here}));
  CHECK_THAT(text([&] { adamw(cost, {w}, {.without_decay = {n}}); }),
             HasAll({"without_decay has n, which is not among the parameters", here}));
}

TEST_CASE("gradients are clipped by value and by norm") {
  const Variable a = constant(Array{3.0, 4.0}), b = constant(Array{12.0});
  const Variable zero = constant(Array{0.0, 0.0});
  using Floats = std::vector<float>;
  CHECK(clipped(clip_by_value({a, b}, -1, 3.5)) == Floats{3, 3.5, 3.5});
  CHECK(clipped(clip_by_norm({a, b, zero}, 2.5)) == Floats{1.5, 2, 2.5, 0, 0});
  CHECK(clipped(clip_by_norm({a, b}, 5.0)) == Floats{3, 4, 5});
  CHECK(clipped(clip_by_global_norm({a, b}, 6.5)) == Floats{1.5, 2, 6});
  CHECK(clipped(clip_by_global_norm({a, b}, 13)) == Floats{3, 4, 12});
  CHECK(clipped(clip_by_global_norm({zero}, 0)) == Floats{0, 0});
  CHECK(clipped(clip_by_global_norm({a}, constant(Array(0.0)))) == Floats{0, 0});
  CHECK(function({}, global_norm({a, b}))()[0].item<double>() == 13);
  CHECK(function({}, global_norm({}))()[0].item<double>() == 0);
}

TEST_CASE("norms of what is large, infinite or no number") {
  const Variable large = constant(Array{3e30, 4e30}), infinite = constant(Array{1.0, double(kInf)});
  const Variable nan = constant(Array{std::nan(""), 1.0}), one = constant(Array{1.0});
  std::vector<float> c = clipped(clip_by_norm({large, infinite, nan, one}, 5));
  CHECK(c[0] == Approx(3));
  CHECK(c[1] == Approx(4));
  CHECK(c[2] == 0);
  CHECK(std::isnan(c[3]));
  CHECK(std::isnan(c[4]));
  CHECK(std::isnan(c[5]));
  CHECK(c[6] == 1);
  for (const float v : clipped(clip_by_global_norm({one, nan}, 5))) CHECK(std::isnan(v));
  c = clipped(clip_by_value({nan, infinite}, -2, 2));
  CHECK(std::isnan(c[0]));
  CHECK(c[3] == 2);
}

TEST_CASE("clipped gradients keep their dtypes") {
  for (const DType dtype : {DType::float16, DType::bfloat16, DType::float64}) {
    const Variable g = constant(Array{30000.0, 40000.0}.astype(dtype));
    const Variable by_norm = clip_by_global_norm({g}, 5.0)[0];
    CHECK(by_norm.dtype() == dtype);
    CHECK(clip_by_value({g}, -1, 1)[0].dtype() == dtype);
    const std::vector<float> c = clipped({by_norm});
    CHECK(c[0] == Approx(3).epsilon(0.01));
    CHECK(c[1] == Approx(4).epsilon(0.01));
  }
}

TEST_CASE("what cannot be clipped is an error that says so") {
  const Variable g = constant(Array{3.0, 4.0}), n = constant(Array{1, 2});
  const auto text = [](const std::function<void()>& action) {
    return error_text<GraphError>(action);
  };
  const std::string here = "optimizers.cpp";
  CHECK_THAT(text([&] { clip_by_value({g}, 1, -1); }),
             HasAll({"[clip_by_value] low is 1 and high is -1", here}));
  CHECK_THAT(text([&] { clip_by_value({n}, 0, 1); }),
             HasAll({"[clip_by_value] gradient 0 is int64 (2,)", here}));
  CHECK_THAT(text([&] {
               clip_by_norm({g, Variable()}, 1);
             }),
             HasAll({"[clip_by_norm] gradient 1 is an empty Variable", here}));
  CHECK_THAT(text([&] { clip_by_norm({g}, -1); }), HasAll({"max_norm is -1", here}));
  CHECK_THAT(text([&] { clip_by_global_norm({g}, std::nan("")); }),
             HasAll({"max_norm is nan", here}));
  CHECK_THAT(text([&] { clip_by_global_norm({g}, g); }),
             HasAll({"max_norm is float32 (2,): expected a float scalar", here}));
  CHECK_THAT(text([&] { global_norm({n}); }), HasAll({"[global_norm] gradient 0", here}));
}
