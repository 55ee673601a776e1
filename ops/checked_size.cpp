#include "ops/checked_size.h"

#include <fmt/format.h>

#include "ops/build.h"
#include "ops/size_arithmetic.h"
#include "ops/sizes.h"

namespace croton {

bool keeps_values(DType from, DType to) {
  if (is_bool(from) || from == to) return true;
  if (is_bool(to)) return false;  // only the truth would stay
  if (is_unsigned(to) && !is_unsigned(from)) return false;
  if (is_unsigned(from) && !is_unsigned(to)) return size_of(from) < size_of(to);
  return size_of(from) <= size_of(to);
}

Size checked_size(std::string_view op, std::string_view what, const Size& given, const Loc& loc,
                  std::int64_t least) {
  const Size size = whole_number(op, given, loc);
  const std::string wanted = least == 0 ? fmt::format("{} must not be negative", what)
                                        : fmt::format("{} must be at least {}", what, least);
  if (const std::int64_t* number = size.number()) {
    if (*number < least) graph_error(op, fmt::format("{}: got {}", wanted, *number), loc);
    return size;
  }
  return Size(apply("checked_number", {*size.variable()}, {{"least", least}, {"wanted", wanted}},
                    loc.named(op)));
}

Size checked_step(std::string_view op, const Size& given, const Loc& loc) {
  const Size step = whole_number(op, given, loc);
  if (const std::int64_t* number = step.number()) {
    if (*number == 0) graph_error(op, "the step must not be 0", loc);
    return step;
  }
  return Size(apply("checked_number", {*step.variable()},
                    {{"wanted", std::string("the step must not be 0")}}, loc.named(op)));
}

Variable with_size(const Variable& x, int axis, const Size& size, const Loc& loc) {
  if (size.number() && *size.number() == x.static_shape()[axis]) return x;
  std::vector<Size> sizes(static_cast<std::size_t>(x.ndim()), Size(kInferredSize));
  sizes[axis] = size;
  SizeList list = size_list("specify_shape", sizes, loc, true);
  std::vector<Variable> inputs{x};
  inputs.insert(inputs.end(), list.symbols.begin(), list.symbols.end());
  return apply("specify_shape", std::move(inputs), {{"sizes", std::move(list.numbers)}}, loc);
}

}  // namespace croton
