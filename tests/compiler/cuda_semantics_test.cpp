// What emitted CUDA C++ means, proven on the host.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <iostream>

#include "compiler/kernel/evaluate.h"
#include "tests/compiler/cuda_host.h"
#include "tests/compiler/kernel_interpreter.h"

using namespace croton;
using test::KernelCase;

namespace {

// Equal bits, or both NaN; without `exact` up to a few units in the last place.
bool same(DType dtype, const std::byte* a, const std::byte* b, bool exact) {
  std::uint64_t x = 0, y = 0;
  std::memcpy(&x, a, size_of(dtype));
  std::memcpy(&y, b, size_of(dtype));
  if (x == y) return true;
  if (!is_float(dtype)) return false;
  const double u = kernel::as_double(dtype, x), v = kernel::as_double(dtype, y);
  if (u != u || v != v) return u != u && v != v;
  const double epsilon = dtype == DType::float32 ? 1e-6 : 1e-14;
  return !exact && std::fabs(u - v) <= epsilon * std::fabs(v);
}

// The first element of a buffer that differs from what is right, or -1.
std::int64_t first_difference(DType dtype, const test::Bytes& right, const test::Bytes& got,
                              bool exact) {
  const std::size_t size = size_of(dtype);
  for (std::size_t at = 0; at + size <= right.size(); at += size) {
    if (!same(dtype, right.data() + at, got.data() + at, exact)) {
      return static_cast<std::int64_t>(at / size);
    }
  }
  return -1;
}

void compare(const std::vector<KernelCase>& cases, bool wide = false) {
  if (!test::can_run_kernels()) {
    std::cout << "SKIP: running emitted CUDA C++ on the host: there is no emulator, or no g++"
              << std::endl;
    return;
  }
  const test::HostProgram program(cases, wide);
  const std::vector<test::Outcome> runs[] = {program.run(false), program.run(true)};
  std::size_t i = 0;
  for (const KernelCase& c : cases) {
    for (std::size_t launch = 0; launch < c.launches.size(); ++launch, ++i) {
      test::Outcome right{c.launches[launch].buffers, {0, 0, 0}};
      test::interpret(c.kernel, right.buffers, c.launches[launch].sizes, c.launches[launch].blocks,
                      right.error.data());
      for (const auto& run : runs) {
        CHECK(run[i].error == right.error);
        for (std::size_t k = 0; k < right.buffers.size(); ++k) {
          const auto at = first_difference(c.kernel.buffers[k].dtype, right.buffers[k],
                                           run[i].buffers[k], c.exact);
          INFO(c.label << ", launch " << launch << ", buffer " << k << ", element " << at);
          CHECK(at == -1);
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("emitted arithmetic means what the kernel language says", "[cuda]") {
  compare(test::arithmetic_cases());
}

TEST_CASE("emitted structures mean what the kernel language says", "[cuda]") {
  compare(test::structure_cases());
}

TEST_CASE("emitted layouts mean what the kernel language says", "[cuda]") {
  compare(test::layout_cases());
}

TEST_CASE("the wide form means the same", "[cuda]") {
  compare(test::structure_cases(), true);
  compare(test::layout_cases(), true);
}

TEST_CASE("mathematical functions give the same bits", "[cuda]") { compare(test::math_cases()); }
