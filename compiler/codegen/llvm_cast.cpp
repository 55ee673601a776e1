#include <bit>
#include <cmath>

#include "compiler/codegen/llvm_emitter.h"
#include "compiler/codegen/llvm_types.h"

namespace croton::codegen::llvm_ir {

std::string Emitter::convert(std::string_view instruction, DType from, DType to, int width,
                             const std::string& x) {
  return op("{} {} {} to {}", instruction, type(from, width), x, type(to, width));
}

std::string Emitter::float_of_half(DType from, int width, const std::string& x) {
  DType f = DType::float32;
  if (from == DType::float16) {
    std::string half = op("bitcast {} {} to {}", type("i16", width), x, type("half", width));
    return op("fpext {} {} to {}", type("half", width), half, type(f, width));
  }
  DType bits = DType::uint32;
  std::string wide = convert("zext", from, bits, width, x);
  std::string high = simple("shl", bits, width, wide, integer(bits, width, 16));
  return convert("bitcast", bits, f, width, high);
}

/// float32 to nearest even. bfloat16 by its bits: the processor's instruction flushes subnormals.
std::string Emitter::half_of_float(DType to, int width, const std::string& x) {
  DType f = DType::float32;
  if (to == DType::float16) {
    std::string half = op("fptrunc {} {} to {}", type(f, width), x, type("half", width));
    return op("bitcast {} {} to {}", type("half", width), half, type("i16", width));
  }
  DType bits = DType::uint32;
  std::string pattern = convert("bitcast", f, bits, width, x);
  std::string high = simple("lshr", bits, width, pattern, integer(bits, width, 16));
  std::string odd = simple("and", bits, width, high, integer(bits, width, 1));
  std::string half_way = simple("add", bits, width, odd, integer(bits, width, 0x7fff));
  std::string sum = simple("add", bits, width, pattern, half_way);
  std::string rounded = simple("lshr", bits, width, sum, integer(bits, width, 16));
  std::string quiet = simple("or", bits, width, high, integer(bits, width, 0x40));
  std::string result = select(bits, width, compare("uno", f, width, x, x), quiet, rounded);
  return convert("trunc", bits, to, width, result);
}

/// float64 to float32, where an inexact result gets the neighbour with an odd last bit: rounding it
/// once more to a narrower type is then rounding once.
std::string Emitter::narrow_to_odd(int width, const std::string& x) {
  DType f = DType::float32, d = DType::float64, bits = DType::uint32;
  std::string near = convert("fptrunc", d, f, width, x);
  std::string back = convert("fpext", f, d, width, near);
  std::string pattern = convert("bitcast", f, bits, width, near);
  std::string inexact = compare("one", d, width, back, x);
  std::string last = simple("and", bits, width, pattern, integer(bits, width, 1));
  std::string even = compare("eq", bits, width, last, integer(bits, width, 0));
  std::string change = simple("and", DType::boolean, width, inexact, even);
  std::string back_size = intrinsic("fabs", d, width, back);
  std::string size = intrinsic("fabs", d, width, x);
  std::string above = compare("ogt", d, width, back_size, size);
  std::string step = select(bits, width, above, integer(bits, width, -1), integer(bits, width, 1));
  std::string odd = simple("add", bits, width, pattern, step);
  return convert("bitcast", bits, f, width, select(bits, width, change, odd, pattern));
}

/// A 64-bit integer that float64 cannot hold loses its low bits, with a mark that they were there,
/// so that the coming conversion is exact and the next rounding sees which way to go.
std::string Emitter::integer_for_rounding(DType from, int width, const std::string& x) {
  std::string low = simple("and", from, width, x, integer(from, width, 0x7ff));
  std::string some = compare("ne", from, width, low, integer(from, width, 0));
  std::string mark =
      select(from, width, some, integer(from, width, 0x400), integer(from, width, 0));
  std::string high = simple("and", from, width, x, integer(from, width, ~std::int64_t{0x7ff}));
  std::string marked = simple("or", from, width, high, mark);
  std::string size = is_signed(from) ? intrinsic("abs", from, width, x, ", i1 false") : x;
  std::string large =
      compare("ugt", from, width, size, integer(from, width, std::int64_t{1} << 53));
  return select(from, width, large, marked, x);
}

std::string Emitter::cast_to_half(DType from, DType to, int width, const std::string& x) {
  DType f = DType::float32, d = DType::float64;
  if (from == f) return half_of_float(to, width, x);
  if (from == d) return half_of_float(to, width, narrow_to_odd(width, x));
  // float16 overflows before float32 rounds an integer.
  bool exact = to == DType::float16 || size_of(from) <= 2;
  if (exact) return half_of_float(to, width, cast(from, f, width, x));
  std::string whole = size_of(from) == 8 ? integer_for_rounding(from, width, x) : x;
  return half_of_float(to, width, narrow_to_odd(width, cast(from, d, width, whole)));
}

/// Towards zero, to the nearest value that the integer has, NaN to 0. LLVM's own saturating
/// conversions are done lane by lane.
std::string Emitter::truncate(DType from, DType to, int width, const std::string& x) {
  // Limits are powers of two and 0, exact in any float.
  int bits = bits_of(to);
  bool sign = is_signed(to);
  auto limit = [&](double value) {
    return constant_of(from, width,
                       from == DType::float32
                           ? std::bit_cast<std::uint32_t>(static_cast<float>(value))
                           : std::bit_cast<std::uint64_t>(value));
  };
  std::string high = limit(std::ldexp(1.0, sign ? bits - 1 : bits));
  std::string low = limit(sign ? -std::ldexp(1.0, bits - 1) : 0.0);
  std::string above = compare("oge", from, width, x, high);
  std::string not_below = compare("oge", from, width, x, low);
  std::string below_high = compare("olt", from, width, x, high);
  std::string inside = simple("and", DType::boolean, width, not_below, below_high);
  std::string safe = select(from, width, inside, x, limit(0.0));
  std::string result;
  if (bits < 32) {
    DType wide = DType::int32;
    result = convert("trunc", wide, to, width, convert("fptosi", from, wide, width, safe));
  } else {
    result = convert(sign ? "fptosi" : "fptoui", from, to, width, safe);
  }
  std::uint64_t all = ~std::uint64_t{0} >> (64 - bits);
  result = select(to, width, above, constant_of(to, width, sign ? all >> 1 : all), result);
  if (!sign) return result;
  std::string under = compare("olt", from, width, x, low);
  return select(to, width, under, constant_of(to, width, (all >> 1) + 1), result);
}

std::string Emitter::cast(DType from, DType to, int width, const std::string& x) {
  if (from == to) return x;
  DType f = DType::float32;
  if (from == DType::float16 || from == DType::bfloat16) {
    std::string value = float_of_half(from, width, x);
    return cast(f, to, width, value);
  }
  bool from_float = is_llvm_float(from), to_float = is_llvm_float(to);
  if (to == DType::boolean) {
    std::string zero = constant_of(from, width, 0);
    return compare(from_float ? "une" : "ne", from, width, x, zero);
  }
  if (to == DType::float16 || to == DType::bfloat16) return cast_to_half(from, to, width, x);
  if (from_float && to_float) {
    return convert(to == f ? "fptrunc" : "fpext", from, to, width, x);
  }
  if (from_float) return truncate(from, to, width, x);
  if (to_float) return convert(is_signed(from) ? "sitofp" : "uitofp", from, to, width, x);
  int have = bits_of(from), want = bits_of(to);
  if (have == want) return x;
  if (want < have) return convert("trunc", from, to, width, x);
  return convert(is_signed(from) ? "sext" : "zext", from, to, width, x);
}

}  // namespace croton::codegen::llvm_ir
