// Values of shared variables that are current on several contexts.
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <thread>

#include "runtime/context.h"
#include "runtime/executable.h"
#include "runtime/program.h"
#include "tests/runtime/allocation_count.h"
#include "tests/runtime/fake_device.h"
#include "tests/runtime/plan_builder.h"

using namespace croton;
using namespace croton::test;
using Catch::Matchers::Contains;

namespace {

void next_value(void* const* b, const std::int64_t*, std::int64_t first, std::int64_t last,
                std::int64_t*) {
  for (std::int64_t i = first; i < last; ++i) {
    static_cast<float*>(b[0])[i] = static_cast<float*>(b[1])[i] + 1;
  }
}

const bool registered = [] {
  fake_kernels()["next_value"] = next_value;
  return true;
}();

constexpr std::int64_t kSize = 1000;

const char* const kMaps[] = {"contexts=dev0->cpu;dev1->cpu;dev2->cpu",
                             "contexts=dev0->cuda0;dev1->cuda1;dev2->cpu",
                             "contexts=dev0->cpu;dev1->cuda0;dev2->cuda1"};

using State = std::shared_ptr<SharedState>;

/// `shared` on each of `read`, one more than that as outputs there; where `updated`, that is its
/// new value there.
Plan reader(const State& state, const std::vector<std::string>& read, bool updated = false) {
  PlanBuilder b("f", read);
  b.plan.shareds.push_back(state);
  for (std::size_t c = 0; c < read.size(); ++c) {
    const auto context = static_cast<std::int32_t>(c);
    Slot slot;
    slot.kind = SlotKind::shared;
    slot.dtype = DType::float32;
    slot.shape = {b.plan.dims.ref(Dim(kSize))};
    slot.context = context;
    b.plan.slots.push_back(slot);
    const auto source = static_cast<std::int32_t>(b.plan.slots.size() - 1);
    const auto out = b.result(DType::float32, {kSize}, context);
    b.launch(b.kernel("next_value", {}, context), {out, source}, kSize, 1, context);
    b.plan.outputs.push_back(out);
    if (updated) b.plan.updates.push_back({0, out, context});
  }
  return std::move(b.plan);
}

State zeros(const FakeMachine& machine, const char* context = "dev0") {
  return make_shared_state(machine.runtime, Array::zeros({kSize}), "w", context);
}

/// What a call gives, which is the same number everywhere.
float value_of(const Executable& f) {
  std::vector<Array> results(f.plan().outputs.size());
  f.run({}, results);
  const float first = results.at(0).to_host().at<float>({0});
  for (const Array& r : results) {
    CHECK(r.to_host().to_vector<float>() == std::vector<float>(kSize, first));
  }
  return first;
}

bool is_on(const FakeMachine& machine, const State& state, const char* context) {
  return state->place_on(machine.runtime->context(context))->has_value();
}

}  // namespace

TEST_CASE("a value is brought once to each context that reads it") {
  REQUIRE(registered);
  for (const char* map : kMaps) {
    FakeMachine machine(no_cache(map));
    const State w = zeros(machine);
    const Executable f(machine.runtime, reader(w, {"dev0", "dev1", "dev2"}), Config());
    for (int i = 0; i < 3; ++i) {
      CHECK(value_of(f) == 1);
      CHECK(f.statistics().refreshed_shareds == 2);
    }
    set_value(*w, Array::ones({kSize}));
    CHECK_FALSE(is_on(machine, w, "dev1"));
    for (int i = 0; i < 3; ++i) CHECK(value_of(f) == 2);
    CHECK(f.statistics().refreshed_shareds == 4);
    // Another function finds it there.
    const Executable other(machine.runtime, reader(w, {"dev2"}), Config());
    CHECK(value_of(other) == 2);
    CHECK(other.statistics().refreshed_shareds == 0);
  }
}

TEST_CASE("contexts on the host's memory share a value without a copy") {
  FakeMachine machine(no_cache(kMaps[0]));
  const State w = zeros(machine);
  const Executable f(machine.runtime, reader(w, {"dev0", "dev1", "dev2", "cpu"}), Config());
  const int before = machine.cpu->copies;
  CHECK(value_of(f) == 1);
  CHECK(machine.cpu->copies == before);
  CHECK(w->place_on(machine.runtime->context("dev1"))->raw_data() == w->value.raw_data());
  CHECK(w->place_on(machine.runtime->context("dev1"))->context() == "dev1");
}

TEST_CASE("an update leaves a value where the plan puts it, and nowhere else") {
  for (const char* map : kMaps) {
    CAPTURE(map);
    FakeMachine machine(no_cache(map));
    const State w = zeros(machine);
    const Executable all(machine.runtime, reader(w, {"dev0", "dev1", "dev2"}, true), Config());
    const Executable home(machine.runtime, reader(w, {"dev0"}, true), Config());
    const Executable away(machine.runtime, reader(w, {"dev1", "dev2"}, true), Config());
    for (int i = 1; i < 4; ++i) CHECK(value_of(all) == static_cast<float>(i));
    // Steps that update all places refresh none.
    CHECK(all.statistics().refreshed_shareds == 2);
    for (const char* c : {"dev0", "dev1", "dev2"}) CHECK(is_on(machine, w, c));
    CHECK(value_of(home) == 4);
    CHECK(is_on(machine, w, "dev0"));
    CHECK_FALSE(is_on(machine, w, "dev1"));
    CHECK_FALSE(is_on(machine, w, "dev2"));
    for (int i = 5; i < 8; ++i) CHECK(value_of(away) == static_cast<float>(i));
    CHECK(away.statistics().refreshed_shareds == 2);
    CHECK_FALSE(is_on(machine, w, "dev0"));
    CHECK(get_value(*w).at<float>({0}) == 7);
    CHECK(value_of(home) == 8);
    CHECK(home.statistics().refreshed_shareds == 1);
    CHECK(get_value(*w).at<float>({kSize - 1}) == 8);
  }
}

TEST_CASE("an update of several places asks for no memory once it has run") {
  for (const char* map : kMaps) {
    FakeMachine machine(no_cache(map));
    const State w = zeros(machine);
    const Executable f(machine.runtime, reader(w, {"dev0", "dev1", "dev2"}, true), Config());
    std::vector<Array> results(3);
    for (int i = 0; i < 5; ++i) f.run({}, results);
    const std::int64_t before = allocation_count();
    for (int i = 0; i < 50; ++i) f.run({}, results);
    CHECK(allocation_count() == before);
    CHECK(get_value(*w).at<float>({3}) == 55);
  }
}

TEST_CASE("a plan that updates a place twice is an internal error") {
  FakeMachine machine(no_cache(kMaps[0]));
  const State w = zeros(machine);
  Plan twice = reader(w, {"dev0", "dev1"}, true);
  twice.updates[1].context = -1;  // its home, which is dev0
  CHECK_THROWS_AS(Executable(machine.runtime, std::move(twice), Config()), InternalError);
}

TEST_CASE("a context without memory for a value leaves all as it was") {
  FakeMachine machine(no_cache(kMaps[2]));
  const State w = zeros(machine);
  const Executable f(machine.runtime, reader(w, {"dev0", "dev1"}, true), Config());
  machine.gpu->limit = machine.gpu->used + 100;
  std::vector<Array> results(2);
  for (int i = 0; i < 3; ++i) {
    CHECK_THROWS_AS(f.run({}, results), OutOfMemory);
    CHECK(get_value(*w).at<float>({0}) == 0);
  }
  CHECK(is_on(machine, w, "dev0"));
  CHECK_FALSE(is_on(machine, w, "dev1"));
  machine.gpu->limit = std::int64_t{1} << 40;
  // No lock was left behind.
  set_value(*w, Array::ones({kSize}));
  CHECK(value_of(f) == 2);
}

TEST_CASE("a step that fails leaves every copy of a value as it was") {
  for (const char* map : kMaps) {
    FakeMachine machine(no_cache(map));
    const State w = zeros(machine);
    const Executable f(machine.runtime, reader(w, {"dev0", "dev1", "dev2"}, true), Config());
    CHECK(value_of(f) == 1);
    Plan plan = reader(w, {"dev0", "dev1", "dev2"}, true);
    Step failing;
    failing.kind = Step::Kind::library;
    failing.context = 1;
    failing.name = "failing";
    failing.slots = plan.steps[1].slots;
    plan.steps.push_back(failing);
    const Executable fails(machine.runtime, std::move(plan), Config());
    std::vector<Array> results(3);
    for (int i = 0; i < 2; ++i) {
      CHECK_THROWS_WITH(fails.run({}, results), "the library failed");
      CHECK(get_value(*w).at<float>({0}) == static_cast<float>(1 + i));
      CHECK(value_of(f) == static_cast<float>(2 + i));
      CHECK(f.statistics().refreshed_shareds == 2);
    }
  }
}

TEST_CASE("a value is lost with the last context that has it") {
  FakeMachine machine(no_cache(kMaps[1]));
  const State w = zeros(machine);
  const Executable read(machine.runtime, reader(w, {"dev0", "dev2"}), Config());
  const Executable there(machine.runtime, reader(w, {"dev2"}), Config());
  const Executable away(machine.runtime, reader(w, {"dev1"}, true), Config());
  CHECK(value_of(read) == 1);
  machine.fail("cuda0");
  CHECK(get_value(*w).at<float>({0}) == 0);
  CHECK(value_of(there) == 1);
  CHECK(value_of(away) == 1);
  CHECK(get_value(*w).at<float>({0}) == 1);
  machine.fail("cuda1");
  CHECK_THROWS_WITH(get_value(*w), Contains("the value of w was lost: cuda1 failed"));
  std::vector<Array> result(1);
  CHECK_THROWS_WITH(there.run({}, result), Contains("the value of w was lost: cuda1 failed"));
}

TEST_CASE("parts of one call bring values to their places before the first runs") {
  FakeMachine machine(no_cache(kMaps[1]));
  const State w = zeros(machine), v = zeros(machine, "dev1");
  std::vector<Program::Part> parts(2);
  parts[0].plan = reader(w, {"dev1"});
  parts[1].plan = reader(v, {"dev0", "dev2"}, true);
  const Program program(machine.runtime, std::move(parts), Config());
  std::vector<Array> results(2);
  for (int i = 0; i < 3; ++i) program.run({}, results);
  CHECK(program.statistics().refreshed_shareds == 3);
  CHECK(get_value(*v).at<float>({0}) == 3);
}

TEST_CASE("calls from several threads see a value on all contexts before or after an update") {
  for (const char* map : kMaps) {
    FakeMachine machine(no_cache(map));
    const State w = zeros(machine), v = zeros(machine, "dev1");
    const Executable all(machine.runtime, reader(w, {"dev0", "dev1", "dev2"}, true), Config());
    const Executable home(machine.runtime, reader(w, {"dev0"}, true), Config());
    const Executable read(machine.runtime, reader(w, {"dev2", "dev1"}), Config());
    const Executable other(machine.runtime, reader(v, {"dev0", "dev2"}, true), Config());
    const Executable* const functions[] = {&all, &home, &read, &read, &other};
    std::atomic<int> torn{0};
    std::vector<std::thread> threads;
    for (const Executable* f : functions) {
      threads.emplace_back([&, f] {
        float last = 0;
        std::vector<Array> results(f->plan().outputs.size());
        for (int i = 0; i < 100; ++i) {
          f->run({}, results);
          const float now = results[0].to_host().at<float>({0});
          for (const Array& r : results) {
            const Array host = r.to_host();
            if (host.at<float>({0}) != now || host.at<float>({kSize - 1}) != now) ++torn;
          }
          if (now < last) ++torn;
          last = now;
        }
      });
    }
    for (std::thread& t : threads) t.join();
    CHECK(torn == 0);
    CHECK(get_value(*w).at<float>({5}) == 200);
    CHECK(get_value(*v).at<float>({5}) == 100);
  }
}

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
TEST_CASE("the child of a fork goes on with values on several contexts") {
  FakeMachine machine(no_cache(kMaps[0]));
  const State w = zeros(machine);
  const Executable all(machine.runtime, reader(w, {"dev0", "dev1"}, true), Config());
  const Executable home(machine.runtime, reader(w, {"dev0"}, true), Config());
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    std::vector<Array> results(2);
    while (!stop) {
      all.run({}, results);
      home.run({}, {results.data(), 1});
    }
  });
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      const float before = get_value(*w).at<float>({0});
      std::vector<Array> results(2);
      for (int k = 0; k < 5; ++k) {
        all.run({}, results);
        home.run({}, {results.data(), 1});
      }
      _exit(get_value(*w).at<float>({0}) == before + 10 ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    CAPTURE(i, WTERMSIG(status));
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
  }
  stop = true;
  busy.join();
}
#endif
