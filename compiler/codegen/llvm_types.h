// How dtypes and constants are spelled in LLVM IR.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "croton/dtype.h"

namespace croton::codegen::llvm_ir {

/// The element type in registers: i1 for bool; float16 and bfloat16 are their bits, as they are
/// only moved and cast.
std::string_view element(DType t);

/// The element type in memory: a byte for bool.
std::string_view stored_element(DType t);

/// What names of intrinsics call the element type in registers and in memory: "f32", "i8".
std::string_view mangled(DType t);
std::string_view stored_mangled(DType t);

/// A type of `width` elements; width 0 is the scalar.
std::string type(std::string_view element, int width);
std::string type(DType t, int width);

/// The suffix of an intrinsic for such a type: "v16f32", "f32".
std::string suffix(std::string_view mangled, int width);

/// A constant of this dtype from its bits.
std::string literal(DType t, std::uint64_t bits);

/// The same value in all `width` lanes; `element` is the type of `scalar`, a constant.
std::string splat_literal(std::string_view element, std::string_view scalar);

/// Is it a floating type of LLVM in registers?
bool is_llvm_float(DType t);

int bits_of(DType t);

}  // namespace croton::codegen::llvm_ir
