// What the emulated libraries use of the emulated driver.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <functional>
#include <vector>

#define EMULATOR_EXPORT __attribute__((visibility("default")))

namespace emulator {

struct LibraryRange {
  const void* address = nullptr;
  std::uint64_t bytes = 0;
  bool write = false;
  const char* role = "";  // "A", "the workspace", ...
};

/// Queues the work of a library on a stream of the current context, or adds it to the graph that
/// the stream captures. All ranges must be memory that the stream's device may use. `run` works on
/// device memory by plain pointers.
EMULATOR_EXPORT CUresult library_call(CUstream stream, const char* name,
                                      const std::vector<LibraryRange>& ranges,
                                      std::function<void()> run);

/// Prints a report. For libraries, which refuse a call with a code of their own.
EMULATOR_EXPORT void library_report(const char* text);

/// The device of the current context, of a stream of it; -1 for none.
EMULATOR_EXPORT int current_device();
EMULATOR_EXPORT int device_of_stream(CUstream stream);

}  // namespace emulator
