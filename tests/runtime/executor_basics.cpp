#include <catch2/catch.hpp>
#include <chrono>
#include <functional>

#include "runtime/executable.h"
#include "runtime/parallel.h"
#include "tests/runtime/fake_device.h"
#include "tests/runtime/plan_builder.h"

using namespace croton;
using namespace croton::test;

namespace {

void add(void* const* b, const std::int64_t*, std::int64_t first, std::int64_t last,
         std::int64_t*) {
  for (std::int64_t i = first; i < last; ++i) {
    static_cast<float*>(b[0])[i] = static_cast<float*>(b[1])[i] + static_cast<float*>(b[2])[i];
  }
}

void twice(void* const* b, const std::int64_t*, std::int64_t first, std::int64_t last,
           std::int64_t*) {
  for (std::int64_t i = first; i < last; ++i) {
    static_cast<float*>(b[0])[i] = 2 * static_cast<float*>(b[1])[i];
  }
}

void take(void* const* b, const std::int64_t* sizes, std::int64_t first, std::int64_t last,
          std::int64_t* error) {
  for (std::int64_t i = first; i < last; ++i) {
    const std::int64_t at = static_cast<std::int64_t*>(b[2])[i];
    if (at < 0 || at >= sizes[1]) {
      if (error[0] == 0) error[0] = 1, error[1] = at, error[2] = sizes[1];
      continue;
    }
    static_cast<float*>(b[0])[i] = static_cast<float*>(b[1])[at];
  }
}

const bool registered = [] {
  fake_kernels()["add"] = add;
  fake_kernels()["streaming_add"] = add;
  fake_kernels()["twice"] = twice;
  fake_kernels()["take"] = take;
  return true;
}();

Array floats(std::vector<float> values) { return Array::from<float>(values); }

/// x + y over vectors of any length.
Plan add_plan() {
  PlanBuilder b("sum");
  const auto x = b.input("x", DType::float32, {kAnyDim});
  const auto y = b.input("y", DType::float32, {kAnyDim});
  const Dim n = b.size(0, 0);
  const auto out = b.result(DType::float32, {n});
  b.plan.checks.push_back({b.plan.dims.ref(n), b.plan.dims.ref(b.size(1, 0)),
                           "[add] sizes differ along axis 0: got {a} and {b}"});
  b.launch(b.kernel("add"), {out, x, y}, n);
  b.plan.outputs = {out};
  return std::move(b.plan);
}

Array run1(const Executable& f, std::vector<Array> arguments) {
  Array result;
  f.run(arguments, {&result, 1});
  return result;
}

std::string message_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a plan runs and is reused for the same shapes") {
  REQUIRE(registered);
  FakeMachine machine(no_cache());
  const Executable f(machine.runtime, add_plan(), Config());
  for (int i = 0; i < 5; ++i) {
    const Array r = run1(f, {floats({1, 2, 3}), floats({10, 20, float(i)})});
    CHECK(r.to_vector<float>() == std::vector<float>{11, 22, 3 + float(i)});
    CHECK(r.context() == "cpu");
  }
  CHECK(run1(f, {floats({1}), floats({2})}).to_vector<float>() == std::vector<float>{3});
  CHECK(f.statistics().launches == 1);
  CHECK(run1(f, {floats({}), floats({})}).size() == 0);
  const PlanStatistics s = f.statistics();
  CHECK(s.calls == 7);
  CHECK(s.specialisations == 3);
  CHECK(s.frames == 3);
  // Counted for the latest call, which had nothing to compute.
  CHECK(s.launches == 0);
  CHECK(s.on_caller);
  CHECK(machine.cpu->compiled == 1);
}

TEST_CASE("bytes are counted for the latest shapes") {
  FakeMachine machine(no_cache());
  const Executable f(machine.runtime, add_plan(), Config());
  run1(f, {Array::zeros({100}), Array::zeros({100})});
  const PlanStatistics s = f.statistics();
  CHECK(s.bytes_read == 800);
  CHECK(s.bytes_written == 400);
  CHECK(s.bytes_in == 800);
  CHECK(s.bytes_out == 400);
  CHECK(s.arena_bytes == 0);
}

TEST_CASE("arguments that do not fit are named") {
  FakeMachine machine(no_cache());
  const Executable f(machine.runtime, add_plan(), Config());
  CHECK_THROWS_AS(run1(f, {floats({1})}), CallError);
  CHECK(message_of([&] { run1(f, {floats({1})}); }) ==
        "[sum] wrong number of arguments: got 1, expected 2 (x, y)");
  CHECK(message_of([&] {
          run1(f, {floats({1}), Array::zeros({1}, DType::float64)});
        }) ==
        "[sum] argument 1 (\"y\") has the wrong dtype: got float64, expected float32; convert it "
        "with astype(DType::float32)");
  CHECK(
      message_of([&] {
        run1(f, {Array::zeros({1, 1}), floats({1})});
      }) ==
      "[sum] argument 0 (\"x\") has the wrong number of axes: got 2 with shape (1, 1), expected 1 "
      "as in shape (?,)");
  CHECK(message_of([&] {
          run1(f, {floats({1}), Array()});
        }) == "[sum] argument 1 (\"y\") holds no value: got a default-constructed Array");
  CHECK(message_of([&] {
          run1(f, {floats({1, 2}), floats({1, 2, 3})});
        }) ==
        "[add] sizes differ along axis 0: got 2 and 3; axis 0 of argument 0 (\"x\") is 2, "
        "axis 0 of argument 1 (\"y\") is 3");
  CHECK(run1(f, {floats({1}), floats({2})}).item<float>() == 3);
}

TEST_CASE("static sizes are checked") {
  FakeMachine machine(no_cache());
  PlanBuilder b("f");
  const auto x = b.input("x", DType::float32, {kAnyDim, 3});
  b.plan.outputs = {x};
  const Executable f(machine.runtime, std::move(b.plan), Config());
  CHECK(message_of([&] {
          run1(f, {Array::zeros({2, 4})});
        }) ==
        "[f] argument 0 (\"x\") has the wrong size along axis 1: got 4 in shape (2, 4), expected 3 "
        "as in shape (?, 3)");
  CHECK(run1(f, {Array::zeros({2, 3})}).shape() == Shape({2, 3}));
}

TEST_CASE("strided arguments are copied") {
  FakeMachine machine(no_cache());
  const Executable f(machine.runtime, add_plan(), Config());
  const Array x = floats({1, 2, 3, 4}).slice(0, {}, {}, -2);
  CHECK(run1(f, {x, floats({10, 20})}).to_vector<float>() == std::vector<float>{14, 22});
  CHECK(f.statistics().copied_arguments == 1);
}

TEST_CASE("plans of the least recently used shapes are dropped") {
  FakeMachine machine(no_cache());
  const Executable f(machine.runtime, add_plan(), Config().with("plan_cache_size", 2));
  const auto run = [&](std::int64_t n) { run1(f, {Array::zeros({n}), Array::zeros({n})}); };
  run(1), run(2), run(1), run(3), run(1);
  CHECK(f.statistics().specialisations == 3);
  CHECK(f.statistics().specialised == 2);
  run(2);
  CHECK(f.statistics().specialisations == 4);
}

TEST_CASE("a failed check becomes an error before updates are made") {
  FakeMachine machine(no_cache());
  auto w = make_shared_state(machine.runtime, floats({5, 6, 7}), "w", "cpu");
  PlanBuilder b("lookup");
  const auto table = b.shared(w);
  const auto index = b.input("i", DType::int64, {3});
  const auto out = b.result(DType::float32, {3});
  Step& step = b.launch(b.kernel("take", {"index {value} is out of bounds for size {bound}"}),
                        {out, table, index}, 3);
  step.sizes = {b.plan.dims.ref(Dim(3)), b.plan.dims.ref(Dim(3))};
  b.plan.outputs = {out};
  b.plan.updates = {{0, out}};
  const Executable f(machine.runtime, std::move(b.plan), Config());

  CHECK(message_of([&] {
          run1(f, {Array({0, 9, 1})});
        }) == "[take] index 9 is out of bounds for size 3");
  CHECK_THROWS_AS(run1(f, {Array({0, 9, 1})}), CallError);
  CHECK(get_value(*w).to_vector<float>() == std::vector<float>{5, 6, 7});
  CHECK(run1(f, {Array({2, 0, 1})}).to_vector<float>() == std::vector<float>{7, 5, 6});
  CHECK(get_value(*w).to_vector<float>() == std::vector<float>{7, 5, 6});
}

TEST_CASE("outputs may be inputs, constants, shared values and views of them") {
  FakeMachine machine(no_cache());
  auto w = make_shared_state(machine.runtime, floats({5, 6}), "w", "cpu");
  PlanBuilder b("pass");
  const auto x = b.input("x", DType::float32, {2});
  const auto c = b.constant(floats({1, 2}));
  const auto s = b.shared(w);
  b.plan.outputs = {x, c, s, b.view(s, {2, 1}), x};
  const Executable f(machine.runtime, std::move(b.plan), Config());
  std::vector<Array> out(5);
  const std::vector<Array> in = {floats({8, 9})};
  f.run(in, out);
  CHECK(out[0].to_vector<float>() == std::vector<float>{8, 9});
  CHECK(out[1].to_vector<float>() == std::vector<float>{1, 2});
  CHECK(out[2].to_vector<float>() == std::vector<float>{5, 6});
  CHECK(out[3].shape() == Shape({2, 1}));
  // Values: writing to what came out changes nothing else.
  for (Array& a : out) a.mutable_data<float>()[0] = 0;
  CHECK(get_value(*w).to_vector<float>() == std::vector<float>{5, 6});
  CHECK(in[0].to_vector<float>() == std::vector<float>{8, 9});
  f.run(in, out);
  CHECK(out[1].to_vector<float>() == std::vector<float>{1, 2});
}

TEST_CASE("an update with a borrowed argument copies it") {
  FakeMachine machine(no_cache());
  auto w = make_shared_state(machine.runtime, floats({5, 6}), "w", "cpu");
  PlanBuilder b("assign");
  b.shared(w);
  const auto x = b.input("x", DType::float32, {2});
  b.plan.updates = {{0, x}};
  const Executable f(machine.runtime, std::move(b.plan), Config());
  std::vector<float> memory = {1, 2};
  const std::vector<Array> in = {Array::borrow(memory.data(), {2})};
  f.run(in, {});
  memory[0] = 100;
  CHECK(get_value(*w).to_vector<float>() == std::vector<float>{1, 2});
}

TEST_CASE("two shared values can be swapped") {
  FakeMachine machine(no_cache());
  auto v = make_shared_state(machine.runtime, floats({1}), "v", "cpu");
  auto w = make_shared_state(machine.runtime, floats({2}), "w", "cpu");
  PlanBuilder b("swap");
  const auto sv = b.shared(v), sw = b.shared(w);
  b.plan.updates = {{0, sw}, {1, sv}};
  const Executable f(machine.runtime, std::move(b.plan), Config());
  f.run({}, {});
  CHECK(get_value(*v).item<float>() == 2);
  CHECK(get_value(*w).item<float>() == 1);
}

TEST_CASE("temporaries share memory and are reused in place") {
  FakeMachine machine(no_cache());
  PlanBuilder b("chain");
  const auto x = b.input("x", DType::float32, {kAnyDim});
  const Dim n = b.size(0, 0);
  const auto k = b.kernel("twice");
  const auto t1 = b.temporary(DType::float32, {n}), t2 = b.temporary(DType::float32, {n});
  const auto t3 = b.temporary(DType::float32, {n}), out = b.result(DType::float32, {n});
  b.launch(k, {t1, x}, n);
  b.launch(k, {t2, t1}, n).shares = {1};
  b.launch(k, {t3, t2}, n);
  b.launch(k, {out, t3}, n);
  b.plan.outputs = {out};
  const Executable f(machine.runtime, std::move(b.plan), Config());
  const Array r = run1(f, {Array::ones({1000})});
  CHECK(r.at<float>({999}) == 16);
  // t1 and t2 are one block, t3 another.
  CHECK(f.statistics().arena_bytes == 2 * 4032);
}

TEST_CASE("modules are compiled side by side, and the compilers' time is told") {
  FakeMachine machine(no_cache());
  machine.cpu->compilers = std::min(available_cores(), 3);
  const auto chain = [] {
    PlanBuilder b("chain");
    const auto x = b.input("x", DType::float32, {kAnyDim});
    const Dim n = b.size(0, 0);
    auto last = x;
    for (const char* name : {"twice", "add", "twice"}) {
      const auto k = b.kernel(name);
      b.plan.modules.back().text.push_back(static_cast<char>('0' + k));
      const auto y = b.result(DType::float32, {n});
      b.launch(k, name == std::string("add") ? std::vector{y, last, x} : std::vector{y, last}, n);
      last = y;
    }
    b.plan.outputs = {last};
    return std::move(b.plan);
  };
  const auto start = std::chrono::steady_clock::now();
  const Executable f(machine.runtime, chain(), Config());
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  CHECK(machine.cpu->compiled == 3);
  CHECK(took.count() < 5000);  // each found the others at work
  CHECK(f.statistics().modules_compiled == 3);
  CHECK(f.statistics().compile_ms > 0);
  CHECK(run1(f, {Array::ones({100})}).at<float>({99}) == 6);
  const Executable again(machine.runtime, chain(), Config());
  CHECK(again.statistics().modules_compiled == 0);
  CHECK(again.statistics().compile_ms == 0);
}

TEST_CASE("large outputs that nobody reads use non-temporal stores") {
  FakeMachine machine(no_cache());
  Plan plan = add_plan();
  plan.modules.push_back({0, "streaming:text", {"add"}});
  plan.kernels[0].streaming_module = 1;
  const Executable f(machine.runtime, std::move(plan), Config());
  CHECK(machine.cpu->compiled == 1);
  run1(f, {Array::zeros({100}), Array::zeros({100})});
  CHECK(f.statistics().streaming_launches == 0);
  CHECK(machine.cpu->compiled == 1);
  run1(f, {Array::zeros({300000}), Array::zeros({300000})});
  CHECK(f.statistics().streaming_launches == 1);
  CHECK(machine.cpu->compiled == 2);
}

TEST_CASE("a launch has indices of 64 bits where it counts through more than 32 hold") {
  // Rows of 2^16 against columns of 2^16: 2^32 elements, though each buffer is small.
  const auto wide_launches = [](std::int64_t columns, bool spans) {
    FakeMachine machine(no_cache());
    Plan plan = add_plan();
    plan.kernels[0].indexed = true;
    const Dim n = plan.dims.input_size(0, 0);
    if (spans) plan.steps[0].span = plan.dims.ref(n * Dim(columns));
    const Executable f(machine.runtime, std::move(plan), Config());
    run1(f, {Array::zeros({1 << 16}), Array::zeros({1 << 16})});
    CHECK(machine.cpu->compiled == 1 + f.statistics().wide_launches);
    return f.statistics().wide_launches;
  };
  CHECK(wide_launches(1 << 16, true) == 1);
  CHECK(wide_launches(1 << 13, true) == 0);
  CHECK(wide_launches(1 << 16, false) == 0);
}

TEST_CASE("sizes come from integer arguments") {
  FakeMachine machine(no_cache());
  PlanBuilder b("zeros");
  b.plan.inputs.push_back({"n", DType::int32, {}, true});
  const Dim n = b.plan.dims.input_value(0);
  const auto x = b.constant(floats({3, 3, 3, 3}));
  const auto out = b.result(DType::float32, {n});
  b.launch(b.kernel("twice"), {out, x}, n);
  b.plan.outputs = {out};
  const Executable f(machine.runtime, std::move(b.plan), Config());
  const auto size = [](std::int32_t n) { return Array::from<std::int32_t>({n}, {}); };
  CHECK(run1(f, {size(2)}).to_vector<float>() == std::vector<float>{6, 6});
  CHECK(run1(f, {size(4)}).size() == 4);
  CHECK(run1(f, {size(2)}).size() == 2);
  CHECK(f.statistics().specialisations == 2);
  const std::string text = message_of([&] { run1(f, {size(-1)}); });
  INFO(text);
  CHECK(text.starts_with("[zeros] a size comes out negative: got shape (-1)"));
}
