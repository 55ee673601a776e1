// Random graphs, compiled as users compile them, against the references of their ops.
#include <catch2/catch.hpp>
#include <ostream>

#include "croton/croton.h"
#include "tests/compiler/random_graph.h"

using namespace croton;
using test::RandomGraph;

namespace {

bool close(const Array& got, const Array& wanted, DType dtype) {
  if (got.dtype() != wanted.dtype() || !(got.shape() == wanted.shape())) return false;
  const double tolerance = dtype == DType::float64 ? 1e-9 : 2e-3;
  return allclose(got, wanted, tolerance, tolerance, true);
}

void run(unsigned seed, DType dtype, bool fuse, bool check_bounds = false) {
  RandomGraph graph(seed, dtype);
  INFO("seed " << seed << " dtype " << name_of(dtype) << " fuse " << fuse << "\n" << graph.text());
  std::vector<Array> results;
  try {
    const Function f = function(
        graph.inputs, graph.outputs(),
        {.on_unused = OnUnused::ignore,
         .config = current_config().with("fuse", fuse).with("check_bounds", check_bounds)});
    const Outputs outputs = f.call(graph.arguments);
    results.assign(outputs.begin(), outputs.end());
  } catch (const Error& error) {
    FAIL(error.what());
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    INFO("output " << i << "\ngot " << results[i] << "\nwanted "
                   << graph.value(graph.outputs()[i]));
    CHECK(close(results[i], graph.value(graph.outputs()[i]), dtype));
  }
}

}  // namespace

TEST_CASE("random graphs compute what the references of their ops do") {
  for (unsigned seed = 0; seed < 400; ++seed) {
    run(seed, seed % 3 == 0 ? DType::float32 : DType::float64, true);
    if (seed % 5 == 0) run(seed, DType::float64, false);
    if (seed % 4 == 0) run(seed, DType::float64, true, true);
  }
}
