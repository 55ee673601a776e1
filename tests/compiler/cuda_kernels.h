// Kernels that cover the kernel language, with data to run them on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "compiler/kernel/builder.h"
#include "compiler/kernel/kernel.h"

namespace croton::test {

using Bytes = std::vector<std::byte>;

/// One launch of a kernel: an argument for each buffer, as it is before.
struct Launch {
  std::int64_t blocks = 1;
  std::vector<std::int64_t> sizes;
  std::vector<Bytes> buffers;
  int threads = 0;  ///< of an elastic kernel
  int packed = 1;   ///< blocks of the kernel in one of the launch
};

struct KernelCase {
  std::string label;
  kernel::Kernel kernel;
  std::vector<Launch> launches;
  /// Whether any two right machines give the same bits: NaNs apart, everything but libm.
  bool exact = true;
};

/// Every operation on every dtype that has it.
std::vector<KernelCase> arithmetic_cases();

/// Folds over lanes and in loops, masks, gathers, strides, block-local arrays, nested loops,
/// checks.
std::vector<KernelCase> structure_cases();

/// The ways in which lanes are dealt out to threads, and additions in any order.
std::vector<KernelCase> layout_cases();

/// The mathematical functions and random words of kernel/math.h.
std::vector<KernelCase> math_cases();

template <class T>
Bytes bytes_of(const std::vector<T>& values) {
  Bytes bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

template <class T>
std::vector<T> values_of(const Bytes& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

/// Numbers at which operations on a dtype go wrong, as bits; the same count for every dtype.
std::vector<std::uint64_t> edge_values(DType dtype);

/// An array of `dtype` from the bits of its elements.
Bytes packed(DType dtype, const std::vector<std::uint64_t>& bits);

/// `count` elements of `dtype` in which every bit is set: what nobody wrote stays visible.
Bytes untouched(DType dtype, std::size_t count);

}  // namespace croton::test
