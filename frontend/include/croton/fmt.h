#pragma once

// Opt-in: makes fmt print Croton's values. The only public header that needs {fmt}.

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "croton/array.h"
#include "croton/printing.h"

/// Prints what `operator<<` prints; width and alignment as for strings.
template <>
struct fmt::formatter<croton::Array> : fmt::formatter<std::string_view> {
  template <class Context>
  auto format(const croton::Array& array, Context& context) const {
    return fmt::formatter<std::string_view>::format(croton::to_string(array), context);
  }
};

/// Prints "(2, 3)".
template <>
struct fmt::formatter<croton::Shape> : fmt::formatter<std::string_view> {
  template <class Context>
  auto format(const croton::Shape& shape, Context& context) const {
    return fmt::formatter<std::string_view>::format(shape.to_string(), context);
  }
};

/// Prints the dtype's name.
template <>
struct fmt::formatter<croton::DType> : fmt::formatter<std::string_view> {
  template <class Context>
  auto format(croton::DType dtype, Context& context) const {
    return fmt::formatter<std::string_view>::format(croton::name_of(dtype), context);
  }
};

/// Prints the line that `operator<<` prints.
template <>
struct fmt::formatter<croton::Variable> : fmt::formatter<std::string_view> {
  template <class Context>
  auto format(const croton::Variable& variable, Context& context) const {
    return fmt::formatter<std::string_view>::format(croton::to_string(variable), context);
  }
};
template <>
struct fmt::formatter<croton::Shared> : fmt::formatter<croton::Variable> {};
