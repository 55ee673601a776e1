#include "tests/cuda_emulator/settings.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <sstream>

namespace emulator {
namespace {

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
                     bool sizes = false) {
  char* end = nullptr;
  std::uint64_t result = std::strtoull(value.c_str(), &end, 10);
  if (end == value.c_str()) refuse(name, value, expected);
  if (sizes && *end == 'K')
    result <<= 10, ++end;
  else if (sizes && *end == 'M')
    result <<= 20, ++end;
  else if (sizes && *end == 'G')
    result <<= 30, ++end;
  if (*end) refuse(name, value, expected);
  return result;
}

void choose(const char* name, bool& into, const char* no, const char* yes) {
  const std::string value = text(name);
  if (value.empty()) return;
  if (value != no && value != yes) refuse(name, value, (std::string(no) + " or " + yes).c_str());
  into = value == yes;
}

void choose_number(const char* name, int& into) {
  const std::string value = text(name);
  if (!value.empty()) into = static_cast<int>(number(name, value, "a number"));
}

std::vector<std::string> split(const std::string& value, char separator) {
  std::vector<std::string> parts;
  std::stringstream stream(value);
  for (std::string part; std::getline(stream, part, separator);) {
    if (!part.empty()) parts.push_back(part);
  }
  return parts;
}

// "90", "9.0", "90,80".
void read_capabilities(Settings& s) {
  const char* name = "CROTON_EMULATOR_CAPABILITY";
  const auto parts = split(text(name), ',');
  if (parts.empty()) return;
  s.capabilities.clear();
  for (std::string part : parts) {
    const std::string whole = part;
    if (const auto dot = part.find('.'); dot != std::string::npos) part.erase(dot, 1);
    s.capabilities.push_back(
        static_cast<int>(number(name, part, "compute capabilities such as 90,80")));
    if (s.capabilities.back() < 50) refuse(name, whole, "compute capabilities such as 90,80");
  }
}

// "alloc:3:2,launch:5+:700".
void read_failures(Settings& s) {
  const char* name = "CROTON_EMULATOR_FAIL";
  const char* expected =
      "KIND:N:CODE[,...], N with + for all from there on, KIND one of init, context, alloc, host, "
      "launch, copy, library, module, compile, device0, device1, ...";
  for (const std::string& entry : split(text(name), ',')) {
    const auto parts = split(entry, ':');
    if (parts.size() != 3) refuse(name, entry, expected);
    Failure failure;
    failure.kind = parts[0];
    std::string count = parts[1];
    if (count.back() == '+') failure.onwards = true, count.pop_back();
    failure.count = number(name, count, expected);
    failure.code = static_cast<int>(number(name, parts[2], expected));
    s.failures.push_back(failure);
  }
}

Settings read() {
  Settings s;
  choose_number("CROTON_EMULATOR_DEVICES", s.devices);
  choose_number("CROTON_EMULATOR_MULTIPROCESSORS", s.multiprocessors);
  choose_number("CROTON_EMULATOR_DRIVER", s.driver_version);
  if (s.devices > 16) refuse("CROTON_EMULATOR_DEVICES", text("CROTON_EMULATOR_DEVICES"), "0 to 16");
  if (const std::string memory = text("CROTON_EMULATOR_MEMORY"); !memory.empty()) {
    s.memory = number("CROTON_EMULATOR_MEMORY", memory, "bytes, or a size such as 512M", true);
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
