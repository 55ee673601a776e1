// What emitted CUDA C++ means, proven on the host.
#include <catch2/catch.hpp>
#include <iostream>

#include "tests/compiler/cuda_host.h"

using namespace croton;
using test::KernelCase;

namespace {

void compare(const std::vector<KernelCase>& cases) {
  if (!test::has_host_compiler()) {
    std::cout << "SKIP: running emitted CUDA C++ on the host: there is no g++" << std::endl;
    return;
  }
  const test::HostProgram program(cases);
  const auto up = program.run(false);
  const auto down = program.run(true);
  std::size_t i = 0;
  for (const KernelCase& c : cases) {
    for (std::size_t launch = 0; launch < c.launches.size(); ++launch, ++i) {
      INFO(c.label << ", launch " << launch);
      CHECK(up[i].buffers == down[i].buffers);
      CHECK(up[i].error == down[i].error);
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
