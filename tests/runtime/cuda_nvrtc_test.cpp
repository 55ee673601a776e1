// NVRTC opened at run time: what it reports, compiles and refuses.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <thread>

#include "croton/error.h"
#include "runtime/cuda/nvrtc.h"
#include "tests/temporary_folder.h"

using namespace croton;
using namespace croton::cuda;
using Catch::Matchers::Contains;

namespace {

constexpr const char* kGood =
    "extern \"C\" __global__ void twice(float* x) {\n  x[0] *= 2.0f;\n}\n";

bool skipped(const Nvrtc& nvrtc) {
  if (nvrtc.usable()) return false;
  std::cout << "SKIP: " << nvrtc.report().text() << std::endl;
  return true;
}

LibrarySearch nowhere() { return {"/nonexistent/cuda", {"/nonexistent/folder"}, false}; }

}  // namespace

TEST_CASE("a missing NVRTC says where it was looked for", "[cuda]") {
  const Nvrtc nvrtc(nowhere());
  CHECK_FALSE(nvrtc.usable());
  CHECK(nvrtc.version().empty());
  CHECK(nvrtc.capabilities().empty());
  const std::string text = nvrtc.report().text();
  CHECK_THAT(text, Contains("NVRTC is not usable"));
  CHECK_THAT(text, Contains("CUDA_PATH"));
  CHECK_THAT(text, Contains("/nonexistent/cuda/lib64/libnvrtc.so.13"));
  CHECK_THAT(text, Contains("/nonexistent/folder/libnvrtc.so.12"));
  CHECK_THROWS_AS(nvrtc.compile(kGood, "good.cu", {90, true}, {}), DeviceError);
  CHECK_THROWS_WITH(nvrtc.compile(kGood, "good.cu", {90, true}, {}), Contains(text));
  CHECK_THROWS_AS(nvrtc.target_for(90), DeviceError);
}

TEST_CASE("the environment names the toolkit", "[cuda]") {
  const auto path_with = [](const char* path, const char* home) {
    path ? setenv("CUDA_PATH", path, 1) : unsetenv("CUDA_PATH");
    home ? setenv("CUDA_HOME", home, 1) : unsetenv("CUDA_HOME");
    return search_from_environment().cuda_path;
  };
  CHECK(path_with(nullptr, nullptr) == "");
  CHECK(path_with(nullptr, "/opt/home") == "/opt/home");
  CHECK(path_with("/opt/path", "/opt/home") == "/opt/path");
}

TEST_CASE("a file that is no library, or not NVRTC, is not usable", "[cuda]") {
  const test::TemporaryFolder own;
  const std::string& folder = own.path();
  SECTION("no library") {
    std::ofstream(folder + "/libnvrtc.so.13") << "not a library";
    const Nvrtc nvrtc(LibrarySearch{"", {folder}, false});
    CHECK_FALSE(nvrtc.usable());
    CHECK_THAT(nvrtc.report().text(), Contains(folder + "/libnvrtc.so.13"));
  }
  SECTION("another library") {
    bool linked = false;
    for (const char* libm :
         {"/lib/x86_64-linux-gnu/libm.so.6", "/lib/aarch64-linux-gnu/libm.so.6"}) {
      if (linked || !std::filesystem::exists(libm)) continue;
      linked = true;
      std::filesystem::create_symlink(libm, folder + "/libnvrtc.so.13");
    }
    REQUIRE(linked);
    const Nvrtc nvrtc(LibrarySearch{"", {folder}, false});
    CHECK_FALSE(nvrtc.usable());
    CHECK_THAT(nvrtc.report().text(), Contains("lacks nvrtcVersion"));
  }
}

TEST_CASE("NVRTC reports itself and compiles", "[cuda]") {
  const Nvrtc nvrtc;
  if (skipped(nvrtc)) return;
  CHECK_THAT(nvrtc.report().text(), Contains("NVRTC " + nvrtc.version()));
  CHECK_THAT(nvrtc.report().path, Contains("libnvrtc"));
  REQUIRE_FALSE(nvrtc.capabilities().empty());
  const int newest = nvrtc.capabilities().back();
  CHECK(nvrtc.target_for(newest) == NvrtcTarget{newest, true});
  CHECK(nvrtc.target_for(newest + 1) == NvrtcTarget{newest, false});
  CHECK_THROWS_AS(nvrtc.target_for(10), DeviceError);
  CHECK(nvrtc.compile(kGood, "good.cu", {newest, true}, {}).image.substr(1, 3) == "ELF");
  CHECK_THAT(nvrtc.compile(kGood, "good.cu", {newest, false}, {}).image, Contains(".entry twice"));
}

TEST_CASE("a wrong program is shown with its log", "[cuda]") {
  const Nvrtc nvrtc;
  if (skipped(nvrtc)) return;
  const NvrtcTarget target{nvrtc.capabilities().back(), true};
  const std::string wrong = "extern \"C\" __global__ void wrong(float* x) {\n  x[0] = y;\n}\n";
  CHECK_THROWS_AS(nvrtc.compile(wrong, "wrong.cu", target, {}), InternalError);
  CHECK_THROWS_WITH(nvrtc.compile(wrong, "wrong.cu", target, {}),
                    Contains("cannot compile wrong.cu for " + target.text()) &&
                        Contains("identifier \"y\" is undefined") &&
                        Contains("    2 |   x[0] = y;"));
  constexpr std::string_view kOption[] = {"--no-such-option"};
  CHECK_THROWS_AS(nvrtc.compile(kGood, "good.cu", target, kOption), InternalError);
  CHECK_THROWS_AS(nvrtc.compile(kGood, "good.cu", {10, true}, {}), DeviceError);
  CHECK_THROWS_WITH(nvrtc.compile(kGood, "good.cu", {10, true}, {}), Contains("it knows"));
}

TEST_CASE("several threads compile at once", "[cuda]") {
  const Nvrtc nvrtc;
  if (skipped(nvrtc)) return;
  const NvrtcTarget target{nvrtc.capabilities().back(), false};
  std::vector<std::string> images(4);
  std::vector<std::thread> threads;
  for (std::string& image : images) {
    threads.emplace_back([&] { image = nvrtc.compile(kGood, "good.cu", target, {}).image; });
  }
  for (std::thread& t : threads) t.join();
  for (const std::string& image : images) CHECK(image == images[0]);
  CHECK_FALSE(images[0].empty());
}
