#include <sched.h>

#include <fstream>
#include <string>
#include <thread>

#include "runtime/target.h"

namespace croton {
namespace {

/// Sizes in sysfs look like "48K" or "32M".
std::int64_t parse_size(const std::string& text) {
  if (text.empty() || text[0] < '0' || text[0] > '9') return 0;
  std::int64_t value = std::strtoll(text.c_str(), nullptr, 10);
  if (text.back() == 'K') value <<= 10;
  if (text.back() == 'M') value <<= 20;
  return value;
}

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// Keeps the defaults for what the system does not tell.
void read_caches(TargetInfo& target) {
  for (int i = 0; i < 8; ++i) {
    std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(i) + "/";
    std::string level = first_line(folder + "level");
    if (level.empty()) break;
    if (first_line(folder + "type") == "Instruction") continue;
    std::int64_t size = parse_size(first_line(folder + "size"));
    if (size <= 0) continue;
    if (level == "1") target.l1_bytes = size;
    if (level == "2") target.l2_bytes = size;
    if (level == "3") target.l3_bytes = size;
  }
}

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) return CPU_COUNT(&set);
  unsigned count = std::thread::hardware_concurrency();
  return count > 0 ? static_cast<int>(count) : 1;
}

/// Names one of the levels of the x86-64 ABI, never a model: kernels of one level are the same
/// bytes on every machine that has it, and a processor newer than LLVM is nothing special.
void read_cpu(TargetInfo& target) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("x86-64-v4")) {
    target.vector_bits = 512;
    target.cpu = "x86-64-v4";
  } else if (__builtin_cpu_supports("x86-64-v3")) {
    target.vector_bits = 256;
    target.cpu = "x86-64-v3";
  } else {
    target.vector_bits = 128;
    target.cpu = __builtin_cpu_supports("x86-64-v2") ? "x86-64-v2" : "x86-64";
  }
#elif defined(__aarch64__)
  target.vector_bits = 128;
  target.features = "+neon";
#endif
}

}  // namespace

TargetInfo host_target() {
  TargetInfo target;
  target.cores = usable_cores();
  read_caches(target);
  read_cpu(target);
  return target;
}

}  // namespace croton
