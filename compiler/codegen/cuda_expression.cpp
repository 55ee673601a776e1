#include "compiler/codegen/cuda_expression.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "croton/error.h"

namespace croton::codegen {
namespace {

using kernel::Binary;
using kernel::Fold;
using kernel::Unary;

int bits_of(DType dtype) { return 8 * static_cast<int>(size_of(dtype)); }

// The unsigned type in which arithmetic on an integer dtype wraps.
std::string_view wrapping(DType dtype) { return size_of(dtype) == 8 ? "u64" : "u32"; }

std::int64_t sign_extended(DType dtype, std::uint64_t bits) {
  const int shift = 64 - bits_of(dtype);
  return static_cast<std::int64_t>(bits << shift) >> shift;
}

// Decimal digits where a few give this very double, so that a compiler that reads them as double
// first does not round twice; else hexadecimal ones.
std::string digits(double value) {
  std::string text = fmt::format("{}", value);
  if (text.size() > 10) return fmt::format("{:a}", value);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

std::string float_literal(std::uint64_t bits) {
  const float value = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  if (!std::isfinite(value)) return fmt::format("__uint_as_float({:#010x}u)", bits);
  return digits(value) + "f";
}

std::string double_literal(std::uint64_t bits) {
  const double value = std::bit_cast<double>(bits);
  if (!std::isfinite(value)) return fmt::format("__longlong_as_double({:#018x}ll)", bits);
  return digits(value);
}

std::string signed_literal(DType dtype, std::int64_t value) {
  if (dtype == DType::int64) {
    return value == INT64_MIN ? "(-9223372036854775807ll - 1)" : fmt::format("{}ll", value);
  }
  if (dtype == DType::int32) {
    return value == INT32_MIN ? "(-2147483647 - 1)" : fmt::format("{}", value);
  }
  return fmt::format("({}){}", cuda_type(dtype), value);
}

// a op b for integers, wrapping. Below 32 bits too, where int would do but for uint16 * uint16.
std::string wrapped(DType dtype, std::string_view a, std::string_view op, std::string_view b) {
  const auto type = cuda_type(dtype), wide = wrapping(dtype);
  if (type == wide) return fmt::format("{} {} {}", a, op, b);
  return fmt::format("({0})(({1}){2} {3} ({1}){4})", type, wide, a, op, b);
}

std::string divided(Prelude& prelude, Binary op, DType dtype, std::string_view a,
                    std::string_view b, const std::uint64_t* constant) {
  const bool division = op == Binary::div;
  if (is_float(dtype)) {
    if (division) return fmt::format("{} / {}", a, b);
    return fmt::format("{}({}, {})", dtype == DType::float32 ? "fmodf" : "fmod", a, b);
  }
  const bool plain =
      constant && *constant != 0 && (is_unsigned(dtype) || sign_extended(dtype, *constant) != -1);
  if (plain) return fmt::format("({})({} {} {})", cuda_type(dtype), a, division ? "/" : "%", b);
  const std::string_view name = is_unsigned(dtype) ? (division ? "div_uint" : "rem_uint")
                                                   : (division ? "div_int" : "rem_int");
  return fmt::format("{}({}, {})", prelude.use(name), a, b);
}

std::string extremum(Prelude& prelude, Binary op, DType dtype, std::string_view a,
                     std::string_view b) {
  const bool smaller = op == Binary::min;
  if (is_float(dtype)) {
    return fmt::format("{}({}, {})", prelude.use(smaller ? "min_nan" : "max_nan"), a, b);
  }
  return fmt::format("{} {} {} ? {} : {}", b, smaller ? "<" : ">", a, b, a);
}

std::string shifted(Prelude& prelude, Binary op, DType dtype, std::string_view a,
                    std::string_view b, const std::uint64_t* constant) {
  const bool left = op == Binary::shl;
  if (constant && *constant < static_cast<std::uint64_t>(bits_of(dtype))) {
    if (!left) return fmt::format("({})({} >> {})", cuda_type(dtype), a, *constant);
    return fmt::format("({})(({}){} << {})", cuda_type(dtype), wrapping(dtype), a, *constant);
  }
  const std::string_view name = left                 ? "shift_left"
                                : is_unsigned(dtype) ? "shift_right_uint"
                                                     : "shift_right_int";
  return fmt::format("{}({}, {})", prelude.use(name), a, b);
}

std::string to_bfloat16(Prelude& prelude, DType from, std::string_view x) {
  const auto narrow = prelude.use("bf16_from_f32");
  if (from == DType::float32) return fmt::format("{}({})", narrow, x);
  if (from == DType::float64)
    return fmt::format("{}({}({}))", narrow, prelude.use("odd_from_f64"), x);
  if (size_of(from) >= 4) {
    const auto odd = prelude.use(is_unsigned(from) ? "odd_from_uint" : "odd_from_int");
    return fmt::format("{}({}({}))", narrow, odd, x);
  }
  return fmt::format("{}((f32){})", narrow, x);
}

// Integers that float32 rounds are beyond the range of float16, so two roundings are one.
std::string to_float16(Prelude& prelude, DType from, std::string_view x) {
  const auto narrow = prelude.use("f16_from_f32");
  if (from == DType::float32) return fmt::format("{}({})", narrow, x);
  if (from == DType::float64)
    return fmt::format("{}({}({}))", narrow, prelude.use("odd_from_f64"), x);
  return fmt::format("{}((f32){})", narrow, x);
}

std::string saturated(Prelude& prelude, DType to, std::string_view x) {
  const int bits = bits_of(to);
  const std::uint64_t all = ~std::uint64_t{0} >> (64 - bits);
  const std::uint64_t top = std::uint64_t{1} << (bits - 1);
  const std::uint64_t low = is_unsigned(to) ? 0 : top;
  const std::uint64_t high = is_unsigned(to) ? all : all ^ top;
  return fmt::format("{}({}, {}, {})", prelude.use("saturate"), x, cuda_literal(to, low),
                     cuda_literal(to, high));
}

// The bits of the smallest or largest value of a dtype that folds.
std::uint64_t limit(DType dtype, bool largest) {
  if (dtype == DType::float32) return largest ? 0x7f800000u : 0xff800000u;
  if (dtype == DType::float64) return largest ? 0x7ff0000000000000u : 0xfff0000000000000u;
  if (dtype == DType::boolean) return largest;
  const std::uint64_t all = ~std::uint64_t{0} >> (64 - bits_of(dtype));
  const std::uint64_t top = std::uint64_t{1} << (bits_of(dtype) - 1);
  if (is_unsigned(dtype)) return largest ? all : 0;
  return largest ? all ^ top : top;
}

}  // namespace

std::string cuda_literal(DType dtype, std::uint64_t bits) {
  std::string text;
  switch (dtype) {
    case DType::boolean:
      return bits ? "true" : "false";
    case DType::int8:
    case DType::int16:
    case DType::int32:
    case DType::int64:
      text = signed_literal(dtype, sign_extended(dtype, bits));
      break;
    case DType::uint8:
    case DType::uint16:
      text = fmt::format("({}){}", cuda_type(dtype), bits);
      break;
    case DType::uint32:
      return fmt::format("{}u", bits);
    case DType::uint64:
      return fmt::format("{}ull", bits);
    case DType::float16:
    case DType::bfloat16:
      text = fmt::format("({}){:#x}", cuda_type(dtype), bits);
      break;
    case DType::float32:
      text = float_literal(bits);
      break;
    case DType::float64:
      text = double_literal(bits);
      break;
  }
  const bool bare = text.front() != '-' && text.front() != '(';
  return bare || text.back() == ')' ? text : "(" + text + ")";
}

std::string cuda_unary(Prelude&, Unary op, DType dtype, std::string_view x) {
  const bool single = dtype == DType::float32;
  const auto call = [&](std::string_view name) {
    internal_check(is_float(dtype), "emit_cuda: a function of floats on integers");
    return fmt::format("{}{}({})", name, single ? "f" : "", x);
  };
  switch (op) {
    case Unary::neg:
      return is_float(dtype) ? fmt::format("-{}", x) : wrapped(dtype, "0", "-", x);
    case Unary::abs:
      if (is_float(dtype)) return call("fabs");
      if (is_unsigned(dtype)) return std::string(x);
      return fmt::format("{} < 0 ? {} : {}", x, wrapped(dtype, "0", "-", x), x);
    case Unary::logical_not:
      return fmt::format("!{}", x);
    case Unary::sqrt:
      return call("sqrt");
    case Unary::floor:
      return call("floor");
    case Unary::ceil:
      return call("ceil");
    case Unary::trunc:
      return call("trunc");
    case Unary::round:
      return call("rint");
    case Unary::any_lane:
      return std::string(x);  // a thread's own
  }
  return {};
}

std::string cuda_binary(Prelude& prelude, Binary op, DType dtype, std::string_view a,
                        std::string_view b, const std::uint64_t* constant) {
  const auto plain = [&](std::string_view sign) { return fmt::format("{} {} {}", a, sign, b); };
  const auto arithmetic = [&](std::string_view sign) {
    return is_float(dtype) ? plain(sign) : wrapped(dtype, a, sign, b);
  };
  switch (op) {
    case Binary::add:
      return arithmetic("+");
    case Binary::sub:
      return arithmetic("-");
    case Binary::mul:
      return arithmetic("*");
    case Binary::div:
    case Binary::rem:
      return divided(prelude, op, dtype, a, b, constant);
    case Binary::min:
    case Binary::max:
      return extremum(prelude, op, dtype, a, b);
    case Binary::bit_and:
      return plain("&");
    case Binary::bit_or:
      return plain("|");
    case Binary::bit_xor:
      return plain("^");
    case Binary::shl:
    case Binary::shr:
      return shifted(prelude, op, dtype, a, b, constant);
    case Binary::mul_hi:
      return fmt::format("__umulhi({}, {})", a, b);
    case Binary::eq:
      return plain("==");
    case Binary::ne:
      return plain("!=");
    case Binary::lt:
      return plain("<");
    case Binary::le:
      return plain("<=");
  }
  return {};
}

std::string cuda_cast(Prelude& prelude, DType from, DType to, std::string_view x) {
  if (from == to) return std::string(x);
  const bool half = from == DType::float16;
  if (half || from == DType::bfloat16) {
    const std::string wide =
        fmt::format("{}({})", prelude.use(half ? "f32_from_f16" : "f32_from_bf16"), x);
    return cuda_cast(prelude, DType::float32, to, wide);
  }
  if (to == DType::boolean) return fmt::format("{} != 0", x);
  if (to == DType::float16) return to_float16(prelude, from, x);
  if (to == DType::bfloat16) return to_bfloat16(prelude, from, x);
  if (is_float(from) && is_integer(to)) return saturated(prelude, to, x);
  return fmt::format("({}){}", cuda_type(to), x);
}

std::string cuda_bitcast(DType from, DType to, std::string_view x) {
  const auto type = cuda_type(to);
  if (from == DType::float32 && to != from) return fmt::format("({})__float_as_uint({})", type, x);
  if (from == DType::float64 && to != from) {
    return fmt::format("({})__double_as_longlong({})", type, x);
  }
  if (to == DType::float32 && to != from) return fmt::format("__uint_as_float((u32){})", x);
  if (to == DType::float64 && to != from) return fmt::format("__longlong_as_double((i64){})", x);
  return fmt::format("({}){}", type, x);
}

std::string cuda_identity(Fold fold, DType dtype) {
  switch (fold) {
    case Fold::sum:
      return cuda_literal(dtype, 0);
    case Fold::prod:
      if (dtype == DType::float32) return "1.0f";
      return dtype == DType::float64 ? "1.0" : cuda_literal(dtype, 1);
    case Fold::min:
    case Fold::argmin:
      return cuda_literal(dtype, limit(dtype, true));
    case Fold::max:
    case Fold::argmax:
      return cuda_literal(dtype, limit(dtype, false));
    case Fold::any:
      return "false";
    case Fold::all:
      return "true";
  }
  return {};
}

std::string cuda_fold(Prelude& prelude, Fold fold, DType dtype, std::string_view a,
                      std::string_view b) {
  switch (fold) {
    case Fold::sum:
      return cuda_binary(prelude, Binary::add, dtype, a, b);
    case Fold::prod:
      return cuda_binary(prelude, Binary::mul, dtype, a, b);
    case Fold::min:
      return cuda_binary(prelude, Binary::min, dtype, a, b);
    case Fold::max:
      return cuda_binary(prelude, Binary::max, dtype, a, b);
    case Fold::any:
      return fmt::format("{} || {}", a, b);
    case Fold::all:
      return fmt::format("{} && {}", a, b);
    case Fold::argmin:
    case Fold::argmax:
      break;
  }
  internal_check(false, "emit_cuda: an index fold has no single value");
  return {};
}

}  // namespace croton::codegen
