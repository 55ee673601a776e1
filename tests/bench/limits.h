// What this machine can do at best, in plain code compiled for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace croton::bench {

/// Three arrays larger than any cache, and sweeps over them by chunks that threads take in turn.
class Streams {
 public:
  /// `elements` of each array.
  explicit Streams(std::size_t elements);

  void read(int threads);
  void copy(int threads, bool non_temporal);
  void triad(int threads, bool non_temporal);

  double read_bytes() const { return bytes_; }
  double copy_bytes() const { return 2 * bytes_; }
  double triad_bytes() const { return 3 * bytes_; }

 private:
  struct Free {
    void operator()(float* p) const;
  };
  using Block = std::unique_ptr<float[], Free>;
  static Block make(std::size_t elements, float value);

  std::size_t elements_;
  double bytes_;
  Block a_, b_, c_;
  volatile float sink_ = 0;
};

/// Fused multiply-adds in registers alone, on each of `threads` threads; gives operations a run.
double fma_run(int threads, bool doubles);

/// Threads that croton uses here.
int all_threads();

}  // namespace croton::bench
