// How many kernels functions become, and how many bytes those move: what fusion is for.
#include <croton/croton.h>

#include <catch2/catch.hpp>
#include <random>

using namespace croton;

namespace {

const Array kMatrix = random_uniform({64, 300}, {.seed = 1});
const Array kVector = random_uniform({1000}, {.seed = 2});
const Array kLabels = Array::zeros({64}, DType::int64);

/// One kernel that reads its operands once and writes its outputs once.
void check_one_pass(const Function& f) {
  const FunctionStatistics s = f.statistics();
  CHECK(s.launches == 1);
  CHECK(s.library_calls == 0);
  CHECK(s.temporary_bytes == 0);
  CHECK(s.bytes_read + s.bytes_written == s.bytes_in + s.bytes_out);
}

}  // namespace

TEST_CASE("what the compilers took is told") {
  Variable a = vector("a");
  // Kernels that no run before this one has left on disk.
  const double number = std::random_device{}();
  Function f = function({a}, exp(a) * number + tanh(a));
  CHECK(f.statistics().modules_compiled == 1);
  CHECK(f.statistics().compile_ms > 0);
  // The same kernels are in memory.
  Function g = function({a}, exp(a) * number + tanh(a));
  CHECK(g.statistics().modules_compiled == 0);
  CHECK(g.statistics().compile_ms == 0);
}

TEST_CASE("an elementwise chain is one kernel") {
  Variable a = vector("a"), b = vector("b"), c = vector("c"), d = vector("d");
  Function f = function({a, b, c, d}, tanh(a * b + c) * sigmoid(d) + exp(-a * a));
  f(kVector, kVector, kVector, kVector);
  check_one_pass(f);
}

TEST_CASE("several outputs of one domain are one kernel") {
  Variable x = matrix("x");
  Function f = function({x}, {x + 1, x * 2, exp(x)});
  f(kMatrix);
  check_one_pass(f);
}

TEST_CASE("outputs that share what they read only further down are few kernels") {
  Variable x = matrix("x");
  std::vector<Variable> outputs;
  for (int i = 1; i <= 40; ++i) outputs.push_back(x * i + sum(x) * i);
  Function f = function({x}, outputs);
  Outputs out = f.call(std::vector<Array>{kMatrix});
  const Array last = function({x}, x * 40 + sum(x) * 40)(kMatrix)[0];
  CHECK(allclose(out[39], last, 1e-5, 1e-5));
  CHECK(f.statistics().launches <= 4);  // the sum in two steps, and the rest
}

TEST_CASE("row-wise functions are one kernel") {
  Variable x = matrix("x"), gamma = vector("gamma"), beta = vector("beta");
  Variable labels = vector("labels", DType::int64);
  SECTION("softmax") {
    Function f = function({x}, softmax(x, 1));
    f(kMatrix);
    check_one_pass(f);
  }
  SECTION("log_softmax") {
    Function f = function({x}, log_softmax(x, 1));
    f(kMatrix);
    check_one_pass(f);
  }
  SECTION("cross-entropy") {
    Function f = function({x, labels}, cross_entropy_from_logits(x, labels));
    f(kMatrix, kLabels);
    check_one_pass(f);
  }
  SECTION("layer norm") {
    Function f = function({x, gamma, beta}, layer_norm(x, gamma, beta));
    f(kMatrix, random_uniform({300}), random_uniform({300}));
    check_one_pass(f);
  }
  SECTION("mean and variance together") {
    Function f = function({x}, {mean(x, 1), var(x, 1)});
    f(kMatrix);
    check_one_pass(f);
  }
}

TEST_CASE("reductions over everything share a kernel and the one that folds its partial results") {
  Variable x = matrix("x");
  Function f = function({x}, {sum(x), max(x), mean(x)});
  f(kMatrix);
  const FunctionStatistics s = f.statistics();
  CHECK(s.launches == 2);
  CHECK(s.bytes_read < s.bytes_in + 64);
}

TEST_CASE("transposes, slices and broadcasts are computed where they are read") {
  Variable x = matrix("x"), y = vector("y");
  Function f = function({x, y}, x.T()(Slice(none, none, -1)) * 2 + y);
  f(kMatrix, random_uniform({64}));
  CHECK(f.statistics().launches == 1);
  CHECK(f.statistics().temporary_bytes == 0);
}

TEST_CASE("a reshape moves nothing") {
  Variable x = matrix("x");
  Function f = function({x}, reshape(x, {-1}));
  f(kMatrix);
  CHECK(f.statistics().launches == 0);
  CHECK(f.statistics().bytes_written == 0);
}

TEST_CASE("an output may take over a dying operand only where all of it was read") {
  // Two products of one kernel that read two temporaries: whichever memory an output takes over,
  // the other one must see what was there before.
  Variable a = matrix("a"), b = matrix("b");
  Variable p = dot(a, b), q = dot(b, a);
  Function f = function({a, b}, {dot(p + q, a), dot(q * 2, b), dot(p - q, b)});
  const Array x = random_uniform({20, 20}, {.seed = 5}), y = random_uniform({20, 20}, {.seed = 6});
  Outputs fused = f(x, y);
  Function plain = function({a, b}, {dot(p + q, a), dot(q * 2, b), dot(p - q, b)},
                            {.config = current_config().with("fuse", false)});
  Outputs expected = plain(x, y);
  for (std::size_t i = 0; i < 3; ++i) CHECK(allclose(fused[i], expected[i], 1e-5, 1e-4));
}

TEST_CASE("repeated calls work out sizes once") {
  Variable x = matrix("x");
  Function f = function({x}, softmax(x, 1));
  for (int i = 0; i < 5; ++i) f(kMatrix);
  CHECK(f.statistics().specialisations == 1);
  f(random_uniform({2, 2}));
  f(kMatrix);
  CHECK(f.statistics().specialisations == 2);
}
