#pragma once

#include "croton/config.h"
#include "croton/dtype.h"

namespace croton {

/// The dtype that a value of the flag floatX names.
DType dtype_of_flag(FloatX flag);

}  // namespace croton
