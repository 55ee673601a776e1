// The dimensions of grids.
#include <catch2/catch.hpp>
#include <cstdint>

#include "runtime/cuda/queue.h"

using namespace croton;

TEST_CASE("a grid of any number of blocks fits the dimensions of CUDA") {
  constexpr std::int64_t kX = 2147483647, kY = 65535;
  for (const std::int64_t blocks :
       {std::int64_t{1}, std::int64_t{1000}, kX - 1, kX, kX + 1, 2 * kX, 2 * kX + 1,
        std::int64_t{1} << 40, kX * kY, kX * kY + 1, std::int64_t{1} << 50}) {
    INFO(blocks);
    const cuda::Grid grid = cuda::grid_of(blocks);
    CHECK(grid.x <= kX);
    CHECK(grid.y <= kY);
    CHECK(grid.z <= kY);
    const std::int64_t layers = std::int64_t{grid.y} * grid.z;
    CHECK(grid.x * layers >= blocks);
    // Fewer idle ones than there are layers, and none where one dimension will do.
    CHECK(grid.x * layers - blocks < layers);
    CHECK((layers == 1) == (blocks <= kX));
  }
}
