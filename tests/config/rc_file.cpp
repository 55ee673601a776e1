#include "config/rc_file.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "croton/config.h"
#include "tests/config/error_of.h"
#include "tests/temporary_folder.h"

using namespace croton;
using Catch::Contains;

namespace {

std::string error(const std::string& text) {
  test::TemporaryFolder folder;
  std::string file = folder.write("rc", text);
  std::string message = error_of([&] { read_rc_file(file, true); });
  std::size_t at = message.find(file);
  return at == message.npos ? message : message.replace(at, file.size(), "rc");
}

}  // namespace

TEST_CASE("an rc file has sections, comments at line starts, and values to the line's end",
          "[config]") {
  test::TemporaryFolder folder;
  std::string file = folder.write("rc",
                                  "\xEF\xBB\xBF# first\r\n"
                                  "; second\n"
                                  "   # third\n"
                                  "\n"
                                  " [ global ]\r\n"
                                  "contexts = dev0->cuda0 ; dev1->cuda1\r\n"
                                  "  threads=3\n"
                                  "dump = a # b ; 50%(x)s=c\n"
                                  "cache_dir = ' /tmp/a b '\n"
                                  "floatX = \"float64\"\n"
                                  "dump = 'a' or 'b'\n"
                                  "dump =");
  std::vector<Assignment> read = read_rc_file(file, true);
  REQUIRE(read.size() == 7);
  CHECK(read[0].name == "contexts");
  CHECK(read[0].value == "dev0->cuda0 ; dev1->cuda1");
  CHECK(read[0].origin.line == 6);
  CHECK(read[0].origin.file == file);
  CHECK(read[1].value == "3");
  CHECK(read[2].value == "a # b ; 50%(x)s=c");
  CHECK(read[3].value == " /tmp/a b ");
  CHECK(read[4].value == "float64");
  CHECK(read[5].value == "'a' or 'b'");
  CHECK(read[6].value == "");
  CHECK(read[6].origin.line == 12);
}

TEST_CASE("mistakes in an rc file are told with file and line", "[config]") {
  CHECK(error("[global]\nfloatx = float64\n") ==
        "[floatx] from rc:2: there is no flag 'floatx'; did you mean 'floatX'?");
  CHECK(error("[blas]\n") == "[rc file] rc:1: there is no section [blas], expected [global]");
  CHECK_THAT(error("\n[global\n"), Contains("rc:2: read '[global', expected [section]"));
  CHECK_THAT(error("[global]\n\nfuse\n"),
             Contains("rc:3: read 'fuse', expected name = value, [section], or a comment"));
  CHECK_THAT(error("[global]\n= 3\n"), Contains("rc:2: read '= 3'"));
  CHECK_THAT(error("fuse = on\n"),
             Contains("rc:1: 'fuse' stands before the first section; write [global] above it"));
}

TEST_CASE("values in an rc file that are not allowed are told with file and line", "[config]") {
  test::TemporaryFolder folder;
  auto config_error = [&](const std::string& line) {
    std::string file = folder.write("rc", "[global]\n" + line + "\n");
    return error_of([&] { Config::from_text("", {file}); });
  };
  std::string place = " from " + folder.path() + "/rc:2: ";
  CHECK(config_error("floatX = float46") ==
        "[floatX] got 'float46'" + place +
            "expected one of float32, float64, float16, bfloat16; did you mean 'float64'?");
  CHECK_THAT(config_error("contexts = dev0->gpu0"),
             Contains(place) && Contains("write contexts=dev0->cuda0"));
  CHECK_THAT(config_error("device = cuda0, cuda1"),
             Contains(place) && Contains("write contexts=dev0->cuda0;dev1->cuda1"));
}

TEST_CASE("a named rc file must exist, another need not", "[config]") {
  test::TemporaryFolder folder;
  std::string missing = folder.path() + "/none";
  CHECK(read_rc_file(missing, false).empty());
  CHECK_THAT(error_of([&] { read_rc_file(missing, true); }),
             Contains("cannot read '" + missing + "': No such file") && Contains("CROTONRC"));
  CHECK_THAT(error_of([&] { read_rc_file(folder.path(), false); }), Contains("Is a directory"));
}
