// Bugs are planted, and the emulator has to report each; right programs have to pass.
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
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

// Whether the toolkit has NVIDIA's library too, which the emulator then asks.
bool has_real(const std::string& library) {
  const char* set = std::getenv("CUDA_PATH");
  const std::filesystem::path toolkit = set && *set ? set : "/usr/local/cuda";
  return std::filesystem::exists(toolkit / "lib64" / library) ||
         std::filesystem::exists(toolkit / "lib" / library);
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
  expect("copy_past_the_end", {"it has 256 bytes, and 260 are used", "copy = 1\nend"});
  expect("copy_after_free", {"use after free", "copy = 1\nfree = 1\nend"});
}

TEST_CASE("devices use the memory of others only with access", "[emulator]") {
  expect_report("wrong_device", "wrong device: writes 4 bytes", "256 bytes of device 1", 700);
  expect("peer_access", {"wait = 0\nend"});
  expect("peer_access", {"cuCtxEnablePeerAccess(other, 0) failed with 217"},
         "CROTON_EMULATOR_PEERS=none");
}

TEST_CASE("races inside a launch are reported", "[emulator]") {
  const char* in_shared = "shared memory, after a ";
  expect_report("missing_barrier", in_shared, "scenario.cu:", 719);
  expect_report("shared_reused_too_early", in_shared, "scenario.cu:6", 719);
  expect_report("warp_without_sync", in_shared, "scenario.cu:3", 719);
  expect_report("blocks_write_one_place", "from argument 0, after a write by thread",
                "scenario.cu:1", 719);
  expect_report("sum_without_atomic", "after a write by thread 0 of block", "scenario.cu:1", 719);
  expect_report("block_reads_of_another", "race: ", "scenario.cu:", 719);
  expect_report("last_block_without_fence", "race: reads 4 bytes", "scenario.cu:5", 719);
  for (const char* right :
       {"with_barrier", "warp_with_sync", "bytes_of_one_word", "last_block_with_fence"}) {
    expect(right, {"wait = 0\nend"});
  }
}

TEST_CASE("divergent barriers and warps are reported", "[emulator]") {
  expect_report(
      "barrier_in_a_branch",
      "barrier divergence: other threads of the block wait at scenario.cu:", "scenario.cu:", 719);
  expect("barrier_and_shuffle",
         {"1 at the barrier of scenario.cu:2; 31 at the warp operation of scenario.cu:3",
          "wait = 702\nend"});
  expect_report("shuffle_outside_its_mask", "is not in its own mask 0xffff", "scenario.cu:2", 719);
  expect_report("shuffle_from_absent_lane", "which is not in the mask 0xffff", "scenario.cu:2",
                719);
}

TEST_CASE("missing synchronisation is reported in every order", "[emulator]") {
  const char* title = "missing synchronisation: ";
  expect_report("streams_unordered", "after a write by kernel k, with which it is not ordered",
                "scenario.cu:1", 719);
  expect_report("event_too_early", title, "scenario.cu:1", 719);
  expect_report("write_after_one_reader", "after a read by kernel k", "scenario.cu:1", 719);
  expect_report("fill_without_wait", "after a write by cuMemsetD32", "scenario.cu:1", 719);
  // Whichever of two runs first, the other is reported.
  CHECK(
      run("copy_without_wait", "CROTON_EMULATOR_STREAMS=eager")
          .says("cuMemcpyDtoH reads memory (at byte 0 of 256 bytes of device 0 (cuMemAlloc)) after "
                "a write by kernel k"));
  CHECK(run("copy_without_wait", "CROTON_EMULATOR_STREAMS=lazy")
            .says("after a read by cuMemcpyDtoH"));
  CHECK(run("free_without_order", "CROTON_EMULATOR_STREAMS=eager")
            .says("cuMemFreeAsync frees memory that kernel k uses"));
  CHECK(run("free_without_order", "CROTON_EMULATOR_STREAMS=lazy").says("use after free: writes"));
  expect("use_before_allocation",
         {"kernel k uses memory that cuMemAllocAsync allocates", "wait = 719\nend"});
  expect("race_in_graph", {title, "capture = 0\nwait = 719\nend"});
  expect("streams_ordered", {"wait = 0\nend"});
  expect("host_waits_for_a_stream", {"wait = 0\nvalue = 2\nend"});
}

TEST_CASE("lazy streams show page-locked memory that is reused too early", "[emulator]") {
  CHECK(run("pinned_reused_too_early", "CROTON_EMULATOR_STREAMS=eager").says("value = 1\nend"));
  CHECK(run("pinned_reused_too_early", "CROTON_EMULATOR_STREAMS=lazy").says("value = 7\nend"));
}

TEST_CASE("settings choose the devices", "[emulator]") {
  expect("devices", {"count = 2", "device = 0\nmajor = 9\nmemory = 4294967296\nbeyond = 101\nend",
                     "there is no GPU, and timings mean nothing"});
  const Ran ran = run("devices",
                      "CROTON_EMULATOR_DEVICES=3 CROTON_EMULATOR_MEMORY=512M "
                      "CROTON_EMULATOR_CAPABILITY=8.0,90 CROTON_EMULATOR_DRIVER=12020");
  INFO(ran.output);
  CHECK(ran.says("count = 3\nversion = 12020"));
  CHECK(ran.says("major = 8\nmemory = 536870912"));
  CHECK(run("devices", "CUDA_VISIBLE_DEVICES=1").says("count = 1"));
  CHECK(run("devices", "CUDA_VISIBLE_DEVICES=1").says("0000:02:00.0"));
  CHECK(run("devices", "CROTON_EMULATOR_DEVICES=0").says("cuInit(0) failed with 100"));
  CHECK(run("devices", "CROTON_EMULATOR_STREAMS=fast")
            .says("CROTON_EMULATOR_STREAMS: got 'fast', expected eager or lazy"));
}

TEST_CASE("wrong settings are refused", "[emulator]") {
  const auto refused = [](const std::string& name, const std::string& value,
                          const std::string& expected, const char* got = nullptr) {
    const Ran ran = run("devices", "CROTON_EMULATOR_" + name + "=" + value);
    INFO(name << "=" << value << "\n" << ran.output);
    CHECK(ran.says("got '" + (got ? got : value) + "', expected " + expected));
    CHECK_FALSE(ran.says("\nend"));
  };
  refused("DEVICES", "-1", "0 to 16");
  refused("DEVICES", "17", "0 to 16");
  refused("DEVICES", "4294967298", "0 to 16");
  refused("MULTIPROCESSORS", "-3", "1 to 1024");
  refused("MULTIPROCESSORS", "0", "1 to 1024");
  refused("DRIVER", "13", "1000 to 99999");
  refused("WAIT", "x", "1 to 3600");
  refused("HOST_WAIT", "1001", "0 to 1000");
  refused("MEMORY", "18446744073709551617", "bytes up to 256G");
  refused("MEMORY", "17179869185G", "bytes up to 256G");  // 2^64 + 2^30
  refused("MEMORY", "1T", "bytes up to 256G");
  refused("CAPABILITY", "9", "compute capabilities");
  refused("CAPABILITY", "90,,80", "compute capabilities", "");
  for (const char* name :
       {"PEERS", "THREADS", "STREAMS", "RACES", "HOST_CHECKS", "NVRTC", "CUBLASLT", "QUIET"}) {
    refused(name, "maybe", "");
  }
  refused("REPORT", "/dev/null/report", "a file that can be written");
  refused("CACHE", "/dev/null/folder", "a folder that can be written");
  const char* kinds =
      "KIND:N:CODE[,...], N from 1, with + for all from there on, CODE not 0, KIND one of init, "
      "context, alloc, host, launch, copy, graph, module, compile, library, device0, device1, ... "
      "(there are 2)";
  for (const char* wrong :
       {"alocate:1:2", "device:1:2", "device0x:1:2", "device2:1:2", "alloc:1", "alloc:1:2:3"}) {
    refused("FAIL", wrong, kinds);
  }
  refused("FAIL", "alloc:1:2,", kinds, "");
  refused("FAIL", "alloc::2", kinds, "");
  refused("FAIL", "alloc:0:2", kinds, "0");
  refused("FAIL", "alloc:-1:2", kinds, "-1");
  refused("FAIL", "launch:1:2,alloc:1:0", kinds, "0");
  const Ran ran = run("devices", "CROTON_EMULATOR_STREAM=lazy");
  INFO(ran.output);
  CHECK(ran.says("CROTON_EMULATOR_*: got 'STREAM', expected one of CACHE"));
}

TEST_CASE("limits of launches are the driver's", "[emulator]") {
  expect("launch_limits",
         {"empty = 1\nbound = 1\nshared = 1\nraised = 0\nbeyond = 1\nnull = 1\ntall = 1\n"
          "resident = 16\nthreads = 128\nwait = 0\nend"});
}

TEST_CASE("an error stays with its context", "[emulator]") {
  expect("errors_stay", {"launch = 0\nsynchronize = 700\nallocate = 700\ncopy = 700\nother = 0\n"
                         "release = 0\nagain = 700\nend"});
}

TEST_CASE("memory has an end", "[emulator]") {
  expect("out_of_memory",
         {"half = 0\ntoo much = 2\navailable = 434176\nafter = 0\npool = 0\nhigh = 614400\n"
          "trimmed = 0\nend"},
         "CROTON_EMULATOR_MEMORY=1M");
}

TEST_CASE("failures are injected where they are asked for", "[emulator]") {
  expect("injected",
         {"allocate = 0\nallocate = 2\nallocate = 0\nlaunch = 0\nlaunch = 0\nlaunch = 0\nwait = 0"},
         "CROTON_EMULATOR_FAIL=alloc:2:2");
  expect("injected", {"launch = 0\nlaunch = 1\nlaunch = 1\nwait = 0"},
         "CROTON_EMULATOR_FAIL=launch:2+:1");
  expect("injected", {"launch = 0\nlaunch = 0\n", "wait = 719"},
         "CROTON_EMULATOR_FAIL=launch:3:719");
  expect("injected", {"wait = 214\nend"}, "CROTON_EMULATOR_FAIL=device0:3:214");
  expect("injected", {"cuInit(0) failed with 999"}, "CROTON_EMULATOR_FAIL=init:1:999");
  expect("injected", {"cuDevicePrimaryCtxRetain(&context, device) failed with 46"},
         "CROTON_EMULATOR_FAIL=context:1:46");
  expect("injected", {"compile = 1\n"}, "CROTON_EMULATOR_FAIL=compile:1:1");
  expect("injected", {"cuModuleLoadData(&module, image.data()) failed with 2"},
         "CROTON_EMULATOR_FAIL=module:1:2");
  expect("copy_without_wait", {"copy = 46"}, "CROTON_EMULATOR_FAIL=copy:2:46");
}

#ifdef EMULATED_CUBLASLT
TEST_CASE("failures of libraries are injected", "[emulator]") {
  expect("product_float", {"p.run(to_device(a), to_device(b), d, workspace, 1 << 20) = 13"},
         "CROTON_EMULATOR_FAIL=library:3:13");
}
#endif

TEST_CASE("texts build without the real compiler", "[emulator]") {
  expect("axpy", {"wrong = 0\nend"}, "CROTON_EMULATOR_NVRTC=none");
}

TEST_CASE("the real compiler comes first", "[emulator]") {
  if (!has_real(EMULATED_NVRTC)) return;
  const Ran ran = run("compile_error");
  INFO(ran.output);
  CHECK(ran.says("compile = 6"));
  CHECK(ran.says("identifier"));
  CHECK(run("only_real_refuses").says("no instance of overloaded function"));
  expect("declared_shared",
         {"declared = 4096\ndynamic = 45056\nresident = 8\ndeclared = 40960\ndynamic = 8192\n"
          "resident = 5\nfits = 0\nbeyond = 1\nlarge = 0\nvalue = 8\nend"});
  expect("declared_registers", {"few = 1\nmany = 1\nmost = 512\nresident = 4\nlight = 0\n"
                                "heavy = 0\nbeyond = 701\nend"});
}

TEST_CASE("modules are for the device", "[emulator]") {
  const bool real = has_real(EMULATED_NVRTC);
  expect("wrong_images",
         {"rubbish = 200\nnewer = 209\n", real ? "readable = 1\n" : "readable = ", "PTX = 0\nend"});
  expect("wrong_images", {"PTX = 222\nend"}, "CROTON_EMULATOR_DRIVER=12000");
}

TEST_CASE("graphs replay what a stream captured", "[emulator]") {
  expect("graphs", {"capture = 0\nnodes = 3\nbefore = 0\nx = 9\ny = 30\ncapture = 0\nupdate = 0\n"
                    "updated = 109\nend"});
  expect("capture_mistakes", {"capture = 904\nwait = 900\nthen = 901\nend = 901\nallocate = 900\n"
                              "end = 901\nlegacy = 900\nend"});
}

TEST_CASE("the longest chain is what streams, events and the host order", "[emulator]") {
  expect("chains", {"free: 5, 3\nhost: 5, 5\nevent: 5, 5\nthread: 5, 3\nend"},
         "CROTON_EMULATOR_HOST_WAIT=500");
}

TEST_CASE("copies between devices", "[emulator]") {
  expect("peer_copies", {"device 0 has no access to it", "plain = 1\npeer = 0\nvalue = 3\nend"});
  expect("pool_peers", {"wait = 0\nend"});
  expect("queries", {"query = 0\nstream = 0\nvalue = 5\nsymbol = 0\nnewest = 1\nend"});
}

#ifdef EMULATED_CUBLASLT
TEST_CASE("products of cuBLASLt", "[emulator]") {
  const bool real = has_real(EMULATED_CUBLASLT);
  expect("product_float", {"wrong = 0\nend"});
  expect("product_tf32", {"wrong = 0\nwrong = 35\nend"});
  expect("product_double", {"wrong = 0\nend"});
  expect("product_halves", {"wrong = 0\nwrong = 0\nend"});
  expect("product_epilogues", {"wrong = 0\nwrong = 0\nwrong = 0\nend"});
  expect("product_mistakes",
         {"types = 15\nsums in float16 = 15\nfactors in 16 bits = 15\nfactors in 16 bits = "
          "15\nneeds workspace = 1\nno workspace = 7\nmisaligned = "
          "15\ntoo small = 7\nhost = 7\nright = 0",
          real ? "attribute = 7\n" : "attribute = ", "wait = 0\nend"});
}

#endif

#ifdef EMULATED_NCCL
TEST_CASE("collectives of NCCL", "[emulator]") {
  expect("collectives",
         {"sum = 107\nsum = 107\nmax = 103\nmax = 103\ngathered = 101\ngathered = 101\n"
          "scattered = 103\nscattered = 111\nbroadcast = 100\nbroadcast = 100\naverage = 51\nend"});
  expect("collective_types",
         {"product = 1152922604119523329\nleast = -5\ndown = 16256\nup = 16258\nleast = 49024\n"
          "end"});
  expect("send_and_receive", {"received = 102\nreceived = 3\nend"});
  expect("rank_threads", {"first = 1616\nsecond = 1616\nend"});
  expect("one_rank", {"value = 5\nend"});
  expect("collective_mistakes", {"root = 4\nstream = 4\nbounds = 4\nsize = 5\nend",
                                 "rank 1 asks for another size than another rank"});
}

TEST_CASE("ranks that never come are a deadlock with an end", "[emulator]") {
  for (const std::string streams : {"eager", "lazy"}) {
    const Ran ran = run("absent_rank", "CROTON_EMULATOR_WAIT=1 CROTON_EMULATOR_STREAMS=" + streams);
    INFO(streams << "\n" << ran.output);
    CHECK(ran.says("deadlock: the host waits for cuEventRecord, which waits for other ranks"));
    CHECK(ran.says("event = 702\nstream = 702\ndestroy = 0\nlate = 702\ndestroy = 0\nend"));
  }
  const Ran ran = run("lost_rank", "CROTON_EMULATOR_WAIT=1 CROTON_EMULATOR_STREAMS=lazy");
  INFO(ran.output);
  CHECK(ran.says("lost = 700\nother = 702\nend"));
}
#endif
