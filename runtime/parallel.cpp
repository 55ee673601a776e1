#include "runtime/parallel.h"

#include <omp.h>

#include <algorithm>
#include <atomic>

#include "runtime/fork.h"

#if defined(__SANITIZE_THREAD__)
#define CROTON_TSAN 1
extern "C" void __tsan_acquire(void*);
extern "C" void __tsan_release(void*);
#else
#define CROTON_TSAN 0
#endif

// What `#pragma omp parallel` compiles to. Called by name, because in the pragma's form the
// compiler's own loads come before any annotation can tell the thread sanitizer, which does not see
// into the OpenMP runtime, of the order between the threads.
extern "C" void GOMP_parallel(void (*function)(void*), void* data, unsigned threads,
                              unsigned flags);

namespace croton {
namespace {

void acquire([[maybe_unused]] void* address) {
#if CROTON_TSAN
  __tsan_acquire(address);
#endif
}

void release([[maybe_unused]] void* address) {
#if CROTON_TSAN
  __tsan_release(address);
#endif
}

struct Region {
  std::int64_t count;
  std::int64_t chunk;
  void (*body)(void*, std::int64_t, std::int64_t);
  void* data;
  alignas(64) std::atomic<std::int64_t> next{0};
};

void run_region(void* pointer) {
  acquire(pointer);
  Region& region = *static_cast<Region*>(pointer);
  for (;;) {
    const std::int64_t first = region.next.fetch_add(region.chunk, std::memory_order_relaxed);
    if (first >= region.count) break;
    region.body(region.data, first, std::min(first + region.chunk, region.count));
  }
  release(pointer);
}

}  // namespace

namespace detail {

void parallel_for(std::int64_t count, int threads, void (*body)(void*, std::int64_t, std::int64_t),
                  void* data) {
  if (count <= 0) return;
  if (threads <= 1 || count == 1 || omp_in_parallel() || lost_threads()) {
    body(data, 0, count);
    return;
  }
  threads = static_cast<int>(std::min<std::int64_t>(threads, count));
  // A few ranges a thread: enough for late threads, few enough that taking one costs nothing.
  const std::int64_t ranges = std::int64_t{threads} * 8;
  Region region{count, std::max<std::int64_t>((count + ranges - 1) / ranges, 1), body, data};
  note_threads();
  release(&region);
  GOMP_parallel(run_region, &region, static_cast<unsigned>(threads), 0);
  acquire(&region);
}

}  // namespace detail

int available_cores() { return std::max(omp_get_num_procs(), 1); }

LibraryThreads::LibraryThreads(int threads) : before_(omp_get_max_threads()) {
  // The thread sanitizer does not see how libraries order their threads.
  if (lost_threads() || CROTON_TSAN != 0) threads = 1;
  if (threads > 1) note_threads();
  if (threads != before_) omp_set_num_threads(threads);
}

LibraryThreads::~LibraryThreads() {
  if (omp_get_max_threads() != before_) omp_set_num_threads(before_);
}

}  // namespace croton
