// Graphs that read and update a shared variable on several contexts.
#include <catch2/catch.hpp>

#include "croton/error.h"
#include "tests/context_program.h"

using namespace croton;
using namespace croton::test;

namespace {

/// Leaves of `w` on dev0 (its home), dev1 and dev2.
std::vector<Variable> on_all(const Variable& w) {
  return {w, shared_on(w, intern("dev1")), shared_on(w, intern("dev2"))};
}

void check_steps(const std::string& contexts) {
  CAPTURE(contexts);
  const ContextMachine machine(contexts);
  const Variable w = machine.shared("w", Array::ones({300}), "dev0");
  const SharedState& state = *w.node()->shared;
  const std::vector<Variable> leaves = on_all(w);
  std::vector<Variable> next, sums;
  for (const Variable& leaf : leaves) {
    next.push_back(leaf * 2.0f + 1.0f);
    sums.push_back(sum(exp(leaf) * 0.0f + leaf));
  }
  const Program step = machine.compile(sums, leaves, next);
  std::vector<Array> results(3);
  float wanted = 1;
  for (int i = 0; i < 4; ++i) {
    step.run({}, results);
    for (const Array& r : results) CHECK(r.item<float>() == 300 * wanted);
    wanted = 2 * wanted + 1;
    CHECK(get_value(state).to_vector<float>() == std::vector<float>(300, wanted));
  }
  CHECK(step.statistics().refreshed_shareds == 2);
  int gpus = 0;  // from each comes an output
  for (std::size_t at = 0; (at = contexts.find("cuda", at)) != contexts.npos; ++at) ++gpus;
  CHECK(step.statistics().copies == gpus);
  set_value(*w.node()->shared, Array::zeros({300}));
  step.run({}, results);
  CHECK(results[2].item<float>() == 0);
  CHECK(step.statistics().refreshed_shareds == 4);
}

}  // namespace

TEST_CASE("a shared variable is read and updated on several contexts") {
  check_steps("dev0->cpu;dev1->cpu;dev2->cpu");
}

TEST_CASE("a shared variable is read and updated on several GPUs", "[.gpu]") {
  check_steps("dev0->cuda0;dev1->cuda1;dev2->cuda0");
  check_steps("dev0->cuda0;dev1->cuda1;dev2->cpu");
  check_steps("dev0->cpu;dev1->cuda0;dev2->cuda1");
}

TEST_CASE("leaves of one shared variable on one context are one slot, on two they are two") {
  const ContextMachine machine("dev0->cpu;dev1->cpu;dev2->cpu");
  const Variable w = machine.shared("w", Array::ones({30}), "dev0");
  const Variable again = shared_on(w, intern("dev0")), there = shared_on(w, intern("dev1"));
  CHECK(there.name() == "w");
  CHECK(there.context() == "dev1");
  const Program f = machine.compile({w * 2.0f, sum(again), sum(there)}, {}, {});
  const auto& slots = f.plan(0).slots;
  CHECK(std::count_if(slots.begin(), slots.end(),
                      [](const Slot& s) { return s.kind == SlotKind::shared; }) == 2);
  CHECK(f.plan(0).shareds.size() == 1);
}

TEST_CASE("sizes of a shared variable that may change are the same on all contexts") {
  const ContextMachine machine("dev0->cpu;dev1->cpu;dev2->cpu");
  auto state = make_shared_state(machine.runtime(), Array::ones({3}), "w", "dev0", true);
  const Variable w = make_shared_node(state, {DType::float32, {kAnyDim}}, "w", {});
  const Variable there = shared_on(w, intern("dev1"));
  // No check is left to the call: the two have one size.
  const Program f = machine.compile({w + there}, {}, {});
  CHECK(f.plan(0).checks.empty());
  std::vector<Array> result(1);
  for (const std::int64_t n : {3, 5, 4}) {
    set_value(*state, Array::ones({n}));
    f.run({}, result);
    CHECK(result[0].to_vector<float>() == std::vector<float>(static_cast<std::size_t>(n), 2));
  }
  // And where its home does not have it any more.
  const Program grow = machine.compile({}, {there}, {concatenate({there, there}, 0)});
  grow.run({}, {});
  f.run({}, result);
  CHECK(result[0].size() == 8);
  CHECK(get_value(*state).size() == 8);
}

TEST_CASE("an update that goes twice to one context is an internal error") {
  const ContextMachine machine("dev0->cpu;dev1->cpu;dev2->cpu");
  const Variable w = machine.shared("w", Array::ones({30}), "dev0");
  const Variable again = shared_on(w, intern("dev0"));
  CHECK_THROWS_AS(machine.compile({}, {w, again}, {w * 2.0f, w * 3.0f}), InternalError);
}
