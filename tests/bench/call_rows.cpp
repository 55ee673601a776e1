// What a call costs beside the work itself.
#include <croton/croton.h>

#include "tests/bench/bench.h"

namespace croton::bench {

void measure_calls(const Options& options, Report& report) {
  report.section("calls of a compiled x + y");
  const Variable s = scalar("s"), t = scalar("t"), x = vector("x"), y = vector("y");
  const Function scalars = function({s, t}, s + t), vectors = function({x, y}, x + y);
  const Array one = 1.0f, two = 2.0f;
  const Array ten = Array::full({10}, 1.0, DType::float32);
  Turns turns(options.repeats());
  const std::size_t on_scalars = turns.add([&] { scalars(one, two); }, 1e-4);
  const std::size_t on_vectors = turns.add([&] { vectors(ten, ten); }, 1e-4);
  const std::size_t on_literals = turns.add([&] { scalars(1.0f, 2.0f); }, 1e-4);
  turns.run();
  report.add({"0-d arrays", turns.times(on_scalars), 1, "", {}, 0, 200e-9});
  report.add({"vectors of 10", turns.times(on_vectors), 1, "", {}, 0, 200e-9});
  report.add({"two numbers", turns.times(on_literals)});
}

}  // namespace croton::bench
