// Lets a host compiler build emitted CUDA C++ and run it: the threads of a block are fibers on one
// thread of the host, blocks run one after the other. It proves what a text means, never its speed,
// and knows nothing of memory models: threads that miss a barrier are found because each kernel
// runs in two orders of its threads, and shared arrays of unknown size begin as ones.
//
// Included before the emitted text; the program's main calls shim::serve.
#pragma once

#include <math.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

#include "croton/dtype.h"

#define __global__
#define __device__
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(threads)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __shared__ static

namespace shim {

enum class State { ready, at_barrier, at_warp, at_shuffle, done };

struct Fiber {
  ucontext_t context;
  std::unique_ptr<char[]> stack;
  State state = State::ready;
};

struct Index {
  unsigned x = 0;
  unsigned y = 0;
};

inline Index thread_index, block_index, block_size;
inline std::vector<Fiber> fibers;
inline ucontext_t scheduler;
inline std::vector<std::uint64_t> exchange;  // what each thread offers in a shuffle
inline std::vector<unsigned char> dynamic_shared;
inline void (*entry)(void**, const long long*, long long*);
inline void** entry_buffers;
inline const long long* entry_sizes;
inline long long* entry_error;

[[noreturn]] inline void fail(const char* what) {
  std::fprintf(stderr, "block %u, thread %u: %s\n", block_index.x, thread_index.x, what);
  std::exit(3);
}

/// Of the thread in its block.
inline unsigned thread_number() { return thread_index.y * block_size.x + thread_index.x; }

inline void wait(State state) {
  Fiber& self = fibers[thread_number()];
  self.state = state;
  swapcontext(&self.context, &scheduler);
}

inline void run_fiber() {
  entry(entry_buffers, entry_sizes, entry_error);
  fibers[thread_number()].state = State::done;
}

// Lets the fibers of [first, last) go on if all of them that still run wait for `state`.
inline void release(std::size_t first, std::size_t last, State state) {
  for (std::size_t i = first; i < last; ++i) {
    if (fibers[i].state != state && fibers[i].state != State::done) return;
  }
  for (std::size_t i = first; i < last; ++i) {
    if (fibers[i].state == state) fibers[i].state = State::ready;
  }
}

inline void run_block(bool descending) {
  const unsigned threads = block_size.x * block_size.y;
  constexpr std::size_t kStack = 64 * 1024;
  fibers.resize(threads);
  exchange.assign(threads, 0);
  std::fill(dynamic_shared.begin(), dynamic_shared.end(), 0xff);
  for (Fiber& fiber : fibers) {
    getcontext(&fiber.context);
    if (!fiber.stack) fiber.stack = std::make_unique<char[]>(kStack);
    fiber.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.context.uc_stack.ss_size = kStack;
    fiber.context.uc_link = &scheduler;
    makecontext(&fiber.context, run_fiber, 0);
    fiber.state = State::ready;
  }
  for (bool moved = true; moved;) {
    moved = false;
    for (unsigned i = 0; i < threads; ++i) {
      const unsigned thread = descending ? threads - 1 - i : i;
      thread_index = {thread % block_size.x, thread / block_size.x};
      if (fibers[thread].state != State::ready) continue;
      moved = true;
      swapcontext(&scheduler, &fibers[thread].context);
    }
    for (unsigned warp = 0; warp < threads; warp += 32) {
      release(warp, warp + 32, State::at_shuffle);
      release(warp, warp + 32, State::at_warp);
    }
    release(0, threads, State::at_barrier);
  }
  for (const Fiber& fiber : fibers) {
    if (fiber.state != State::done) fail("threads wait for one another at different places");
  }
}

template <class T>
T shuffle(T value, unsigned from) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "CUDA shuffles 32 and 64 bits");
  const unsigned mine = thread_number();
  std::memcpy(&exchange[mine], &value, sizeof value);
  wait(State::at_shuffle);
  std::memcpy(&value, &exchange[mine / 32 * 32 + from], sizeof value);
  wait(State::at_shuffle);
  return value;
}

template <class T>
T read(std::FILE* file) {
  T value;
  if (std::fread(&value, sizeof value, 1, file) != 1) fail("the input file ends early");
  return value;
}

struct Entry {
  void (*call)(void**, const long long*, long long*);
};

// An argument between guards.
struct Argument {
  static constexpr std::size_t kGuard = 64;
  std::vector<unsigned char> storage;
  std::size_t bytes;
  explicit Argument(std::size_t n) : storage(n + 2 * kGuard, 0xa5), bytes(n) {}
  unsigned char* data() { return storage.data() + kGuard; }
  bool intact() const {
    const auto good = [](unsigned char c) { return c == 0xa5; };
    return std::all_of(storage.begin(), storage.begin() + kGuard, good) &&
           std::all_of(storage.end() - kGuard, storage.end(), good);
  }
};

// Runs the launches of a file, one after the other, and writes their buffers and error words.
// A launch is: entry, blocks, threads of a block, blocks of the kernel in one of the launch, bytes
// of shared memory, count and sizes (with the number of blocks behind them), count and arguments
// (bytes, data), each number an int64.
inline int serve(const Entry* entries, const char* input, const char* output, bool descending) {
  std::FILE* in = std::fopen(input, "rb");
  std::FILE* out = std::fopen(output, "wb");
  if (!in || !out) fail("cannot open the files");
  for (auto launches = read<std::int64_t>(in); launches > 0; --launches) {
    const Entry& kernel = entries[read<std::int64_t>(in)];
    const auto blocks = read<std::int64_t>(in);
    block_size.x = static_cast<unsigned>(read<std::int64_t>(in));
    block_size.y = static_cast<unsigned>(read<std::int64_t>(in));
    dynamic_shared.resize(static_cast<std::size_t>(read<std::int64_t>(in)));
    std::vector<long long> sizes(static_cast<std::size_t>(read<std::int64_t>(in)));
    for (long long& size : sizes) size = read<std::int64_t>(in);
    std::vector<Argument> arguments;
    std::vector<void*> pointers;
    const auto count = read<std::int64_t>(in);
    arguments.reserve(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) {
      arguments.emplace_back(static_cast<std::size_t>(read<std::int64_t>(in)));
      Argument& argument = arguments.back();
      if (std::fread(argument.data(), 1, argument.bytes, in) != argument.bytes) fail("short input");
      pointers.push_back(argument.data());
    }
    long long error[3] = {};
    entry = kernel.call;
    entry_buffers = pointers.data();
    entry_sizes = sizes.data();
    entry_error = error;
    for (std::int64_t b = 0; b * block_size.y < blocks; ++b) {
      block_index.x = static_cast<unsigned>(b);
      run_block(descending);
    }
    for (Argument& argument : arguments) {
      if (!argument.intact()) fail("a kernel wrote outside of its argument");
      std::fwrite(argument.data(), 1, argument.bytes, out);
    }
    std::fwrite(error, sizeof error, 1, out);
  }
  std::fclose(in);
  return std::fclose(out);
}

}  // namespace shim

#define threadIdx shim::thread_index
#define blockIdx shim::block_index
#define blockDim shim::block_size

inline void __syncwarp() { shim::wait(shim::State::at_warp); }
inline void __syncthreads() { shim::wait(shim::State::at_barrier); }
template <class T>
T __shfl_xor_sync(unsigned, T value, int mask) {
  return shim::shuffle(value, (shim::thread_index.x % 32) ^ static_cast<unsigned>(mask));
}
template <class T>
T __shfl_sync(unsigned, T value, int lane) {
  return shim::shuffle(value, static_cast<unsigned>(lane));
}
template <class T>
void __stcs(T* place, T value) {
  *place = value;
}
inline unsigned long long atomicCAS(unsigned long long* place, unsigned long long expected,
                                    unsigned long long value) {
  const auto old = *place;
  if (old == expected) *place = value;
  return old;
}
template <class T>
T atomicAdd(T* place, T value) {
  const T old = *place;
  using Wrapping = std::conditional_t<std::is_same_v<T, int>, unsigned, T>;
  *place = static_cast<T>(static_cast<Wrapping>(old) + static_cast<Wrapping>(value));
  return old;
}
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(static_cast<std::uint64_t>(a) * b >> 32);
}

template <class To, class From>
To bits_as(From value) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &value, sizeof to);
  return to;
}
inline unsigned __float_as_uint(float x) { return bits_as<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return bits_as<float>(x); }
inline long long __double_as_longlong(double x) { return bits_as<long long>(x); }
inline double __longlong_as_double(long long x) { return bits_as<double>(x); }

inline float f32_from_f16(unsigned short x) { return croton::float16::from_bits(x); }
inline unsigned short f16_from_f32(float x) { return croton::float16(x).bits; }
