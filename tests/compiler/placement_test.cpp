// Placement where the device of a context lacks an op.
#include "tests/compiler/rewrite_cases.h"

using namespace croton;
using namespace croton::test;

namespace {

/// The context of the product that a graph is made to, when dev1 has no products.
std::string product_on(const Config& config) {
  const Variable x = symbol("x", DType::float32, {3, 3});
  FunctionGraph function;
  function.graph.inputs = {x};
  function.graph.outputs = {exp(dot(exp(x.transfer("dev1")), tanh(x).transfer("dev1")))};
  CompileContext context = context_of(config);
  context.default_context = "dev1";
  context.has_library_op = [](const std::string& op, const std::string& where) {
    return op != "gemm" || where != "dev1";
  };
  const FunctionGraph optimized = optimize(function, context);
  for (const Node* node : optimized.graph.order()) {
    if (node->op->form != OpForm::library) continue;
    return *node->context;
  }
  return "nowhere";
}

}  // namespace

TEST_CASE("an op that a device lacks goes to the CPU with soft_placement alone") {
  CHECK(product_on(Config()) == "dev1");
  CHECK(product_on(Config().with("soft_placement", true)) == "cpu");
}
