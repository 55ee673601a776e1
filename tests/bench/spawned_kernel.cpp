#include "tests/bench/spawned_kernel.h"

#include <dlfcn.h>

#include <cstdlib>

#include "tests/bench/limits.h"

namespace croton::bench {
namespace {

constexpr const char* kSource = R"(#include <cmath>
extern "C" void kernel(const float* __restrict a, const float* __restrict b,
                       const float* __restrict c, const float* __restrict d,
                       float* __restrict out, long first, long last) {
  for (long i = first; i < last; ++i) {
    out[i] = std::tanh(a[i] * b[i] + c[i]) * (1.0f / (1.0f + std::exp(-d[i]))) +
             std::exp(-a[i] * a[i]);
  }
}
)";

}  // namespace

SpawnedKernel::SpawnedKernel(const std::string& options) {
  const std::string library = folder_ / "kernel.so";
  command_ = "g++ -O3 -march=native -shared -fPIC " + options + " -o " + library + " " +
             folder_.write("kernel.cpp", kSource) + " 2>/dev/null";
  if (std::system(command_.c_str()) != 0) return;
  library_ = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library_ != nullptr) kernel_ = reinterpret_cast<Kernel>(dlsym(library_, "kernel"));
}

SpawnedKernel::~SpawnedKernel() {
  if (library_ != nullptr) dlclose(library_);
}

void SpawnedKernel::compile() const {
  if (std::system(command_.c_str()) != 0) std::abort();
}

void SpawnedKernel::run(const float* a, const float* b, const float* c, const float* d, float* out,
                        std::int64_t elements) const {
  constexpr std::int64_t kChunk = 1 << 14;
#pragma omp parallel for schedule(dynamic, 1) num_threads(all_threads())
  for (std::int64_t chunk = 0; chunk < (elements + kChunk - 1) / kChunk; ++chunk) {
    kernel_(a, b, c, d, out, chunk * kChunk, std::min((chunk + 1) * kChunk, elements));
  }
}

}  // namespace croton::bench
