#include <catch2/catch.hpp>

#include "runtime/context.h"
#include "runtime/null/null_device.h"
#include "runtime/shared_state.h"
#include "tests/runtime/fake_device.h"

using namespace croton;
using namespace croton::test;

namespace {

template <class E, class F>
std::string message_of(F act) {
  try {
    act();
  } catch (const E& e) {
    return e.what();
  }
  return "no such error";
}

bool has(const std::string& text, const std::string& part) {
  INFO(text);
  CHECK(text.find(part) != std::string::npos);
  return text.find(part) != std::string::npos;
}

Config flags(std::string_view text) { return no_cache(text); }

}  // namespace

TEST_CASE("contexts are found by their names and by devices") {
  FakeMachine m(flags("contexts=dev0->cpu;dev1->cuda1"));
  Runtime& r = *m.runtime;
  CHECK(r.context("dev0").name() == "dev0");
  CHECK(r.context("dev1").device().name() == "cuda1");
  CHECK(&r.context("cpu") == &r.context("cpu0"));
  CHECK(r.context("cpu").is_host());
  CHECK(r.context("cpu").array_home() == nullptr);
  CHECK(&r.context("dev0") != &r.context("cpu"));
  CHECK(&r.context("dev0").device() == &r.context("cpu").device());
  CHECK(&r.context("cuda") == &r.context("cuda0"));
  CHECK(r.default_context() == "cpu");
  CHECK(r.bound_names() == std::vector<std::string>{"dev0", "dev1"});
  CHECK(r.canonical_name("cuda") == "cuda0");
}

TEST_CASE("several names on one device are contexts of their own") {
  FakeMachine m(flags("contexts=a->cuda0;b->cuda0"));
  CHECK(&m.runtime->context("a") != &m.runtime->context("b"));
  CHECK(&m.runtime->context("a").device() == &m.runtime->context("b").device());
}

TEST_CASE("a name that is not bound is told with those that are") {
  FakeMachine m(flags("contexts=dev0->cpu"));
  const std::string text = message_of<ConfigError>([&] { m.runtime->context("dev7"); });
  has(text, "no context is called \"dev7\"");
  has(text, "bound are dev0");
  has(text, "contexts=dev0->cpu0;dev7->cpu0");
  FakeMachine none(flags(""));
  has(message_of<ConfigError>([&] { none.runtime->canonical_name("dev0"); }), "binds no name");
}

TEST_CASE("devices that cannot be opened are all listed, and none is half open") {
  FakeMachine m(flags("contexts=a->cuda0;b->cuda5;c->cpu3"));
  const std::string text = message_of<DeviceError>([&] { m.runtime->context("a"); });
  has(text, "b->cuda5: there are two fake GPUs");
  has(text, "c->cpu3: there is no such CPU");
  has(text, "devices that exist: cpu0, cuda0, cuda1");
  has(text, "CROTON_FLAGS=\"contexts=a->cpu;b->cpu;c->cpu3\"");
  has(text, "on_missing_device=cpu");
  CHECK_THROWS_AS(m.runtime->context("cpu"), DeviceError);
}

TEST_CASE("on_missing_device=cpu puts the CPU in the place of a GPU") {
  FakeMachine m(flags("contexts=a->cuda5;b->cuda0,on_missing_device=cpu"));
  CHECK(m.runtime->context("a").device().name() == "cpu0");
  CHECK(m.runtime->context("b").device().name() == "cuda0");
  CHECK(m.runtime->context("cuda9").device().name() == "cpu0");
}

TEST_CASE("the flag device chooses the default context") {
  CHECK(FakeMachine(flags("device=cuda1")).runtime->default_context() == "cuda1");
  CHECK(FakeMachine(flags("device=auto")).runtime->default_context() == "cuda0");
  CHECK(FakeMachine(flags("device=auto,contexts=a->cpu")).runtime->default_context() == "cuda0");
  FakeMachine broken(flags("device=cuda7"));
  const std::string text = message_of<DeviceError>([&] { broken.runtime->context("cpu"); });
  has(text, "device=cuda7: there are two fake GPUs");
  has(text, "CROTON_FLAGS=\"device=cpu\"");
}

TEST_CASE("a device of another rank wants a launcher") {
  FakeMachine m(flags("contexts=a->rank1/cuda0"));
  has(message_of<DeviceError>([&] { m.runtime->context("a"); }), "launcher");
}

TEST_CASE("without a GPU the message says what was tried and how to run") {
  Runtime r(flags("contexts=dev0->cuda0;dev1->cuda1"));
  const std::string text = message_of<DeviceError>([&] { r.context("dev0"); });
  has(text, "dev0->cuda0: ");
  has(text, "dev1->cuda1: ");
  has(text, "libcuda.so.1");
  has(text, "contexts=dev0->cpu;dev1->cpu");
}

TEST_CASE("devices are described, with what is wrong with them") {
  FakeMachine m(flags("contexts=a->cuda0;b->cuda7"));
  const std::string text = m.runtime->describe_devices();
  has(text, "cpu0    a device for tests");
  has(text, "fake library 1.0");
  has(text, "a       cuda0");
  has(text, "b       cuda7  cannot be used: there are two fake GPUs");
  Runtime real(flags("device=cpu"));
  const std::string mine = real.describe_devices();
  has(mine, "oneDNN: 2.");
  has(mine, "OpenBLAS");
  has(mine, "NVRTC");
  has(mine, "none are bound");
}

TEST_CASE("a shared value is kept, checked and replaced") {
  FakeMachine m(flags("contexts=dev0->cpu;dev1->cuda0"));
  for (const char* where : {"cpu", "dev0", "dev1"}) {
    auto s = make_shared_state(m.runtime, Array({{1, 2}, {3, 4}}), "w", where);
    CHECK(s->context == where);
    CHECK(array_equal(get_value(*s), Array({{1, 2}, {3, 4}})));
    Array mine = Array({{5, 6}, {7, 8}});
    set_value(*s, mine);
    mine.mutable_data<std::int64_t>()[0] = 0;
    CHECK(get_value(*s).at<std::int64_t>({0, 0}) == 5);
    Array out = get_value(*s);
    out.mutable_data<std::int64_t>()[0] = 9;
    CHECK(get_value(*s).at<std::int64_t>({0, 0}) == 5);
    has(message_of<UserError>([&] {
          set_value(*s, Array::zeros({2, 2}));
        }),
        "wrong dtype for w: got float32, expected int64");
    has(message_of<UserError>([&] {
          set_value(*s, Array({1, 2}));
        }),
        "wrong shape for w: got (2,), expected (2, 2)");
    set_value(*s, mine.transpose());
    CHECK(get_value(*s).at<std::int64_t>({1, 0}) == 6);
  }
  auto grows = make_shared_state(m.runtime, Array({1, 2}), "", "cpu", true);
  set_value(*grows, Array({1, 2, 3}));
  CHECK(get_value(*grows).size() == 3);
  CHECK_THROWS_AS(set_value(*grows, Array({{1}})), UserError);
  auto lost = make_shared_state(m.runtime, Array({1, 2}), "v", "dev1");
  lost->lost = "the device fell off the bus";
  has(message_of<DeviceError>([&] { get_value(*lost); }), "v was lost: the device fell off");
  set_value(*lost, Array({3, 4}));
  CHECK(get_value(*lost).at<std::int64_t>({0}) == 3);
}

TEST_CASE("the null device can look like any other") {
  TargetInfo target;
  target.backend = Backend::cuda;
  target.sm = 90;
  const auto device = make_null_device(target);
  CHECK(device->target().sm == 90);
  CHECK(device->pretends());
  CHECK(device->library("anything") != nullptr);
  const auto module = device->load(device->compile("text"), {"k"});
  CHECK(module->kernel("k") != nullptr);
  CHECK(module->kernel("other") == nullptr);
}
