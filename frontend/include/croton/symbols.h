#pragma once

#include <optional>
#include <string_view>

#include "croton/variable.h"

namespace croton {

// Symbolic inputs of a function; floatX unless a dtype is given.
CROTON_API Variable scalar(std::string_view name = {}, std::optional<DType> dtype = {},
                           Loc loc = Loc::current());
CROTON_API Variable vector(std::string_view name = {}, std::optional<DType> dtype = {},
                           Loc loc = Loc::current());
CROTON_API Variable matrix(std::string_view name = {}, std::optional<DType> dtype = {},
                           Loc loc = Loc::current());
/// A matrix whose first axis has size 1, and so broadcasts.
CROTON_API Variable row(std::string_view name = {}, std::optional<DType> dtype = {},
                        Loc loc = Loc::current());
/// A matrix whose second axis has size 1, and so broadcasts.
CROTON_API Variable col(std::string_view name = {}, std::optional<DType> dtype = {},
                        Loc loc = Loc::current());
CROTON_API Variable tensor3(std::string_view name = {}, std::optional<DType> dtype = {},
                            Loc loc = Loc::current());
CROTON_API Variable tensor4(std::string_view name = {}, std::optional<DType> dtype = {},
                            Loc loc = Loc::current());
/// Sizes that are known, kAnyDim for the others. A size of 1 broadcasts.
CROTON_API Variable tensor(std::string_view name, DType dtype, const Shape& shape,
                           Loc loc = Loc::current());
/// A symbolic constant.
CROTON_API Variable constant(const Array& value, Loc loc = Loc::current());

}  // namespace croton
