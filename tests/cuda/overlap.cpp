// What may run side by side, by the emulator's order of all work: the longest chain of kernels and
// copies in which each waits for the one before it.
#include <dlfcn.h>

#include <cstdint>
#include <iostream>

#include "tests/cuda/both.h"

using namespace croton;
using namespace croton::test;

namespace {

struct Work {
  std::uint64_t pieces = 0, longest_chain = 0;

  static Work now() {
    Work work;
    ask()(&work.pieces, &work.longest_chain);
    return work;
  }
  Work operator-(const Work& before) const {
    return {pieces - before.pieces, longest_chain - before.longest_chain};
  }

 private:
  using Ask = void (*)(std::uint64_t*, std::uint64_t*);
  static Ask ask() {
    void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    REQUIRE(driver != nullptr);
    const auto found = reinterpret_cast<Ask>(dlsym(driver, "crotonEmulatorWork"));
    REQUIRE(found != nullptr);
    return found;
  }
};

/// The work of a few calls behind a first one, all waited for.
template <class Calls>
Work work_of(const Calls& calls) {
  calls();
  croton::sync();
  const Work before = Work::now();
  calls();
  croton::sync();
  return Work::now() - before;
}

/// Several kernels, one after the other.
Variable chain(const Variable& x) { return x * sum(exp(x * sum(exp(x)))); }

}  // namespace

TEST_CASE("contexts on two GPUs overlap", "[overlap]") {
  const Array value = floats({40, 700}, DType::float32, 5, false);
  Shared a = shared(value, {.target = "dev0"}), b = shared(value, {.target = "dev1"});
  const Function one = function({}, {}, {.updates = {{a, chain(a)}}});
  const Function other = function({}, {}, {.updates = {{b, chain(b)}}});
  const Function both = function({}, {}, {.updates = {{a, chain(a)}, {b, chain(b)}}});
  const Work alone = work_of([&] { one(); });
  CHECK(alone.longest_chain == alone.pieces);
  const Work in_turn = work_of([&] { one(), other(); });
  CHECK(in_turn.pieces == 2 * alone.pieces);
  CHECK(in_turn.longest_chain == alone.longest_chain);
  const Work at_once = work_of([&] { both(); });
  CHECK(at_once.pieces == 2 * alone.pieces);
  CHECK(at_once.longest_chain == alone.longest_chain);
}

TEST_CASE("contexts on two GPUs overlap when the host gets what they compute", "[overlap]") {
  const Array value = floats({40, 700}, DType::float32, 5, false);
  const Shared a = shared(value, {.target = "dev0"}), b = shared(value, {.target = "dev1"});
  const Function one = function({}, chain(a));
  const Function both = function({}, {chain(a), chain(b)});
  const Work alone = work_of([&] { one(); });
  CHECK(alone.longest_chain == alone.pieces);
  // A thread that gets its turn late queues behind what another has waited for.
  Work at_once = work_of([&] { both(); });
  for (int i = 0; i < 20 && at_once.longest_chain > alone.longest_chain; ++i) {
    at_once = work_of([&] { both(); });
  }
  CHECK(at_once.pieces == 2 * alone.pieces);
  CHECK(at_once.longest_chain == alone.longest_chain);
}

TEST_CASE("a batch goes to the GPU while the step before it runs", "[overlap]") {
  constexpr int kSteps = 6;
  Shared w = shared(floats({700}, DType::float32, 3, false), {.target = "dev0"});
  Variable x = matrix("x");
  const Variable next = w + sum(chain(x * w), 0);
  const Function step = function({x}, {}, {.updates = {{w, next}}});
  const Array batch = floats({40, 700}, DType::float32, 5, false);
  const Work one = work_of([&] { step(batch); });
  const Work several = work_of([&] {
    for (int i = 0; i < kSteps; ++i) step(batch);
  });
  CHECK(several.pieces == kSteps * one.pieces);
  // All but the uploads, of which the first comes before everything.
  CHECK(several.longest_chain == kSteps * (one.pieces - 1) + 1);
}

TEST_CASE("new values of shared variables go to a GPU while it works on old ones", "[overlap]") {
  Shared a = shared(floats({40, 700}, DType::float32, 5, false), {.target = "dev0"});
  Shared b = shared(a.get_value(), {.target = "dev0"});
  const Function f = function({}, {}, {.updates = {{a, chain(a)}}});
  const Array value = b.get_value();
  const Work step = work_of([&] { f(); });
  const Work both = work_of([&] {
    f();
    b.set_value(value);
  });
  CHECK(both.pieces == step.pieces + 1);
  CHECK(both.longest_chain == step.longest_chain);
}

TEST_CASE("values go from GPU to GPU beside the work of both", "[overlap]") {
  const Array value = floats({40, 700}, DType::float32, 5, false);
  Shared a = shared(value, {.target = "dev0"}), b = shared(value, {.target = "dev1"});
  const auto pair_of = [&](bool sends) {
    const Variable half = chain(a);
    Variable other = chain(b);
    if (sends) other = other + half.transfer("dev1");
    return function({}, {}, {.updates = {{a, chain(half)}, {b, other}}});
  };
  const Function alone = pair_of(false), sending = pair_of(true);
  const Work without = work_of([&] { alone(); });
  const Work with = work_of([&] { sending(); });
  CHECK(with.pieces > without.pieces);
  // The first half of the work, the copy and what becomes of it take no longer than all of it.
  CHECK(with.longest_chain == without.longest_chain);
  CHECK(sending.statistics().messages == 1);
  CHECK(sending.statistics().bytes_copied == 40 * 700 * 4);
}
