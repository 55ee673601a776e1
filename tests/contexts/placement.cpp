// Where work goes, what crosses between contexts, and what is told of it.
#include <croton/croton.h>

#include <catch2/catch.hpp>
#include <iostream>
#include <sstream>
#include <string>

using namespace croton;
using Catch::Matchers::Contains;

namespace {

/// The lines of the flag log_placement for a function that is only compiled.
std::string placement_of(const OutputList& outputs, const std::vector<Variable>& inputs = {},
                         const std::vector<Update>& updates = {}) {
  std::ostringstream lines;
  std::streambuf* const before = std::cerr.rdbuf(lines.rdbuf());
  try {
    function(inputs, outputs,
             {.updates = updates, .config = current_config().with("log_placement", true)});
  } catch (...) {
    std::cerr.rdbuf(before);
    throw;
  }
  std::cerr.rdbuf(before);
  return lines.str();
}

int count(const std::string& text, const std::string& word) {
  int times = 0;
  for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) ++times;
  return times;
}

int transfers_of(const OutputList& outputs) {
  return count(placement_of(outputs), "placement: transfer of");
}

Shared ones_on(const char* context, const char* name) {
  return shared(Array::ones({8, 4}), {.name = name, .target = context});
}

}  // namespace

TEST_CASE("transfers are merged, folded and as few as can be") {
  const Shared a = ones_on("dev0", "a"), b = ones_on("dev1", "b");
  const Variable there = exp(a);
  // One value for many users, asked for or not.
  CHECK(transfers_of({there.transfer("dev1") * b, there.transfer("dev1") + b}) == 1);
  CHECK(transfers_of(there.transfer("dev1") * b * there.transfer("dev1")) == 1);
  // A chain is one step, and there and back is none.
  CHECK(transfers_of(a.transfer("dev1").transfer("dev0").transfer("dev1") + b) == 1);
  CHECK(transfers_of(a.transfer("dev1").transfer("dev0") * 2) == 0);
  CHECK(transfers_of(a.transfer("dev0") * 2) == 0);
  // Constants, arguments and sizes lie everywhere.
  CHECK(transfers_of({a * 3.0f, b * 3.0f, b + Array::ones({8, 4})}) == 0);
  const Shared open = shared(Array::ones({8, 4}), {.target = "dev0", .resizable = true});
  const Shared other = shared(Array::ones({8, 4}), {.target = "dev1", .resizable = true});
  CHECK(transfers_of({other(Slice(0, open.shape(0) - 2)) * 2, other + zeros_like(open)}) == 0);
  const Config strict = current_config().with("implicit_transfer", "raise");
  Function f = function({}, other(Slice(0, open.shape(0) - 2)) * 2, {.config = strict});
  CHECK(array_equal(f()[0], Array::full({6, 4}, 2.0f)));
}

TEST_CASE("gradients lie beside their forward ops") {
  const Shared a = ones_on("dev0", "a"), b = ones_on("dev1", "b");
  const Variable hidden = tanh(a);
  const Variable cost = sum(exp(hidden.transfer("dev1")) * b);
  std::vector<Variable> g;
  {
    // Where grad is called does not matter.
    const ContextScope elsewhere("cpu");
    g = grad(cost, {a, b, hidden});
  }
  Function f = function({}, {g[0], g[1], g[2]}, {.keep_on_device = true});
  const Outputs out = f();
  CHECK(out[0].context() == "dev0");
  CHECK(out[1].context() == "dev1");
  CHECK(out[2].context() == "dev0");
  // The value goes there and its gradient comes back.
  CHECK(transfers_of({g[0], g[1]}) == 2);
  CHECK_THAT(placement_of(g[0]), Contains("on dev0: beside the op whose gradient it is"));
  // So it is where an op took its operand over by itself.
  g = grad(sum(square(a * b)), {a, b});
  f = function({}, {g[0], g[1]}, {.keep_on_device = true});
  CHECK(f()[1].context() == "dev1");
  CHECK(array_equal(f()[1].to_host(), Array::full({8, 4}, 2.0f)));
}

TEST_CASE("gradients of one value are summed on each context before they cross") {
  const Shared w = ones_on("cpu", "w");
  const Shared a = ones_on("dev0", "a"), b = ones_on("dev1", "b");
  Variable cost;
  for (const auto& [where, x] : {std::pair("dev0", a), std::pair("dev1", b)}) {
    const ContextScope on(where);
    const Variable part = sum(exp(x * w) * sin(w + x) * cos(w * x));
    cost = cost.defined() ? cost + part.transfer("dev0") : part;
  }
  const Variable g = grad(cost, w);
  // The value to both, and a gradient from both.
  CHECK(transfers_of(g) == 4);
  const Function f = function({}, g);
  CHECK(f.output_contexts() == std::vector<std::string>{"cpu"});
}

TEST_CASE("rules take no work from one context to another") {
  const Shared a = shared(Array({{1.0, 2.0}, {3.0, 4.0}}), {.target = "dev0"});
  const Shared b = shared(Array({{1.0, 0.0}, {0.0, 1.0}}), {.target = "dev1"});
  const Variable across = dot(a, a).transfer("dev1") + b;
  Variable scoped;
  {
    const ContextScope on("dev1");
    scoped = dot(a, a) + b;
  }
  const Variable both = dot(a, a) + dot(b, b);
  CHECK_THAT(debug_text(function({}, across)), Contains("on dev0, call: gemm"));
  CHECK_THAT(debug_text(function({}, scoped)), Contains("on dev1, call: gemm"));
  CHECK_THAT(debug_text(function({}, both)),
             Contains("on dev0, call: gemm") && Contains("on dev1, call: gemm"));
  CHECK(array_equal(function({}, across)()[0], Array({{8.0, 10.0}, {15.0, 23.0}})));
}

TEST_CASE("log_placement tells of each node and each transfer") {
  const Shared a = ones_on("dev0", "a"), b = ones_on("dev1", "b");
  const Variable x = matrix("x");
  Variable scoped;
  {
    const ContextScope on("dev1");
    scoped = x + 1;
  }
  const std::string text = placement_of({tanh(a) * b, scoped, exp(x)}, {x}, {{b, a * 2}});
  CHECK_THAT(
      text, Contains("placement: shared 'a' (placement.cpp:") && Contains(") on dev0: its target"));
  CHECK_THAT(text, Contains("placement: mul (placement.cpp:") &&
                       Contains(") on dev0: 128 of 256 bytes of its inputs are there"));
  CHECK_THAT(
      text, Contains("placement: add (placement.cpp:") && Contains(") on dev1: a scope or target"));
  CHECK_THAT(text, Contains(") on cpu: the default (flag device)"));
  CHECK_THAT(text, Contains("placement: transfer of 'b', 128 bytes from dev1 to dev0 for mul"));
  const std::string asked = placement_of(exp(a).transfer("dev1") * b);
  CHECK_THAT(asked, Contains("128 bytes from dev0 to dev1 that was asked for (placement.cpp:"));
  CHECK(function({x}, exp(x)).statistics().calls == 0);
  CHECK(placement_of(exp(x), {x}).find("transfer") == std::string::npos);
}

TEST_CASE("scopes take devices as TensorFlow writes them") {
  const Variable x = matrix("x");
  const auto context_in = [&](std::initializer_list<const char*> scopes) {
    std::vector<std::unique_ptr<ContextScope>> open;
    for (const char* scope : scopes) open.push_back(std::make_unique<ContextScope>(scope));
    return (x + 1).context();
  };
  CHECK(context_in({"/cpu:0"}) == "cpu");
  CHECK(context_in({"/device:CPU:0"}) == "cpu");
  CHECK(context_in({"/job:localhost/replica:0/task:0/device:CPU:0"}) == "cpu");
  CHECK(context_in({"/gpu:7"}) == "cuda7");
  CHECK(context_in({"/GPU:7", "/device:GPU:*"}) == "cuda7");
  // Another kind has an index of its own; fields that are not given stay.
  CHECK(context_in({"/gpu:7", "/cpu"}) == "cpu");
  CHECK(context_in({"/gpu:7", "/job:localhost"}) == "cuda7");
  CHECK(context_in({"/gpu:7", "dev1"}) == "dev1");
  // A context that is on the device that is asked for stays.
  const bool cpu = current_config().contexts()[1].device.kind == DeviceKind::cpu;
  CHECK(context_in({"dev1", cpu ? "/cpu" : "/gpu"}) == "dev1");
  if (current_config().contexts()[0].device.kind == DeviceKind::cuda) {
    CHECK(context_in({"/gpu:0"}) == "dev0");
    CHECK(context_in({"/gpu"}) == "dev0");
  }
  // Nothing drops what is around.
  CHECK(context_in({"dev1", ""}).empty());
  CHECK(context_in({"dev1", "", "dev0"}) == "dev0");
  {
    const ContextScope outer("dev1");
    const ContextScope dropped(none);
    CHECK((x + 1).context().empty());
  }
  const Function f = function({x}, (x * 2).transfer("/cpu:0") + 1);
  CHECK(array_equal(f(Array::ones({2, 2}))[0], Array::full({2, 2}, 3.0f)));
  CHECK(shared(Array::ones({2}), {.target = "/cpu:0"}).context() == "cpu");
  CHECK_THROWS_AS(ContextScope("/gpu:x"), ConfigError);
  CHECK_THROWS_WITH(ContextScope("/job:worker/task:1/device:GPU:0"),
                    Contains("another process") && Contains("/gpu:0"));
  {
    const ContextScope outer("dev1");
    CHECK_THROWS_AS(ContextScope("/tpu:0"), ConfigError);
    CHECK((x + 1).context() == "dev1");
  }
}
