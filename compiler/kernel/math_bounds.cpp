#include "compiler/kernel/math.h"

namespace croton::kernel {

std::span<const MathBound> math_bounds() {
  using Unit = MathBound::Unit;
  static constexpr MathBound kBounds[] = {
      {"exp", 1.0, 1.0},
      {"exp2", 1.0, 1.0},
      {"expm1", 1.6, 2.0},
      {"log", 1.0, 1.0},
      {"log2", 1.2, 1.2},
      {"log10", 1.1, 1.1},
      {"log1p", 1.6, 1.5},
      {"pow", 0.6, 1.0},
      {"sin", 1.0, 1.0},
      {"cos", 1.0, 1.0},
      {"tan", 2.5, 2.5},
      {"arcsin", 2.5, 2.3},
      {"arccos", 1.3, 1.3},
      {"arctan", 2.3, 2.3},
      {"arctan2", 2.5, 2.5},
      {"sinh", 2.4, 2.5},
      {"cosh", 1.6, 1.6},
      {"tanh", 1.2, 1.2},
      {"arcsinh", 2.0, 2.0},
      {"arccosh", 2.3, 2.3},
      {"arctanh", 2.3, 2.1},
      {"erf", 1.0, 1.1},
      {"erfc", 3.8, 3.4},
      {"sigmoid", 2.6, 2.6},
      {"softplus", 2.0, 2.0},
      {"erfcx", 0.6, 3.5},
      {"erfinv", 0.6, 2.5},
      {"erfcinv", 0.6, 3},
      {"gamma", 0.6, 6},
      {"gammaln", 0.6, 4, Unit::one_left},
      {"digamma", 0.6, 6, Unit::one_left},
      {"polygamma", 0.6, 14, Unit::one_left},
      {"gammainc", 0.6, 20, Unit::logarithm},
      {"gammaincc", 0.6, 20, Unit::logarithm},
      {"betainc", 0.6, 70, Unit::beta},
      {"betaln", 0.6, 16, Unit::one},
      {"i0", 0.6, 4},
      {"i1", 0.6, 4},
      {"i0e", 0.6, 4},
      {"i1e", 0.6, 4},
      {"j0", 0.6, 10, Unit::envelope},
      {"j1", 0.6, 12, Unit::envelope},
      {"y0", 0.6, 12, Unit::wave},
      {"y1", 0.6, 12, Unit::wave},
      {"cbrt", 0.6, 0.6},
      {"hypot", 0.6, 0.6},
      {"logaddexp", 1, 1, Unit::operand},
      {"logaddexp2", 1.5, 1.5, Unit::operand},
      {"log1mexp", 2, 2},
  };
  return kBounds;
}

}  // namespace croton::kernel
