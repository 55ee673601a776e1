// Programs on two contexts: dev0 and dev1, whatever devices those are. They run with two names for
// the CPU, and on emulated GPUs: two, two that reach each other through the host alone, one under
// two names, one beside the CPU.
#include <croton/croton.h>

#include <catch2/catch.hpp>

using namespace croton;
using Catch::Matchers::Contains;

namespace {

const Array kA = {{1.0, 2.0}, {3.0, 4.0}};
const Array kB = {{5.0, 6.0}, {7.0, 8.0}};

}  // namespace

TEST_CASE("work runs where its shared variables live") {
  Shared a = shared(kA, {.name = "a", .target = "dev0"});
  Shared b = shared(kB, {.name = "b", .target = "dev1"});
  CHECK(a.context() == "dev0");
  Function f = function({}, {dot(a, a), dot(b, b)}, {.keep_on_device = true});
  Outputs out = f();
  CHECK(array_equal(out[0].to_host(), Array({{7.0, 10.0}, {15.0, 22.0}})));
  CHECK(array_equal(out[1].to_host(), Array({{67.0, 78.0}, {91.0, 106.0}})));
  CHECK(out[0].context() == "dev0");
  CHECK(out[1].context() == "dev1");
}

TEST_CASE("values cross contexts where an op needs them, and gradients come back") {
  Shared a = shared(kA, {.target = "dev0"});
  Shared b = shared(kB, {.target = "dev1"});
  Variable moved = a.transfer("dev1");
  Variable cost = sum(moved * b);
  std::vector<Variable> g = grad(cost, {a, b});
  Function f = function({}, {cost, g[0], g[1]}, {.keep_on_device = true});
  Outputs out = f();
  CHECK(out[0].item<float>() == 70.0f);
  CHECK(array_equal(out[1].to_host(), kB));
  CHECK(array_equal(out[2].to_host(), kA));
  CHECK(out[1].context() == "dev0");
}

TEST_CASE("implicit transfers follow the flag") {
  Shared a = shared(kA, {.target = "dev0"});
  Shared b = shared(kB, {.target = "dev1"});
  CHECK(function({}, sum(a + b))()[0].item<float>() == 36.0f);
  const Config strict = current_config().with("implicit_transfer", "raise");
  CHECK_THROWS_WITH(function({}, sum(a + b), {.config = strict}),
                    Contains("dev1") && Contains("dev0") && Contains("transfer"));
  CHECK_NOTHROW(function({}, sum(a + b.transfer("dev0")), {.config = strict}));
}

TEST_CASE("a ContextScope places what is made inside it") {
  Variable x = matrix("x");
  Variable y;
  {
    ContextScope on("dev1");
    y = x + 1;
    Shared s = shared(kA);
    CHECK(s.context() == "dev1");
    ContextScope inner("dev0");
    CHECK((x * 2).context() == "dev0");
  }
  CHECK(y.context() == "dev1");
  CHECK((x + 1).context().empty());
  Outputs out = function({x}, y, {.keep_on_device = true})(kA);
  CHECK(out[0].context() == "dev1");
  CHECK(array_equal(out[0].to_host(), Array({{2.0, 3.0}, {4.0, 5.0}})));
}

TEST_CASE("unbound contexts are errors that name the bound ones") {
  CHECK_THROWS_AS(shared(kA, {.target = "dev7"}), ConfigError);
  CHECK_THROWS_WITH(shared(kA, {.target = "dev7"}), Contains("dev7") && Contains("dev0"));
  CHECK_THROWS_AS(ContextScope("elsewhere"), ConfigError);
  CHECK_THROWS_WITH(ContextScope("dve0"), Contains("did you mean 'dev0'"));
  CHECK_THROWS_WITH(ContextScope("gpu1"), Contains("did you mean 'cuda1'"));
}

TEST_CASE("arguments pull nothing to where they are, in whatever shape they are seen") {
  Shared a = shared(kA, {.target = "dev0"});
  Variable x = matrix("x"), v = vector("v");
  // The sizes that the product needs make another value of x.
  Function f = function({x, v}, {dot(x, a), dot(x.T(), a), a * reshape(v, {2, 2}), x.T()},
                        {.keep_on_device = true});
  CHECK(f.output_contexts() == std::vector<std::string>{"dev0", "dev0", "dev0", "cpu"});
  Outputs out = f(kB, {1, 0, 0, 1});
  CHECK(array_equal(out[0].to_host(), Array({{23.0, 34.0}, {31.0, 46.0}})));
  CHECK(array_equal(out[1].to_host(), Array({{26.0, 38.0}, {30.0, 44.0}})));
  CHECK(array_equal(out[2].to_host(), Array({{1.0, 0.0}, {0.0, 4.0}})));
  CHECK(array_equal(out[3].to_host(), Array({{5.0, 7.0}, {6.0, 8.0}})));
  CHECK(f.statistics().copies == 0);
  // Wanted in two places, as the function's text shows.
  CHECK_THAT(debug_text(f), Contains("input 0 \"x\": float32 (2, 2) on dev0"));
  // Not so what is computed from them, nor what was put somewhere.
  CHECK(function({x}, dot(exp(x), a)).output_contexts() == std::vector<std::string>{"cpu"});
  Variable there;
  {
    ContextScope on("dev1");
    there = x.T();
  }
  CHECK(function({x}, dot(there, a)).output_contexts() == std::vector<std::string>{"dev1"});
}

TEST_CASE("an update crosses to the context of its variable") {
  Shared a = shared(kA, {.target = "dev0"});
  Shared b = shared(kB, {.target = "dev1"});
  Function f = function({}, {}, {.updates = {{a, b * 2}, {b, a}}});
  f();
  CHECK(array_equal(a.get_value(), Array({{10.0, 12.0}, {14.0, 16.0}})));
  CHECK(array_equal(b.get_value(), kA));
  f();
  CHECK(array_equal(a.get_value(), Array({{2.0, 4.0}, {6.0, 8.0}})));
}

TEST_CASE("results do not depend on where they are computed") {
  Variable x = matrix("x");
  const Array values = random_uniform({37, 53}, {.seed = 3});
  std::vector<Outputs> results;
  for (const char* where : {"dev0", "dev1", "cpu"}) {
    ContextScope on(where);
    results.push_back(function({x}, {tanh(x) * 3 - x, softmax(x, 1)})(values));
  }
  for (const int other : {1, 2}) {
    CHECK(array_equal(results[0][0], results[other][0]));
    // A sum is made in another order on a GPU: it loses at most an ulp an addition.
    CHECK(allclose(results[0][1], results[other][1], 53 * 0x1p-23, 0));
  }
}

TEST_CASE("a result of one context can be passed to a function on another") {
  Shared a = shared(kA, {.target = "dev0"});
  Shared b = shared(kB, {.target = "dev1"});
  Variable x = matrix("x");
  const Array first = function({}, a + 1)()[0];
  CHECK(function({x}, sum(x * b))(first)[0].item<float>() == 96.0f);
}

TEST_CASE("values of computed sizes stay on their contexts") {
  Shared a = shared(Array({1.0, -1.0, 2.0}), {.target = "dev0"});
  Shared b = shared(Array({1.0, 2.0, 3.0, 4.0}), {.target = "dev1"});
  const Variable n = sum(cast(gt(a, 0.0f), DType::int64));
  const Variable large = exp(b * 2);
  Function f = function({}, {ones(Sizes{n}) * sum(a), large(Slice(0, n)) / large(Slice(0, n))},
                        {.updates = {{a, a - 1}}});
  const Outputs out = f();
  CHECK(array_equal(out[0], Array({2.0, 2.0})));
  CHECK(array_equal(out[1], Array({1.0, 1.0})));
  CHECK(f.output_contexts() == std::vector<std::string>{"dev0", "dev1"});
  CHECK(f()[0].shape() == Shape({1}));
  // What a later part takes, too.
  const Variable twice = b * 2;
  Function g = function({}, {twice, twice(Slice(0, n))}, {.keep_on_device = true});
  CHECK(g.output_contexts() == std::vector<std::string>{"dev1", "dev1"});
  CHECK(array_equal(g()[0].to_host(), Array({2.0, 4.0, 6.0, 8.0})));
}
