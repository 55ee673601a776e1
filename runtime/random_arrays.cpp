#include "croton/random_arrays.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>
#include <random>

#include "croton/error.h"
#include "runtime/array_access.h"
#include "runtime/dtype_dispatch.h"
#include "runtime/philox.h"

namespace croton {
namespace {

std::uint64_t fresh_seed() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

Array new_floats(const Shape& shape, std::optional<DType> dtype, const char* where) {
  const DType t = dtype.value_or(default_float());
  if (!is_float(t)) {
    throw UserError(
        fmt::format("[{}] dtype must be a float: got {}; convert with astype", where, name_of(t)));
  }
  return ArrayAccess::wrap(t, shape, host_block(bytes_of(shape, t, where)));
}

void check_finite(double value, const char* what, const char* where) {
  if (!std::isfinite(value)) {
    throw UserError(fmt::format("[{}] {} must be finite: got {}", where, what, value));
  }
}

template <class T>
T uniform_of(const PhiloxBlock& w, std::size_t i) {
  if constexpr (std::same_as<T, double>) {
    return static_cast<double>(philox_bits53(w[2 * i], w[2 * i + 1])) * 0x1p-53;
  } else if constexpr (std::same_as<T, float>) {
    return static_cast<float>(w[i] >> 8) * 0x1p-24f;
  } else if constexpr (std::same_as<T, float16>) {
    return float16(static_cast<float>(w[i] >> 21) * 0x1p-11f);
  } else {
    return bfloat16(static_cast<float>(w[i] >> 24) * 0x1p-8f);
  }
}

/// The two or four normal numbers of a block, in double.
template <class T>
std::array<double, 4> normals_of(const PhiloxBlock& w) {
  const auto pair = [](double u1, double u2) {
    const double r = std::sqrt(-2 * std::log(u1));
    const double angle = 2 * std::numbers::pi * u2;
    return std::array<double, 2>{r * std::cos(angle), r * std::sin(angle)};
  };
  if constexpr (std::same_as<T, double>) {
    const auto z = pair((static_cast<double>(philox_bits53(w[0], w[1])) + 1) * 0x1p-53,
                        static_cast<double>(philox_bits53(w[2], w[3])) * 0x1p-53);
    return {z[0], z[1], 0, 0};
  } else {
    const auto first = pair(((w[0] >> 8) + 1.0) * 0x1p-24, (w[1] >> 8) * 0x1p-24);
    const auto second = pair(((w[2] >> 8) + 1.0) * 0x1p-24, (w[3] >> 8) * 0x1p-24);
    return {first[0], first[1], second[0], second[1]};
  }
}

/// Calls f(block words, first element, count) for all blocks of an array of T.
template <class T, class F>
void each_block(std::int64_t size, std::uint64_t seed, std::uint64_t stream, F&& f) {
  constexpr std::int64_t kPerBlock = std::same_as<T, double> ? 2 : 4;
  for (std::int64_t e = 0; e < size; e += kPerBlock) {
    f(philox_block(seed, stream, static_cast<std::uint64_t>(e / kPerBlock)), e,
      static_cast<std::size_t>(std::min(kPerBlock, size - e)));
  }
}

}  // namespace

Array random_uniform(const Shape& shape, const UniformOptions& options) {
  constexpr const char* kWhere = "random_uniform";
  check_finite(options.low, "low", kWhere);
  check_finite(options.high, "high", kWhere);
  check_finite(options.high - options.low, "high - low", kWhere);
  if (options.high < options.low) {
    throw UserError(fmt::format("[{}] high must not be below low: got low {}, high {}", kWhere,
                                options.low, options.high));
  }
  Array result = new_floats(shape, options.dtype, kWhere);
  const std::uint64_t seed = options.seed ? *options.seed : fresh_seed();
  with_type(result.dtype(), [&]<class T>() {
    if constexpr (is_float(dtype_of<T>)) {
      using Work = std::conditional_t<std::same_as<T, double>, double, float>;
      T* out = reinterpret_cast<T*>(ArrayAccess::impl(result)->data);
      const bool unit = options.low == 0 && options.high == 1;
      const Work low = static_cast<Work>(options.low);
      const Work range = static_cast<Work>(options.high - options.low);
      each_block<T>(result.size(), seed, options.stream,
                    [&](const PhiloxBlock& w, std::int64_t e, std::size_t n) {
                      for (std::size_t i = 0; i < n; ++i) {
                        const T u = uniform_of<T>(w, i);
                        out[e + static_cast<std::int64_t>(i)] =
                            unit ? u : T(low + static_cast<Work>(u) * range);
                      }
                    });
    }
  });
  return result;
}

Array random_normal(const Shape& shape, const NormalOptions& options) {
  constexpr const char* kWhere = "random_normal";
  check_finite(options.mean, "mean", kWhere);
  check_finite(options.stddev, "stddev", kWhere);
  if (options.stddev < 0) {
    throw UserError(
        fmt::format("[{}] stddev must not be negative: got {}", kWhere, options.stddev));
  }
  Array result = new_floats(shape, options.dtype, kWhere);
  const std::uint64_t seed = options.seed ? *options.seed : fresh_seed();
  with_type(result.dtype(), [&]<class T>() {
    if constexpr (is_float(dtype_of<T>)) {
      T* out = reinterpret_cast<T*>(ArrayAccess::impl(result)->data);
      each_block<T>(result.size(), seed, options.stream,
                    [&](const PhiloxBlock& w, std::int64_t e, std::size_t n) {
                      const std::array<double, 4> z = normals_of<T>(w);
                      for (std::size_t i = 0; i < n; ++i) {
                        out[e + static_cast<std::int64_t>(i)] =
                            T(options.mean + options.stddev * z[i]);
                      }
                    });
    }
  });
  return result;
}

}  // namespace croton
