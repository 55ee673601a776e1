// Sums of products over labelled axes: what einsum and products of batches are made of.
#pragma once

#include <string_view>
#include <vector>

#include "croton/variable.h"

namespace croton {

/// An operand of a contraction: each axis has a label, equal ones run together.
struct Term {
  Variable value;
  std::vector<int> labels;
};

/// The sum of the products of the terms over all labels that `output` does not have; its labels
/// differ and occur in the terms. Two terms at a time, smallest results first; matrix products
/// where both keep axes of their own, else fused loops. A size known to be 1 broadcasts. The terms
/// have one dtype, which the result has. GraphError in the op's name where known sizes clash.
Variable contracted(std::string_view op, std::vector<Term> terms, const std::vector<int>& output,
                    const Loc& loc);

/// The operands as variables of their common dtype; bools are a GraphError.
std::vector<Variable> factors(std::string_view op, const std::vector<Operand>& operands,
                              const Loc& loc);

}  // namespace croton
