#include <catch2/catch.hpp>

#include "runtime/executable.h"
#include "tests/runtime/fake_device.h"
#include "tests/runtime/plan_builder.h"

using namespace croton;
using namespace croton::test;

TEST_CASE("a plan prints as slots and steps") {
  FakeMachine machine(no_cache("contexts=dev0->cpu"));
  auto w = make_shared_state(machine.runtime, Array::zeros({3, 4}), "w", "dev0");
  PlanBuilder b("train", {"cpu", "dev0"});
  const auto x = b.input("x", DType::float32, {kAnyDim, 3});
  const auto s = b.shared(w, 1);
  const Dim n = b.size(0, 0);
  const auto x0 = b.temporary(DType::float32, {n, 3}, 1);
  const auto p = b.result(DType::float32, {n, 4}, 1);
  const auto flat = b.view(p, {n * 4});
  b.copy(x0, x);
  b.library("gemm", {{"transpose_a", std::int64_t(0)}}, {p, x0, s}, 1).after = {0};
  b.plan.outputs = {flat};
  b.plan.updates = {{0, s}};
  CHECK(to_text(b.plan) ==
        "plan train\n"
        "  %0 = input 0 \"x\": float32 (in0.shape[0], 3) on cpu\n"
        "  %1 = shared w: float32 (3, 4) on dev0\n"
        "  %2 = temporary: float32 (in0.shape[0], 3) on dev0\n"
        "  %3 = result: float32 (in0.shape[0], 4) on dev0\n"
        "  %4 = view of %3: float32 ((in0.shape[0] * 4),) on dev0\n"
        "  step 0 on cpu: %2 <- %0: copy\n"
        "  step 1 on dev0: %3 <- %2, %1: gemm(transpose_a=0) after 0\n"
        "  output 0: %4\n"
        "  update w: %1\n");
  const Executable f(machine.runtime, std::move(b.plan), Config());
  CHECK(f.to_text().empty());
  Array r;
  f.run(std::vector<Array>{Array::ones({2, 3})}, {&r, 1});
  CHECK(f.to_text().find("step 1 on dev0: gemm") != std::string::npos);
}
