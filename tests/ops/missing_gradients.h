// The operands by which an op has no gradient though they are floats.
#pragma once

#include <cstddef>
#include <string>

namespace croton::test {

/// Whether asking for the gradient of an op by an operand is a GraphError.
inline bool lacks_gradient(const std::string& op, std::size_t operand) {
  if (op == "betainc") return operand < 2;
  return (op == "gammainc" || op == "gammaincc") && operand == 0;
}

}  // namespace croton::test
