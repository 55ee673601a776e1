// What the functions for training share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/graph/node.h"
#include "croton/shared.h"

namespace croton {

/// "float32 matrix (?, 784)"
inline std::string text_of(const Variable& x) { return x.node()->outputs[x.output()].to_text(); }

/// GraphError unless they are one or more different shared variables of floats.
void check_parameters(std::string_view op, const std::vector<Shared>& parameters, const Loc& loc);

}  // namespace croton
