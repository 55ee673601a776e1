#include "ops/size_arithmetic.h"

#include <algorithm>

#include "ops/build.h"
#include "ops/sizes.h"
#include "ops/slice.h"

namespace croton {
namespace {

template <class F>
Size combined(std::string_view op, const Size& a, const Size& b, const Loc& loc, F&& numbers) {
  if (a.number() && b.number()) return Size(numbers(*a.number(), *b.number()));
  return Size(apply(op, {size_variable(a, loc), size_variable(b, loc)}, {}, loc));
}

bool is_number(const Size& size, std::int64_t value) {
  return size.number() && *size.number() == value;
}

std::int64_t floored(std::int64_t a, std::int64_t b) {
  if (b == 0) return 0;
  const std::int64_t q = a / b;
  return q - (a % b != 0 && (a < 0) != (b < 0));
}

}  // namespace

Size size_add(const Size& a, const Size& b, const Loc& loc) {
  if (is_number(b, 0)) return a;
  if (is_number(a, 0)) return b;
  return combined("add", a, b, loc, [](auto x, auto y) { return x + y; });
}

Size size_sub(const Size& a, const Size& b, const Loc& loc) {
  if (is_number(b, 0)) return a;
  return combined("sub", a, b, loc, [](auto x, auto y) { return x - y; });
}

Size size_mul(const Size& a, const Size& b, const Loc& loc) {
  if (is_number(b, 1)) return a;
  if (is_number(a, 1)) return b;
  return combined("mul", a, b, loc, [](auto x, auto y) { return x * y; });
}

Size size_divide(const Size& a, const Size& b, const Loc& loc) {
  if (is_number(b, 1)) return a;
  return combined("floor_divide", a, b, loc, floored);
}

Size size_mod(const Size& a, const Size& b, const Loc& loc) {
  return combined("mod", a, b, loc, [](std::int64_t x, std::int64_t y) {
    return y == 0 ? std::int64_t{0} : x - floored(x, y) * y;
  });
}

Size size_max(const Size& a, const Size& b, const Loc& loc) {
  return combined("maximum", a, b, loc, [](auto x, auto y) { return std::max(x, y); });
}

Size size_min(const Size& a, const Size& b, const Loc& loc) {
  return combined("minimum", a, b, loc, [](auto x, auto y) { return std::min(x, y); });
}

Variable size_variable(const Size& size, const Loc& loc) {
  return size.number() ? make_scalar(DType::int64, *size.number(), loc) : *size.variable();
}

Bound size_bound(const Size& size) {
  return size.number() ? Bound(*size.number()) : Bound(*size.variable());
}

Size whole_number(std::string_view op, const Size& given, const Loc& loc) {
  if (given.number()) return given;
  const Variable& symbol = *given.variable();
  if (symbol.ndim() != 0 || !is_integer(symbol.dtype())) {
    graph_error(
        op,
        "an integer scalar is expected: got " + symbol.node()->outputs[symbol.output()].to_text(),
        loc);
  }
  if (const Array* value = constant_value(symbol)) {
    return Size(value->astype(DType::int64).item<std::int64_t>());
  }
  return Size(cast_to(symbol, DType::int64, loc));
}

std::vector<Size> whole_numbers(std::string_view op, const Sizes& given, const Loc& loc) {
  std::vector<Size> result;
  for (const Size& size :
       given.is_vector() ? vector_sizes(op, given.vector(), loc) : given.list()) {
    result.push_back(whole_number(op, size, loc));
  }
  return result;
}

Variable positions(const Size& length, const Loc& loc) {
  const Size sizes[] = {length};
  const SizeList list = size_list("arange", sizes, loc);
  return apply("iota", list.symbols,
               {{"sizes", list.numbers},
                {"axis", std::int64_t{0}},
                {"dtype", static_cast<std::int64_t>(DType::int64)}},
               loc);
}

Variable positions(const Size& length, int axis, int rank, const Loc& loc) {
  std::vector<int> order(static_cast<std::size_t>(rank), -1);
  order[static_cast<std::size_t>(axis)] = 0;
  return dimshuffle(positions(length, loc), order, loc);
}

Variable part_of_axis(const Variable& x, int axis, const Size& begin, const Size& count,
                      const Loc& loc) {
  return slice_axis(x, axis, Slice(size_bound(begin), size_bound(size_add(begin, count, loc))),
                    loc);
}

}  // namespace croton
