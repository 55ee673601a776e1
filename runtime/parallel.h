// The one parallel region of Croton, on the OpenMP runtime that oneDNN and OpenBLAS share.
#pragma once

#include <cstdint>
#include <type_traits>

namespace croton {

namespace detail {
void parallel_for(std::int64_t count, int threads,
                  void (*body)(void* data, std::int64_t first, std::int64_t last), void* data);
}

/// Runs body(first, last) for ranges that cover 0 <= i < count, on up to `threads` threads, the
/// caller's among them. Ranges are handed out as threads come to take them, so a thread that is
/// late takes none. `body` must not throw. In the child of a fork, and inside another region,
/// everything runs on the caller's thread.
template <class Body>
void parallel_for(std::int64_t count, int threads, Body&& body) {
  using Plain = std::remove_reference_t<Body>;
  detail::parallel_for(
      count, threads,
      [](void* data, std::int64_t first, std::int64_t last) {
        (*static_cast<Plain*>(data))(first, last);
      },
      const_cast<void*>(static_cast<const void*>(&body)));
}

/// Cores that this process may run on.
int available_cores();

/// Sets how many threads OpenMP regions started by the calling thread have, while it lives: what
/// oneDNN and OpenBLAS use. Other threads are not concerned.
class LibraryThreads {
 public:
  explicit LibraryThreads(int threads);
  ~LibraryThreads();
  LibraryThreads(const LibraryThreads&) = delete;
  LibraryThreads& operator=(const LibraryThreads&) = delete;

 private:
  int before_;
};

}  // namespace croton
