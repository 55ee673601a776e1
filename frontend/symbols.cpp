#include "croton/symbols.h"

#include "compiler/graph/node.h"
#include "croton/error.h"

namespace croton {
namespace {

Variable symbol(std::string_view name, std::optional<DType> dtype, const Shape& shape,
                const Loc& loc) {
  for (const std::int64_t size : shape) {
    if (size < kAnyDim) {
      throw GraphError("[tensor] a size of '" + std::string(name) + "' is " + std::to_string(size) +
                       ": expected 0 or more, or kAnyDim; at " + to_text(loc));
    }
  }
  return make_input({dtype.value_or(build_settings().float_x), shape}, name, loc);
}

}  // namespace

Variable scalar(std::string_view name, std::optional<DType> dtype, Loc loc) {
  return symbol(name, dtype, {}, loc);
}
Variable vector(std::string_view name, std::optional<DType> dtype, Loc loc) {
  return symbol(name, dtype, {kAnyDim}, loc);
}
Variable matrix(std::string_view name, std::optional<DType> dtype, Loc loc) {
  return symbol(name, dtype, {kAnyDim, kAnyDim}, loc);
}
Variable row(std::string_view name, std::optional<DType> dtype, Loc loc) {
  return symbol(name, dtype, {1, kAnyDim}, loc);
}
Variable col(std::string_view name, std::optional<DType> dtype, Loc loc) {
  return symbol(name, dtype, {kAnyDim, 1}, loc);
}
Variable tensor3(std::string_view name, std::optional<DType> dtype, Loc loc) {
  return symbol(name, dtype, {kAnyDim, kAnyDim, kAnyDim}, loc);
}
Variable tensor4(std::string_view name, std::optional<DType> dtype, Loc loc) {
  return symbol(name, dtype, {kAnyDim, kAnyDim, kAnyDim, kAnyDim}, loc);
}
Variable tensor(std::string_view name, DType dtype, const Shape& shape, Loc loc) {
  return symbol(name, dtype, shape, loc);
}
Variable constant(const Array& value, Loc loc) { return make_constant(value, loc); }

}  // namespace croton
