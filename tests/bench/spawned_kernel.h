// The fused elementwise kernel as a C++ programmer would write it, compiled by a spawned g++.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tests/temporary_folder.h"

namespace croton::bench {

class SpawnedKernel {
 public:
  /// Writes the source to a folder of its own and compiles it with `g++ -O3 -march=native -shared`
  /// and `options`. `usable` is false where there is no g++.
  explicit SpawnedKernel(const std::string& options);
  ~SpawnedKernel();
  SpawnedKernel(const SpawnedKernel&) = delete;
  SpawnedKernel& operator=(const SpawnedKernel&) = delete;

  bool usable() const { return kernel_ != nullptr; }
  /// Compiles once more; for timing.
  void compile() const;
  /// tanh(a * b + c) * sigmoid(d) + exp(-a * a) on all threads.
  void run(const float* a, const float* b, const float* c, const float* d, float* out,
           std::int64_t elements) const;

 private:
  using Kernel = void (*)(const float*, const float*, const float*, const float*, float*,
                          std::int64_t, std::int64_t);
  test::TemporaryFolder folder_;
  std::string command_;
  void* library_ = nullptr;
  Kernel kernel_ = nullptr;
};

}  // namespace croton::bench
