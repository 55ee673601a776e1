// What count_instructions.sh runs under valgrind: one thing so many times and nothing else, so
// that the difference between two runs is the cost of that thing.
#include <croton/croton.h>

#include <stdexcept>

#include "compiler/compile.h"
#include "frontend/function_graph.h"
#include "runtime/target.h"
#include "tests/bench/bench.h"

namespace croton::bench {
namespace {

void call_scalars(int count) {
  const Variable x = scalar("x"), y = scalar("y");
  const Function f = function({x, y}, x + y);
  const Array one = 1.0f, two = 2.0f;
  for (int i = 0; i < count; ++i) f(one, two);
}

void call_vectors(int count) {
  const Variable x = vector("x"), y = vector("y");
  const Function f = function({x, y}, x + y);
  const Array ten = Array::full({10}, 1.0, DType::float32);
  for (int i = 0; i < count; ++i) f(ten, ten);
}

/// From the user's graph to the plan with the text of its kernels; LLVM's share is not ours.
void compile_nodes(int count) {
  const Variable x = vector("x"), y = vector("y");
  const Variable v = long_chain(x, y, count);
  const Config config = current_config();
  FunctionMaker maker({x, y}, v, {}, config, Loc::current());
  const CompileContext context{config, "cpu", [](const std::string&) { return TargetInfo{}; }, {}};
  const Plan plan = compile(maker.graph, context);
  if (plan.steps.empty()) throw std::runtime_error("nothing was compiled");
}

}  // namespace

Variable long_chain(const Variable& x, const Variable& y, int nodes) {
  Variable v = x;
  for (int i = 0; i < nodes; i += 4) {
    const float c = 1.0f + 1e-5f * static_cast<float>(i);
    v = maximum(v * y - c, x) + c;
  }
  return v;
}

int run_counted(const std::string& what, int count) {
  if (what == "scalars") {
    call_scalars(count);
  } else if (what == "vectors") {
    call_vectors(count);
  } else if (what == "nodes") {
    compile_nodes(count);
  } else {
    throw std::runtime_error("nothing counted is called " + what);
  }
  return 0;
}

}  // namespace croton::bench
