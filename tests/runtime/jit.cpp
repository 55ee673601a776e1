#include "runtime/cpu/jit.h"

#include <catch2/catch.hpp>
#include <thread>
#include <vector>

#include "croton/error.h"

using namespace croton;
using Catch::Contains;

namespace {

/// A kernel that writes `factor` * b to element b of its buffer, for each block b.
std::string scale_kernel(const std::string& name, int factor) {
  return "define void @" + name +
         "(ptr %buffers, ptr %sizes, i64 %first, i64 %last, ptr %error) nounwind {\n"
         "entry:\n"
         "  %p = load ptr, ptr %buffers\n"
         "  br label %body\n"
         "body:\n"
         "  %b = phi i64 [ %first, %entry ], [ %next, %body ]\n"
         "  %v = mul i64 %b, " +
         std::to_string(factor) +
         "\n"
         "  %e = getelementptr i64, ptr %p, i64 %b\n"
         "  store i64 %v, ptr %e\n"
         "  %next = add i64 %b, 1\n"
         "  %done = icmp eq i64 %next, %last\n"
         "  br i1 %done, label %end, label %body\n"
         "end:\n"
         "  ret void\n"
         "}\n";
}

std::vector<std::int64_t> run(CpuKernel kernel, std::int64_t blocks) {
  std::vector<std::int64_t> out(blocks);
  void* buffers[] = {out.data()};
  kernel(buffers, nullptr, 0, blocks, nullptr);
  return out;
}

}  // namespace

TEST_CASE("text becomes an object, a module and a function") {
  TargetInfo target = host_target();
  std::string object = compile_cpu_object(scale_kernel("one", 3) + scale_kernel("two", 5), target);
  CHECK(object.substr(1, 3) == "ELF");
  auto module = load_cpu_object(object);
  REQUIRE(module->kernel("one"));
  REQUIRE(module->kernel("two"));
  CHECK(module->kernel("three") == nullptr);
  CHECK(run(module->kernel("one"), 4) == std::vector<std::int64_t>{0, 3, 6, 9});
  CHECK(run(module->kernel("two"), 3) == std::vector<std::int64_t>{0, 5, 10});
  CHECK(cpu_compiler_open_ms() > 0);
  CHECK_THAT(std::string(cpu_compiler_version()), Contains("LLVM 19"));
}

TEST_CASE("the same text gives the same object bytes") {
  TargetInfo target = host_target();
  CHECK(compile_cpu_object(scale_kernel("k", 3), target) ==
        compile_cpu_object(scale_kernel("k", 3), target));
}

TEST_CASE("modules of one kernel name live side by side") {
  TargetInfo target = host_target();
  auto a = load_cpu_object(compile_cpu_object(scale_kernel("k", 2), target));
  auto b = load_cpu_object(compile_cpu_object(scale_kernel("k", 7), target));
  CHECK(run(a->kernel("k"), 2)[1] == 2);
  CHECK(run(b->kernel("k"), 2)[1] == 7);
  a.reset();
  CHECK(run(b->kernel("k"), 2)[1] == 7);
}

TEST_CASE("functions of the math library resolve") {
  std::string text =
      "declare double @fmod(double, double)\n"
      "define void @k(ptr %buffers, ptr %sizes, i64 %first, i64 %last, ptr %error) nounwind {\n"
      "  %p = load ptr, ptr %buffers\n"
      "  %x = load double, ptr %p\n"
      "  %y = call double @fmod(double %x, double 3.0)\n"
      "  store double %y, ptr %p\n"
      "  ret void\n"
      "}\n";
  auto module = load_cpu_object(compile_cpu_object(text, host_target()));
  double x = 7.5;
  void* buffers[] = {&x};
  module->kernel("k")(buffers, nullptr, 0, 1, nullptr);
  CHECK(x == 1.5);
}

TEST_CASE("what LLVM refuses is told") {
  TargetInfo target = host_target();
  CHECK_THROWS_WITH(compile_cpu_object("define void @k( {", target), Contains("kernels:1"));
  CHECK_THROWS_AS(compile_cpu_object("define i32 @k() { ret void }", target), InternalError);
  CHECK_THROWS_AS(load_cpu_object("not an object"), DeviceError);
  std::string unknown =
      "declare void @croton_no_such_function()\n"
      "define void @k() { call void @croton_no_such_function()\n ret void }";
  CHECK_THROWS_WITH(load_cpu_object(compile_cpu_object(unknown, target)),
                    Contains("croton_no_such_function"));
}

TEST_CASE("two threads compile at once") {
  TargetInfo target = host_target();
  std::vector<std::thread> threads;
  std::vector<int> wrong(2);
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 1; i <= 8; ++i) {
        int factor = 10 * i + t;
        auto module = load_cpu_object(compile_cpu_object(scale_kernel("k", factor), target));
        wrong[t] += run(module->kernel("k"), 2)[1] != factor;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>{0, 0});
}

TEST_CASE("the host has plausible properties") {
  TargetInfo target = host_target();
  CHECK(target.backend == Backend::cpu);
  CHECK((target.vector_bits == 128 || target.vector_bits == 256 || target.vector_bits == 512));
  CHECK(target.lanes() * 32 == target.vector_bits);
  CHECK(target.cores >= 1);
  CHECK(target.l1_bytes >= 8 << 10);
  CHECK(target.l2_bytes >= target.l1_bytes);
  CHECK_FALSE(target.cpu.empty());
}
