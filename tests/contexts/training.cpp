// Parameters that live on two contexts: their optimizers, and files of them.
#include <croton/croton.h>

#include <catch2/catch.hpp>

#include "tests/temporary_folder.h"

using namespace croton;

namespace {

struct Model {
  Shared a, b, rate;
  Optimizer rule;
  Function train;

  Model(const std::string& first, const std::string& second)
      : a(shared(Array{{1.0, 2.0}, {3.0, 4.0}}, {.name = "a", .target = first})),
        b(shared(Array{{5.0, -6.0}, {7.0, 8.0}}, {.name = "b", .target = second})),
        rate(shared(Array(0.25), {.name = "rate", .target = first})) {
    const Variable cost = sum(tanh(a.transfer(second)) * b * b);
    const std::vector<Variable> g = grad(cost, {a, b});
    const ContextScope elsewhere("dev1");
    rule = adamw(g, {a, b}, {.learning_rate = rate});
    train = function(
        {}, cost, {.updates = rule, .config = current_config().with("implicit_transfer", "raise")});
  }
};

}  // namespace

TEST_CASE("optimizers keep their states with the parameters, whatever scope is in force") {
  Model two("dev0", "dev1"), one("dev0", "dev0");
  for (int k = 0; k < 3; ++k) {
    CHECK(array_equal(two.train()[0], one.train()[0]));
  }
  CHECK(array_equal(two.a.get_value(), one.a.get_value()));
  CHECK(array_equal(two.b.get_value(), one.b.get_value()));
  REQUIRE(two.rule.state.size() == 5);
  const char* const contexts[] = {"dev0", "dev0", "dev0", "dev1", "dev1"};
  for (std::size_t i = 0; i < 5; ++i) CHECK(two.rule.state[i].context() == contexts[i]);
}

TEST_CASE("parameters saved on some contexts are loaded on others") {
  const test::TemporaryFolder folder;
  for (const std::string file : {"p.npz", "p.safetensors"}) {
    Model saved("dev0", "dev1"), loaded("dev1", "dev1");
    saved.train();
    const auto all = [](const Model& model) {
      std::vector<Shared> list = model.rule.state;
      list.insert(list.end(), {model.a, model.b});
      return list;
    };
    save_parameters(folder / file, all(saved));
    load_parameters(folder / file, all(loaded));
    CHECK(loaded.a.context() == "dev1");
    CHECK(array_equal(loaded.rule.state[0].get_value(), Array(1)));
    // Both go on alike.
    CHECK(array_equal(saved.train()[0], loaded.train()[0]));
    for (std::size_t i = 0; i < all(saved).size(); ++i) {
      CHECK(array_equal(all(saved)[i].get_value(), all(loaded)[i].get_value()));
    }
  }
}
