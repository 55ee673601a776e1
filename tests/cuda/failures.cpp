// Each case runs in a process of its own, in which the emulator makes something fail (see
// tests/cuda/CMakeLists.txt).
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/cuda/both.h"

using namespace croton;
using namespace croton::test;
using Catch::Matchers::Contains;

namespace {

template <class Error, class Action>
std::string message_of(Action action) {
  try {
    action();
  } catch (const Error& e) {
    return e.what();
  }
  return {};
}

}  // namespace

TEST_CASE("out of memory tells what was asked and leaves all as it was", "[memory]") {
  // 128 MiB a device: a few of 16 MiB and what one call needs fit, ten do not.
  Shared w = shared(Array::ones({4 << 20}), {.name = "w", .target = "dev0"});
  Function grow =
      function({}, std::vector<Output>{},
               {.updates = {{w, sum(broadcast_to(w, {3, 4 << 20}) * w + 1, 0)}}, .name = "grow"});
  const std::string text = message_of<OutOfMemory>([&] {
    std::vector<Shared> more;
    try {
      for (int i = 0; i < 10; ++i) {
        more.push_back(shared(Array::ones({4 << 20}), {.target = "dev0"}));
      }
    } catch (const OutOfMemory&) {
      const std::string of_call = message_of<OutOfMemory>([&] { grow(); });
      CHECK_THAT(of_call, Contains("[grow] of this call: 16.0 MiB for w on dev0"));
      throw;
    }
  });
  CHECK_THAT(text, Contains("[dev0] out of memory on cuda0: asked for 16.0 MiB"));
  CHECK_THAT(text, Contains("at most") && Contains("the largest in use: ") &&
                       Contains(" x 16.0 MiB") && Contains("free on the device"));
  // What was freed is found again.
  CHECK(w.get_value().to_vector<float>()[77] == 1.0f);
  grow();
  CHECK(w.get_value().to_vector<float>()[77] == 6.0f);
}

TEST_CASE("a device that dies takes its shared variables along, others go on", "[death]") {
  Shared a = shared(Array::ones({100}), {.name = "a", .target = "dev0"});
  Shared b = shared(Array::ones({100}), {.name = "b", .target = "dev1"});
  Function fa = function({}, a * 2, {.updates = {{a, a + 1}}});
  Function fb = function({}, b * 2, {.updates = {{b, b + 1}}});
  std::string text;
  for (int i = 0; i < 100 && text.empty(); ++i) text = message_of<DeviceError>([&] { fa(); });
  CHECK_THAT(text, Contains("cuda0 failed at 20") && Contains("CUDA_ERROR_ILLEGAL_ADDRESS"));
  for (int i = 0; i < 2; ++i) {
    CHECK_THAT(message_of<DeviceError>([&] { fa(); }),
               Contains("the value of a was lost: cuda0 failed at 20"));
    CHECK_THAT(message_of<DeviceError>([&] { a.get_value(); }),
               Contains("the value of a was lost: cuda0 failed at 20"));
    CHECK_THAT(message_of<DeviceError>([&] { a.set_value(Array::ones({100})); }),
               Contains("cuda0 failed at 20"));
  }
  CHECK_THROWS_AS(shared(Array::ones({3}), {.target = "dev0"}), DeviceError);
  CHECK_THROWS_AS(croton::sync(), DeviceError);
  const float before = fb()[0].to_vector<float>()[0];
  CHECK(before == 2.0f);
  CHECK(fb()[0].to_vector<float>()[0] == 4.0f);
  CHECK(b.get_value().to_vector<float>()[9] == 3.0f);
}

TEST_CASE("a launch that fails once is an error of that call alone", "[launch]") {
  Shared a = shared(Array::ones({100}), {.name = "a", .target = "dev0"});
  Function f = function({}, sum(a), {.updates = {{a, a + 1}}});
  int failed = 0, done = 0;
  for (int i = 0; i < 6; ++i) {
    const std::string text = message_of<DeviceError>([&] { f(); });
    if (text.empty()) {
      ++done;
      continue;
    }
    ++failed;
    CHECK_THAT(text, Contains("[cuda0] launching ") && Contains("blocks of"));
  }
  CHECK(failed == 1);
  CHECK(a.get_value().to_vector<float>()[0] == 1.0f + static_cast<float>(done));
}

TEST_CASE("a child of a fork may use the CPU and not the GPU", "[fork]") {
  Shared a = shared(Array::ones({100}), {.name = "a", .target = "dev0"});
  Function f = function({}, sum(a));
  Variable x = vector("x");
  Function on_cpu = function({x}, sum(x * 2));
  CHECK(f()[0].item<float>() == 100.0f);
  const pid_t child = fork();
  if (child == 0) {
    int wrong = 0;
    const std::string text = message_of<DeviceError>([&] { f(); });
    wrong |= text.find("forked") == text.npos ? 1 : 0;
    wrong |= message_of<DeviceError>([&] { a.get_value(); }).empty() ? 2 : 0;
    wrong |= on_cpu(Array::ones({50}))[0].item<float>() != 100.0f ? 4 : 0;
    _exit(wrong);
  }
  int status = -1;
  waitpid(child, &status, 0);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(f()[0].item<float>() == 100.0f);
}

TEST_CASE("text that NVRTC refuses is kept in a file", "[compile]") {
  Shared a = shared(Array::ones({100}), {.target = "dev0"});
  const std::string text = message_of<Error>([&] { function({}, exp(a)); });
  CHECK_THAT(text, Contains("cannot compile"));
  const std::string mark = "the whole text, the options and the log are in ";
  const std::size_t at = text.find(mark);
  REQUIRE(at != text.npos);
  const std::string path = text.substr(at + mark.size());
  std::stringstream kept;
  kept << std::ifstream(path).rdbuf();
  CHECK_THAT(kept.str(),
             Contains("    1 | ") && Contains("--fmad=false") && Contains("__global__"));
  std::filesystem::remove(path);
}

TEST_CASE("what keeps a GPU from being used is told with the flag that helps", "[unusable]") {
  const std::string text =
      message_of<DeviceError>([] { shared(Array::ones({3}), {.target = "dev0"}); });
  const char* expected = std::getenv("CROTON_TEST_EXPECTED");
  REQUIRE(expected != nullptr);
  CHECK_THAT(text, Contains(expected));
  CHECK_THAT(text, Contains("not every device can be used, so none was opened"));
  CHECK_THAT(text, Contains("dev0->cuda0: ") && Contains("on_missing_device=cpu") &&
                       Contains("contexts=dev0->cpu"));
  CHECK(describe_devices().find("libraries") != std::string::npos);
}
