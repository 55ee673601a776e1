// CUDA C++ expressions for the arithmetic of kernels. Operands are names or parenthesised.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "compiler/codegen/cuda_prelude.h"
#include "compiler/kernel/kernel.h"

namespace croton::codegen {

/// The value with these bits, exactly.
std::string cuda_literal(DType dtype, std::uint64_t bits);

std::string cuda_unary(Prelude& prelude, kernel::Unary op, DType dtype, std::string_view x);

/// `dtype` is that of the operands. `constant` is the bits of `b` where that is one.
std::string cuda_binary(Prelude& prelude, kernel::Binary op, DType dtype, std::string_view a,
                        std::string_view b, const std::uint64_t* constant = nullptr);

std::string cuda_cast(Prelude& prelude, DType from, DType to, std::string_view x);
std::string cuda_bitcast(DType from, DType to, std::string_view x);

/// The value that a fold of nothing has.
std::string cuda_identity(kernel::Fold fold, DType dtype);

/// `a` and `b` folded; not for argmin and argmax.
std::string cuda_fold(Prelude& prelude, kernel::Fold fold, DType dtype, std::string_view a,
                      std::string_view b);

}  // namespace croton::codegen
