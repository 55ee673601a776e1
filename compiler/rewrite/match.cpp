#include "compiler/rewrite/match.h"

#include <cstring>

#include "croton/error.h"
#include "ops/build.h"

namespace croton {
namespace {

bool repeats(const Variable& v) {
  return is_op(v, "broadcast") || is_op(v, "dimshuffle") || is_op(v, "reshape") ||
         is_op(v, "specify_shape");
}

}  // namespace

std::optional<double> splat(const Variable& v) {
  Variable source = v;
  while (repeats(source)) source = in(source);
  const Array* array = constant_value(source);
  constexpr std::int64_t kMost = 4096;
  if (array == nullptr || array->size() == 0 || array->size() > kMost) return {};
  if (array->size() == 1) return array->astype(DType::float64).item<double>();
  const std::vector<double> values = array->astype(DType::float64).to_vector<double>();
  for (const double value : values) {
    if (value != values[0]) return {};
  }
  return values[0];
}

Variable beside(const Node& node, double value) {
  for (int k : {1, 0}) {
    if (is_splat(node.inputs[k], value)) return node.inputs[1 - k];
  }
  return {};
}

Variable scalar_of(const Variable& v, double value) {
  return scalar_like(v, value, Loc::current());
}

bool same_value(const Variable& a, const Variable& b) {
  if (a.same(b)) return true;
  const Array* left = constant_value(a);
  const Array* right = constant_value(b);
  return left != nullptr && right != nullptr && left->size() == 1 && right->size() == 1 &&
         left->dtype() == right->dtype() && a.ndim() == b.ndim() &&
         std::memcmp(left->raw_data(), right->raw_data(), size_of(left->dtype())) == 0;
}

}  // namespace croton
