#include "tests/bench/limits.h"

#include <omp.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <type_traits>

#ifdef __AVX__
#include <immintrin.h>
#endif

namespace croton::bench {
namespace {

#ifdef __AVX512F__
constexpr int kBytes = 64;
#else
constexpr int kBytes = 32;
#endif
using Floats [[gnu::vector_size(kBytes)]] = float;
using Doubles [[gnu::vector_size(kBytes)]] = double;
constexpr std::size_t kFloats = kBytes / sizeof(float);
constexpr std::size_t kChunk = std::size_t{1} << 20;

template <bool non_temporal>
void put(float* to, Floats x) {
#if defined(__AVX512F__)
  if constexpr (non_temporal) return _mm512_stream_ps(to, reinterpret_cast<__m512>(x));
#elif defined(__AVX__)
  if constexpr (non_temporal) return _mm256_stream_ps(to, reinterpret_cast<__m256>(x));
#endif
  *reinterpret_cast<Floats*>(to) = x;
}

Floats get(const float* from) { return *reinterpret_cast<const Floats*>(from); }

/// Calls sweep(first, last) for chunks of the elements; returns when all is in memory.
template <class Sweep>
void in_chunks(std::size_t elements, int threads, Sweep&& sweep) {
  const auto chunks = static_cast<std::int64_t>((elements + kChunk - 1) / kChunk);
#pragma omp parallel num_threads(threads)
  {
#pragma omp for schedule(dynamic, 1)
    for (std::int64_t i = 0; i < chunks; ++i) {
      const std::size_t first = static_cast<std::size_t>(i) * kChunk;
      sweep(first, std::min(first + kChunk, elements));
    }
#ifdef __AVX__
    _mm_sfence();
#endif
  }
}

template <bool non_temporal>
void copy_all(const float* from, float* to, std::size_t elements, int threads) {
  in_chunks(elements, threads, [=](std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; i += 4 * kFloats) {
      for (std::size_t k = 0; k < 4; ++k) {
        put<non_temporal>(to + i + k * kFloats, get(from + i + k * kFloats));
      }
    }
  });
}

template <bool non_temporal>
void triad_all(const float* b, const float* c, float* a, std::size_t elements, int threads) {
  in_chunks(elements, threads, [=](std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; i += 4 * kFloats) {
      for (std::size_t k = 0; k < 4; ++k) {
        const std::size_t at = i + k * kFloats;
        put<non_temporal>(a + at, get(b + at) + 0.5f * get(c + at));
      }
    }
  });
}

constexpr int kChains = 12;
constexpr int kSteps = 400000;

template <class Vector>
double fma_chains() {
  using Element = std::remove_cvref_t<decltype(Vector{}[0])>;
  const Vector scale = Vector{} + static_cast<Element>(0.999);
  Vector x[kChains];
#pragma GCC unroll 12
  for (int i = 0; i < kChains; ++i) x[i] = Vector{} + static_cast<Element>(i);
  for (int step = 0; step < kSteps; ++step) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) x[i] = x[i] * scale + scale;
  }
  Vector sum = x[0];
#pragma GCC unroll 12
  for (int i = 1; i < kChains; ++i) sum += x[i];
  return static_cast<double>(sum[0]);
}

}  // namespace

void Streams::Free::operator()(float* p) const { std::free(p); }

Streams::Block Streams::make(std::size_t elements, float value) {
  constexpr std::size_t kHuge = std::size_t{2} << 20;
  const std::size_t bytes = (elements * sizeof(float) + kHuge - 1) / kHuge * kHuge;
  auto* p = static_cast<float*>(std::aligned_alloc(kHuge, bytes));
  if (p == nullptr) throw std::bad_alloc();
  madvise(p, bytes, MADV_HUGEPAGE);
  std::fill_n(p, elements, value);
  return Block(p);
}

Streams::Streams(std::size_t elements)
    : elements_(elements / kChunk * kChunk),
      bytes_(static_cast<double>(elements_ * sizeof(float))),
      a_(make(elements_, 0.0f)),
      b_(make(elements_, 1.0f)),
      c_(make(elements_, 2.0f)) {}

void Streams::read(int threads) {
  const float* const from = b_.get();
  float total = 0;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads) reduction(+ : total)
  for (std::int64_t chunk = 0; chunk < static_cast<std::int64_t>(elements_ / kChunk); ++chunk) {
    const float* const p = from + static_cast<std::size_t>(chunk) * kChunk;
    Floats sums[8] = {};
    for (std::size_t i = 0; i < kChunk; i += 8 * kFloats) {
      for (std::size_t k = 0; k < 8; ++k) sums[k] += get(p + i + k * kFloats);
    }
    for (const Floats& s : sums) total += s[0];
  }
  sink_ = total;
}

void Streams::copy(int threads, bool non_temporal) {
  (non_temporal ? copy_all<true> : copy_all<false>)(b_.get(), a_.get(), elements_, threads);
}

void Streams::triad(int threads, bool non_temporal) {
  (non_temporal ? triad_all<true> : triad_all<false>)(b_.get(), c_.get(), a_.get(), elements_,
                                                      threads);
}

double fma_run(int threads, bool doubles) {
  double total = 0;
#pragma omp parallel num_threads(threads) reduction(+ : total)
  total += doubles ? fma_chains<Doubles>() : fma_chains<Floats>();
  [[maybe_unused]] static volatile double sink;
  sink = total;
  const double lanes = kBytes / (doubles ? 8.0 : 4.0);
  return 2.0 * lanes * kChains * kSteps * threads;
}

int all_threads() { return std::max(omp_get_max_threads(), 1); }

}  // namespace croton::bench
