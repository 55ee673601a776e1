#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

#include "croton/export.h"

namespace croton {

/// The types that elements can have. `boolean` prints as "bool".
enum class DType : std::uint8_t {
  boolean,
  int8,
  int16,
  int32,
  int64,
  uint8,
  uint16,
  uint32,
  uint64,
  float16,
  bfloat16,
  float32,
  float64,
};

inline constexpr int kDTypeCount = 13;

/// Any integer type of C++ except bool and the character types.
template <class T>
concept Integer = std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, char> &&
                  !std::same_as<T, wchar_t> && !std::same_as<T, char8_t> &&
                  !std::same_as<T, char16_t> && !std::same_as<T, char32_t>;

/// What a number written in a program can be.
template <class T>
concept Literal = Integer<T> || std::same_as<T, bool> || std::floating_point<T>;

/// Bytes of one element.
constexpr std::size_t size_of(DType t) {
  switch (t) {
    case DType::boolean:
    case DType::int8:
    case DType::uint8:
      return 1;
    case DType::int16:
    case DType::uint16:
    case DType::float16:
    case DType::bfloat16:
      return 2;
    case DType::int32:
    case DType::uint32:
    case DType::float32:
      return 4;
    case DType::int64:
    case DType::uint64:
    case DType::float64:
      return 8;
  }
  return 0;
}

/// The name as users write and read it: "bool", "int8", ..., "float64".
constexpr std::string_view name_of(DType t) {
  switch (t) {
    case DType::boolean:
      return "bool";
    case DType::int8:
      return "int8";
    case DType::int16:
      return "int16";
    case DType::int32:
      return "int32";
    case DType::int64:
      return "int64";
    case DType::uint8:
      return "uint8";
    case DType::uint16:
      return "uint16";
    case DType::uint32:
      return "uint32";
    case DType::uint64:
      return "uint64";
    case DType::float16:
      return "float16";
    case DType::bfloat16:
      return "bfloat16";
    case DType::float32:
      return "float32";
    case DType::float64:
      return "float64";
  }
  return "?";
}

/// The dtype of that name (as `name_of` gives it, also "boolean"); a UserError lists the names.
CROTON_API DType dtype_from_name(std::string_view name);

constexpr bool is_bool(DType t) { return t == DType::boolean; }
/// float16, bfloat16, float32 or float64.
constexpr bool is_float(DType t) { return t >= DType::float16; }
/// A signed or unsigned integer; not bool.
constexpr bool is_integer(DType t) { return t >= DType::int8 && t <= DType::uint64; }
constexpr bool is_unsigned(DType t) { return t >= DType::uint8 && t <= DType::uint64; }
/// Can hold negative values: signed integers and floats.
constexpr bool is_signed(DType t) { return is_float(t) || (is_integer(t) && !is_unsigned(t)); }

/// The dtype of an operation on `a` and `b`. An integer never widens a float (int64 with float32
/// is float32); otherwise NumPy's table; float16 with bfloat16 is float32. With `numpy_policy`
/// NumPy's table throughout (int32 with float32 is float64).
CROTON_API DType promote(DType a, DType b, bool numpy_policy = false);

/// IEEE half precision. Converts to float exactly, from float and double by rounding to nearest
/// even.
struct float16 {
  std::uint16_t bits = 0;

  constexpr float16() = default;
  template <Literal T>
  constexpr float16(T value);
  constexpr operator float() const;

  static constexpr float16 from_bits(std::uint16_t bits) {
    float16 h;
    h.bits = bits;
    return h;
  }
};

/// The upper half of a float32. Converts to float exactly, from float and double by rounding to
/// nearest even.
struct bfloat16 {
  std::uint16_t bits = 0;

  constexpr bfloat16() = default;
  template <Literal T>
  constexpr bfloat16(T value);
  constexpr operator float() const {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }

  static constexpr bfloat16 from_bits(std::uint16_t bits) {
    bfloat16 b;
    b.bits = bits;
    return b;
  }
};

namespace detail {

/// `value` as float, rounded to odd: a second rounding to fewer digits is then as good as one.
constexpr float round_to_odd(double value) {
  const float f = static_cast<float>(value);
  if (static_cast<double>(f) == value || value != value) return f;
  std::uint32_t bits = std::bit_cast<std::uint32_t>(f);
  const bool away = (static_cast<double>(f) > value) == (value > 0);
  if (away) bits -= 1;  // towards zero; infinity becomes the largest finite float
  return std::bit_cast<float>(bits | 1u);
}

constexpr std::uint16_t float16_bits(float value) {
  const std::uint32_t f = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (f >> 16) & 0x8000u;
  const std::uint32_t magnitude = f & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {  // NaN keeps its upper payload and becomes quiet
    return static_cast<std::uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  }
  if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);
  if (magnitude >= 0x38800000u) {  // normal
    const std::uint32_t even = (magnitude >> 13) & 1u;
    return static_cast<std::uint16_t>(sign | ((magnitude - 0x38000000u + 0xfffu + even) >> 13));
  }
  if (magnitude < 0x33000000u) return static_cast<std::uint16_t>(sign);
  const std::uint32_t shift = 126u - (magnitude >> 23);  // subnormal: 14 ... 24
  const std::uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
  const std::uint32_t rest = mantissa & ((1u << shift) - 1u);
  const std::uint32_t half = 1u << (shift - 1u);
  std::uint32_t bits = mantissa >> shift;
  if (rest > half || (rest == half && (bits & 1u))) ++bits;
  return static_cast<std::uint16_t>(sign | bits);
}

constexpr float float16_value(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1fu;
  const std::uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 0x1fu) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent != 0) {
    return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (mantissa << 13));
  }
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
  return sign ? -magnitude : magnitude;
}

constexpr std::uint16_t bfloat16_bits(float value) {
  const std::uint32_t f = std::bit_cast<std::uint32_t>(value);
  if ((f & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((f >> 16) | 0x40u);
  return static_cast<std::uint16_t>((f + 0x7fffu + ((f >> 16) & 1u)) >> 16);
}

/// Any literal as a float that later roundings treat like the literal itself.
template <Literal T>
constexpr float odd_float(T value) {
  if constexpr (std::same_as<T, float> || std::same_as<T, bool>) {
    return static_cast<float>(value);
  } else if constexpr (std::floating_point<T>) {
    return round_to_odd(static_cast<double>(value));
  } else {
    // Integers beyond 2^53 round twice only above float16's range, and for bfloat16 the sticky
    // bit keeps what the first rounding dropped.
    constexpr int kDrop = 11;
    if constexpr (sizeof(T) < 8) {
      return round_to_odd(static_cast<double>(value));
    } else {
      const bool negative = value < 0;
      std::uint64_t m = static_cast<std::uint64_t>(value);
      if (negative) m = 0u - m;
      if (m >> 53) m = ((m >> kDrop) | ((m & ((1u << kDrop) - 1u)) != 0)) << kDrop;
      const float f = round_to_odd(static_cast<double>(m));
      return negative ? -f : f;
    }
  }
}

}  // namespace detail

template <Literal T>
constexpr float16::float16(T value) : bits(detail::float16_bits(detail::odd_float(value))) {}
constexpr float16::operator float() const { return detail::float16_value(bits); }
template <Literal T>
constexpr bfloat16::bfloat16(T value) : bits(detail::bfloat16_bits(detail::odd_float(value))) {}

/// Any C++ type that is the element type of a dtype.
template <class T>
concept Element = Integer<T> || std::same_as<T, bool> || std::same_as<T, float> ||
    std::same_as<T, double> || std::same_as<T, float16> || std::same_as<T, bfloat16>;

namespace detail {
template <Element T>
constexpr DType dtype_of() {
  if constexpr (std::same_as<T, bool>)
    return DType::boolean;
  else if constexpr (std::same_as<T, float16>)
    return DType::float16;
  else if constexpr (std::same_as<T, bfloat16>)
    return DType::bfloat16;
  else if constexpr (std::same_as<T, float>)
    return DType::float32;
  else if constexpr (std::same_as<T, double>)
    return DType::float64;
  else if constexpr (std::is_signed_v<T>) {
    return sizeof(T) == 1   ? DType::int8
           : sizeof(T) == 2 ? DType::int16
           : sizeof(T) == 4 ? DType::int32
                            : DType::int64;
  } else {
    return sizeof(T) == 1   ? DType::uint8
           : sizeof(T) == 2 ? DType::uint16
           : sizeof(T) == 4 ? DType::uint32
                            : DType::uint64;
  }
}
}  // namespace detail

/// The dtype of a C++ type: dtype_of<float> is DType::float32.
template <Element T>
inline constexpr DType dtype_of = detail::dtype_of<T>();

/// A number written in the program, kept exactly. `kind` is boolean, int64, uint64 (only for values
/// beyond int64) or float64.
struct LiteralValue {
  DType kind = DType::int64;
  std::int64_t integer = 0;  // the value of boolean and int64; the bits of uint64
  double real = 0;           // the value of every kind as double

  constexpr LiteralValue() = default;
  template <Literal T>
  constexpr LiteralValue(T value) : real(static_cast<double>(value)) {
    if constexpr (std::same_as<T, bool>) {
      kind = DType::boolean;
      integer = value;
    } else if constexpr (std::floating_point<T>) {
      kind = DType::float64;
    } else {
      integer = static_cast<std::int64_t>(value);
      if constexpr (std::is_unsigned_v<T>) {
        if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
          kind = DType::uint64;
        }
      }
    }
  }
};

/// What floatX is now: the dtype of arrays made from floating literals and of `zeros` without a
/// dtype. float32 unless a source is set.
CROTON_API DType default_float();

/// Sets where `default_float` asks; whoever owns the flag floatX calls this once. Null: float32.
CROTON_API void set_default_float_source(DType (*source)());

}  // namespace croton
