#include <pthread.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>
#include <functional>
#include <system_error>
#include <thread>

#include "runtime/context.h"
#include "runtime/executable.h"
#include "tests/runtime/fake_device.h"
#include "tests/runtime/plan_builder.h"

using namespace croton;
using namespace croton::test;

namespace {

std::atomic<int> entered{0};

void plus_one(void* const* b, const std::int64_t*, std::int64_t first, std::int64_t last,
              std::int64_t*) {
  for (std::int64_t i = first; i < last; ++i) {
    static_cast<float*>(b[0])[i] = static_cast<float*>(b[1])[i] + 1;
  }
}

/// For memory of GPUs alone, which wide accesses want aligned.
void aligned_plus_one(void* const* b, const std::int64_t* s, std::int64_t first, std::int64_t last,
                      std::int64_t* e) {
  for (int i = 0; i < 2; ++i) {
    if (reinterpret_cast<std::uintptr_t>(b[i]) % 16 != 0) return;
  }
  plus_one(b, s, first, last, e);
}

/// Waits until two contexts are inside at once, or gives up after seconds.
void meet(void* const* b, const std::int64_t* s, std::int64_t first, std::int64_t last,
          std::int64_t* e) {
  if (first == 0) {
    ++entered;
    for (int i = 0; i < 5000 && entered < 2; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  plus_one(b, s, first, last, e);
}

void slow_plus_one(void* const* b, const std::int64_t* s, std::int64_t first, std::int64_t last,
                   std::int64_t* e) {
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  plus_one(b, s, first, last, e);
}

const bool registered = [] {
  fake_kernels()["plus_one"] = plus_one;
  fake_kernels()["aligned_plus_one"] = aligned_plus_one;
  fake_kernels()["meet"] = meet;
  fake_kernels()["slow_plus_one"] = slow_plus_one;
  return true;
}();

constexpr std::int64_t kMuch = 10'000'000;  // work that is worth several threads

Array ones(std::int64_t n) { return Array::ones({n}); }

}  // namespace

TEST_CASE("contexts on one memory copy nothing") {
  REQUIRE(registered);
  FakeMachine machine(no_cache("contexts=dev0->cpu;dev1->cpu"));
  PlanBuilder b("f", {"cpu", "dev0", "dev1"});
  const auto x = b.input("x", DType::float32, {4});
  const auto x0 = b.temporary(DType::float32, {4}, 1), y0 = b.temporary(DType::float32, {4}, 1);
  const auto y1 = b.temporary(DType::float32, {4}, 2), z1 = b.temporary(DType::float32, {4}, 2);
  const auto out = b.result(DType::float32, {4});
  const auto k0 = b.kernel("plus_one", {}, 1), k1 = b.kernel("plus_one", {}, 2);
  b.copy(x0, x);
  b.launch(k0, {y0, x0}, 4, 1, 1).after = {0};
  b.copy(y1, y0);
  b.launch(k1, {z1, y1}, 4, 1, 2).after = {2};
  b.copy(out, z1);
  b.plan.outputs = {out};
  const Executable f(machine.runtime, std::move(b.plan), Config());
  Array r;
  f.run(std::vector<Array>{ones(4)}, {&r, 1});
  CHECK(r.to_vector<float>() == std::vector<float>{3, 3, 3, 3});
  CHECK(r.context() == "cpu");
  CHECK(f.statistics().copies == 0);
  CHECK(f.statistics().on_caller);  // too little work to wake anybody
  CHECK(machine.cpu->copies == 0);
}

TEST_CASE("outputs on a context stay there, and go back in") {
  FakeMachine machine(no_cache("contexts=dev0->cpu;dev1->cuda0"));
  for (const char* name : {"dev0", "dev1"}) {
    PlanBuilder b("f", {name});
    const auto x = b.input("x", DType::float32, {4});
    const auto out = b.result(DType::float32, {4});
    b.launch(b.kernel("plus_one"), {out, x}, 4);
    b.plan.outputs = {out};
    const Executable f(machine.runtime, std::move(b.plan), Config());
    Array r = ones(4);
    for (int i = 0; i < 3; ++i) f.run(std::vector<Array>{r}, {&r, 1});
    CHECK(r.context() == name);
    CHECK(r.to_host().to_vector<float>() == std::vector<float>{4, 4, 4, 4});
    // Only the first argument came from elsewhere; a context on the host's memory needs no copy.
    CHECK(f.statistics().copied_arguments == (std::string(name) == "dev1" ? 1 : 0));
  }
}

TEST_CASE("a device with memory of its own gets arguments, constants and errors across") {
  FakeMachine machine(no_cache("contexts=dev0->cuda0;dev1->cuda1"));
  auto w = make_shared_state(machine.runtime, Array::from<float>({1, 2, 3, 4}, {4}), "w", "dev0");
  CHECK(w->value.context() == "dev0");
  PlanBuilder b("f", {"dev0", "dev1", "cpu"});
  const auto s = b.shared(w, 0);
  const auto t0 = b.temporary(DType::float32, {4}, 0), t1 = b.temporary(DType::float32, {4}, 1);
  const auto u1 = b.temporary(DType::float32, {4}, 1), out = b.result(DType::float32, {4}, 2);
  const auto next = b.result(DType::float32, {4}, 0);
  const auto c = b.constant(Array::ones({4}), 1);
  const auto extra = b.result(DType::float32, {4}, 1);
  const auto k = b.kernel("plus_one", {}, 0), k1 = b.kernel("plus_one", {}, 1);
  b.launch(k, {t0, s}, 4, 1, 0);
  b.copy(t1, t0);
  b.launch(k1, {u1, t1}, 4, 1, 1).after = {1};
  b.copy(out, u1);
  b.launch(k, {next, t0}, 4, 1, 0);
  b.launch(k1, {extra, c}, 4, 1, 1);
  b.plan.outputs = {out, extra};
  b.plan.updates = {{0, next}};
  const Executable f(machine.runtime, std::move(b.plan), Config());
  std::vector<Array> r(2);
  f.run({}, r);
  CHECK(r[0].to_vector<float>() == std::vector<float>{3, 4, 5, 6});
  CHECK(r[1].context() == "dev1");
  CHECK(r[1].to_host().to_vector<float>() == std::vector<float>{2, 2, 2, 2});
  CHECK(get_value(*w).to_vector<float>() == std::vector<float>{3, 4, 5, 6});
  CHECK(f.statistics().copies == 2);
  CHECK(f.statistics().bytes_copied == 32);
  CHECK_FALSE(f.statistics().on_caller);
  CHECK(machine.gpu->synchronised > 0);
  f.run({}, r);
  CHECK(r[0].to_vector<float>() == std::vector<float>{5, 6, 7, 8});
}

TEST_CASE("an input may be wanted on several contexts") {
  for (const char* map : {"contexts=dev0->cpu;dev1->cpu", "contexts=dev0->cuda0;dev1->cuda1"}) {
    FakeMachine machine(no_cache(map));
    PlanBuilder b("f", {"dev0", "dev1"});
    const auto x0 = b.input("x", DType::float32, {kAnyDim}, 0);
    Slot again = b.plan.slots[static_cast<std::size_t>(x0)];
    again.context = 1;
    b.plan.slots.push_back(again);
    const auto x1 = static_cast<std::int32_t>(b.plan.slots.size() - 1);
    b.plan.slots.push_back(again);  // and once more there
    const Dim n = b.size(0, 0);
    const auto o0 = b.result(DType::float32, {n}, 0), o1 = b.result(DType::float32, {n}, 1);
    b.launch(b.kernel("plus_one", {}, 0), {o0, x0}, n, 1, 0);
    b.launch(b.kernel("plus_one", {}, 1), {o1, x1}, n, 1, 1);
    b.plan.outputs = {o0, o1};
    const Executable f(machine.runtime, std::move(b.plan), Config());
    std::vector<Array> r(2);
    for (const std::int64_t size : {3, 5, 3}) {
      machine.gpu->uploads = 0;
      f.run(std::vector<Array>{ones(size)}, r);
      // One copy a context and call.
      CHECK(machine.gpu->uploads == (std::string(map).find("cuda") == std::string::npos ? 0 : 2));
      CHECK(r[0].to_host().to_vector<float>() == std::vector<float>(std::size_t(size), 2));
      CHECK(r[1].to_host().to_vector<float>() == std::vector<float>(std::size_t(size), 2));
    }
    CHECK(r[0].context() == "dev0");
    CHECK(r[1].context() == "dev1");
  }
}

TEST_CASE("independent contexts overlap") {
  FakeMachine machine(no_cache("contexts=dev0->cpu;dev1->cpu"));
  PlanBuilder b("f", {"dev0", "dev1"});
  const auto x0 = b.input("x", DType::float32, {4}, 0), x1 = b.input("y", DType::float32, {4}, 1);
  const auto o0 = b.result(DType::float32, {4}, 0), o1 = b.result(DType::float32, {4}, 1);
  b.launch(b.kernel("meet", {}, 0), {o0, x0}, 4, 1, 0).work = b.plan.dims.ref(Dim(kMuch));
  b.launch(b.kernel("meet", {}, 1), {o1, x1}, 4, 1, 1).work = b.plan.dims.ref(Dim(kMuch));
  b.plan.outputs = {o0, o1};
  const Executable f(machine.runtime, std::move(b.plan), Config());
  entered = 0;
  std::vector<Array> r(2);
  const auto start = std::chrono::steady_clock::now();
  f.run(std::vector<Array>{ones(4), ones(4)}, r);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(4));
  CHECK(entered == 2);
  CHECK_FALSE(f.statistics().on_caller);
  CHECK(r[1].to_host().to_vector<float>() == std::vector<float>{2, 2, 2, 2});
}

namespace {

/// A value that goes to and fro between two contexts, with slow steps, so that a missing wait
/// shows.
Plan ping_pong(const char* name, int rounds) {
  PlanBuilder b(name, {"dev0", "dev1"});
  auto value = b.input("x", DType::float32, {4}, 0);
  const auto k0 = b.kernel("slow_plus_one", {}, 0), k1 = b.kernel("slow_plus_one", {}, 1);
  for (int i = 0; i < rounds; ++i) {
    const int c = i % 2;
    const auto next =
        i + 1 == rounds ? b.result(DType::float32, {4}, c) : b.temporary(DType::float32, {4}, c);
    Step& step = b.launch(c == 0 ? k0 : k1, {next, value}, 4, 1, c);
    step.work = b.plan.dims.ref(Dim(kMuch));
    const auto launch = static_cast<std::int32_t>(b.plan.steps.size() - 1);
    if (i > 0) step.after = {launch - 1};
    value = next;
    if (i + 1 < rounds) {
      const auto there = b.temporary(DType::float32, {4}, 1 - c);
      b.copy(there, next);
      value = there;
    }
  }
  b.plan.outputs = {value};
  return std::move(b.plan);
}

}  // namespace

TEST_CASE("steps of one context wait for those of another") {
  for (const char* map : {"contexts=dev0->cpu;dev1->cpu", "contexts=dev0->cpu;dev1->cuda0",
                          "contexts=dev0->cuda0;dev1->cuda0"}) {
    FakeMachine machine(no_cache(map));
    const Executable f(machine.runtime, ping_pong("f", 6), Config());
    Array r;
    for (int i = 0; i < 3; ++i) f.run(std::vector<Array>{ones(4)}, {&r, 1});
    CHECK(r.to_host().to_vector<float>() == std::vector<float>{7, 7, 7, 7});
    CHECK_FALSE(f.statistics().on_caller);
  }
}

TEST_CASE("calls from several threads on several contexts do not lock up") {
  FakeMachine machine(no_cache("contexts=dev0->cpu;dev1->cpu"));
  const Executable f(machine.runtime, ping_pong("f", 4), Config());
  const Executable g(machine.runtime, ping_pong("g", 5), Config());
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 5; ++i) {
        Array r;
        (t % 2 ? f : g).run(std::vector<Array>{ones(4)}, {&r, 1});
        if (r.to_host().at<float>({3}) != (t % 2 ? 5 : 6)) ++wrong;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  CHECK(wrong == 0);
}

TEST_CASE("a failure on one context ends the call, drains the others and changes nothing") {
  FakeMachine machine(no_cache("contexts=dev0->cpu;dev1->cpu"));
  auto w = make_shared_state(machine.runtime, ones(4), "w", "dev1");
  PlanBuilder b("f", {"dev0", "dev1"});
  const auto x = b.input("x", DType::float32, {64, 64}, 0), s = b.shared(w, 1);
  const auto t = b.temporary(DType::float32, {64, 64}, 0), u = b.temporary(DType::float32, {4}, 1);
  const auto next = b.result(DType::float32, {4}, 1);
  b.library("failing", {}, {t, x}, 0);
  b.launch(b.kernel("plus_one", {}, 1), {u, s}, 4, 1, 1).after = {0};
  b.plan.steps.back().work = b.plan.dims.ref(Dim(kMuch));
  b.launch(b.kernel("plus_one", {}, 1), {next, u}, 4, 1, 1);
  b.plan.updates = {{0, next}};
  const Executable f(machine.runtime, std::move(b.plan), Config());
  const std::vector<Array> in = {Array::ones({64, 64})};
  for (int i = 0; i < 3; ++i) {
    CHECK_THROWS_WITH(f.run(in, {}), "the library failed");
    CHECK(get_value(*w).to_vector<float>() == std::vector<float>{1, 1, 1, 1});
  }
  CHECK(f.statistics().frames == 1);
}

TEST_CASE("a queue that is lost between steps ends the call for all contexts") {
  FakeMachine machine(no_cache("contexts=dev0->cuda0;dev1->cuda1"));
  const Executable f(machine.runtime, ping_pong("f", 6), Config());
  Array r;
  f.run(std::vector<Array>{ones(4)}, {&r, 1});
  machine.gpu->lost = true;
  for (int i = 0; i < 3; ++i) {
    machine.gpu->drained = 0;
    CHECK_THROWS_WITH(f.run(std::vector<Array>{ones(4)}, {&r, 1}), "the queue was lost");
    CHECK(machine.gpu->drained == 4);  // of two contexts, and of what they send
  }
  machine.gpu->lost = false;
  f.run(std::vector<Array>{ones(4)}, {&r, 1});
  CHECK(r.to_host().to_vector<float>() == std::vector<float>{7, 7, 7, 7});
  CHECK(f.statistics().frames == 1);
}

TEST_CASE("a call that found memory on one context only leaves no stale addresses behind") {
  FakeMachine machine(no_cache("contexts=dev0->cuda0;dev1->cuda1"));
  constexpr std::int64_t kMany = 100'000;  // temporaries that go back after each call
  PlanBuilder b("f", {"dev0", "dev1"});
  std::vector<std::int32_t> outputs;
  for (const int c : {0, 1}) {
    auto w = make_shared_state(machine.runtime, ones(kMany), "w", c == 0 ? "dev0" : "dev1");
    const auto s = b.shared(std::move(w), c);
    const auto t = b.temporary(DType::float32, {kMany}, c);
    const auto out = b.result(DType::float32, {4}, c);
    const auto k = b.kernel("plus_one", {}, c);
    b.launch(k, {t, s}, kMany, 1, c);
    b.launch(k, {out, t}, 4, 1, c);
    outputs.push_back(out);
  }
  b.plan.outputs = outputs;
  const Executable f(machine.runtime, std::move(b.plan), Config());
  std::vector<Array> r(2);
  f.run({}, r);
  // The memory of the temporaries becomes somebody else's, and the second context finds no other.
  constexpr std::size_t kBytes = kMany * sizeof(float);
  const BlockRef first = machine.runtime->context("dev0").pool().allocate(kBytes);
  BlockRef second = machine.runtime->context("dev1").pool().allocate(kBytes);
  std::memset(first->data, 7, kBytes);
  machine.gpu->limit = machine.gpu->used + static_cast<std::int64_t>(kBytes + kBytes / 2);
  CHECK_THROWS_AS(f.run({}, r), OutOfMemory);
  machine.gpu->limit = std::int64_t{1} << 40;
  second.reset();
  for (int i = 0; i < 3; ++i) {
    f.run({}, r);
    for (const Array& a : r) CHECK(a.to_host().to_vector<float>() == std::vector<float>(4, 3.0f));
  }
  const auto* bytes = reinterpret_cast<const unsigned char*>(first->data);
  CHECK(std::count(bytes, bytes + kBytes, 7) == static_cast<std::ptrdiff_t>(kBytes));
  CHECK(f.statistics().frames == 1);
}

TEST_CASE("a view that begins anywhere is copied on its device") {
  FakeMachine machine(no_cache("contexts=dev0->cuda0;dev1->cuda1"));
  PlanBuilder b("stay", {"dev0"});
  const auto x = b.input("x", DType::float32, {kAnyDim});
  const Dim n = b.size(0, 0);
  const auto out = b.result(DType::float32, {n});
  b.launch(b.kernel("aligned_plus_one"), {out, x}, n);
  b.plan.outputs = {out};
  const Executable f(machine.runtime, std::move(b.plan), Config());
  Array there;
  f.run(std::vector<Array>{Array::arange(9).astype(DType::float32)}, {&there, 1});
  REQUIRE(there.context() == "dev0");
  machine.gpu->uploads = 0;
  std::int64_t copied = f.statistics().copied_arguments;
  // The frame of the call before fits all but the place.
  for (const std::int64_t begin : {0, 4, 1, 4, 5}) {
    Array r;
    f.run(std::vector<Array>{there.slice(0, begin, begin + 4)}, {&r, 1});
    const auto first = static_cast<float>(begin) + 2;
    CHECK(r.to_host().to_vector<float>() ==
          std::vector<float>{first, first + 1, first + 2, first + 3});
    copied += begin % 4 != 0;
    CHECK(f.statistics().copied_arguments == copied);
  }
  CHECK(machine.gpu->uploads == 0);
}

namespace {

struct CountingJob final : Job {
  std::atomic<int> runs{0};
  void run() noexcept override {
    ++runs;
    runs.notify_all();
  }
};

}  // namespace

#if !defined(__SANITIZE_THREAD__) && \
    !defined(__SANITIZE_ADDRESS__)  // which choose the stack's size
TEST_CASE("a worker that no thread can be made for is an error, and made later") {
  FakeMachine machine(no_cache("contexts=dev0->cuda0"));
  Context& context = machine.runtime->context("dev0");
  CountingJob job;
  pthread_attr_t usual, endless;
  REQUIRE(pthread_getattr_default_np(&usual) == 0);
  REQUIRE(pthread_attr_init(&endless) == 0);
  REQUIRE(pthread_attr_setstacksize(&endless, std::size_t{1} << 50) == 0);
  REQUIRE(pthread_setattr_default_np(&endless) == 0);
  for (int i = 0; i < 2; ++i) CHECK_THROWS_AS(context.post(&job), std::system_error);
  REQUIRE(pthread_setattr_default_np(&usual) == 0);
  context.post(&job);
  job.runs.wait(0);
  CHECK(job.runs == 1);
}
#endif

TEST_CASE("a failure drains the queue of the only context") {
  FakeMachine machine(no_cache("contexts=dev0->cuda0"));
  PlanBuilder b("f", {"dev0"});
  const auto x = b.input("x", DType::float32, {4});
  const auto t = b.temporary(DType::float32, {4}), out = b.result(DType::float32, {4});
  b.launch(b.kernel("plus_one"), {t, x}, 4);
  b.library("failing", {}, {out, t});
  b.plan.outputs = {out};
  const Executable f(machine.runtime, std::move(b.plan), Config());
  Array r;
  CHECK_THROWS_WITH(f.run(std::vector<Array>{ones(4)}, {&r, 1}), "the library failed");
  CHECK(machine.gpu->drained == 1);
}
