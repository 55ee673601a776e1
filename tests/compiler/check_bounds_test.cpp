// Bounded buffers: an access outside is recorded and not made.
#include <catch2/catch.hpp>

#include "compiler/kernel/builder.h"
#include "tests/compiler/jit_kernel.h"

using namespace croton;
using namespace croton::kernel;

namespace {

/// Copies `count` elements from `shift` on, four of them being there.
Kernel copy_from(std::int64_t shift) {
  Builder b;
  const int out = b.buffer(DType::float32, true);
  const int in = b.buffer(DType::float32, false);
  b.bound(out, b.i64(4));
  b.bound(in, b.i64(4));
  const Expr lane = b.begin_lanes(b.i64(4));
  b.store(out, b.i64(0), b.i64(1), b.load(in, b.i64(shift), b.i64(1)));
  b.end(lane);
  return b.finish();
}

}  // namespace

TEST_CASE("accesses inside of their buffers pass the check") {
  const test::JitModule module({copy_from(0)});
  float in[4] = {1, 2, 3, 4}, out[4] = {};
  CHECK(module.run(0, {out, in}, {})[0] == 0);
  CHECK(out[3] == 4);
}

TEST_CASE("the first access outside is recorded, and reads nothing") {
  const test::JitModule module({copy_from(2)});
  float in[8] = {1, 2, 3, 4, 99, 99, 99, 99}, out[4] = {};
  const std::vector<std::int64_t> error = module.run(0, {out, in}, {});
  CHECK(error[0] != 0);
  CHECK(error[1] == 4);  // the element
  CHECK(error[2] == 4);  // of so many
  CHECK(out[1] == 4);
  CHECK(out[2] == 0);
}

TEST_CASE("a negative index is outside, whatever the mask of others says") {
  Builder b;
  const int out = b.buffer(DType::int64, true);
  const int in = b.buffer(DType::int64, false);
  b.bound(in, b.i64(4));
  const Expr lane = b.begin_lanes(b.i64(4));
  const Expr index = lane - 1;
  b.store(out, b.i64(0), b.i64(1), b.gather(in, index, lane != 0));
  b.store(out, b.i64(4), b.i64(1), b.gather(in, index));
  b.end(lane);
  const test::JitModule module({b.finish()});
  std::int64_t in_values[4] = {5, 6, 7, 8}, out_values[8] = {};
  const std::vector<std::int64_t> error = module.run(0, {out_values, in_values}, {});
  CHECK(error[0] == 2);  // the second gather; the first one is masked there
  CHECK(error[1] == -1);
  CHECK(out_values[1] == 5);
  CHECK(out_values[4] == 0);
}
