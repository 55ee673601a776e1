// Plans on the real CPU device: LLVM IR text in, numbers out.
#include <catch2/catch.hpp>
#include <thread>

#include "runtime/executable.h"
#include "tests/runtime/fake_device.h"
#include "tests/runtime/plan_builder.h"

using namespace croton;
using namespace croton::test;

namespace {

// out[i] = 2 * in[i] for the 1024 elements of each block.
constexpr const char* kDouble = R"(
define void @double_blocks(ptr noalias %buffers, ptr noalias %sizes, i64 %first, i64 %last,
                           ptr noalias %error) {
entry:
  %out.slot = getelementptr ptr, ptr %buffers, i64 0
  %out = load ptr, ptr %out.slot
  %in.slot = getelementptr ptr, ptr %buffers, i64 1
  %in = load ptr, ptr %in.slot
  %begin = mul i64 %first, 1024
  %stop = mul i64 %last, 1024
  br label %head
head:
  %i = phi i64 [ %begin, %entry ], [ %next, %body ]
  %more = icmp slt i64 %i, %stop
  br i1 %more, label %body, label %done
body:
  %from = getelementptr float, ptr %in, i64 %i
  %x = load float, ptr %from
  %y = fadd float %x, %x
  %to = getelementptr float, ptr %out, i64 %i
  store float %y, ptr %to
  %next = add i64 %i, 1
  br label %head
done:
  ret void
}
)";

Plan double_plan(std::int64_t blocks, const char* context) {
  PlanBuilder b("double", {context});
  const auto x = b.input("x", DType::float32, {blocks * 1024});
  const auto out = b.result(DType::float32, {blocks * 1024});
  Step& step = b.launch(b.kernel("double_blocks"), {out, x}, blocks);
  step.work = b.plan.dims.ref(Dim(blocks * 1024));
  b.plan.modules[0].text = kDouble;
  b.plan.outputs = {out};
  return std::move(b.plan);
}

}  // namespace

TEST_CASE("kernels run on the CPU, on one thread and on several") {
  auto runtime = std::make_shared<Runtime>(no_cache("threads=3"));
  for (const std::int64_t blocks : {1, 7, 500}) {
    const Executable f(runtime, double_plan(blocks, "cpu"), Config());
    std::vector<float> values(static_cast<std::size_t>(blocks * 1024));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    Array r;
    f.run(std::vector<Array>{Array::from<float>(values)}, {&r, 1});
    const auto got = r.to_vector<float>();
    for (std::size_t i = 0; i < got.size(); ++i) REQUIRE(got[i] == 2 * values[i]);
    CHECK(f.statistics().parallel_launches == (blocks == 500 ? 1 : 0));
  }
}

TEST_CASE("the null device compiles, checks and gives zeros") {
  auto runtime = std::make_shared<Runtime>(no_cache("contexts=dev0->null"));
  const Executable f(runtime, double_plan(2, "dev0"), Config());
  Array r;
  f.run(std::vector<Array>{Array::ones({2048})}, {&r, 1});
  CHECK(r.context() == "dev0");
  CHECK(array_equal(r.to_host(), Array::zeros({2048})));
  CHECK_THROWS_AS(f.run(std::vector<Array>{Array::ones({3})}, {&r, 1}), CallError);
}

TEST_CASE("a product is a library step") {
  auto runtime = std::make_shared<Runtime>(no_cache("contexts=dev0->cpu;dev1->cpu"));
  PlanBuilder b("two", {"cpu", "dev0", "dev1"});
  auto v = make_shared_state(runtime, Array::full({96, 96}, 2, DType::float32), "v", "dev0");
  auto w = make_shared_state(runtime, Array::full({96, 96}, 3, DType::float32), "w", "dev1");
  const auto sv = b.shared(v, 1), sw = b.shared(w, 2);
  const auto p = b.temporary(DType::float32, {96, 96}, 1);
  const auto q = b.temporary(DType::float32, {96, 96}, 2);
  const auto o0 = b.result(DType::float32, {96, 96}), o1 = b.result(DType::float32, {96, 96});
  b.library("gemm", {}, {p, sv, sv}, 1);
  b.library("gemm", {}, {q, sw, sw}, 2);
  b.copy(o0, p);
  b.copy(o1, q);
  b.plan.outputs = {o0, o1};
  const Executable f(runtime, std::move(b.plan), Config());
  std::vector<Array> r(2);
  for (int i = 0; i < 3; ++i) f.run({}, r);
  CHECK(array_equal(r[0], Array::full({96, 96}, 4 * 96, DType::float32)));
  CHECK(array_equal(r[1], Array::full({96, 96}, 9 * 96, DType::float32)));
  CHECK(f.statistics().library_calls == 2);
  CHECK(f.statistics().copies == 0);                // each product is made in its output
  CHECK(f.statistics().arena_bytes < 96 * 96 * 4);  // scratch space of the library only
}
