// The real NVRTC compiles what the emitter prints.
#include <catch2/catch.hpp>
#include <iostream>

#include "compiler/codegen/cuda.h"
#include "croton/error.h"
#include "runtime/cuda/nvrtc.h"
#include "tests/compiler/cuda_kernels.h"

using namespace croton;
using test::KernelCase;

namespace {

const cuda::Nvrtc& nvrtc() {
  static const cuda::Nvrtc library;
  return library;
}

bool skipped(const char* what) {
  if (nvrtc().usable()) return false;
  std::cout << "SKIP: " << what << ": " << nvrtc().report().text() << std::endl;
  return true;
}

std::vector<std::string> programs(const std::vector<KernelCase>& cases) {
  std::vector<std::string> texts;
  for (std::size_t first = 0; first < cases.size(); first += 16) {
    std::vector<const kernel::Kernel*> kernels;
    for (std::size_t i = first; i < std::min(first + 16, cases.size()); ++i) {
      kernels.push_back(&cases[i].kernel);
    }
    texts.push_back(codegen::emit_cuda(kernels));
  }
  return texts;
}

void compile_all(const std::vector<KernelCase>& cases, std::initializer_list<int> capabilities) {
  for (const std::string& text : programs(cases)) {
    CHECK(text.find("#include") == std::string::npos);
    for (const int capability : capabilities) {
      const auto target = nvrtc().target_for(capability);
      const auto module = nvrtc().compile(text, "test.cu", target, codegen::cuda_options());
      CHECK_FALSE(module.image.empty());
      CHECK(module.log == "");
    }
  }
}

}  // namespace

TEST_CASE("NVRTC compiles every operation", "[cuda]") {
  if (skipped("compiling every operation")) return;
  compile_all(test::arithmetic_cases(), {75, 80, 90, 100});
}

TEST_CASE("NVRTC compiles every structure", "[cuda]") {
  if (skipped("compiling every structure")) return;
  compile_all(test::structure_cases(), {75, 80, 90, 100});
}

TEST_CASE("NVRTC compiles every layout", "[cuda]") {
  if (skipped("compiling every layout")) return;
  compile_all(test::layout_cases(), {75, 80, 90, 100});
}

TEST_CASE("NVRTC compiles every mathematical function", "[cuda]") {
  if (skipped("compiling mathematical functions")) return;
  compile_all(test::math_cases(), {75, 80, 90, 100});
}

TEST_CASE("machine code neither contracts nor flushes, and divides as IEEE 754 says", "[cuda]") {
  if (skipped("looking at machine code")) return;
  kernel::Builder b(32);
  const int in = b.buffer(DType::float32, false), out = b.buffer(DType::float32, true);
  const auto one = b.i64(1);
  const auto lanes = b.begin_lanes(b.size(0));
  const auto x = b.load(in, b.i64(0), one), y = b.load(in, b.size(0), one);
  const auto product = x * y;
  b.store(out, b.i64(0), one, product);
  b.store(out, b.size(0), one, product + x);
  b.store(out, b.size(0) * 2, one, x / y);
  b.store(out, b.size(0) * 3, one, b.unary(kernel::Unary::sqrt, x));
  b.end(lanes);
  kernel::Kernel k = b.finish();
  REQUIRE_FALSE(kernel::to_text(k).find("fma") != std::string::npos);
  const kernel::Kernel* list[] = {&k};
  const std::string ptx =
      nvrtc()
          .compile(codegen::emit_cuda(list), "test.cu", {90, false}, codegen::cuda_options())
          .image;
  for (const char* instruction : {"mul.rn.f32", "add.rn.f32", "div.rn.f32", "sqrt.rn.f32"}) {
    INFO(instruction);
    CHECK(ptx.find(instruction) != std::string::npos);
  }
  for (const char* instruction : {"fma.rn", ".ftz", "approx"}) {
    INFO(instruction);
    CHECK(ptx.find(instruction) == std::string::npos);
  }
  CHECK(ptx.find("ld.global.nc.f32") != std::string::npos);
}
