// Each case runs in a process of its own, in which the emulator makes something fail (see
// tests/cuda/CMakeLists.txt).
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/cuda/both.h"
#include "tests/temporary_folder.h"

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

TEST_CASE("a device that dies under a data-parallel function leaves the values of the others",
          "[parallel_death]") {
  const Shared w = shared(Array::ones({4}), {.name = "w"});
  const Variable x = matrix("x");
  const Variable cost = sum(dot(x, w));
  const auto train_on = [&](const std::vector<std::string>& contexts) {
    return data_parallel(
        {x}, {cost}, {.contexts = contexts, .updates = {{w, w - grad(cost, w)}}, .name = "train"});
  };
  const DataParallel both = train_on({"dev0", "dev1"});
  const Array rows = Array::ones({6, 4});
  float steps = 0;
  std::string text;
  for (int i = 0; i < 100 && text.empty(); ++i) {
    text = message_of<DeviceError>([&] { both(rows); });
    if (text.empty()) ++steps;
  }
  CHECK_THAT(text, Contains("cuda0 failed at 20") && Contains("CUDA_ERROR_ILLEGAL_ADDRESS"));
  REQUIRE(steps > 0);
  CHECK_THAT(message_of<DeviceError>([&] { both(rows); }), Contains("cuda0 failed at 20"));
  // What was there before the call that failed is on the other device.
  CHECK(w.get_value().to_vector<float>() == std::vector<float>(4, 1 - 6 * steps));
  const DataParallel other = train_on({"dev1"});
  other(rows);
  CHECK(w.get_value().to_vector<float>() == std::vector<float>(4, 1 - 6 * (steps + 1)));
}

TEST_CASE("memory that is short on one context of a data-parallel function", "[memory]") {
  const Variable x = matrix("x");
  const Shared calls = shared(Array(std::int64_t{0}), {.name = "calls"});
  const DataParallel f =
      data_parallel({x}, {sum(dot(x, transpose(x)))},
                    {.contexts = {"dev0", "dev1"}, .updates = {{calls, calls + 1}}, .name = "f"});
  CHECK_THAT(message_of<OutOfMemory>([&] {
               f(Array::ones({16000, 2}));
             }),
             Contains("[f] of this call") && Contains("cuda"));
  CHECK(calls.get_value().item<std::int64_t>() == 0);
  CHECK(f(Array::ones({16, 2}))[0].item<float>() == 512);
  CHECK(calls.get_value().item<std::int64_t>() == 1);
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

TEST_CASE("a library that fails says with which status", "[library]") {
  ContextScope on("dev0");
  Variable x = matrix("x");
  const Function f = function({x}, dot(x, x));
  CHECK_THROWS_WITH(f(Array::ones({8, 8})),
                    Contains("cannot look for a way to multiply") && Contains("status 14"));
}

namespace {

/// What goes to stderr while it lives stands in a file.
class StderrInFile {
 public:
  explicit StderrInFile(const std::string& path)
      : file_(open(path.c_str(), O_CREAT | O_WRONLY, 0600)), before_(dup(2)) {
    dup2(file_, 2);
  }
  ~StderrInFile() {
    dup2(before_, 2);
    close(before_);
    close(file_);
  }
  StderrInFile(const StderrInFile&) = delete;
  StderrInFile& operator=(const StderrInFile&) = delete;

 private:
  const int file_, before_;
};

}  // namespace

TEST_CASE("steps whose graph cannot be launched are launched one by one, which is told once",
          "[graphs]") {
  // The second launch of a graph fails, and all later ones.
  REQUIRE(current_config().cuda_graphs());
  Shared w = shared(Array::zeros({1000}), {.name = "w", .target = "dev0"});
  Shared v = shared(Array::ones({1000}), {.name = "v", .target = "dev0"});
  Function step = function({}, sum(w), {.updates = {{w, w + v}, {v, v * 1}}});
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/stderr";
  std::vector<float> sums;
  {
    const StderrInFile redirected(path);
    for (int i = 0; i < 40; ++i) sums.push_back(step()[0].item<float>());
  }
  for (int i = 0; i < 40; ++i) CHECK(sums[static_cast<std::size_t>(i)] == 1000.0f * i);
  CHECK(w.get_value().to_vector<float>()[999] == 40.0f);
  CHECK(step.statistics().replays == 1);
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  const std::string told = text.str(), mark = "steps are launched one by one";
  CHECK_THAT(told, Contains("croton: warning: cuda0: " + mark) && Contains("CUDA_ERROR_"));
  CHECK(told.find(mark, told.find(mark) + 1) == told.npos);
}

TEST_CASE("a copy to a GPU that fails leaves nothing under way", "[copy]") {
  // Behind a number comes a value in three pieces, of which the second fails. What was taken for
  // the value is used again at once.
  const Shape shape{3 << 20};
  Shared one = shared(Array::ones({1}), {.target = "dev0"});
  CHECK_THROWS_AS(shared(Array::full(shape, 5.0f), {.target = "dev0"}), DeviceError);
  Function fill = function({}, broadcast_to(one * 2, shape) + 1, {.keep_on_device = true});
  const Array threes = fill()[0];
  CHECK(threes.context() == "dev0");
  Shared sevens = shared(Array::full(shape, 7.0f), {.target = "dev0"});
  const std::vector<float> a = threes.to_host().to_vector<float>();
  const std::vector<float> b = sevens.get_value().to_vector<float>();
  CHECK(std::count(a.begin(), a.end(), 3.0f) == 3 << 20);
  CHECK(std::count(b.begin(), b.end(), 7.0f) == 3 << 20);
}

TEST_CASE("a copy between GPUs that fails leaves nothing under way", "[staged]") {
  // Two copies up, of a value and of a number; then pieces go down and up by turns, of which the
  // second fails on its way up.
  const Shape shape{3 << 20};
  Shared one = shared(Array::ones({1}), {.target = "dev0"});
  Shared other = shared(Array::ones({1}), {.target = "dev1"});
  Function fill = function({}, broadcast_to(one * 2, shape) + 1, {.keep_on_device = true});
  const Array threes = fill()[0];
  Variable x, y;
  {
    ContextScope on("dev1");
    x = vector("x");
    y = x * 2;
  }
  Function twice = function({x}, y);
  Function fours = function({}, broadcast_to(other * 3, shape) + 1, {.keep_on_device = true});
  CHECK_THROWS_AS(twice(threes), DeviceError);
  const Array there = fours()[0];
  CHECK(there.context() == "dev1");
  const std::vector<float> a = twice(threes)[0].to_host().to_vector<float>();
  const std::vector<float> b = there.to_host().to_vector<float>();
  const std::vector<float> c = threes.to_host().to_vector<float>();
  CHECK(std::count(a.begin(), a.end(), 6.0f) == 3 << 20);
  CHECK(std::count(b.begin(), b.end(), 4.0f) == 3 << 20);
  CHECK(std::count(c.begin(), c.end(), 3.0f) == 3 << 20);
}

TEST_CASE("a value that fails on its way between two GPUs leaves all as it was", "[sent]") {
  Shared a = shared(Array::ones({1000}), {.target = "dev0"});
  Shared b = shared(Array::ones({1000}), {.target = "dev1"});
  const Function f =
      function({}, {}, {.updates = {{a, a + 1.0f}, {b, b + (a * 2.0f).transfer("dev1")}}});
  int failed = 0;
  float first = 1, second = 1;
  for (int i = 0; i < 8; ++i) {
    try {
      f();
      croton::sync();
      second += 2 * first;
      first += 1;
    } catch (const DeviceError&) {
      ++failed;
    }
  }
  CHECK(failed == 1);
  CHECK(f.statistics().messages == 1);
  CHECK(a.get_value().to_vector<float>() == std::vector<float>(1000, first));
  CHECK(b.get_value().to_vector<float>() == std::vector<float>(1000, second));
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

TEST_CASE("a driver that does not take what NVRTC makes is told with both versions", "[behind]") {
  Shared a = shared(Array::ones({3}), {.target = "dev0"});
  const std::string text = message_of<DeviceError>([&] { function({}, a * 2); });
  CHECK_THAT(text, Contains("[cuda0] the driver (for CUDA 13.") &&
                       Contains("does not take kernels of NVRTC 13.") && Contains("sm_90") &&
                       Contains("update the driver, or use an older CUDA toolkit"));
  Shared b = shared(Array::ones({3}), {.target = "host"});
  CHECK(array_equal(function({}, b * 2)()[0], Array::full({3}, 2.0)));
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
