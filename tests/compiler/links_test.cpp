// Graphs whose values travel between contexts.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>

#include "tests/context_program.h"

using namespace croton;
using namespace croton::test;

namespace {

constexpr const char* kCpus = "dev0->cpu;dev1->cpu";

/// Weights on both contexts, to each of which the "gradients" of both are added, as one would train
/// on two shares of a batch. The gradients depend on one another from the last to the first.
struct Training {
  const ContextMachine machine;
  std::vector<Variable> weights, all, next;

  explicit Training(const std::string& contexts, int layers, const Config& config)
      : machine(contexts, config) {
    const char* const names[] = {"dev0", "dev1"};
    std::vector<Variable> gradients[2];
    for (int i = 0; i < layers; ++i) {
      const Array value = Array::arange(400 * (i + 1)).astype(DType::float32);
      weights.push_back(machine.shared("w" + std::to_string(i), value, "dev0"));
    }
    for (int c = 0; c < 2; ++c) {
      Variable flow = make_scalar(DType::float32, LiteralValue(c + 1.0), {});
      for (int i = layers; i-- > 0;) {
        const Variable w = shared_on(weights[static_cast<std::size_t>(i)], intern(names[c]));
        const Variable g = sin(w * flow);
        flow = sum(g) * 0.001f;
        gradients[c].insert(gradients[c].begin(), g);
      }
    }
    for (int i = 0; i < layers; ++i) {
      for (int c = 0; c < 2; ++c) {
        const auto at = static_cast<std::size_t>(i);
        const Variable w = shared_on(weights[at], intern(names[c]));
        const Variable mine = gradients[c][at];
        const Variable theirs = gradients[1 - c][at].transfer(names[c]);
        all.push_back(w);
        next.push_back(w - 0.1f * (c == 0 ? mine + theirs : theirs + mine));
      }
    }
  }

  std::vector<Array> steps(Program& step, int count) const {
    for (int i = 0; i < count; ++i) step.run({}, {});
    std::vector<Array> values;
    for (const Variable& w : weights) values.push_back(get_value(*w.node()->shared));
    return values;
  }
};

bool same_bits(const std::vector<Array>& a, const std::vector<Array>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Array& x, const Array& y) {
    return x.nbytes() == y.nbytes() && std::memcmp(x.raw_data(), y.raw_data(), x.nbytes()) == 0;
  });
}

void check_training(const std::string& contexts) {
  CAPTURE(contexts);
  std::vector<Array> wanted;
  for (const char* bytes : {"0", "1K", "1M", "25M"}) {
    for (const int latency : {0, 50}) {
      const Training training(
          contexts, 6,
          current_config().with("bucket_bytes", bytes).with("link_latency_us", latency));
      Program step = training.machine.compile({}, training.all, training.next);
      const std::vector<Array> values = training.steps(step, 3);
      if (wanted.empty()) wanted = values;
      CHECK(same_bits(values, wanted));
      CHECK(step.statistics().refreshed_shareds == 6);
      const bool cpus = contexts.find("cuda") == std::string::npos;
      if (cpus && latency == 0) {
        CHECK(step.statistics().copies == 0);
        continue;
      }
      if (latency == 0) continue;
      CHECK(step.statistics().copies == 12);
      CHECK(step.statistics().bytes_copied == 2 * 1600 * 21);
      // The first of a link takes 1 MiB at most: all of them.
      const bool together = std::string_view(bytes).ends_with('M');
      CHECK(step.statistics().messages == (together ? 2 : 12));
    }
  }
}

/// For each step the number of the last copy that it waits for; checks that on no context one comes
/// before a step that waits for an earlier one.
std::vector<int> arrivals_of(const Plan& plan) {
  std::vector<int> arrivals(plan.steps.size());
  std::vector<int> writer(plan.slots.size(), -1);
  std::vector<int> latest(plan.contexts.size());
  int sent = 0;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& s = plan.steps[i];
    for (std::size_t k = static_cast<std::size_t>(s.outputs); k < s.slots.size(); ++k) {
      auto slot = static_cast<std::size_t>(s.slots[k]);
      while (plan.slots[slot].kind == SlotKind::view) {
        slot = static_cast<std::size_t>(plan.slots[slot].index);
      }
      if (writer[slot] >= 0) {
        arrivals[i] = std::max(arrivals[i], arrivals[static_cast<std::size_t>(writer[slot])]);
      }
    }
    const auto context = static_cast<std::size_t>(s.context);
    if (s.kind == Step::Kind::copy) {
      arrivals[i] = ++sent;
    } else {
      CHECK(latest[context] <= arrivals[i]);
      latest[context] = arrivals[i];
    }
    for (std::int32_t k = 0; k < s.outputs; ++k) {
      writer[static_cast<std::size_t>(s.slots[static_cast<std::size_t>(k)])] = static_cast<int>(i);
    }
  }
  return arrivals;
}

/// Steps on a context that wait for nothing from others.
int free_steps(const Plan& plan, const char* context) {
  const std::vector<int> arrivals = arrivals_of(plan);
  int count = 0;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const bool here = plan.contexts[static_cast<std::size_t>(plan.steps[i].context)] == context;
    count += here && plan.steps[i].kind != Step::Kind::copy && arrivals[i] == 0;
  }
  return count;
}

}  // namespace

TEST_CASE("bits do not depend on how values travel", "[links]") { check_training(kCpus); }

TEST_CASE("bits do not depend on how values travel between GPUs", "[.gpu]") {
  check_training("dev0->cuda0;dev1->cuda1");
  check_training("dev0->cuda0;dev1->cuda0");
  check_training("dev0->cuda0;dev1->cpu");
  check_training("dev0->cpu;dev1->cuda0");
}

TEST_CASE("what waits for values of other contexts comes last, in the order of their coming",
          "[links]") {
  const Training training(kCpus, 5, current_config());
  const Program step = training.machine.compile({}, training.all, training.next);
  const std::vector<int> arrivals = arrivals_of(step.plan(0));
  CHECK(*std::max_element(arrivals.begin(), arrivals.end()) == 10);
  CHECK(free_steps(step.plan(0), "dev0") == free_steps(step.plan(0), "dev1"));
}

TEST_CASE("no kernel computes what others need beside what waits for another context", "[links]") {
  const ContextMachine machine(kCpus);
  const Variable a = machine.shared("a", Array::ones({300}), "dev0");
  const Variable b = machine.shared("b", Array::ones({300}), "dev1");
  std::vector<Variable> mine[2], updated, next;
  for (int c = 0; c < 2; ++c) {
    Variable h = c == 0 ? a : b;
    for (int i = 0; i < 4; ++i) {
      h = tanh(h * 2.0f);
      mine[c].push_back(h);
      h = h / sum(h);
    }
  }
  for (int i = 0; i < 8; ++i) {
    const int c = i % 2;
    const char* here = c == 0 ? "dev0" : "dev1";
    const auto at = static_cast<std::size_t>(i / 2);
    const Variable state = machine.shared("s", Array::zeros({300}), here);
    updated.push_back(state);
    next.push_back(state * 0.5f + mine[c][at] + mine[1 - c][at].transfer(here));
  }
  const Program f = machine.compile({}, updated, next);
  // As many as without any transfer.
  const Program alone = machine.compile({mine[0][3], mine[1][3]}, {}, {});
  for (const char* context : {"dev0", "dev1"}) {
    CHECK(free_steps(f.plan(0), context) >= free_steps(alone.plan(0), context));
  }
  f.run({}, {});
}
