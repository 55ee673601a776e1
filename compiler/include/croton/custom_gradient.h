#pragma once

#include <functional>
#include <vector>

#include "croton/variable.h"

// Values whose derivatives the user gives.
namespace croton {

/// Gradients of the inputs from the inputs, the value and the gradient of the value: one an input,
/// each of its input's shape, or an empty Variable where none flows.
using GradientRule = std::function<std::vector<Variable>(
    const std::vector<Variable>& inputs, const Variable& value, const Variable& gradient)>;

/// `value`, whose gradients with respect to `inputs` come from the rule, not from the graph between
/// them: nothing flows back into that. What else the value is made of gets no gradient. The rule is
/// called once, here, with symbols; it may use other values of the graph, which are put on batches
/// and replaced as the inputs are, but get no gradient by it. Its result may be differentiated
/// again, by those, too. The value itself is computed as if the mark were not there. GraphError
/// where the rule gives gradients that do not fit.
CROTON_API Variable custom_gradient(const std::vector<Variable>& inputs, const Variable& value,
                                    const GradientRule& rule, Loc loc = Loc::current());

}  // namespace croton
