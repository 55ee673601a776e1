// What the environment chooses.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace emulator {

/// The `count`-th thing of a kind, and with `onwards` all later ones, fails with `code`.
struct Failure {
  std::string kind;
  std::uint64_t count = 0;
  bool onwards = false;
  int code = 0;
};

struct Settings {
  int devices = 2;
  std::uint64_t memory = std::uint64_t{4} << 30;  // of each device
  std::vector<int> capabilities = {90};           // of devices 0, 1, ...; the last one repeats
  int multiprocessors = 4;
  bool peers = true;
  bool descending = false;  // threads and blocks
  bool lazy = false;        // work runs only when something waits for it
  bool races = true;        // looked for
  bool host_checks = true;  // device memory faults when the host touches it
  int driver_version = 0;   // 0: that of the headers
  int longest_wait = 20;    // seconds that the host waits for ranks of collectives
  int host_wait = 0;        // milliseconds that a wait of the host for a stream or an event takes
  std::vector<Failure> failures;
  std::string report_file;
  std::string cache_folder;
  std::string toolkit;
  bool real_nvrtc = true;
  bool real_cublaslt = true;  // judges descriptors
  bool quiet = false;
};

/// Reads the environment once. What cannot be read ends the process with a message: a test must not
/// run under other settings than it asked for.
const Settings& settings();

/// Whether the next thing of `kind` shall fail, and with which code (0: not). Counts the thing.
int injected_failure(const char* kind);

}  // namespace emulator
