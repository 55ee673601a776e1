#include "compiler/kernel/evaluate.h"

#include <bit>
#include <cmath>
#include <concepts>
#include <cstring>
#include <limits>
#include <type_traits>

namespace croton::kernel {
namespace {

template <class T>
T read(std::uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

template <class T>
std::uint64_t write(T value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}

// Calls f with a value of the C++ type of a dtype that has arithmetic; false for storage types.
template <class F>
bool with_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::boolean:
      f(bool{});
      return true;
    case DType::int8:
      f(std::int8_t{});
      return true;
    case DType::int16:
      f(std::int16_t{});
      return true;
    case DType::int32:
      f(std::int32_t{});
      return true;
    case DType::int64:
      f(std::int64_t{});
      return true;
    case DType::uint8:
      f(std::uint8_t{});
      return true;
    case DType::uint16:
      f(std::uint16_t{});
      return true;
    case DType::uint32:
      f(std::uint32_t{});
      return true;
    case DType::uint64:
      f(std::uint64_t{});
      return true;
    case DType::float32:
      f(float{});
      return true;
    case DType::float64:
      f(double{});
      return true;
    case DType::float16:
    case DType::bfloat16:
      return false;
  }
  return false;
}

template <std::floating_point T>
std::optional<T> unary(Unary op, T x) {
  switch (op) {
    case Unary::neg:
      return -x;
    case Unary::abs:
      return std::fabs(x);
    case Unary::sqrt:
      return std::sqrt(x);
    case Unary::floor:
      return std::floor(x);
    case Unary::ceil:
      return std::ceil(x);
    case Unary::trunc:
      return std::trunc(x);
    case Unary::round:
      return std::nearbyint(x);
    case Unary::logical_not:
    case Unary::any_lane:
      return {};
  }
  return {};
}

template <std::integral T>
std::optional<T> unary(Unary op, T x) {
  if constexpr (std::same_as<T, bool>) {
    if (op == Unary::logical_not) return !x;
    if (op == Unary::any_lane) return x;
    return {};
  } else {
    if (op == Unary::neg) return static_cast<T>(std::uint64_t{0} - static_cast<std::uint64_t>(x));
    if (op == Unary::abs) return x < 0 ? *unary(Unary::neg, x) : x;
    return {};
  }
}

template <class T>
std::optional<bool> compare(Binary op, T a, T b) {
  switch (op) {
    case Binary::eq:
      return a == b;
    case Binary::ne:
      return a != b;
    case Binary::lt:
      return a < b;
    case Binary::le:
      return a <= b;
    default:
      return {};
  }
}

template <std::floating_point T>
std::optional<T> binary(Binary op, T a, T b) {
  switch (op) {
    case Binary::add:
      return a + b;
    case Binary::sub:
      return a - b;
    case Binary::mul:
      return a * b;
    case Binary::div:
      return a / b;
    case Binary::rem:
      return std::fmod(a, b);
    case Binary::min:
      return a != a || a < b ? a : b;
    case Binary::max:
      return a != a || b < a ? a : b;
    default:
      return {};
  }
}

template <std::integral T>
std::optional<T> shift(Binary op, T a, T b) {
  constexpr int kBits = 8 * sizeof(T);
  if (b < 0 || static_cast<std::uint64_t>(b) >= kBits) {
    return op == Binary::shr && a < 0 ? static_cast<T>(-1) : T{0};
  }
  if (op == Binary::shr) return static_cast<T>(a >> b);
  return static_cast<T>(static_cast<std::uint64_t>(a) << b);
}

template <std::integral T>
std::optional<T> divide(Binary op, T a, T b) {
  if (b == 0) return T{0};
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return op == Binary::div ? *unary(Unary::neg, a) : T{0};
  }
  return static_cast<T>(op == Binary::div ? a / b : a % b);
}

template <std::integral T>
std::optional<T> binary(Binary op, T a, T b) {
  const auto ua = static_cast<std::uint64_t>(a);
  const auto ub = static_cast<std::uint64_t>(b);
  switch (op) {
    case Binary::bit_and:
      return static_cast<T>(a & b);
    case Binary::bit_or:
      return static_cast<T>(a | b);
    case Binary::bit_xor:
      return static_cast<T>(a ^ b);
    default:
      break;
  }
  if constexpr (!std::same_as<T, bool>) {
    switch (op) {
      case Binary::add:
        return static_cast<T>(ua + ub);
      case Binary::sub:
        return static_cast<T>(ua - ub);
      case Binary::mul:
        return static_cast<T>(ua * ub);
      case Binary::div:
      case Binary::rem:
        return divide(op, a, b);
      case Binary::min:
        return b < a ? b : a;
      case Binary::max:
        return a < b ? b : a;
      case Binary::shl:
      case Binary::shr:
        return shift(op, a, b);
      case Binary::mul_hi:
        if constexpr (std::same_as<T, std::uint32_t>) return static_cast<T>((ua * ub) >> 32);
        return {};
      default:
        return {};
    }
  }
  return {};
}

template <class To, class From>
To convert(From x) {
  if constexpr (std::same_as<To, bool>) {
    return x != From{0};
  } else if constexpr (std::floating_point<From> && std::integral<To>) {
    if (x != x) return 0;
    // Both limits as From: the upper one may round up to a power of two, which is out of range.
    if (x <= static_cast<From>(std::numeric_limits<To>::min())) {
      return std::numeric_limits<To>::min();
    }
    if (x >= static_cast<From>(std::numeric_limits<To>::max())) {
      return std::numeric_limits<To>::max();
    }
    return static_cast<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

template <class From>
std::uint64_t cast_from(From x, DType to) {
  if (to == DType::float16) return float16(x).bits;
  if (to == DType::bfloat16) return bfloat16(x).bits;
  std::uint64_t result = 0;
  with_type(to, [&](auto t) { result = write(convert<decltype(t)>(x)); });
  return result;
}

std::uint64_t cast(DType from, std::uint64_t bits, DType to) {
  if (from == to) return bits;
  if (from == DType::float16) {
    return cast_from(static_cast<float>(float16::from_bits(static_cast<std::uint16_t>(bits))), to);
  }
  if (from == DType::bfloat16) {
    return cast_from(static_cast<float>(bfloat16::from_bits(static_cast<std::uint16_t>(bits))), to);
  }
  std::uint64_t result = 0;
  with_type(from, [&](auto t) { result = cast_from(read<decltype(t)>(bits), to); });
  return result;
}

template <class T>
std::optional<std::uint64_t> arithmetic(const Node& node, const std::uint64_t (&bits)[3]) {
  const T a = read<T>(bits[0]);
  const T b = read<T>(bits[1]);
  if (node.op == Op::unary) {
    if (const auto r = unary(static_cast<Unary>(node.sub), a)) return write(*r);
  } else if (node.op == Op::binary) {
    const auto op = static_cast<Binary>(node.sub);
    if (const auto r = compare(op, a, b)) return write(*r);
    if (const auto r = binary(op, a, b)) return write(*r);
  } else if constexpr (std::floating_point<T>) {
    return write(std::fma(a, b, read<T>(bits[2])));
  }
  return {};
}

}  // namespace

std::uint64_t bits_of(DType dtype, double value) { return cast_from(value, dtype); }

std::uint64_t bits_of_integer(DType dtype, std::int64_t value) { return cast_from(value, dtype); }

double as_double(DType dtype, std::uint64_t bits) {
  return read<double>(cast(dtype, bits, DType::float64));
}

std::int64_t as_integer(DType dtype, std::uint64_t bits) {
  return read<std::int64_t>(cast(dtype, bits, DType::int64));
}

std::optional<std::uint64_t> evaluate(const Node& node, DType operand,
                                      const std::uint64_t (&bits)[3]) {
  switch (node.op) {
    case Op::select:
      return bits[0] ? bits[1] : bits[2];
    case Op::bitcast:
      return bits[0];
    case Op::cast:
      return cast(operand, bits[0], node.dtype);
    case Op::unary:
    case Op::binary:
    case Op::fma: {
      std::optional<std::uint64_t> result;
      with_type(operand, [&](auto t) { result = arithmetic<decltype(t)>(node, bits); });
      return result;
    }
    default:
      return {};
  }
}

}  // namespace croton::kernel
