// Kernels never need one another's results both ways.
#include <croton/croton.h>

#include <catch2/catch.hpp>

using namespace croton;

TEST_CASE("two sums that share operands at both ends are computed in an order that exists") {
  // The gradient reads 1 / n and the activation; the cost reads n and the activation: each of the
  // two kernels could compute one of them for the other.
  Variable x = tensor("x", DType::float32, {kAnyDim, 30}), y = vector("y");
  Shared w = shared(random_normal({30}, {.seed = 1})), b = shared(0.5f);
  Variable cost = mean(binary_crossentropy(sigmoid(dot(x, w) + b), y));
  std::vector<Variable> g = grad(cost, {w, b});
  const Array xs = random_normal({50, 30}, {.seed = 2}), ys = random_uniform({50}, {.seed = 3});
  const std::vector<Variable> values{cost, g[0], g[1]};
  Outputs fused = function({x, y}, values)(xs, ys);
  const Config apart = current_config().with("fuse", "off");
  Outputs expected = function({x, y}, values, {.config = apart})(xs, ys);
  for (std::size_t i = 0; i < values.size(); ++i)
    CHECK(allclose(fused[i], expected[i], 1e-4, 1e-6));
}

TEST_CASE("folds over other axes than those of a kernel have kernels of their own") {
  // Both read x, and the larger set of axes holds the smaller one.
  Variable x = tensor("x", DType::float32, {3, kAnyDim, kAnyDim});
  const std::vector<Variable> values{log_softmax(x, 2), max(x, {0, 2}, {.keepdims = true}),
                                     sum(x, {0, 2}), x - mean(x, 2, {.keepdims = true})};
  const Array at = random_normal({3, 17, 5}, {.seed = 4});
  Outputs fused = function({x}, values)(at);
  const Config apart = current_config().with("fuse", "off");
  Outputs expected = function({x}, values, {.config = apart})(at);
  for (std::size_t i = 0; i < values.size(); ++i)
    CHECK(allclose(fused[i], expected[i], 1e-4, 1e-6));
}

TEST_CASE("an output in another order than the domain takes over no operand's memory") {
  const Variable x = vector("x"), q = tensor("q", DType::float32, {3, 5});
  const Variable w = tensor("w", DType::float32, {5, 3});
  // One kernel reads the reshaped sums in their order, and writes `u` in another.
  const Variable a = q - tanh(reshape(cumsum(x, 0), {3, 5}) * 0.01f);
  const Variable t = dimshuffle(a, {1, 0, -1});
  const Variable u = tanh(t);
  const Variable d = (q + dimshuffle(w + dimshuffle(u, {0, 1}), {1, 0})) * 3;
  const std::vector<Variable> outputs{concatenate({t, u * 2}, 2), cumsum(reshape(d, {15}), 0)};
  const auto run = [&](const char* mode) {
    const Function f =
        function({x, q, w}, outputs, {.config = current_config().with("mode", mode)});
    return f(Array::arange(15).astype(DType::float32), Array::ones({3, 5}), Array::ones({5, 3}));
  };
  const Outputs fused = run("FAST_RUN"), plain = run("FAST_COMPILE");
  for (std::size_t k = 0; k < 2; ++k) CHECK(allclose(fused[k], plain[k], 1e-5, 1e-5));
}

TEST_CASE("a sum reads its operand at other places than what shares its kernel") {
  // The kernel's axes are (?, 2, 5) for the sum and (2, ?, 5) for the others; sizes known to be 2
  // make them look the same.
  const Variable x = tensor("x", DType::float64, {2, kAnyDim, 5});
  const Variable low = tensor("low", DType::float64, {2, 2, 5});
  const Variable high = tensor("high", DType::float64, {2, 2, 5});
  const Function f =
      function({x, low, high}, {clip(x, low, high), square(x) - x, sum(x, {0, 2}) / 8});
  const Outputs out =
      f(Array::arange(20).astype(DType::float64).reshape({2, 2, 5}),
        Array::zeros({2, 2, 5}, DType::float64), Array::full({2, 2, 5}, 9, DType::float64));
  CHECK(out[2].to_vector<double>() == std::vector<double>{70.0 / 8, 120.0 / 8});
  CHECK(out[0].at<double>({1, 1, 0}) == 9);
  CHECK(out[1].at<double>({1, 0, 2}) == 132);
}
