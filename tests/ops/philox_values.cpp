// Random numbers of a counted stream: the host's arrays, from any offset on.
#include "croton/error.h"
#include "croton/math.h"
#include "croton/random.h"
#include "croton/random_arrays.h"
#include "tests/ops/graph_values.h"

using namespace croton;
using namespace croton::test;
using Catch::Matchers::Contains;

TEST_CASE("the numbers of a stream are those of random arrays", "[ops][random]") {
  const DType dtype = GENERATE(DType::float16, DType::bfloat16, DType::float32, DType::float64);
  const Array uniform = random_uniform({20}, {.seed = 5, .dtype = dtype, .stream = 3});
  const Array normal = random_normal({20}, {.seed = 5, .dtype = dtype, .stream = 3});
  const Variable offset = input(DType::int64, {}, "offset");
  const PhiloxOptions options{.seed = 5, .stream = 3, .dtype = dtype};
  CHECK(array_equal(value(philox_uniform(offset, {4, 5}, options), {{offset, Array(0)}}),
                    uniform.reshape({4, 5})));
  CHECK(allclose(value(philox_normal(offset, {4, 5}, options), {{offset, Array(0)}}),
                 normal.reshape({4, 5}), 1e-6));
  CHECK(array_equal(value(philox_uniform(offset, {7}, options), {{offset, Array(11)}}),
                    uniform.slice(0, 11, 18).contiguous()));
  CHECK(allclose(value(philox_normal(offset, {7}, options), {{offset, Array(11)}}),
                 normal.slice(0, 11, 18).contiguous(), 1e-6));
}

TEST_CASE("sizes of random values may be symbols", "[ops][random]") {
  const Variable x = floats({kAnyDim});
  const Variable u = philox_uniform(0, {x.shape(0), Size(2)});
  CHECK(u.dtype() == DType::float32);
  CHECK(value(u, {{x, counting({3})}}).shape() == Shape{3, 2});
}

TEST_CASE("random numbers that cannot be are refused", "[ops][random]") {
  CHECK_THROWS_WITH(philox_uniform(0, {2}, {.dtype = DType::int32}),
                    Contains("must be a float: got int32"));
  CHECK_THROWS_WITH(philox_normal(Array{1, 2}, {2}), Contains("int64 scalar"));
}
