// NVTX: writes down the ranges, as a profiler would show them.
#include <cstdio>
#include <mutex>
#include <string>

#define EMULATOR_API extern "C" __attribute__((visibility("default")))

namespace {

struct Ranges {
  std::mutex mutex;
  std::string text;
};

Ranges& ranges() {
  static auto& all = *new Ranges;
  return all;
}

thread_local int depth = 0;

}  // namespace

EMULATOR_API int nvtxRangePushA(const char* name) {
  const std::lock_guard hold(ranges().mutex);
  ranges().text += std::string(name) + "{";
  return depth++;
}

EMULATOR_API int nvtxRangePop() {
  const std::lock_guard hold(ranges().mutex);
  ranges().text += "}";
  return --depth;
}

/// All ranges so far: a name, "{", what happened inside, "}".
EMULATOR_API const char* crotonEmulatorRanges() { return ranges().text.c_str(); }
