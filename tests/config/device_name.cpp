#include <catch2/catch.hpp>

#include "config/device_guess.h"
#include "croton/context_map.h"
#include "tests/config/error_of.h"

using namespace croton;
using Catch::Contains;

TEST_CASE("device names read and print in one canonical form", "[config]") {
  CHECK(parse_device_name("cpu") == DeviceName{DeviceKind::cpu, 0});
  CHECK(parse_device_name("cpu") == parse_device_name("cpu0"));
  CHECK(parse_device_name("cuda") == parse_device_name("cuda0"));
  CHECK(parse_device_name(" cuda12 ") == DeviceName{DeviceKind::cuda, 12});
  CHECK(parse_device_name("null").kind == DeviceKind::null);
  CHECK(parse_device_name("rank3/cuda1") == DeviceName{DeviceKind::cuda, 1, 3});
  CHECK(to_string(parse_device_name("cpu")) == "cpu0");
  CHECK(to_string(parse_device_name("cuda")) == "cuda0");
  CHECK(to_string(parse_device_name("null")) == "null");
  CHECK(to_string(parse_device_name("rank0/cuda")) == "rank0/cuda0");
  for (const char* text : {"cpu0", "cuda7", "null", "rank2/cpu0", "rank2/null"}) {
    CHECK(to_string(parse_device_name(text)) == text);
  }
}

TEST_CASE("what is no device name is refused with position, reading and expectation", "[config]") {
  auto error = [](const char* text) { return error_of([&] { parse_device_name(text); }); };
  CHECK(error("") == "[device] got '': at position 1 expected a device: cpu, cuda, cudaN or null");
  CHECK(error("gpu0") ==
        "[device] got 'gpu0': at position 1 read 'gpu0', expected a device: cpu, cuda, cudaN or "
        "null; write cuda0");
  CHECK(error("cuda-1") ==
        "[device] got 'cuda-1': at position 5 read '-1', expected a device index of at least 0; "
        "write cuda1");
  CHECK_THAT(error("cuda01"), Contains("at position 5 read '01'") && Contains("leading zeros"));
  CHECK_THAT(error("cuda1x"), Contains("at position 6 read 'x'") && Contains("nothing but"));
  CHECK_THAT(error("cuda99999999999"), Contains("at most 9 digits"));
  CHECK_THAT(error("null1"), Contains("at position 5 read '1'") && Contains("nothing after null"));
  CHECK_THAT(error("rank/cuda0"), Contains("at position 5") && Contains("rank0/cuda0"));
  CHECK_THAT(error("rank-1/cuda0"), Contains("a rank index of at least 0"));
  CHECK_THAT(error("rank1/gpu0"), Contains("at position 7 read 'gpu0'"));
  CHECK_THAT(error("dev0"), Contains("read 'dev0'") && !Contains("write"));
}

TEST_CASE("common spellings of a device are understood", "[config]") {
  for (const char* text :
       {"gpu1", "GPU1", "CUDA1", "cuda:1", "cuda 1", "gpu:1", "1", "cdua1", "cuda01", "nvidia1"}) {
    INFO(text);
    CHECK(guess_device(text) == DeviceName{DeviceKind::cuda, 1});
  }
  CHECK(guess_device("CPU") == DeviceName{});
  CHECK(guess_device("host") == DeviceName{});
  CHECK(!guess_device("dev0"));
  CHECK(!guess_device("cuda0,cuda1"));
  CHECK(!guess_device(""));
}

TEST_CASE("names of devices cannot name contexts", "[config]") {
  for (const char* name : {"cpu", "cpu0", "cpu12", "cuda", "cuda0", "cudaX", "null"}) {
    CHECK(is_reserved_context_name(name));
  }
  for (const char* name : {"dev0", "gpu0", "cpus", "nullable", ""}) {
    CHECK_FALSE(is_reserved_context_name(name));
  }
}

TEST_CASE("a GPU is named by its PCI address") {
  const DeviceName device = parse_device_name(" cuda@0000:3b:00.0 ");
  CHECK(device.kind == DeviceKind::cuda);
  CHECK(device.pci == 0x3b00);
  CHECK(to_string(device) == "cuda@0000:3b:00.0");
  CHECK(parse_device_name("cuda@3B:1f.7") == parse_device_name("cuda@0000:3b:1f.7"));
  CHECK(parse_device_name("rank1/cuda@10:02:00.0").pci == 0x100200);
  CHECK(parse_context_map("a->cuda@0000:02:00.0;b->cuda1")[0].device.pci == 0x200);
  for (const char* wrong : {"cuda@", "cuda@0", "cuda@0:100:0.0", "cuda@x:00.0", "cuda@0:0:20.0",
                            "cuda@0:0:0.8", "cuda@0:0:0:0.0"}) {
    CHECK_FALSE(find_device_name(wrong).has_value());
  }
  CHECK(error_of([] { parse_device_name("cuda@zz"); }) ==
        "[device] got 'cuda@zz': at position 6 read 'zz', expected a PCI address such as "
        "0000:3b:00.0");
}
