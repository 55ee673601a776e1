#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <thread>

#include "runtime/context.h"
#include "runtime/executable.h"
#include "tests/runtime/allocation_count.h"
#include "tests/runtime/fake_device.h"
#include "tests/runtime/plan_builder.h"

using namespace croton;
using namespace croton::test;

namespace {

void sum2(void* const* b, const std::int64_t*, std::int64_t first, std::int64_t last,
          std::int64_t*) {
  for (std::int64_t i = first; i < last; ++i) {
    static_cast<float*>(b[0])[i] = static_cast<float*>(b[1])[i] + static_cast<float*>(b[2])[i];
  }
}

const bool registered = [] {
  fake_kernels()["sum2"] = sum2;
  return true;
}();

/// w + x through temporaries, into an output and an update of w.
Plan step_plan(std::shared_ptr<SharedState> w, const char* context = "cpu") {
  PlanBuilder b("step", {context});
  const auto x = b.input("x", DType::float32, {kAnyDim});
  const auto s = b.shared(std::move(w));
  const Dim n = b.size(0, 0);
  const auto t = b.temporary(DType::float32, {n}), u = b.temporary(DType::float32, {n});
  const auto next = b.result(DType::float32, {n}), out = b.result(DType::float32, {n});
  const auto k = b.kernel("sum2");
  b.launch(k, {t, x, s}, n);
  b.launch(k, {u, t, x}, n);
  b.launch(k, {next, s, x}, n);
  b.launch(k, {out, u, t}, n);
  b.plan.outputs = {out};
  b.plan.updates = {{0, next}};
  return std::move(b.plan);
}

/// A value that is on dev0 and stays where it is, as does all that a plan computes from it.
Array twos_on_device(const FakeMachine& machine) {
  PlanBuilder b("twice", {"dev0"});
  const auto x = b.input("x", DType::float32, {1000}), y = b.result(DType::float32, {1000});
  b.launch(b.kernel("sum2"), {y, x, x}, 1000);
  b.plan.outputs = {y};
  const Executable twice(machine.runtime, std::move(b.plan), Config());
  Array result;
  twice.run(std::vector<Array>{Array::ones({1000})}, {&result, 1});
  return result;
}

}  // namespace

TEST_CASE("a repeated call asks for no memory and does no symbolic work") {
  REQUIRE(registered);
  for (const std::int64_t n : {10, 1000, 1'000'000}) {
    FakeMachine machine(no_cache());
    auto w = make_shared_state(machine.runtime, Array::zeros({n}), "w", "cpu");
    const Executable f(machine.runtime, step_plan(w), Config());
    const std::vector<Array> in = {Array::ones({n})};
    Array out;
    for (int i = 0; i < 3; ++i) f.run(in, {&out, 1});
    const std::int64_t before = allocation_count();
    const std::int64_t device =
        machine.runtime->context("cpu").pool().statistics().device_allocations;
    for (int i = 0; i < 100; ++i) f.run(in, {&out, 1});
    CHECK(allocation_count() == before);
    CHECK(machine.runtime->context("cpu").pool().statistics().device_allocations == device);
    CHECK(f.statistics().specialisations == 1);
    CHECK(f.statistics().frames == 1);
    CHECK(get_value(*w).at<float>({n - 1}) == 103);
    CHECK(out.at<float>({0}) == 102 + 1 + 1 + 102 + 1);
  }
}

TEST_CASE("a call that replays a recording asks for no memory either") {
  FakeMachine machine(no_cache("contexts=dev0->cuda0"));
  machine.gpu->captures = true;
  auto w = make_shared_state(machine.runtime, Array::zeros({1000}), "w", "dev0");
  const Executable f(machine.runtime, step_plan(w, "dev0"), Config());
  const std::vector<Array> in = {twos_on_device(machine)};
  Array out;
  for (int i = 0; i < 20; ++i) f.run(in, {&out, 1});
  const std::int64_t before = allocation_count();
  const int replayed = machine.gpu->replayed;
  for (int i = 0; i < 100; ++i) f.run(in, {&out, 1});
  CHECK(machine.gpu->replayed == replayed + 100);
  CHECK(allocation_count() == before);
  CHECK(get_value(*w).at<float>({999}) == 240);
  CHECK(out.to_host().at<float>({0}) == 2 * (238 + 2) + 2);
}

TEST_CASE("steps whose recording cannot be launched are launched one by one") {
  FakeMachine machine(no_cache("contexts=dev0->cuda0"));
  machine.gpu->captures = true;
  auto w = make_shared_state(machine.runtime, Array::zeros({1000}), "w", "dev0");
  const Executable f(machine.runtime, step_plan(w, "dev0"), Config());
  const std::vector<Array> in = {twos_on_device(machine)};
  Array out;
  for (int i = 0; i < 20; ++i) f.run(in, {&out, 1});
  const int replayed = machine.gpu->replayed;
  CHECK(replayed > 0);
  machine.gpu->refuses_replays = true;
  for (int i = 0; i < 20; ++i) f.run(in, {&out, 1});
  CHECK(get_value(*w).at<float>({999}) == 80);
  CHECK(out.to_host().at<float>({0}) == 2 * (78 + 2) + 2);
  machine.gpu->refuses_replays = false;  // and not tried again
  f.run(in, {&out, 1});
  CHECK(machine.gpu->replayed == replayed);
  CHECK(f.statistics().replays == replayed);
}

TEST_CASE("shapes that alternate use their frames again") {
  FakeMachine machine(no_cache());
  PlanBuilder b("sum");
  const auto x = b.input("x", DType::float32, {kAnyDim});
  const Dim n = b.size(0, 0);
  const auto out = b.result(DType::float32, {n});
  b.launch(b.kernel("sum2"), {out, x, x}, n);
  b.plan.outputs = {out};
  const Executable f(machine.runtime, std::move(b.plan), Config());
  const std::vector<Array> small = {Array::ones({100})}, large = {Array::ones({300})};
  Array r;
  for (int i = 0; i < 4; ++i) f.run(i % 2 ? small : large, {&r, 1});
  const std::int64_t frames = f.statistics().frames;
  for (int i = 0; i < 20; ++i) f.run(i % 2 ? small : large, {&r, 1});
  CHECK(f.statistics().frames == frames);
  CHECK(f.statistics().specialisations == 2);
}

TEST_CASE("calls from several threads see shared values before or after, and lose no update") {
  FakeMachine machine(no_cache());
  auto w = make_shared_state(machine.runtime, Array::zeros({1000}), "w", "cpu");
  const Executable f(machine.runtime, step_plan(w), Config());
  std::atomic<int> torn{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const std::vector<Array> in = {Array::ones({1000})};
      for (int i = 0; i < 200; ++i) {
        if (t == 3) {
          const Array v = get_value(*w);
          if (v.at<float>({0}) != v.at<float>({999})) ++torn;
        } else {
          Array out;
          f.run(in, {&out, 1});
          if (out.at<float>({0}) != out.at<float>({999})) ++torn;
        }
      }
    });
  }
  for (std::thread& t : threads) t.join();
  CHECK(torn == 0);
  CHECK(get_value(*w).at<float>({5}) == 600);
  CHECK(f.statistics().calls == 600);
  CHECK(f.statistics().frames <= 4);
}

TEST_CASE("a call that finds no memory leaves everything as it was, and works later") {
  FakeMachine machine(no_cache());
  auto w = make_shared_state(machine.runtime, Array::zeros({1000}), "w", "cpu");
  const Executable f(machine.runtime, step_plan(w), Config());
  const std::vector<Array> in = {Array::ones({1000})};
  Array out;
  machine.cpu->limit = machine.cpu->used + 5000;
  for (int i = 0; i < 3; ++i) CHECK_THROWS_AS(f.run(in, {&out, 1}), OutOfMemory);
  CHECK(get_value(*w).at<float>({0}) == 0);
  machine.cpu->limit = 1 << 30;
  f.run(in, {&out, 1});
  CHECK(get_value(*w).at<float>({0}) == 1);
}

#if !defined(__SANITIZE_THREAD__)  // which does not follow a process with several threads
TEST_CASE("the child of a fork goes on calling functions") {
  FakeMachine machine(no_cache("contexts=dev0->cpu;dev1->cpu"));
  auto w = make_shared_state(machine.runtime, Array::zeros({1000}), "w", "cpu");
  const Executable f(machine.runtime, step_plan(w), Config());
  const std::vector<Array> in = {Array::ones({1000})};
  Array out;
  f.run(in, {&out, 1});
#if defined(__SANITIZE_ADDRESS__)
  // GCC 12's allocator for it holds no locks over a fork: a child waits for ever for one that
  // another thread had.
  constexpr int kBusy = 0;
#else
  constexpr int kBusy = 2;
#endif
  std::atomic<bool> stop{false};
  std::vector<std::thread> busy;
  for (int t = 0; t < kBusy; ++t) {
    busy.emplace_back([&] {
      Array r;
      while (!stop) f.run(in, {&r, 1});
    });
  }
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      const float before = get_value(*w).at<float>({0});
      for (int k = 0; k < 10; ++k) f.run(in, {&out, 1});
      _exit(get_value(*w).at<float>({0}) == before + 10 ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    CAPTURE(i, WTERMSIG(status));
    REQUIRE(WIFEXITED(status));
    REQUIRE(WEXITSTATUS(status) == 0);
  }
  stop = true;
  for (std::thread& t : busy) t.join();
}
#endif
