// What arithmetic nodes compute, on the host: the rules of kernel.h for constants.
#pragma once

#include <cstdint>
#include <optional>

#include "compiler/kernel/kernel.h"

namespace croton::kernel {

/// The bits of `value` in `dtype`, rounded to nearest even; to integers as `cast` does.
std::uint64_t bits_of(DType dtype, double value);

/// The bits of an integer in `dtype`: wrapped to integers, rounded to floats, `!= 0` to bool.
std::uint64_t bits_of_integer(DType dtype, std::int64_t value);

/// The value of a constant as a double; 64-bit integers may be rounded.
double as_double(DType dtype, std::uint64_t bits);

/// The value of a constant of integer or bool dtype, sign-extended.
std::int64_t as_integer(DType dtype, std::uint64_t bits);

/// The bits of a node of arithmetic (unary, binary, fma, select, cast, bitcast) for operands with
/// these bits; `operand` is the dtype of the first one (of the second for select). Nothing where
/// the dtype has no such operation.
std::optional<std::uint64_t> evaluate(const Node& node, DType operand,
                                      const std::uint64_t (&bits)[3]);

}  // namespace croton::kernel
