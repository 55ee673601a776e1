#include "tests/cuda_emulator/settings.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <map>
#include <mutex>

#include "tests/cuda_emulator/report.h"

namespace emulator {
namespace {

constexpr const char* kPrefix = "CROTON_EMULATOR_";

constexpr const char* kNames[] = {
    "CACHE",  "CAPABILITY",  "CUBLASLT",  "DEVICES",         "DRIVER",  "FAIL",
    "MEMORY", "HOST_CHECKS", "HOST_WAIT", "MULTIPROCESSORS", "NVRTC",   "PEERS",
    "QUIET",  "RACES",       "REPORT",    "STREAMS",         "THREADS", "WAIT"};

// Things that can fail; and device0, device1, ...
constexpr const char* kFailures[] = {"init", "context", "alloc",  "host",    "launch",
                                     "copy", "graph",   "module", "compile", "library"};

[[noreturn]] void refuse(const std::string& name, const std::string& value, const char* expected) {
  std::fprintf(stderr, "[cuda emulator] %s: got '%s', expected %s\n", name.c_str(), value.c_str(),
               expected);
  std::_Exit(2);
}

std::string text(const char* name, const char* otherwise = "") {
  const char* value = std::getenv(name);
  return value && *value ? value : otherwise;
}

std::uint64_t number(const std::string& name, const std::string& value, const char* expected,
                     std::uint64_t least, std::uint64_t most, bool sizes = false) {
  char* end = nullptr;
  errno = 0;
  const std::uint64_t whole = std::strtoull(value.c_str(), &end, 10);
  const bool begins = !value.empty() && std::isdigit(static_cast<unsigned char>(value[0]));
  int shift = 0;
  if (sizes && *end == 'K')
    shift = 10, ++end;
  else if (sizes && *end == 'M')
    shift = 20, ++end;
  else if (sizes && *end == 'G')
    shift = 30, ++end;
  if (!begins || errno || *end || whole > most >> shift || whole << shift < least) {
    refuse(name, value, expected);
  }
  return whole << shift;
}

void choose(const char* name, bool& into, const char* no, const char* yes) {
  const std::string value = text(name);
  if (value.empty()) return;
  if (value != no && value != yes) refuse(name, value, (std::string(no) + " or " + yes).c_str());
  into = value == yes;
}

void choose_number(const char* name, int& into, unsigned least, unsigned most) {
  const std::string value = text(name);
  if (value.empty()) return;
  const std::string expected = std::to_string(least) + " to " + std::to_string(most);
  into = static_cast<int>(number(name, value, expected.c_str(), least, most));
}

std::vector<std::string> split(const std::string& value, char separator) {
  std::vector<std::string> parts;
  if (value.empty()) return parts;
  std::size_t begin = 0;
  for (std::size_t end; (end = value.find(separator, begin)) != std::string::npos;
       begin = end + 1) {
    parts.push_back(value.substr(begin, end - begin));
  }
  parts.push_back(value.substr(begin));
  return parts;
}

// "90", "9.0", "90,80".
void read_capabilities(Settings& s) {
  const char* name = "CROTON_EMULATOR_CAPABILITY";
  const auto parts = split(text(name), ',');
  if (parts.empty()) return;
  s.capabilities.clear();
  for (std::string part : parts) {
    if (const auto dot = part.find('.'); dot != std::string::npos) part.erase(dot, 1);
    s.capabilities.push_back(
        static_cast<int>(number(name, part, "compute capabilities such as 90,80", 50, 999)));
  }
}

bool can_fail(const std::string& kind, int devices) {
  for (int i = 0; i < devices; ++i) {
    if (kind == format("device%d", i)) return true;
  }
  return std::find(std::begin(kFailures), std::end(kFailures), kind) != std::end(kFailures);
}

// "alloc:3:2,launch:5+:700".
void read_failures(Settings& s) {
  const char* name = "CROTON_EMULATOR_FAIL";
  std::string expected =
      "KIND:N:CODE[,...], N from 1, with + for all from there on, CODE not 0, KIND one of ";
  for (const char* kind : kFailures) expected += std::string(kind) + ", ";
  expected += "device0, device1, ... (there are " + std::to_string(s.devices) + ")";
  for (const std::string& entry : split(text(name), ',')) {
    const auto parts = split(entry, ':');
    if (parts.size() != 3 || !can_fail(parts[0], s.devices)) refuse(name, entry, expected.c_str());
    Failure failure;
    failure.kind = parts[0];
    std::string count = parts[1];
    if (count.ends_with('+')) failure.onwards = true, count.pop_back();
    failure.count = number(name, count, expected.c_str(), 1, UINT64_MAX);
    failure.code = static_cast<int>(number(name, parts[2], expected.c_str(), 1, 9999));
    s.failures.push_back(failure);
  }
}

// Reports that went nowhere would look like none.
void check_file(const char* name) {
  const std::string path = text(name);
  if (path.empty()) return;
  std::FILE* file = std::fopen(path.c_str(), "a");
  if (!file) refuse(name, path, "a file that can be written");
  std::fclose(file);
}

void check_folder(const char* name) {
  const std::string path = text(name);
  if (path.empty()) return;
  std::error_code wrong;
  std::filesystem::create_directories(path, wrong);
  if (access(path.c_str(), W_OK | X_OK) != 0) refuse(name, path, "a folder that can be written");
}

void refuse_unknown_names() {
  const std::size_t length = std::strlen(kPrefix);
  for (char** entry = environ; *entry; ++entry) {
    if (std::strncmp(*entry, kPrefix, length) != 0) continue;
    const std::string whole = *entry;
    const std::string name = whole.substr(length, whole.find('=') - length);
    if (std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames)) continue;
    std::string expected = "one of";
    for (const char* known : kNames) expected += std::string(" ") + known;
    refuse("CROTON_EMULATOR_*", name, expected.c_str());
  }
}

Settings read() {
  Settings s;
  refuse_unknown_names();
  choose_number("CROTON_EMULATOR_DEVICES", s.devices, 0, 16);
  choose_number("CROTON_EMULATOR_MULTIPROCESSORS", s.multiprocessors, 1, 1024);
  choose_number("CROTON_EMULATOR_DRIVER", s.driver_version, 1000, 99999);
  choose_number("CROTON_EMULATOR_WAIT", s.longest_wait, 1, 3600);
  choose_number("CROTON_EMULATOR_HOST_WAIT", s.host_wait, 0, 1000);
  if (const std::string memory = text("CROTON_EMULATOR_MEMORY"); !memory.empty()) {
    s.memory = number("CROTON_EMULATOR_MEMORY", memory, "bytes up to 256G, or a size such as 512M",
                      1, std::uint64_t{256} << 30, true);
  }
  read_capabilities(s);
  choose("CROTON_EMULATOR_PEERS", s.peers, "none", "all");
  choose("CROTON_EMULATOR_THREADS", s.descending, "ascending", "descending");
  choose("CROTON_EMULATOR_STREAMS", s.lazy, "eager", "lazy");
  choose("CROTON_EMULATOR_RACES", s.races, "off", "on");
  choose("CROTON_EMULATOR_HOST_CHECKS", s.host_checks, "off", "on");
  choose("CROTON_EMULATOR_NVRTC", s.real_nvrtc, "none", "real");
  choose("CROTON_EMULATOR_CUBLASLT", s.real_cublaslt, "none", "real");
  choose("CROTON_EMULATOR_QUIET", s.quiet, "off", "on");
  read_failures(s);
  check_file("CROTON_EMULATOR_REPORT");
  check_folder("CROTON_EMULATOR_CACHE");
  s.report_file = text("CROTON_EMULATOR_REPORT");
  s.toolkit = text("CUDA_PATH", "/usr/local/cuda");
  const std::string caches = text("XDG_CACHE_HOME", (text("HOME", "/tmp") + "/.cache").c_str());
  s.cache_folder = text("CROTON_EMULATOR_CACHE", (caches + "/croton-cuda-emulator").c_str());
  return s;
}

}  // namespace

const Settings& settings() {
  static const Settings& all = *new Settings(read());
  return all;
}

int injected_failure(const char* kind) {
  if (settings().failures.empty()) return 0;
  static std::mutex mutex;
  static auto& counts = *new std::map<std::string, std::uint64_t>;
  const std::lock_guard lock(mutex);
  const std::uint64_t count = ++counts[kind];
  for (const Failure& failure : settings().failures) {
    if (failure.kind != kind) continue;
    if (count == failure.count || (failure.onwards && count > failure.count)) return failure.code;
  }
  return 0;
}

}  // namespace emulator
