#include "config/device_spec.h"

#include <catch2/catch.hpp>

#include "tests/config/error_of.h"

using namespace croton;
using Catch::Matchers::Contains;

namespace {

const DeviceSpec kNothing;
const DeviceSpec kGpu{DeviceKind::cuda, {}};

DeviceSpec gpu(int index) { return {DeviceKind::cuda, index}; }

std::string error(std::string_view text) {
  try {
    parse_device_spec(text);
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("devices are read as TensorFlow writes them", "[config]") {
  CHECK(parse_device_spec("/gpu:0") == gpu(0));
  CHECK(parse_device_spec("/GPU:12") == gpu(12));
  CHECK(parse_device_spec(" /device:gpu:1 ") == gpu(1));
  CHECK(parse_device_spec("/gpu") == kGpu);
  CHECK(parse_device_spec("/gpu:*") == kGpu);
  CHECK(parse_device_spec("/device:GPU:*") == kGpu);
  CHECK(parse_device_spec("/device:*:*") == kNothing);
  CHECK(parse_device_spec("/") == kNothing);
  CHECK(parse_device_spec("/job:localhost/replica:0/task:0/cpu:0") ==
        DeviceSpec{DeviceKind::cpu, 0});
}

TEST_CASE("what is wrong with the text of a device is said", "[config]") {
  CHECK_THAT(error("/gpu:0/cpu:0"), Contains("two fields say the device"));
  CHECK_THAT(error("/gpu:0/device:GPU:0"), Contains("two fields say the device"));
  CHECK_THAT(error("/task:0/task:0"), Contains("two fields say the task"));
  CHECK_THAT(error("/foo:1"), Contains("unknown field 'foo:1'") && Contains("device:GPU:N"));
  CHECK_THAT(error("/device:TPU:0"), Contains("unknown kind of device 'TPU'"));
  CHECK_THAT(error("/gpu:first"), Contains("'first'") && Contains("number"));
  CHECK_THAT(error("/gpu:-1"), Contains("'-1'"));
  CHECK_THAT(error("/gpu:"), Contains("number"));
  CHECK_THAT(error("/device:*:1"), Contains("without a kind"));
  for (const char* text : {"/job:worker/task:1/device:GPU:0", "/job:ps", "/replica:1", "/task:1"}) {
    CHECK_THAT(error(text), Contains(text) && Contains("another process"));
  }
}

TEST_CASE("specs merge field by field", "[config]") {
  CHECK(merge_specs(gpu(1), kGpu) == gpu(1));
  CHECK(merge_specs(gpu(1), gpu(2)) == gpu(2));
  CHECK(merge_specs(gpu(1), kNothing) == gpu(1));
  CHECK(merge_specs(gpu(1), {DeviceKind::cpu, {}}) == DeviceSpec{DeviceKind::cpu, {}});
}

TEST_CASE("a spec is the first context on its device, else the device", "[config]") {
  const ContextMap map =
      parse_context_map("host->cpu;b->cuda1;a->cuda0;again->cuda0;r->rank1/cuda2");
  CHECK(context_of_spec(gpu(0), map) == "a");
  CHECK(context_of_spec(gpu(1), map) == "b");
  CHECK(context_of_spec(gpu(2), map) == "cuda2");
  CHECK(context_of_spec(kGpu, map) == "b");
  CHECK(context_of_spec(kGpu, {}) == "cuda0");
  CHECK(context_of_spec({DeviceKind::cpu, 0}, map) == "cpu");
  CHECK(context_of_spec({DeviceKind::cpu, {}}, map) == "cpu");
}
