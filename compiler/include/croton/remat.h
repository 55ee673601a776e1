#pragma once

#include <vector>

#include "croton/variable.h"

// Memory against time in gradients.
namespace croton {

/// `value`, of which nothing is kept for its gradient: what lies between `inputs` and it is
/// computed again from the inputs where the gradient is, so that values in between need no memory
/// until then. Everything else that the value is made of (parameters) is kept, and gets its
/// gradient. Without inputs the walk down ends at parameters and arguments. The same numbers come
/// out with the mark and without: a value in between that a gradient is asked for, or that counts
/// as a constant or has a known gradient there, is kept as the inputs are. Also known as
/// checkpointing.
CROTON_API Variable remat(const Variable& value, const std::vector<Variable>& inputs = {},
                          Loc loc = Loc::current());

}  // namespace croton
