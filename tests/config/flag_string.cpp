#include "config/flag_string.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "croton/config.h"
#include "tests/config/error_of.h"

using namespace croton;
using Catch::Contains;

namespace {

/// `name=value|name=value` of what was read.
std::string read(const std::string& text) {
  std::string result;
  for (const Assignment& a : parse_flag_string(text)) {
    result += (result.empty() ? "" : "|") + a.name + "=" + a.value;
  }
  return result;
}

std::string error(const std::string& text) {
  return error_of([&] { Config::from_text(text); });
}

}  // namespace

TEST_CASE("the flag string is split at commas and blanks are dropped", "[config]") {
  CHECK(read("") == "");
  CHECK(read(" , ,") == "");
  CHECK(read("fuse=off") == "fuse=off");
  CHECK(read("fuse=off,threads=2") == "fuse=off|threads=2");
  CHECK(read(" fuse = off ,, threads\t=\n2, ") == "fuse=off|threads=2");
  CHECK(read("dump=a=b=c") == "dump=a=b=c");
  CHECK(read("dump=") == "dump=");
  CHECK(read("threads=1,threads=2") == "threads=1|threads=2");
  CHECK(read("contexts=dev0->cuda0;dev1->cuda1,device=cpu") ==
        "contexts=dev0->cuda0;dev1->cuda1|device=cpu");
}

TEST_CASE("quotes protect commas and blanks; nothing is an escape or a comment", "[config]") {
  CHECK(read("dump='a,b',fuse=on") == "dump=a,b|fuse=on");
  CHECK(read("dump=\"a,b\"") == "dump=a,b");
  CHECK(read("dump=' a '") == "dump= a ");
  CHECK(read("dump=\"it's\"") == "dump=it's");
  CHECK(read("dump=x'y,z'w") == "dump=xy,zw");
  CHECK(read("dump=a\\,fuse=on") == "dump=a\\|fuse=on");
  CHECK(read("dump=C:\\tmp") == "dump=C:\\tmp");
  CHECK(read("dump=a#b,fuse=on") == "dump=a#b|fuse=on");
  CHECK(read("dump=a # b,fuse=on") == "dump=a # b|fuse=on");
  CHECK(read("dump=50%(x)s") == "dump=50%(x)s");
  CHECK(read("dump='x fuse=on'") == "dump=x fuse=on");
  CHECK(read("dump='{a,b}'") == "dump={a,b}");
}

TEST_CASE("the last of a repeated flag wins", "[config]") {
  CHECK(Config::from_text("threads=1,fuse=off,threads=2").threads() == 2);
}

TEST_CASE("a quote that is never closed is an error", "[config]") {
  CHECK(error("fuse=on,dump='x") ==
        "[CROTON_FLAGS] at position 14 read ', expected a second ' that closes it");
}

TEST_CASE("an item without '=' is an error that shows what to write", "[config]") {
  CHECK(error("fuse") ==
        "[CROTON_FLAGS] at position 1 read 'fuse', expected name=value with an '='; write fuse=on");
  CHECK_THAT(error("threads=2, fuse"), Contains("at position 12 read 'fuse'"));
  CHECK_THAT(error("floatX"), Contains("write floatX=float32|float64|float16|bfloat16"));
  CHECK_THAT(error("gpu1"), Contains("write device=cuda1"));
  CHECK_THAT(error("cuda0"), Contains("write device=cuda0"));
  CHECK_THAT(error("dev0->cuda0;dev1->cpu"), Contains("write contexts=dev0->cuda0;dev1->cpu"));
  CHECK_THAT(error("dev0=>cuda0"), Contains("write contexts=dev0->cuda0"));
  CHECK_THAT(error("'fuse=on,threads=2'"), Contains("leave out the quotes around the whole"));
  CHECK_THAT(error("nonsense"), Contains("read 'nonsense', expected name=value"));
  CHECK_THAT(error("=1"), Contains("at position 1 read '=', expected the name of a flag before"));
}

TEST_CASE("an unknown flag is an error that suggests the nearest", "[config]") {
  CHECK(error("floatx=float64") ==
        "[floatx] from CROTON_FLAGS: there is no flag 'floatx'; did you mean 'floatX'?");
  CHECK_THAT(error("thread=2"), Contains("did you mean 'threads'?"));
  CHECK_THAT(error("optimizer=none"), Contains("did you mean 'optimizer_including'?"));
  CHECK_THAT(error("zzzzzzzz=1"), Contains("`croton flags` lists all"));
  CHECK_THAT(error("zzzzzzzz=1,2"), Contains("there is no flag 'zzzzzzzz'"));
}

TEST_CASE("flags separated by anything but commas are found", "[config]") {
  std::string expected = "expected ',' before it: flags are separated by commas";
  CHECK_THAT(error("floatX=float64 device=cpu"),
             Contains("at position 16 read 'device='") && Contains(expected));
  CHECK_THAT(error("dump=after:fuse fuse = on"), Contains("read 'fuse='") && Contains(expected));
  CHECK_THAT(error("contexts=dev0->cuda0;device=cpu"),
             Contains("read 'device='") && Contains(expected));
  CHECK_THAT(error("fuse=on\nthreads=2"), Contains("read 'threads='") && Contains(expected));
}

TEST_CASE("a bare comma in a value is an error that shows how to protect it", "[config]") {
  CHECK_THAT(error("dump=a,b"), Contains("[dump] got 'a,b'") && Contains("write dump='a,b'"));
  CHECK_THAT(error("dump={a,b}"), Contains("write dump='{a,b}'"));
  CHECK_THAT(error("optimizer_excluding=a,b,fuse=on"),
             Contains("write optimizer_excluding=a:b") && Contains("separated by ':'"));
  CHECK(Config::from_text("dump=a{b}c").dump() == "a{b}c");
  CHECK(read("dump={a,fuse=on") == "dump={a|fuse=on");
}

TEST_CASE("lists of devices are judged whole", "[config]") {
  std::string four = "write contexts=dev0->cuda0;dev1->cuda1;dev2->cuda2;dev3->cuda3";
  std::string two = "write contexts=dev0->cuda0;dev1->cuda1";
  CHECK(error("device=cuda{0,1,2,3}") ==
        "[device] got 'cuda{0,1,2,3}' from CROTON_FLAGS: at position 5 read '{', expected one "
        "device: cpu, cuda, cudaN, auto or null; several devices are used through names: " +
            four);
  CHECK_THAT(error("device=cuda{0,1},floatX=float64"),
             Contains("got 'cuda{0,1}'") && Contains(two));
  CHECK_THAT(error("device='cuda{0,1}'"), Contains("got 'cuda{0,1}'") && Contains(two));
  CHECK_THAT(error("fuse=on,device=cuda0,cuda1"),
             Contains("got 'cuda0,cuda1'") && Contains("position 6 read ','") && Contains(two));
  CHECK_THAT(error("device=cuda0, 1, threads=2"), Contains(two));
  CHECK_THAT(error("device=cuda0;cuda1"), Contains("position 6 read ';'") && Contains(two));
  CHECK_THAT(error("device=cuda0 cuda1"), Contains("position 6 read ' '") && Contains(two));
  CHECK_THAT(error("device=cuda0:cuda1"), Contains(two));
  CHECK_THAT(error("device=cuda0+cuda1"), Contains(two));
  CHECK_THAT(error("device=cuda{a,b}"), Contains("read '{'") && Contains("write contexts=dev0->"));
  CHECK_THAT(error("device=cuda{0"), Contains("read '{'") && Contains("write contexts=dev0->"));
}

TEST_CASE("a wrong device is told what was meant", "[config]") {
  CHECK(error("device=gpu0") ==
        "[device] got 'gpu0' from CROTON_FLAGS: at position 1 read 'gpu0', expected one device: "
        "cpu, cuda, cudaN, auto or null; write device=cuda0, or contexts=dev0->cuda0 to give it a "
        "name");
  CHECK_THAT(error("device=1"), Contains("write device=cuda1"));
  CHECK_THAT(error("device=cuda-1"), Contains("a device index of at least 0"));
  CHECK_THAT(error("device=cuda01"), Contains("write device=cuda1,"));
  CHECK_THAT(error("device=dev0->cuda0"),
             Contains("position 5 read '->'") && Contains("write contexts=dev0->cuda0"));
  CHECK_THAT(error("device=dev0=>cuda1"), Contains("write contexts=dev0->cuda1"));
  CHECK_THAT(error("device=atuo"), Contains("did you mean 'auto'?"));
  CHECK_THAT(error("device="), Contains("expected one device"));
}

TEST_CASE("context maps with commas reach their reader whole", "[config]") {
  std::string two = "write contexts=dev0->cuda0;dev1->cuda1";
  for (const char* value : {"dev0->cuda0,dev1->cuda1", "dev0=>cuda0,dev1=>cuda1", "cuda0,cuda1",
                            "dev0=cuda0,dev1=cuda1", "dev0:cuda0,dev1:cuda1", "cuda{0,1}",
                            "dev{0,1}->cuda{0,1}", "{dev0=cuda0,dev1=cuda1}"}) {
    INFO(value);
    CHECK_THAT(error(std::string("contexts=") + value + ",fuse=on"),
               Contains(std::string("[contexts] got '") + value + "' from CROTON_FLAGS: ") &&
                   Contains(two));
  }
}

TEST_CASE("whatever the flag string is, it is read or refused with a message", "[config]") {
  const char* tokens[] = {"device", "contexts", "fuse", "dump", "=",  ",", ";", "{",        "}",
                          "'",      "\"",       " ",    "cuda", "on", "-", ">", "dev0->cpu"};
  constexpr int kTokens = 17, kLength = 4;
  int texts = 1, read = 0;
  for (int i = 0; i < kLength; ++i) texts *= kTokens;
  for (int n = 0; n < texts; ++n) {
    std::string text;
    for (int i = 0, rest = n; i < kLength; ++i, rest /= kTokens) text += tokens[rest % kTokens];
    try {
      parse_flag_string(text);
      ++read;
    } catch (const ConfigError& error) {
      if (std::string(error.what()).find("expected") == std::string::npos &&
          std::string(error.what()).find("there is no flag") == std::string::npos &&
          std::string(error.what()).find("a comma ends the value") == std::string::npos) {
        FAIL("no expectation in: " << error.what());
      }
    }
  }
  CHECK(read > 0);
  CHECK(read < texts / 2);
}
