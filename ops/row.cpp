#include "ops/row.h"

#include <fmt/format.h>

#include "ops/scalar.h"

namespace croton::row {

int checked_axis(const Infer& infer) {
  infer.expect_inputs(1);
  if (!is_float(infer.dtype(0))) infer.fail("floats expected: cast with astype");
  return normalize_axis(infer, infer.attrs().integer("axis"), infer.ndim(0));
}

void infer_row(Infer& infer) {
  checked_axis(infer);
  infer.out(infer.dtype(0), infer.shape(0));
}

Variable make_row(std::string_view op, const Operand& operand, int axis, Attrs attrs) {
  const Loc& loc = operand.loc();
  const Variable given = operand.variable();
  const Variable x = cast_to(given, scalar::float_result(given.dtype()), loc);
  // An axis that is out of range stays as it is; the type rule objects.
  if (axis < 0 && axis >= -x.ndim()) axis += x.ndim();
  attrs.set("axis", std::int64_t{axis});
  return apply(op, {x}, std::move(attrs), loc);
}

Variable reduce(std::string_view op, const Variable& x, int axis, const Loc& loc) {
  return apply(op, {x}, {{"axes", std::vector<std::int64_t>{axis}}, {"keepdims", std::int64_t{1}}},
               loc);
}

Variable without_axis(const Variable& x, int axis, const Loc& loc) {
  std::vector<int> order;
  for (int k = 0; k < x.ndim(); ++k) {
    if (k != axis) order.push_back(k);
  }
  return dimshuffle(x, order, loc);
}

}  // namespace croton::row
