// Files that are not what they should be; tests/runtime/npy.cpp goes through every byte.
#include <croton/croton.h>

#include <fstream>

#include "tests/data_folder.h"
#include "tests/frontend/error_text.h"
#include "tests/temporary_folder.h"

using namespace croton;
using namespace croton::test;

namespace {

const std::string kFolder = test::data_folder() + "/npy/";

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("corrupt npy files are FileErrors that name the file", "[bad_input]") {
  const std::string good = bytes_of(kFolder + "float32.npy");
  REQUIRE(good.size() > 100);
  const std::string broken[] = {{},
                                "hello",
                                good.substr(0, 9),
                                good.substr(0, 60),
                                good.substr(0, good.size() - 1),
                                "x" + good.substr(1),
                                std::string(good).replace(good.find("descr"), 5, "desxr")};
  const TemporaryFolder folder;
  for (const std::string& bytes : broken) {
    const std::string path = folder.write("broken.npy", bytes);
    CHECK_THAT(error_text<FileError>([&] { Array::load_npy(path); }), HasAll({path}));
    CHECK_THROWS_AS(Array::load_npz(path, "a"), FileError);
  }
  CHECK_THAT(error_text<FileError>([&] { Array::load_npy("/nonexistent/x.npy"); }),
             HasAll({"/nonexistent/x.npy", "no such file"}));
  CHECK_THAT(error_text<FileError>([&] { Array::load_npy("/"); }), HasAll({"/"}));
  CHECK_THAT(error_text<FileError>([&] { Array::load_npz(kFolder + "plain.npz", "nope"); }),
             HasAll({"plain.npz", "nope"}));
}
