// Everything that users need.
#pragma once

#include "croton/array.h"
#include "croton/config.h"
#include "croton/context.h"
#include "croton/dtype.h"
#include "croton/error.h"
#include "croton/function.h"
#include "croton/math.h"
#include "croton/numpy_io.h"
#include "croton/shape.h"
#include "croton/shared.h"
#include "croton/symbols.h"
#include "croton/variable.h"
