// What shares a kernel, and what fusion says where something does not.
#include <catch2/catch.hpp>
#include <string>

#include "compiler/compile.h"
#include "compiler/fuse/group.h"
#include "compiler/graph/op.h"
#include "compiler/passes.h"
#include "croton/croton.h"

using namespace croton;
using Catch::Matchers::Contains;

namespace {

struct Fused {
  std::string groups;
  std::string reasons;
};

Fused fused(const std::vector<Variable>& inputs, const std::vector<Variable>& outputs) {
  FunctionGraph function;
  function.graph.inputs = inputs;
  function.graph.outputs = outputs;
  const CompileContext context{
      current_config(), "cpu", [](const std::string&) { return host_target(); }, {}};
  for (const Pass& pass : pipeline()) {
    if (pass.needed) function.graph = pass.run(function.graph, context);
  }
  DimTable dims;
  const Shapes shapes(function.graph, {}, dims);
  Fused result;
  result.groups = to_text(fuse(function.graph, shapes, true,
                               [&](const Node& producer, const Node& root, const char* reason) {
                                 result.reasons += producer.op->name + " in " + root.op->name +
                                                   ": " + reason + "\n";
                               }));
  return result;
}

}  // namespace

TEST_CASE("a chain is one map") {
  Variable x = vector("x"), y = vector("y");
  CHECK(fused({x, y}, {tanh(x * y) + x}).groups == "map @cpu: mul tanh add -> 1 output\n");
}

TEST_CASE("a value that others need is written on the way") {
  Variable x = matrix("x");
  Variable h = tanh(x);
  CHECK(fused({x}, {h, sum(h, 1)}).groups == "row @cpu: tanh sum -> 2 outputs\n");
}

TEST_CASE("a library call stands alone, and fusion says so") {
  Variable x = matrix("x");
  const Fused f = fused({x}, {dot(x, x) + 1});
  CHECK(f.groups == "library @cpu: gemm -> 1 output\nmap @cpu: add -> 1 output\n");
  CHECK(f.reasons == "gemm in add: it has a kernel or a library call of its own\n");
}

TEST_CASE("a reduction over everything does not feed a kernel over everything") {
  Variable x = matrix("x");
  const Fused f = fused({x}, {x / sum(x)});
  CHECK(f.groups == "reduce @cpu: sum -> 1 output\nmap @cpu: true_divide -> 1 output\n");
  CHECK_THAT(f.reasons, Contains("sum in true_divide"));
}

TEST_CASE("an expensive value is not computed again for each row") {
  Variable x = matrix("x"), y = vector("y");
  const Fused f = fused({x, y}, {x + exp(y)});
  CHECK(f.groups == "map @cpu: exp -> 1 output\nmap @cpu: add -> 1 output\n");
  CHECK_THAT(f.reasons, Contains("exp in add: it would be computed again for each element"));
}

TEST_CASE("no group needs itself through others") {
  // tanh(x) feeds a product whose result the same sum needs: it must not wait for its own kernel.
  Variable x = matrix("x");
  Variable h = tanh(x);
  CHECK(fused({x}, {dot(h, h) + h}).groups ==
        "map @cpu: tanh -> 1 output\nlibrary @cpu: gemm -> 1 output\nmap @cpu: add -> 1 output\n");
}

TEST_CASE("no group needs itself through others that have older and newer members") {
  // The two sums of masked values share a kernel, one is older than what the other needs.
  Variable x = tensor("x", DType::float64, {2, 4}), y = vector("y", DType::float64);
  Variable mask = vector("mask", DType::boolean);
  Variable picked = where(mask, reshape(x, {-1}), y);
  Variable w = iota_like(y, 0, DType::float64);
  Variable cost = sum(picked * w) + sum(y * sin(w)) + sum(picked * cos(w)) + sum(y * tanh(w));
  std::vector<Variable> outputs = grad(cost, {x, y});
  outputs.push_back(cost);
  CHECK_NOTHROW(fused({x, y, mask}, outputs));
}

TEST_CASE("a long sum is cut between its terms") {
  // 300 nodes and more, so that one group does not hold them; a term has no kernel of its own.
  Variable x = vector("x");
  Variable total = tanh(x);
  for (int i = 1; i < 100; ++i) total = total + tanh(x * (0.001 * i + 1));
  const Function f = function({x}, {total, grad(sum(total), x)});
  f(Array{1.0, 2.0});
  CHECK(f.statistics().launches <= 6);
}

TEST_CASE("a chain of shapes is made once on a context that wants all of it") {
  constexpr int kLong = 60;
  Variable x = tensor("x", DType::float32, {2, 3});
  FunctionGraph function;
  function.graph.inputs = {x};
  Variable seen = x;
  for (int i = 0; i < kLong; ++i) {
    seen = i % 2 == 0 ? transpose(seen) : reshape(seen, {6, 1});
    function.graph.outputs.push_back(tanh(seen.transfer("other")));
  }
  const CompileContext context{
      current_config(), "cpu", [](const std::string&) { return host_target(); }, {}};
  const std::size_t before = function.graph.order().size();
  CHECK(place(function.graph, context).order().size() <= 2 * before);
}

TEST_CASE("with fusion off each op is a kernel") {
  Variable x = vector("x");
  FunctionGraph function;
  function.graph.inputs = {x};
  function.graph.outputs = {tanh(x) + x};
  const CompileContext context{
      current_config(), "cpu", [](const std::string&) { return host_target(); }, {}};
  function.graph = place(function.graph, context);
  DimTable dims;
  const Shapes shapes(function.graph, {}, dims);
  CHECK(fuse(function.graph, shapes, false).size() == 2);
}
