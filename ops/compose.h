// Functions that are built from others: their operands, and the place of what they build.
#pragma once

#include <array>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "ops/build.h"
#include "ops/scalar.h"

namespace croton::scalar {

/// Operands of one promoted dtype, integers and bools as floats where `floats`.
std::vector<Variable> promoted(std::string_view op, std::span<const Operand> operands, bool floats);

/// The value of `rule(variables...)` on the promoted operands. All nodes that it builds have the
/// place of the user's line, and speak in the name of `op`.
template <bool kFloats, class Rule, class... Rest>
Variable composed(std::string_view op, Rule&& rule, const Operand& first, const Rest&... rest) {
  const Loc loc = first.loc().named(op);
  const std::array<Operand, 1 + sizeof...(rest)> operands{first.named(op), rest.named(op)...};
  const std::uint64_t since = next_node_id();
  const std::vector<Variable> x = promoted(op, operands, kFloats);
  const Variable y = [&]<std::size_t... k>(std::index_sequence<k...>) {
    return rule(Operand(x[k], loc)...);
  }
  (std::make_index_sequence<1 + sizeof...(rest)>());
  relocate(y, since, loc);
  return y;
}

}  // namespace croton::scalar
