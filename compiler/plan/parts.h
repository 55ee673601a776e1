#pragma once

#include <vector>

#include "compiler/compile.h"

namespace croton {

/// Cuts a function where sizes follow from values that it computes itself: such a value comes out
/// of one part and is an argument of the next, so that each part knows its sizes when it begins.
/// All outputs and updates are those of the last part, and whatever need not be earlier is there.
/// Parts come as they are written, without plans; each node of theirs is on its context already.
std::vector<FunctionPart> split_parts(const FunctionGraph& written, const CompileContext& context);

}  // namespace croton
