// Expressions and functions as text.
#include <croton/croton.h>
#include <croton/fmt.h>

#include <catch2/catch.hpp>
#include <sstream>

using namespace croton;

namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++n;
  return n;
}

}  // namespace

TEST_CASE("a tree shows ops, symbols, constants and what occurs again") {
  Variable x = matrix("x"), y = tensor("y", DType::float64, {3, 4});
  Variable e = exp(x);
  CHECK(debug_text(e / sum(e)) ==
        "true_divide [id A] <float32 (?, ?)>\n"
        " ├─ exp [id B] <float32 (?, ?)>\n"
        " │   └─ x [id C] <float32 (?, ?)>\n"
        " └─ sum{axes=[0, 1], keepdims=0} [id D] <float32 scalar>\n"
        "     └─ exp [id B] <float32 (?, ?)> ...\n");
  CHECK(debug_text(2 * y, {.ids = false, .types = false}) == "mul\n ├─ 2.0\n └─ y\n");
  CHECK(has(debug_text(y, {.lines = true}), " printing.cpp:"));
  CHECK(debug_text(std::vector<Variable>{x, x}) ==
        "x [id A] <float32 (?, ?)>\nx [id A] <float32 (?, ?)>\n");
  CHECK(debug_text(Variable()) == "<empty Variable>\n");
  std::ostringstream out;
  debugprint(out, x);
  CHECK(out.str() == debug_text(x));
}

TEST_CASE("pp writes signs, parentheses where needed, and repeated parts once") {
  Variable x = matrix("x"), y = matrix("y");
  CHECK(pp((x + 1) * y - x / (y / x)) == "(x + 1.0) * y - x / (y / x)");
  CHECK(pp(x - (y - x)) == "x - (y - x)");
  CHECK(pp(-(x + y)) == "-(x + y)");
  CHECK(pp(dot(x + y, tanh(y))) == "dot(x + y, tanh(y))");
  Variable e = exp(x);
  CHECK(pp(e / sum(e, 1)) == "t1 / sum(t1, axes=[1], keepdims=0) where t1 = exp(x)");
  CHECK(pp(matrix()) == "<float32 (?, ?)>");
  // What doubles with each step would fill any memory when written out.
  Variable v = x;
  for (int i = 0; i < 100; ++i) v = v * v;
  CHECK(pp(v).size() < 5000);
}

TEST_CASE("a variable prints as one line") {
  Variable x = tensor("x", DType::float32, {kAnyDim, 784});
  std::ostringstream out;
  out << x << '|' << exp(x) << '|' << Variable();
  CHECK(out.str() == "x: float32 (?, 784)|exp: float32 (?, 784)|<empty Variable>");
  CHECK(fmt::format("{:>22}", x) == "   x: float32 (?, 784)");
  Shared w = shared(1.0f, {.name = "w"});
  CHECK(fmt::format("{}", w) == "w: float32 scalar on cpu");
}

TEST_CASE("long chains print without recursion in linear space") {
  Variable x = vector("x"), v = x;
  for (int i = 0; i < 100000; ++i) v = v + 1;
  CHECK(debug_text(v, {.types = false}).size() < 250u * 100000u);
  CHECK(pp(v).size() < 10u * 100000u);
}

TEST_CASE("a function prints its graph before and after, its kernels and its plan") {
  Variable x = tensor("x", DType::float32, {kAnyDim, 8});
  Shared w = shared(Array::ones({8, 4}), {.name = "w"});
  Variable p = softmax(dot(x, w));
  Function f = function({x}, {{"p", p}}, {.updates = {{w, w * 0.5f}}, .name = "classify"});
  const std::string text = debug_text(f);
  CHECK(has(text, "function classify"));
  CHECK(has(text, "output 0 'p': softmax{axis=1}"));
  CHECK(has(text, "update of w: mul"));
  CHECK(has(text, "shared"));
  CHECK(has(text, "-> step "));
  CHECK(has(text, "call: gemm"));
  CHECK(has(text, "kernel: max sub exp sum"));
  CHECK(has(text, "plan classify"));

  const Inspection parts = inspect(f);
  CHECK(has(parts.graph, "softmax"));
  CHECK_FALSE(has(parts.optimized, "softmax"));
  CHECK(has(parts.plan, "launch k"));
  CHECK(has(parts.kernels, "lanes"));
  CHECK(has(parts.llvm_ir, "define "));
  CHECK(count(parts.cuda_source, "__global__") == 2);
  CHECK_THROWS_AS(inspect(f, {.sm = 9}), UserError);
  CHECK_THROWS_AS(debug_text(Function()), UserError);
}

TEST_CASE("outputs print behind their names, shapes and dtypes as they are written") {
  Variable x = matrix("x");
  const auto text = [](const auto& value) {
    std::ostringstream out;
    out << value;
    return out.str();
  };
  const Array a = {{1.0, 2.0}};
  CHECK(text(function({x}, {{"total", sum(x)}, {"all", x}})(a)) == "total: 3.0\nall:\n[[1. 2.]]\n");
  CHECK(text(function({x}, {sum(x), x})(a)) == "3.0\n[[1. 2.]]\n");
  CHECK(text(a.shape()) == "(1, 2)");
  CHECK(text(a.dtype()) == "float32");
  CHECK(function({x}, {{"total", sum(x)}})(a).name(0) == "total");
  CHECK(function({x}, x)(a).name(0).empty());
  CHECK_THROWS_AS(function({x}, x)(a).name(1), UserError);
}
