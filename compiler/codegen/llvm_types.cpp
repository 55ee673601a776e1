#include "compiler/codegen/llvm_types.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>

namespace croton::codegen::llvm_ir {

std::string_view element(DType t) {
  switch (t) {
    case DType::boolean:
      return "i1";
    case DType::int8:
    case DType::uint8:
      return "i8";
    case DType::int16:
    case DType::uint16:
    case DType::float16:
    case DType::bfloat16:
      return "i16";
    case DType::int32:
    case DType::uint32:
      return "i32";
    case DType::int64:
    case DType::uint64:
      return "i64";
    case DType::float32:
      return "float";
    case DType::float64:
      return "double";
  }
  return {};
}

std::string_view stored_element(DType t) { return t == DType::boolean ? "i8" : element(t); }

std::string_view mangled(DType t) {
  if (t == DType::float32) return "f32";
  if (t == DType::float64) return "f64";
  return element(t);
}

std::string_view stored_mangled(DType t) { return t == DType::boolean ? "i8" : mangled(t); }

std::string type(std::string_view element, int width) {
  if (width == 0) return std::string(element);
  return fmt::format("<{} x {}>", width, element);
}

std::string type(DType t, int width) { return type(element(t), width); }

std::string suffix(std::string_view mangled, int width) {
  if (width == 0) return std::string(mangled);
  return fmt::format("v{}{}", width, mangled);
}

std::string literal(DType t, std::uint64_t bits) {
  switch (t) {
    case DType::boolean:
      return bits & 1 ? "true" : "false";
    case DType::int8:
      return fmt::format("{}", static_cast<int>(static_cast<std::int8_t>(bits)));
    case DType::int16:
      return fmt::format("{}", static_cast<std::int16_t>(bits));
    case DType::int32:
      return fmt::format("{}", static_cast<std::int32_t>(bits));
    case DType::int64:
      return fmt::format("{}", static_cast<std::int64_t>(bits));
    case DType::uint8:
      return fmt::format("{}", bits & 0xff);
    case DType::uint16:
    case DType::float16:
    case DType::bfloat16:
      return fmt::format("{}", bits & 0xffff);
    case DType::uint32:
      return fmt::format("{}", static_cast<std::uint32_t>(bits));
    case DType::uint64:
      return fmt::format("{}", bits);
    case DType::float32: {
      // LLVM spells a float by the bits of the double of the same value, which loses the payload
      // of a NaN.
      float value = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
      if (std::isnan(value)) {
        return fmt::format("bitcast (i32 {} to float)", static_cast<std::uint32_t>(bits));
      }
      return fmt::format("0x{:016X}", std::bit_cast<std::uint64_t>(static_cast<double>(value)));
    }
    case DType::float64:
      return fmt::format("0x{:016X}", bits);
  }
  return {};
}

std::string splat_literal(std::string_view element, std::string_view scalar) {
  return fmt::format("splat ({} {})", element, scalar);
}

bool is_llvm_float(DType t) { return t == DType::float32 || t == DType::float64; }

int bits_of(DType t) { return t == DType::boolean ? 1 : static_cast<int>(8 * size_of(t)); }

}  // namespace croton::codegen::llvm_ir
