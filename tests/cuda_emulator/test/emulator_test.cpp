// Bugs are planted, and the emulator has to report each; right programs have to pass.
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

struct Ran {
  std::string output;
  bool says(const std::string& text) const { return output.find(text) != std::string::npos; }
};

// Runs a scenario in a process of its own, with settings "NAME=value ...".
Ran run(const std::string& scenario, const std::string& settings = "") {
  std::string command = "env CROTON_EMULATOR_CACHE=" EMULATOR_TEST_CACHE " " + settings +
                        " " EMULATOR_SCENARIOS " " + scenario + " 2>&1";
  Ran ran;
  std::FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe);
  for (char line[4096]; std::fgets(line, sizeof line, pipe);) ran.output += line;
  pclose(pipe);
  return ran;
}

// In every combination of orders.
void expect(const std::string& scenario, std::initializer_list<const char*> texts,
            const std::string& settings = "") {
  for (const char* order : {"ascending", "descending"}) {
    for (const char* streams : {"eager", "lazy"}) {
      const Ran ran = run(scenario, settings + " CROTON_EMULATOR_THREADS=" + order +
                                        " CROTON_EMULATOR_STREAMS=" + streams);
      INFO(scenario << ", " << order << ", " << streams << "\n" << ran.output);
      for (const char* text : texts) {
        INFO(text);
        CHECK(ran.says(text));
      }
    }
  }
}

// A report names what, where and who.
void expect_report(const std::string& scenario, const char* what, const char* line, int code,
                   const std::string& settings = "") {
  expect(scenario,
         {what, "in kernel k, block (", line, ("= " + std::to_string(code)).c_str(), "end"},
         settings);
}

}  // namespace

TEST_CASE("kernels give right results", "[emulator]") {
  expect("axpy", {"wrong = 0\nend"});
  expect("softmax", {"wrong = 0\nend"});
  expect("votes", {"wrong = 0\nend"});
  expect("wide_and_half", {"wrong = 0\nend"});
  expect("dimensions", {"wrong = 0\nend"});
  expect("atomics", {"counts = 1\nsum = 512\nmost = 5000\nend"});
  expect("globals", {"bytes = 12", "last = 4\nunknown = 500\nfunction = 500\nend"});
}

TEST_CASE("accesses beyond allocations are reported", "[emulator]") {
  expect_report("past_the_end",
                "past the end of 256 bytes of device 0 (cuMemAlloc), from argument 0",
                "scenario.cu:2", 700);
  expect_report("before_the_begin", "4 bytes before the begin of 256 bytes", "scenario.cu:2", 700);
  expect_report("read_past_the_end", "out of bounds: reads 4 bytes", "scenario.cu:2", 700);
  expect_report("wide_access_over_the_end", "out of bounds: writes 16 bytes", "scenario.cu:3", 700);
  expect_report("misaligned", "misaligned: writes 16 bytes", "scenario.cu:3", 716);
  expect_report("use_after_free", "use after free: writes 4 bytes", "scenario.cu:1", 700);
  expect_report("shared_dynamic", "252 dynamic, this is byte 252", "scenario.cu:3", 700);
  expect_report("shared_declared", "an index out of the bounds of an array", "scenario.cu:3", 719);
  expect_report("division_by_zero", "a division of integers by zero", "scenario.cu:2", 719);
  expect_report("endless_recursion", "the stack of a thread is used up", "thread (0,0,0)", 700);
}

TEST_CASE("pointers of the wrong kind are reported", "[emulator]") {
  expect_report("null_pointer", "null pointer: writes 4 bytes", "scenario.cu:1", 700);
  expect_report("host_pointer", "host pointer: writes 4 bytes", "scenario.cu:1", 700);
  expect("host_touches_device", {"device pointer used on the host: at byte 0 of 256 bytes"});
  expect("copy_sides_swapped", {"memory of the host is expected", "memory of a device is expected",
                                "to the host = 1\nto a device = 1\nend"});
  expect("copy_past_the_end", {"it has 256 bytes, and 260 are copied", "copy = 1\nend"});
  expect("copy_after_free", {"use after free", "copy = 1\nfree = 1\nend"});
}

TEST_CASE("devices use the memory of others only with access", "[emulator]") {
  expect_report("wrong_device", "wrong device: writes 4 bytes", "256 bytes of device 1", 700);
  expect("peer_access", {"wait = 0\nend"});
  expect("peer_access", {"cuCtxEnablePeerAccess(other, 0) failed with 217"},
         "CROTON_EMULATOR_PEERS=none");
}
