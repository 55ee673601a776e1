// The queue and the kernels of a GPU by themselves: run where there is one, or an emulator.
#include <catch2/catch.hpp>
#include <new>

#include "croton/error.h"
#include "runtime/context.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/cuda/gpu_device.h"
#include "runtime/cuda/nvrtc.h"
#include "runtime/kernel_cache.h"
#include "runtime/runtime.h"
#include "tests/temporary_folder.h"

using namespace croton;
using Catch::Matchers::Contains;

TEST_CASE("a recording that anything ends leaves the queue as it was", "[.gpu]") {
  const std::shared_ptr<Device> device = make_cuda_device(0, Config());
  const std::unique_ptr<Queue> queue = device->new_queue();
  const QueueUse use(*queue);
  for (int i = 0; i < 2; ++i) {
    CHECK_THROWS_AS(queue->capture([] { throw std::bad_alloc(); }), std::bad_alloc);
    CHECK_THROWS_AS(queue->capture([] { throw 1; }), int);
    CHECK(queue->capture([] { throw DeviceError("not here"); }) == nullptr);
  }
  const std::unique_ptr<Recording> nothing = queue->capture([] {});
  REQUIRE(nothing != nullptr);
  CHECK(queue->replay(*nothing));
  // Work goes to the stream that runs, not to the one that records.
  void* memory = device->allocate(1024);
  REQUIRE(memory != nullptr);
  queue->zero(memory, 1024);
  std::vector<unsigned char> bytes(1024, 7);
  queue->copy_to_host(bytes.data(), memory, 1024);
  queue->synchronize();
  CHECK(bytes == std::vector<unsigned char>(1024, 0));
  device->release(memory, 1024);
}

TEST_CASE("kernels of library functions are cached as all others are", "[.gpu]") {
  const test::TemporaryFolder folder;
  const Config config = Config().with("cache_dir", folder.path());
  const std::string text = "extern \"C\" __global__ void twice(float* x) {\n  x[0] *= 2.0f;\n}\n";
  {
    Runtime runtime(config);
    auto& device = dynamic_cast<cuda::GpuDevice&>(runtime.context("cuda0").device());
    const std::shared_ptr<Module> first = device.own_kernels(text, {"twice"});
    CHECK(first->kernel("twice") != nullptr);
    CHECK(device.own_kernels(text, {"twice"}) == first);
    CHECK(runtime.kernel_cache().statistics().compiled == 1);
    CHECK(runtime.kernel_cache().statistics().from_memory == 1);
  }
  Runtime runtime(config);
  auto& device = dynamic_cast<cuda::GpuDevice&>(runtime.context("cuda0").device());
  CHECK(device.own_kernels(text, {"twice"})->kernel("twice") != nullptr);
  CHECK(runtime.kernel_cache().statistics().from_disk == 1);
}

TEST_CASE("all that NVRTC is told is part of the key of kernels", "[.gpu]") {
  const std::string identity = make_cuda_device(0, Config())->compiler_identity();
  for (const auto options : {cuda::nvrtc_options(), cuda::nvrtc().quick_options()}) {
    for (const std::string_view option : options)
      CHECK_THAT(identity, Contains(std::string(option)));
  }
  if (cuda::nvrtc().version().starts_with("13")) CHECK_THAT(identity, Contains("--minimal"));
}
