// Copies that travel beside the steps of contexts.
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "runtime/context.h"
#include "runtime/executable.h"
#include "tests/runtime/allocation_count.h"
#include "tests/runtime/fake_device.h"
#include "tests/runtime/plan_builder.h"

using namespace croton;
using namespace croton::test;
using Catch::Matchers::Contains;

namespace {

std::atomic<int> clock_hand{0};
std::atomic<int> worked_at{0}, arrived_at{0};

void link_plus_one(void* const* b, const std::int64_t*, std::int64_t first, std::int64_t last,
                   std::int64_t*) {
  for (std::int64_t i = first; i < last; ++i) {
    static_cast<float*>(b[0])[i] = static_cast<float*>(b[1])[i] + 1;
  }
}

void link_works(void* const* b, const std::int64_t* s, std::int64_t first, std::int64_t last,
                std::int64_t* e) {
  worked_at = ++clock_hand;
  link_plus_one(b, s, first, last, e);
}

void link_arrives(void* const* b, const std::int64_t* s, std::int64_t first, std::int64_t last,
                  std::int64_t* e) {
  arrived_at = ++clock_hand;
  link_plus_one(b, s, first, last, e);
}

const bool registered = [] {
  fake_kernels()["link_plus_one"] = link_plus_one;
  fake_kernels()["link_works"] = link_works;
  fake_kernels()["link_arrives"] = link_arrives;
  return true;
}();

constexpr const char* kCpus = "contexts=dev0->cpu;dev1->cpu;dev2->cpu";
constexpr const char* kGpus = "contexts=dev0->cuda0;dev1->cuda1;dev2->cpu";
constexpr std::int64_t kSize = 100;

/// x + 1, x + 2, ... on dev0, each of which dev1 adds 1 to; `interleaved`: as soon as it is there.
Plan sender(int values, bool interleaved = false) {
  PlanBuilder b("sender", {"dev0", "dev1"});
  auto last = b.input("x", DType::float32, {kSize});
  const auto k0 = b.kernel("link_plus_one", {}, 0), k1 = b.kernel("link_plus_one", {}, 1);
  std::vector<std::pair<std::int32_t, std::int32_t>> arrived;  // slot, step
  const auto take = [&] {
    for (const auto& [slot, step] : arrived) {
      const auto out = b.result(DType::float32, {kSize}, 1);
      b.launch(k1, {out, slot}, kSize, 1, 1).after = {step};
      b.plan.outputs.push_back(out);
    }
    arrived.clear();
  };
  for (int i = 0; i < values; ++i) {
    const auto value = b.temporary(DType::float32, {kSize}, 0);
    const auto there = b.temporary(DType::float32, {kSize}, 1);
    b.launch(k0, {value, last}, kSize, 1, 0);
    b.copy(there, value);
    arrived.emplace_back(there, static_cast<std::int32_t>(b.plan.steps.size() - 1));
    last = value;
    if (interleaved) take();
  }
  take();
  return std::move(b.plan);
}

void check_sent(const Executable& f, int values) {
  std::vector<Array> results(static_cast<std::size_t>(values));
  f.run(std::vector<Array>{Array::zeros({kSize})}, results);
  for (int i = 0; i < values; ++i) {
    const std::vector<float> wanted(kSize, static_cast<float>(i + 2));
    CHECK(results[static_cast<std::size_t>(i)].to_host().to_vector<float>() == wanted);
  }
}

Config slow(std::int64_t latency_us, std::int64_t bucket_bytes) {
  return Config().with("link_latency_us", latency_us).with("bucket_bytes", bucket_bytes);
}

}  // namespace

TEST_CASE("copies that nothing waits for yet travel together") {
  REQUIRE(registered);
  // Of 400 bytes each.
  for (const auto& [bytes, messages] :
       std::vector<std::pair<std::int64_t, int>>{{0, 6}, {399, 6}, {800, 3}, {1 << 20, 1}}) {
    CAPTURE(bytes);
    FakeMachine machine(no_cache(kGpus));
    const Executable f(machine.runtime, sender(6), Config().with("bucket_bytes", bytes));
    for (int i = 0; i < 3; ++i) check_sent(f, 6);
    CHECK(f.statistics().copies == 6);
    CHECK(f.statistics().messages == messages);
    CHECK(f.statistics().bytes_copied == 2400);
    FakeMachine cpus(no_cache(kCpus));
    const Executable g(cpus.runtime, sender(6), slow(1, bytes));
    check_sent(g, 6);
    CHECK(g.statistics().messages == messages);
    const Executable eager(machine.runtime, sender(6, true), Config().with("bucket_bytes", bytes));
    check_sent(eager, 6);
    CHECK(eager.statistics().messages == 6);
  }
}

TEST_CASE("the first copies between two contexts leave early") {
  FakeMachine machine(no_cache(kGpus));
  PlanBuilder b("f", {"dev0", "dev1"});
  const auto x = b.input("x", DType::float32, {kAnyDim});
  const Dim n = b.size(0, 0);
  const auto k0 = b.kernel("link_plus_one", {}, 0);
  for (int i = 0; i < 6; ++i) {
    const auto value = b.temporary(DType::float32, {n}, 0);
    const auto there = b.result(DType::float32, {n}, 1);
    b.launch(k0, {value, x}, n, 1, 0);
    b.copy(there, value);
    b.plan.outputs.push_back(there);
  }
  const auto last = b.result(DType::float32, {n}, 1);
  b.launch(b.kernel("link_plus_one", {}, 1), {last, b.plan.outputs.back()}, n, 1, 1).after = {11};
  b.plan.outputs.push_back(last);
  const Executable f(machine.runtime, std::move(b.plan), Config().with("bucket_bytes", "3M"));
  std::vector<Array> results(7);
  // One of 0.8 MB; then three of 2.4 MB; and what is left.
  f.run(std::vector<Array>{Array::zeros({200'000})}, results);
  CHECK(f.statistics().messages == 3);
  for (int r = 0; r < 7; ++r) {
    CHECK(results[static_cast<std::size_t>(r)].to_host().at<float>({199'999}) == 1 + r / 6);
  }
  // One is too large for the first bucket, and goes alone.
  f.run(std::vector<Array>{Array::zeros({400'000})}, results);
  CHECK(f.statistics().messages == 6);
}

TEST_CASE("contexts on one memory copy nothing unless links are slow") {
  FakeMachine machine(no_cache(kCpus));
  const Executable fast(machine.runtime, sender(3), Config());
  check_sent(fast, 3);
  CHECK(fast.statistics().messages == 0);
  CHECK(fast.statistics().on_caller);
  CHECK(machine.cpu->copies == 0);
  for (const char* flag : {"link_latency_us", "link_bandwidth"}) {
    const Executable real(machine.runtime, sender(3), Config().with(flag, 1000));
    const int before = machine.cpu->copies;
    check_sent(real, 3);
    CHECK(machine.cpu->copies == before + 3);
    CHECK(real.statistics().messages == 1);
    CHECK_FALSE(real.statistics().on_caller);
    CHECK_THAT(real.to_text(), Contains("copy of 1200 bytes by link, of steps 1, 3, 5"));
  }
}

TEST_CASE("a message takes its time, one after the other") {
  FakeMachine machine(no_cache(kCpus));
  const auto time_of = [&](const Config& config) {
    const Executable f(machine.runtime, sender(4), config);
    check_sent(f, 4);
    const auto start = std::chrono::steady_clock::now();
    check_sent(f, 4);
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
        .count();
  };
  CHECK(time_of(slow(5000, 0)) >= 20);
  CHECK(time_of(slow(5000, 1 << 20)) >= 5);
  // 1600 bytes.
  CHECK(time_of(Config().with("link_bandwidth", 80'000)) >= 20);
}

TEST_CASE("a context works while what it sent is on its way") {
  for (const char* map : {kCpus, kGpus}) {
    FakeMachine machine(no_cache(map));
    PlanBuilder b("f", {"dev0", "dev1"});
    const auto x = b.input("x", DType::float32, {kSize});
    const auto value = b.temporary(DType::float32, {kSize}, 0);
    const auto there = b.temporary(DType::float32, {kSize}, 1);
    const auto more = b.result(DType::float32, {kSize}, 0);
    const auto out = b.result(DType::float32, {kSize}, 1);
    b.launch(b.kernel("link_plus_one", {}, 0), {value, x}, kSize, 1, 0);
    b.copy(there, value);
    b.launch(b.kernel("link_works", {}, 0), {more, value}, kSize, 1, 0);
    b.launch(b.kernel("link_arrives", {}, 1), {out, there}, kSize, 1, 1).after = {1};
    b.plan.outputs = {more, out};
    const Executable f(machine.runtime, std::move(b.plan), slow(300'000, 1 << 20));
    std::vector<Array> results(2);
    clock_hand = worked_at = arrived_at = 0;
    f.run(std::vector<Array>{Array::zeros({kSize})}, results);
    // Each kernel runs in two ranges.
    CHECK(worked_at == 2);
    CHECK(arrived_at == 4);
    for (const Array& r : results) CHECK(r.to_host().at<float>({kSize - 1}) == 2);
  }
}

TEST_CASE("memory is not used again before a message that waits for its turn has left") {
  for (const char* map : {kCpus, kGpus}) {
    FakeMachine machine(no_cache(map));
    PlanBuilder b("f", {"dev0", "dev1"});
    const auto x = b.input("x", DType::float32, {kSize});
    const auto k0 = b.kernel("link_plus_one", {}, 0), k1 = b.kernel("link_plus_one", {}, 1);
    auto last = x;
    for (int i = 0; i < 4; ++i) {
      const auto value = b.temporary(DType::float32, {kSize}, 0);
      const auto there = b.temporary(DType::float32, {kSize}, 1);
      const auto out = b.result(DType::float32, {kSize}, 1);
      // In the place of what was sent just before, if that were free.
      b.launch(k0, {value, last}, kSize, 1, 0).shares = {1};
      b.copy(there, value);
      b.launch(k1, {out, there}, kSize, 1, 1).after = {
          static_cast<std::int32_t>(b.plan.steps.size() - 1)};
      b.plan.outputs.push_back(out);
      last = value;
    }
    const Executable f(machine.runtime, std::move(b.plan), slow(3000, 0));
    for (int i = 0; i < 3; ++i) check_sent(f, 4);
  }
}

TEST_CASE("calls that send ask for no memory once they have run") {
  for (const char* map : {kCpus, kGpus}) {
    FakeMachine machine(no_cache(map));
    const Executable f(machine.runtime, sender(4),
                       map == kCpus ? slow(1, 400) : Config().with("bucket_bytes", 400));
    std::vector<Array> results(4);
    const Executable* self = &f;
    PlanBuilder b("x", {"dev0"});
    const auto x = b.input("x", DType::float32, {kSize}), y = b.result(DType::float32, {kSize});
    b.launch(b.kernel("link_plus_one"), {y, x}, kSize);
    b.plan.outputs = {y};
    const Executable make(machine.runtime, std::move(b.plan), Config());
    std::vector<Array> in(1);
    make.run(std::vector<Array>{Array::zeros({kSize})}, in);
    for (int i = 0; i < 5; ++i) self->run(in, results);
    const std::int64_t before = allocation_count();
    for (int i = 0; i < 20; ++i) self->run(in, results);
    CHECK(allocation_count() == before);
  }
}

TEST_CASE("a failure ends a call that sends, and leaves the function usable") {
  for (const char* map : {kCpus, kGpus}) {
    FakeMachine machine(no_cache(map));
    Plan plan = sender(4);
    Step failing;
    failing.kind = Step::Kind::library;
    failing.context = 0;
    failing.name = "failing";
    failing.slots = plan.steps[2].slots;
    plan.steps.insert(plan.steps.begin() + 2, failing);
    for (Step& step : plan.steps) {
      for (std::int32_t& a : step.after) a += a >= 2;
    }
    const Config config = slow(100, 400);
    const Executable fails(machine.runtime, std::move(plan), config);
    const Executable works(machine.runtime, sender(4), config);
    std::vector<Array> results(4);
    for (int i = 0; i < 5; ++i) {
      CHECK_THROWS_WITH(fails.run(std::vector<Array>{Array::zeros({kSize})}, results),
                        "the library failed");
      check_sent(works, 4);
    }
  }
}

TEST_CASE("calls from several threads that send to each other's contexts end") {
  for (const char* map : {kCpus, kGpus}) {
    FakeMachine machine(no_cache(map));
    const Config config = map == kCpus ? slow(10, 400) : Config().with("bucket_bytes", 400);
    Plan back = sender(5);
    back.contexts = {"dev1", "dev0"};
    const Executable f(machine.runtime, sender(5), config);
    const Executable g(machine.runtime, std::move(back), config);
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        std::vector<Array> results(5);
        for (int i = 0; i < 50; ++i) {
          (t % 2 ? f : g).run(std::vector<Array>{Array::zeros({kSize})}, results);
          for (int r = 0; r < 5; ++r) {
            const Array host = results[static_cast<std::size_t>(r)].to_host();
            if (host.at<float>({kSize - 1}) != static_cast<float>(r + 2)) ++wrong;
          }
        }
      });
    }
    for (std::thread& t : threads) t.join();
    CHECK(wrong == 0);
  }
}
