// Sizes that follow from values which the function computes itself: it runs in parts.
#include <croton/croton.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

using namespace croton;
using Catch::Matchers::Contains;

namespace {

/// How many elements are above 0.
Variable positives(const Variable& x) { return sum(cast(gt(x, 0.0f), DType::int64)); }

const Array kTwo = {1.0, -1.0, 2.0};
const Array kThree = {1.0, 1.0, 2.0};
const Array kNone = {-1.0, -1.0, -2.0};

Array numbers(std::int64_t n) { return Array::arange(n); }

}  // namespace

TEST_CASE("arrays may be as long as the graph says", "[computed_sizes]") {
  Variable x = vector("x");
  const Variable n = positives(x);
  for (const char* mode : {"FAST_RUN", "FAST_COMPILE", "DEBUG"}) {
    INFO(mode);
    const Function f = function({x}, {{"ones", ones(Sizes{n})}, {"n", n}, {"twice", x * 2}},
                                {.config = current_config().with("mode", mode)});
    for (int turn = 0; turn < 2; ++turn) {
      for (const auto& [value, count] : {std::pair{kTwo, 2}, {kThree, 3}, {kNone, 0}}) {
        const Outputs out = f(value);
        CHECK(array_equal(out["ones"], Array::ones({count})));
        CHECK(out["n"].item<std::int64_t>() == count);
        for (int i = 0; i < 3; ++i) {
          CHECK(out["twice"].at<float>({i}) == 2 * value.at<float>({i}));
        }
      }
    }
  }
}

TEST_CASE("sizes of any origin", "[computed_sizes]") {
  Variable x = vector("x");
  const Variable n = positives(x);
  // Arithmetic on them, sizes of what they made, bounds of slices, of a float's making.
  const Variable made = zeros(Sizes{2 * n + 1});
  CHECK(array_equal(function({x}, arange(made.shape()(0) - 1))(kTwo)[0], numbers(4)));
  CHECK(array_equal(function({x}, x(Slice(0, n)))(kTwo)[0], Array({1.0, -1.0})));
  CHECK(array_equal(function({x}, x(Slice(n, none)))(kTwo)[0], Array({2.0})));
  CHECK(array_equal(function({x}, arange(cast(sum(x), DType::int64)))(kThree)[0], numbers(4)));
  // Elements of a vector, and a shared number, which the call itself changes.
  Variable sizes = vector("sizes", DType::int64);
  const Function shaped = function({x, sizes}, reshape(x, {sizes(1), sizes(0)}));
  CHECK(shaped(kTwo, Array({1, 3}))[0].shape() == Shape({3, 1}));
  CHECK(shaped(kTwo, Array({3, 1}))[0].shape() == Shape({1, 3}));
  const Variable joined = concatenate({n(newaxis), ones(Sizes{1}, DType::int64) + 1}, 0);
  CHECK(function({x}, reshape(concatenate({x, x(Slice(0, 1))}, 0), joined))(kTwo)[0].shape() ==
        Shape({2, 2}));
  Shared length = shared(Array::full({}, std::int64_t{2}, DType::int64));
  const Function longer = function({}, arange(length), {.updates = {{length, length * 2}}});
  for (const std::int64_t wanted : {2, 4, 8}) CHECK(longer()[0].shape() == Shape({wanted}));
}

TEST_CASE("sizes are what their values are, wrapped around or not", "[computed_sizes]") {
  // A mask of what wraps around has as many places as the kernel finds.
  const Variable n = scalar("n", DType::int32), m = scalar("m", DType::int8);
  const Variable u = scalar("u", DType::uint64), k = arange(61).astype(DType::int32);
  const auto length = [](const Outputs& out) { return out[0].size(); };
  CHECK(length(function({n}, flatnonzero(lt(n * n, k)))(50000)) == 61);
  CHECK(length(function({n}, flatnonzero(lt(k, n * n)))(50000)) == 0);
  CHECK(length(function({u}, flatnonzero(lt(arange(10).astype(DType::uint64), u)))(
            Array::from<std::uint64_t>(std::vector<std::uint64_t>{~std::uint64_t{0}}, {}))) == 10);
  CHECK(length(function({m}, ones(Sizes{m * m}))(100)) == 16);
  const Variable byte = scalar("byte", DType::uint8);
  CHECK(length(function({byte}, arange(byte + byte))(200)) == 144);
}

TEST_CASE("outputs that later parts take stay where they are", "[computed_sizes]") {
  Variable x = vector("x");
  const Variable n = positives(x), y = x * 2;
  const Function f = function({x}, {{"n", n}, {"y", y}, {"part", y(Slice(0, n))}});
  CHECK(f.output_contexts() == std::vector<std::string>{"cpu", "cpu", "cpu"});
  const Outputs out = f(kTwo);
  CHECK(out["n"].item<std::int64_t>() == 2);
  CHECK(array_equal(out["part"], Array({2.0, -2.0})));
}

TEST_CASE("sizes follow from sizes that were computed", "[computed_sizes]") {
  Variable x = vector("x");
  const Variable a = arange(positives(x)) + 1;
  const Variable b = arange(sum(a));
  const Function f = function({x}, {arange(sum(b)), b, a, x + 1});
  const Outputs out = f(Array({1.0, 1.0, 1.0}));
  CHECK(array_equal(out[0], numbers(15)));
  CHECK(array_equal(out[1], numbers(6)));
  CHECK(array_equal(out[2], Array({1, 2, 3})));
  CHECK(array_equal(out[3], Array({2.0, 2.0, 2.0})));
  CHECK(f.statistics().calls == 1);
  CHECK(f(kNone)[0].shape() == Shape({0}));
  CHECK(f.statistics().calls == 2);
}

TEST_CASE("gradients go through arrays of computed sizes", "[computed_sizes]") {
  Variable x = vector("x");
  Shared w = shared(Array::ones({4}));
  const Variable part = w(Slice(0, positives(x)));
  const Function f = function({x}, grad(sum(3 * part * part), w));
  CHECK(array_equal(f(kTwo)[0], Array({6.0, 6.0, 0.0, 0.0})));
  CHECK(array_equal(f(kThree)[0], Array({6.0, 6.0, 6.0, 0.0})));
}

TEST_CASE("what must agree in a call is checked before anything changes", "[computed_sizes]") {
  Variable x = vector("x");
  const Variable n = positives(x);
  Shared w = shared(Array::zeros({3}), {.name = "w"});
  // The sum is w, as rules find out; the sizes must agree all the same.
  const Function f = function({x}, zeros(Sizes{n}) + w, {.updates = {{w, w + 1}}});
  CHECK_THROWS_WITH(f(kTwo), Contains("[add] sizes of operands 1 and 2 differ") &&
                                 Contains("2 and 3") && Contains("computed_sizes.cpp"));
  CHECK(array_equal(w.get_value(), Array::zeros({3})));
  CHECK(array_equal(f(kThree)[0], Array::zeros({3})));
  CHECK(array_equal(w.get_value(), Array::ones({3})));
  CHECK_THROWS_WITH(function({x}, zeros(Sizes{n - 3}))(kTwo),
                    Contains("[zeros] a size must not be negative: got -1"));
  Variable mask = vector("mask");
  const Function masked = function({x, mask}, x(gt(mask, 0)));
  CHECK_THROWS_WITH(masked(kTwo, Array({1.0, 2.0})),
                    Contains("axis 0 of argument 0 (\"x\") is 3; at"));
  // What later parts take is none of the caller's business.
  CHECK_THROWS_WITH(f(), Contains("argument"));
  CHECK_THROWS_WITH(f(kTwo, kTwo), Contains("argument"));
  CHECK_THROWS_WITH(f(Array::ones({2, 2})), Contains("argument 0 (\"x\")"));
  // Sizes are integers.
  CHECK_THROWS_AS(zeros(Sizes{sum(x)}), GraphError);
}

TEST_CASE("all parts of a call see the same shared values", "[computed_sizes]") {
  Shared w = shared(Array::full({}, std::int64_t{1}, DType::int64));
  Shared v = shared(Array::full({}, std::int64_t{1}, DType::int64));
  const Function step = function({}, {}, {.updates = {{w, w % 7 + 1}, {v, w % 7 + 1}}});
  // The first part reads w, the second one v.
  const Function f = function({}, ones(Sizes{w}, DType::int64) * v);
  std::atomic<int> wrong = 0;
  std::thread other([&] {
    for (int i = 0; i < 500; ++i) step();
  });
  for (int i = 0; i < 500; ++i) {
    const std::vector<std::int64_t> values = f()[0].to_vector<std::int64_t>();
    if (values.empty() || values[0] != static_cast<std::int64_t>(values.size())) ++wrong;
  }
  other.join();
  CHECK(wrong == 0);
}

TEST_CASE("printing shows the parts", "[computed_sizes]") {
  Variable x = vector("x");
  const Function f = function({x}, ones(Sizes{positives(x)}));
  f(kTwo);
  CHECK(f.statistics().launches >= 2);
  const std::string text = debug_text(f);
  CHECK_THAT(text, Contains("# part 0") && Contains("# part 1"));
  const Inspection parts = inspect(f);
  CHECK_THAT(parts.fused, Contains("# part 0") && Contains("sum") && Contains("# part 1"));
  CHECK_THAT(parts.cuda_source, Contains("# part 1") && Contains("__global__"));
  CHECK_THAT(debug_text(function({x}, x + 1)), !Contains("# part"));
}
