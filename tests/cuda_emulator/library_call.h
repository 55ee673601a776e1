// What the emulated libraries use of the emulated driver.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <functional>
#include <memory>
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

/// Work of one rank that runs together with that of others. When the work of all has come to the
/// front of its stream, `stage` runs for each, then `run` for each.
class Meeting {
 public:
  virtual ~Meeting() = default;
  /// Adds those that it runs with directly. False while some are not queued, or were given up.
  virtual bool partners(std::vector<std::shared_ptr<Meeting>>& into) = 0;
  virtual void stage() = 0;
  virtual void run() = 0;
  std::weak_ptr<void> node;  // the driver's
};

/// Queues such work. What waits for it waits for its partners.
EMULATOR_EXPORT CUresult library_meet(CUcontext context, CUstream stream, const char* name,
                                      const std::vector<LibraryRange>& ranges,
                                      std::shared_ptr<Meeting> meeting);

/// Prints a report. For libraries, which refuse a call with a code of their own.
EMULATOR_EXPORT void library_report(const char* text);

/// The device of the current context, of a stream of it; -1 for none.
EMULATOR_EXPORT int current_device();
EMULATOR_EXPORT CUcontext current_context_of_thread();
EMULATOR_EXPORT int device_of_stream(CUstream stream);

}  // namespace emulator
