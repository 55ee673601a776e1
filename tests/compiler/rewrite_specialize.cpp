// Products of matrices and what they take up: structure, values, library calls and kernels.
#include "croton/croton.h"
#include "croton/grad.h"
#include "tests/compiler/rewrite_cases.h"

using namespace croton;
using namespace croton::test;
using Catch::Matchers::Contains;

namespace {

constexpr std::int64_t kOpen = kAnyDim;

Variable floats(const char* name, const Shape& shape) {
  return symbol(name, DType::float32, shape);
}

std::string gemm_text(const std::string& attrs, const std::string& operands) {
  return "gemm[" + attrs + "](" + operands + ")";
}

const std::string kPlain = "transpose_a=0, transpose_b=0";

}  // namespace

TEST_CASE("products take transposes", "[rewrite]") {
  const Variable a = floats("a", {4, 3});
  const Variable b = floats("b", {4, 5});
  const Variable c = floats("c", {5, 3});
  const auto text = [&](int ta, int tb, const std::string& operands) {
    return gemm_text("transpose_a=" + std::to_string(ta) + ", transpose_b=" + std::to_string(tb),
                     operands);
  };
  check_rule("gemm_transposed", dot(a.T(), b), text(1, 0, "a, b"), false);
  check_rule("gemm_transposed", dot(a, c.T()), text(0, 1, "a, c"), false);
  check_rule("gemm_transposed", dot(b.T(), floats("d", {6, 4}).T()), text(1, 1, "b, d"), false);
  check_rule("transposed_gemm", dot(a, c.T()).T(), text(1, 1, "dimshuffle[order=[1, 0]](c), a"),
             false);
  const Variable batch = floats("s", {2, 4, 3});
  const Variable other = floats("t", {2, 5, 3});
  check_rule("gemm_transposed", matmul(batch, other.dimshuffle({0, 2, 1})), text(0, 1, "s, t"),
             false);
  check_no_match("gemm_transposed", matmul(batch.dimshuffle({1, 0, 2}), floats("u", {4, 3, 6})));
  // Gradients of a product are two products, without a kernel for the transposes.
  const Variable w = floats("w", {3, 5});
  const Variable g = grad(sum(square(dot(a, w))), {w})[0];
  CHECK(expression_text(after_pass(specialize, after_pass(canonicalize, g)))
            .starts_with("gemm[transpose_a=1, transpose_b=0"));
}

TEST_CASE("products take views in place of axes of size 1", "[rewrite]") {
  const Variable v = floats("v", {4});
  const Variable b = floats("b", {4, 5});
  const Variable open = floats("o", {kOpen});
  check_rule("gemm_reshaped", matmul(v.dimshuffle({-1, 0}), b),
             gemm_text(kPlain, "reshape[sizes=[1, 4]](v), b"), false);
  check_rule("gemm_reshaped", matmul(open.dimshuffle({0, -1}), floats("r", {1, 5})),
             gemm_text(kPlain, "reshape[sizes=[-2, 1]](o, size_of[axis=0](o)), r"), false);
  check_no_match("gemm_reshaped", dot(b.T(), b));
}

TEST_CASE("products take factors", "[rewrite]") {
  const Variable a = floats("a", {4, 3});
  const Variable b = floats("b", {3, 5});
  check_rule("scaled_gemm", dot(a, b) * 3, gemm_text(kPlain + ", alpha=3.0", "a, b"), false);
  check_rule("scaled_gemm", dot(a, b) / 8, gemm_text(kPlain + ", alpha=0.125", "a, b"), false);
  check_rule("scaled_gemm", -dot(a, b), gemm_text(kPlain + ", alpha=-1.0", "a, b"), false);
  check_rule("scaled_gemm", 2 * -dot(a, b), gemm_text(kPlain + ", alpha=-2.0", "a, b"), false);
  check_rule("gemm_scaled_operand", dot(a * 2, b), gemm_text(kPlain + ", alpha=2.0", "a, b"),
             false);
  check_rule("gemm_scaled_operand", dot(a, -b), gemm_text(kPlain + ", alpha=-1.0", "a, b"), false);
  // Factors that fit the type one after the other only: 0 stays 0, and 1e-38 * 1e30 * 1e30 is 1e22.
  const Variable x = matrix("x"), y1 = matrix("y1");
  for (const float k : {1e30f, 1e-30f}) {
    const Function f = function({x, y1}, dot(x, y1) * k * k);
    CHECK(f(Array::ones({4, 3}), Array::zeros({3, 5}))[0].at<float>({0, 0}) == 0.0f);
  }
  const Function large = function({x, y1}, dot(x, y1) * 1e30f * 1e30f);
  CHECK(large(Array::full({1, 1}, 1e-38f), Array::ones({1, 1}))[0].at<float>({0, 0}) ==
        Approx(1e22f));
  const Function added = function({x, y1}, x * 1e-30f * 1e-30f * 1e30f + dot(x, y1));
  CHECK(added(Array::full({1, 1}, 1e30f), Array::zeros({1, 1}))[0].at<float>({0, 0}) == 1.0f);
  // The exponential needs a kernel anyway.
  check_no_match("gemm_scaled_operand", dot(exp(a) * 2, b));
  const Variable n = symbol("n", DType::int64, {4, 3});
  check_no_match("scaled_gemm", dot(n, n.T()) * 3);
  const Variable y = dot(a, b);
  const Graph graph = specialize(graph_of({y * 3, exp(y)}), context_of(Config()));
  CHECK(expression_text(graph.outputs[0]) == "mul(" + gemm_text(kPlain, "a, b") + ", 3.0)");
}

TEST_CASE("products take addends", "[rewrite]") {
  const Variable a = floats("a", {4, 3});
  const Variable b = floats("b", {3, 5});
  const Variable c = floats("c", {4, 5});
  const auto text = [&](const std::string& attrs) { return gemm_text(kPlain + attrs, "a, b, c"); };
  check_rule("gemm_add", dot(a, b) + c, text(", beta=1.0"), false);
  check_rule("gemm_add", c * 2 + dot(a, b), text(", beta=2.0"), false);
  check_rule("gemm_sub", c - dot(a, b), text(", alpha=-1.0, beta=1.0"), false);
  check_rule("gemm_sub", dot(a, b) - c * 0.5, text(", beta=-0.5"), false);
  check_rule("gemm_add", dot(a, b) + dot(c, floats("d", {5, 5})),
             gemm_text(kPlain + ", beta=1.0", "a, b, " + gemm_text(kPlain, "c, d")), false);
  check_no_match("gemm_add", dot(a, b) + exp(c));  // the exponential's kernel can add
  check_no_match("gemm_add", dot(a, b) + floats("r", {1, 5}));
  const Variable open = floats("o", {kOpen, kOpen});
  check_no_match("gemm_add", dot(open, open) + c);  // the sum has known sizes, the product has not
  check_rule("gemm_add", dot(open, open) + open, gemm_text(kPlain + ", beta=1.0", "o, o, o"),
             false);
}

TEST_CASE("products take a bias and relu", "[rewrite]") {
  const Variable a = floats("a", {4, 3});
  const Variable b = floats("b", {3, 5});
  const Variable v = floats("v", {5});
  const auto text = [&](const std::string& epilogue, const std::string& more) {
    return gemm_text(kPlain + ", epilogue=\"" + epilogue + "\"", "a, b" + more);
  };
  check_rule("gemm_bias", dot(a, b) + v, text("bias", ", v"), false);
  check_rule("gemm_bias", v.dimshuffle({-1, 0}) + dot(a, b), text("bias", ", v"), false);
  check_rule("gemm_bias", dot(a, b) + floats("r", {1, 5}), text("bias", ", reshape[sizes=[5]](r)"),
             false);
  check_rule("gemm_relu", relu(dot(a, b)), text("relu", ""), false);
  check_no_match("gemm_bias", dot(a, b) + floats("c", {4, 1}));
  check_no_match("gemm_bias", dot(a, b) + floats("s", {}));
  check_no_match("gemm_bias", dot(a, b) + floats("s", {1}));
  check_no_match("gemm_bias", dot(a, b) + exp(v));
  check_no_match("gemm_bias", dot(a, b) + floats("o", {kOpen}));
  const auto specialized = [](const Variable& y) {
    const Variable after = after_pass(specialize, y);
    check_values(y, after, Precision::rounding, false);
    return expression_text(after);
  };
  CHECK(specialized(relu(dot(a, b) + v)) == text("bias_relu", ", v"));
  CHECK(specialized(relu(dot(a, b) * 2 + floats("c", {4, 5}) + v)) ==
        gemm_text(kPlain + ", alpha=2.0, beta=1.0, epilogue=\"bias_relu\"", "a, b, c, v"));
  // What somebody else needs stays.
  const Variable h = dot(a, b) + v;
  const Graph graph = specialize(graph_of({relu(h), exp(h)}), context_of(Config()));
  CHECK(expression_text(graph.outputs[0]) == "relu(" + text("bias", ", v") + ")");
}

TEST_CASE("products with one row or column are reductions", "[rewrite]") {
  const Variable a = floats("a", {4, 3});
  const Variable column = floats("c", {3, 1});
  const Variable row = floats("r", {1, 3});
  check_rule("gemm_vector", dot(a, column),
             "sum[axes=[1], keepdims=1](mul(a, dimshuffle[order=[1, 0]](c)))", false);
  const Variable b =
      apply("gemm", {row, a}, {{"transpose_a", 0}, {"transpose_b", 1}}, Loc::current());
  check_rule("gemm_vector", b, "dimshuffle[order=[1, 0]](sum[axes=[1], keepdims=1](mul(a, r)))",
             false);
  check_no_match("gemm_vector", dot(row, floats("b", {3, 5})));
  check_no_match("gemm_vector", dot(a, floats("b", {3, 2})));
}

TEST_CASE("a dense layer is one library call", "[rewrite]") {
  const Variable x = matrix("x");
  const Shared w = shared(random_uniform({20, 30}, {.seed = 1}), {.name = "w"});
  const Shared b = shared(random_uniform({30}, {.seed = 2}), {.name = "b"});
  const Array xv = random_uniform({10, 20}, {.seed = 3});
  const Function f = function({x}, relu(dot(x, w) + b));
  const Function plain = function({x}, relu(dot(x, w) + b),
                                  {.config = current_config().with("optimizer_excluding", "gemm")});
  CHECK(allclose(f(xv)[0], plain(xv)[0], 1e-5, 1e-6));
  CHECK(f.statistics().library_calls == 1);
  CHECK(f.statistics().launches == 0);
  CHECK(plain.statistics().launches == 1);
}

TEST_CASE("a step of gradient descent is one library call", "[rewrite]") {
  const Variable x = matrix("x");
  const Variable y = tensor("y", DType::float32, {kAnyDim, 5});
  const auto steps = [&](const Config& config) {
    Shared w = shared(random_uniform({20, 5}, {.seed = 1}), {.name = "w"});
    const Variable error = dot(x, w) - y;
    const Variable g = grad(sum(square(error)), {w})[0];
    const Function train = function({x, y}, std::vector<Variable>{},
                                    {.updates = {{w, w - 0.01f * g}}, .config = config});
    const Array xv = random_uniform({8, 20}, {.seed = 3});
    const Array yv = random_uniform({8, 5}, {.seed = 4});
    for (int k = 0; k < 3; ++k) train(xv, yv);
    const FunctionStatistics s = train.statistics();
    return std::pair(w.get_value(), std::pair(s.launches, s.library_calls));
  };
  const auto fast = steps(current_config());
  const auto plain = steps(current_config().with("optimizer_excluding", "gemm"));
  CHECK(allclose(fast.first, plain.first, 1e-5, 1e-6));
  // x w - y and w - 0.02 x' e: the addends are taken up.
  CHECK(fast.second.first == 0);
  CHECK(fast.second.second == 2);
  CHECK(plain.second.first >= 2);
}
