// Canonical forms of elementwise arithmetic.
#include <algorithm>
#include <cmath>

#include "compiler/rewrite/match.h"
#include "compiler/rewrite/rule.h"
#include "ops/build.h"

namespace croton {
namespace {

using Context = RewriteContext;

DType dtype_of_result(const Node& node) { return node.outputs[0].dtype; }

// Neutral and absorbing operands.

/// x + 0 -> x
Variable add_zero(const Node& node, Context& c) {
  const Variable x = beside(node, 0);
  return x.defined() ? c.shaped(x, node) : Variable();
}

/// x - 0 -> x
Variable sub_zero(const Node& node, Context& c) {
  return is_splat(node.inputs[1], 0) ? c.shaped(node.inputs[0], node) : Variable();
}

/// 0 - x -> -x
Variable zero_sub(const Node& node, Context& c) {
  return is_splat(node.inputs[0], 0) ? c.accept(make("neg", {node.inputs[1]}), node) : Variable();
}

/// x * 1 -> x
Variable mul_one(const Node& node, Context& c) {
  const Variable x = beside(node, 1);
  return x.defined() ? c.shaped(x, node) : Variable();
}

/// x * -1 -> -x
Variable mul_minus_one(const Node& node, Context& c) {
  if (!is_signed(dtype_of_result(node))) return {};
  const Variable x = beside(node, -1);
  return x.defined() ? c.accept(make("neg", {x}), node) : Variable();
}

/// x * 0 -> 0, of integers and bools
Variable mul_zero(const Node& node, Context& c) {
  const bool found = !is_float(dtype_of_result(node)) && beside(node, 0).defined();
  return found ? c.filled(node, 0) : Variable();
}

/// x * 0 -> 0, of floats, where x may be inf or NaN
Variable mul_zero_float(const Node& node, Context& c) {
  const bool found = is_float(dtype_of_result(node)) && beside(node, 0).defined();
  return found ? c.filled(node, 0) : Variable();
}

/// x - x -> 0, of integers
Variable sub_self(const Node& node, Context& c) {
  const bool found = !is_float(dtype_of_result(node)) && node.inputs[0].same(node.inputs[1]);
  return found ? c.filled(node, 0) : Variable();
}

/// x - x -> 0, of floats, where x may be inf or NaN
Variable sub_self_float(const Node& node, Context& c) {
  const bool found = is_float(dtype_of_result(node)) && node.inputs[0].same(node.inputs[1]);
  return found ? c.filled(node, 0) : Variable();
}

/// x / 1 -> x
Variable div_one(const Node& node, Context& c) {
  return is_splat(node.inputs[1], 1) ? c.shaped(node.inputs[0], node) : Variable();
}

/// x / -1 -> -x
Variable div_minus_one(const Node& node, Context& c) {
  return is_splat(node.inputs[1], -1) ? c.accept(make("neg", {node.inputs[0]}), node) : Variable();
}

/// 1 / x -> reciprocal(x)
Variable one_div(const Node& node, Context& c) {
  return is_splat(node.inputs[0], 1) ? c.accept(make("reciprocal", {node.inputs[1]}), node)
                                     : Variable();
}

/// The largest exponent e for which 2^-e has full precision.
int largest_exponent(DType dtype) {
  return dtype == DType::float64 ? 1022 : dtype == DType::float16 ? 14 : 126;
}

/// x / 2^k -> x * 2^-k
Variable div_power_of_two(const Node& node, Context& c) {
  const std::optional<double> divisor = splat(node.inputs[1]);
  if (!divisor || !std::isfinite(*divisor)) return {};
  int exponent = 0;
  if (std::abs(std::frexp(*divisor, &exponent)) != 0.5) return {};
  if (std::abs(exponent) >= largest_exponent(dtype_of_result(node))) return {};
  const Variable& x = node.inputs[0];
  return c.accept(make("mul", {x, scalar_of(x, 1 / *divisor)}), node);
}

/// floor_divide(x, 1) -> x, of integers
Variable floor_divide_one(const Node& node, Context& c) {
  const bool found = !is_float(dtype_of_result(node)) && is_splat(node.inputs[1], 1);
  return found ? c.shaped(node.inputs[0], node) : Variable();
}

// Signs.

/// -(-x) -> x
Variable neg_neg(const Node& node, Context&) {
  return is_op(node.inputs[0], "neg") ? in(node.inputs[0]) : Variable();
}

/// -(a - b) -> b - a
Variable neg_sub(const Node& node, Context& c) {
  const Variable& x = node.inputs[0];
  return is_op(x, "sub") && c.used_once(x) ? make("sub", {in(x, 1), in(x)}) : Variable();
}

/// -(x * c) -> x * -c
Variable neg_mul_constant(const Node& node, Context& c) {
  const Variable& x = node.inputs[0];
  if (!is_op(x, "mul") || !c.used_once(x)) return {};
  for (int k : {1, 0}) {
    if (is_constant_node(in(x, k))) return make("mul", {in(x, 1 - k), make("neg", {in(x, k)})});
  }
  return {};
}

/// a + -b -> a - b
Variable add_neg(const Node& node, Context&) {
  for (int k : {1, 0}) {
    const Variable& x = node.inputs[k];
    // A negated constant would come back by sub_constant.
    if (is_op(x, "neg") && !is_constant_node(in(x))) {
      return make("sub", {node.inputs[1 - k], in(x)});
    }
  }
  return {};
}

/// a - -b -> a + b
Variable sub_neg(const Node& node, Context&) {
  const Variable& b = node.inputs[1];
  return is_op(b, "neg") ? make("add", {node.inputs[0], in(b)}) : Variable();
}

/// -a * -b -> a * b, and the same of /
Variable both_neg(const Node& node, Context&) {
  const Variable& a = node.inputs[0];
  const Variable& b = node.inputs[1];
  if (!is_op(a, "neg") || !is_op(b, "neg")) return {};
  return make(node.op->name, {in(a), in(b)});
}

/// -x * c -> x * -c, and the same of /
Variable neg_beside_constant(const Node& node, Context&) {
  for (int k : {0, 1}) {
    const Variable& x = node.inputs[k];
    const Variable& other = node.inputs[1 - k];
    if (!is_op(x, "neg") || !is_constant_node(other)) continue;
    std::vector<Variable> inputs(2);
    inputs[k] = in(x);
    inputs[1 - k] = make("neg", {other});
    return make(node.op->name, std::move(inputs));
  }
  return {};
}

/// square(-x), square(|x|) -> square(x); |-x|, |(|x|)| -> |x|
Variable even_of_sign(const Node& node, Context&) {
  const Variable& x = node.inputs[0];
  if (is_unsigned(x.dtype())) return {};  // there |x| is x, and -x wraps
  return is_op(x, "neg") || is_op(x, "abs") ? make(node.op->name, {in(x)}) : Variable();
}

/// |x| -> x, of what is never negative
Variable abs_of_positive(const Node& node, Context&) {
  const Variable& x = node.inputs[0];
  const bool square = is_op(x, "square") && is_float(x.dtype());
  const bool positive = square || is_op(x, "exp") || is_op(x, "relu") || is_op(x, "sigmoid") ||
                        is_op(x, "softmax") || is_op(x, "softplus");
  return positive ? x : Variable();
}

// Constants come together, and what cancels exactly goes.

/// (x * c1) * c2 -> x * (c1 * c2); of floats where no product on the way can overflow or vanish
/// without the last one doing so
Variable mul_constants(const Node& node, Context&) {
  for (int k : {1, 0}) {
    const Variable& inner = node.inputs[1 - k];
    if (!is_constant_node(node.inputs[k]) || !is_op(inner, "mul")) continue;
    for (int j : {1, 0}) {
      if (!is_constant_node(in(inner, j))) continue;
      const Variable& x = in(inner, 1 - j);
      if (is_float(x.dtype())) {
        const double a = std::abs(splat(node.inputs[k]).value_or(0));
        const double b = std::abs(splat(in(inner, j)).value_or(0));
        const bool same_side = (a >= 1 && b >= 1) || (a <= 1 && b <= 1 && a > 0 && b > 0);
        constexpr double kLimit = 1e3;
        if (!same_side || std::max({a, b, 1 / a, 1 / b}) > kLimit) return {};
      }
      return make("mul", {x, make("mul", {in(inner, j), node.inputs[k]})});
    }
  }
  return {};
}

/// x - c -> x + -c, of integers
Variable sub_constant(const Node& node, Context&) {
  const bool found = is_integer(dtype_of_result(node)) && is_constant_node(node.inputs[1]) &&
                     !is_constant_node(node.inputs[0]);
  return found ? make("add", {node.inputs[0], make("neg", {node.inputs[1]})}) : Variable();
}

/// (x + c1) + c2 -> x + (c1 + c2), of integers
Variable add_constants(const Node& node, Context&) {
  if (!is_integer(dtype_of_result(node))) return {};
  for (int k : {1, 0}) {
    const Variable& inner = node.inputs[1 - k];
    if (!is_constant_node(node.inputs[k]) || !is_op(inner, "add")) continue;
    for (int j : {1, 0}) {
      if (!is_constant_node(in(inner, j))) continue;
      return make("add", {in(inner, 1 - j), make("add", {in(inner, j), node.inputs[k]})});
    }
  }
  return {};
}

/// (a + b) - b -> a, of integers
Variable add_then_sub(const Node& node, Context& c) {
  const Variable& sum = node.inputs[0];
  if (!is_integer(dtype_of_result(node)) || !is_op(sum, "add")) return {};
  for (int k : {1, 0}) {
    if (same_value(in(sum, k), node.inputs[1])) return c.accept(in(sum, 1 - k), node);
  }
  return {};
}

/// (a - b) + b -> a, of integers
Variable sub_then_add(const Node& node, Context& c) {
  if (!is_integer(dtype_of_result(node))) return {};
  for (int k : {0, 1}) {
    const Variable& inner = node.inputs[k];
    if (is_op(inner, "sub") && same_value(in(inner, 1), node.inputs[1 - k])) {
      return c.accept(in(inner), node);
    }
  }
  return {};
}

// Powers.

/// x * x -> square(x), of floats
Variable mul_self(const Node& node, Context&) {
  const Variable& x = node.inputs[0];
  return is_float(x.dtype()) && x.same(node.inputs[1]) ? make("square", {x}) : Variable();
}

/// x^n by products, for n from 2 to 8.
Variable product_power(const Variable& x, int n) {
  if (n == 1) return x;
  const Variable half = make("square", {product_power(x, n / 2)});
  return n % 2 == 0 ? half : make("mul", {half, x});
}

/// pow(x, n) -> products, for whole n from 0 to 8; pow(x, -1) -> reciprocal(x);
/// pow(x, -2) -> square(reciprocal(x))
Variable pow_whole(const Node& node, Context& c) {
  const std::optional<double> n = splat(node.inputs[1]);
  const Variable& x = node.inputs[0];
  if (!n) return {};
  if (*n == 0) return c.filled(node, 1);
  if (*n == 1) return c.shaped(x, node);
  if (*n >= 2 && *n <= 8 && *n == std::floor(*n)) {
    return c.accept(product_power(x, static_cast<int>(*n)), node);
  }
  if (!is_float(x.dtype())) return {};
  if (*n == -1) return c.accept(make("reciprocal", {x}), node);
  return *n == -2 ? c.accept(make("square", {make("reciprocal", {x})}), node) : Variable();
}

/// pow(x, 1/2) -> sqrt(x). Of -inf this gives NaN and not inf, as NumPy's operator does.
Variable pow_half(const Node& node, Context& c) {
  const Variable& x = node.inputs[0];
  const bool found = is_splat(node.inputs[1], 0.5) && is_float(x.dtype());
  return found ? c.accept(make("sqrt", {x}), node) : Variable();
}

// Casts and identities.

int mantissa_bits(DType dtype) {
  switch (dtype) {
    case DType::bfloat16:
      return 8;
    case DType::float16:
      return 11;
    case DType::float32:
      return 24;
    case DType::float64:
      return 53;
    default:
      break;
  }
  return 0;
}

int bits_of(DType dtype) { return static_cast<int>(size_of(dtype)) * 8; }

/// Whether every value of `narrow` is one of `wide`.
bool holds_all(DType wide, DType narrow) {
  if (wide == narrow || is_bool(narrow)) return true;
  if (is_bool(wide)) return false;
  if (is_float(narrow)) {
    return is_float(wide) && bits_of(wide) > bits_of(narrow);
  }
  const int digits = bits_of(narrow) - (is_unsigned(narrow) ? 0 : 1);
  if (is_float(wide)) return digits <= mantissa_bits(wide);
  if (is_unsigned(wide)) return is_unsigned(narrow) && bits_of(wide) >= bits_of(narrow);
  return bits_of(wide) - 1 >= digits;
}

/// cast(x, its own dtype) -> x
Variable cast_same(const Node& node, Context&) {
  return node.inputs[0].dtype() == dtype_of_result(node) ? node.inputs[0] : Variable();
}

/// cast(cast(x)) -> cast(x), where the inner one loses nothing that the outer one keeps
Variable cast_cast(const Node& node, Context&) {
  const Variable& inner = node.inputs[0];
  if (!is_op(inner, "cast")) return {};
  const Variable& x = in(inner);
  const DType to = dtype_of_result(node);
  const bool wraps = is_integer(x.dtype()) && is_integer(inner.dtype()) && is_integer(to) &&
                     bits_of(to) <= bits_of(inner.dtype());
  if (!wraps && !holds_all(inner.dtype(), x.dtype())) return {};
  // Integers wrap around, floats go to the nearest integer that there is.
  const bool through_float = is_float(inner.dtype()) && !is_float(x.dtype()) && is_integer(to);
  if (through_float && !holds_all(to, x.dtype())) return {};
  return cast_to(x, to, node.loc);
}

/// What marks a value for gradients -> the value
Variable gradient_mark(const Node& node, Context&) { return node.inputs[0]; }

/// round(x) -> x, of integers, and of what is whole already; the same of floor, ceil, trunc
Variable round_whole(const Node& node, Context&) {
  const Variable& x = node.inputs[0];
  const bool whole = !is_float(x.dtype()) || is_op(x, "floor") || is_op(x, "ceil") ||
                     is_op(x, "trunc") || is_op(x, "round");
  return whole ? x : Variable();
}

// Selection and logic.

/// where(true, a, b) -> a; where(false, a, b) -> b
Variable where_constant(const Node& node, Context& c) {
  const std::optional<double> condition = splat(node.inputs[0]);
  return condition ? c.shaped(node.inputs[*condition != 0 ? 1 : 2], node) : Variable();
}

/// where(c, a, a) -> a
Variable where_same(const Node& node, Context& c) {
  const bool found = same_value(node.inputs[1], node.inputs[2]);
  return found ? c.shaped(node.inputs[1], node) : Variable();
}

/// where(not c, a, b) -> where(c, b, a)
Variable where_not(const Node& node, Context&) {
  const Variable& condition = node.inputs[0];
  if (!is_op(condition, "logical_not")) return {};
  return make("where", {in(condition), node.inputs[2], node.inputs[1]});
}

/// maximum(x, x) -> x; the same of minimum, logical_and, logical_or, bitwise_and, bitwise_or
Variable same_operands(const Node& node, Context&) {
  return node.inputs[0].same(node.inputs[1]) ? node.inputs[0] : Variable();
}

/// maximum(x, 0) -> relu(x), of floats; sizes are followed through maximum
Variable maximum_zero(const Node& node, Context& c) {
  if (!is_float(dtype_of_result(node))) return {};
  const Variable x = beside(node, 0);
  return x.defined() ? c.accept(make("relu", {x}), node) : Variable();
}

/// relu(relu(x)) -> relu(x)
Variable relu_relu(const Node& node, Context&) {
  return is_op(node.inputs[0], "relu") ? node.inputs[0] : Variable();
}

/// not (not x) -> x
Variable not_not(const Node& node, Context&) {
  return is_op(node.inputs[0], node.op->name) ? in(node.inputs[0]) : Variable();
}

/// x and true, x or false -> x; x and false -> false; x or true -> true
Variable logic_constant(const Node& node, Context& c) {
  if (!is_bool(dtype_of_result(node))) return {};
  const bool is_and = node.op->name.ends_with("and");
  if (const Variable x = beside(node, is_and ? 1 : 0); x.defined()) return c.shaped(x, node);
  return beside(node, is_and ? 0 : 1).defined() ? c.filled(node, is_and ? 0 : 1) : Variable();
}

/// x < x, x > x -> false; x == x, x <= x, x >= x -> true and x != x -> false, of integers and bools
Variable compare_self(const Node& node, Context& c) {
  const Variable& x = node.inputs[0];
  if (!x.same(node.inputs[1])) return {};
  const std::string& op = node.op->name;
  const bool strict = op == "lt" || op == "gt";
  if (is_float(x.dtype()) && !strict) return {};
  return c.filled(node, op == "eq" || op == "le" || op == "ge" ? 1 : 0);
}

constexpr Precision kExact = Precision::exact;

constexpr Rule kRules[] = {
    {"add_zero", "add", "algebra", kExact, add_zero},
    {"sub_zero", "sub", "algebra", kExact, sub_zero},
    {"zero_sub", "sub", "algebra", kExact, zero_sub},
    {"mul_one", "mul", "algebra", kExact, mul_one},
    {"mul_minus_one", "mul", "algebra", kExact, mul_minus_one},
    {"mul_zero", "mul", "algebra", kExact, mul_zero},
    {"mul_zero_float", "mul", "algebra unsafe", kExact, mul_zero_float},
    {"sub_self", "sub", "algebra", kExact, sub_self},
    {"sub_self_float", "sub", "algebra unsafe", kExact, sub_self_float},
    {"div_one", "true_divide", "algebra", kExact, div_one},
    {"div_minus_one", "true_divide", "algebra", kExact, div_minus_one},
    {"one_div", "true_divide", "algebra", kExact, one_div},
    {"div_power_of_two", "true_divide", "algebra", kExact, div_power_of_two},
    {"floor_divide_one", "floor_divide", "algebra", kExact, floor_divide_one},
    {"neg_neg", "neg", "algebra", kExact, neg_neg},
    {"neg_sub", "neg", "algebra", kExact, neg_sub},
    {"neg_mul_constant", "neg", "algebra constants", kExact, neg_mul_constant},
    {"add_neg", "add", "algebra", kExact, add_neg},
    {"sub_neg", "sub", "algebra", kExact, sub_neg},
    {"both_neg", "mul true_divide", "algebra", kExact, both_neg},
    {"neg_beside_constant", "mul true_divide", "algebra constants", kExact, neg_beside_constant},
    {"even_of_sign", "square abs", "algebra", kExact, even_of_sign},
    {"abs_of_positive", "abs", "algebra", kExact, abs_of_positive},
    {"mul_constants", "mul", "algebra constants", Precision::rounding, mul_constants},
    {"sub_constant", "sub", "algebra constants", kExact, sub_constant},
    {"add_constants", "add", "algebra constants", kExact, add_constants},
    {"add_then_sub", "sub", "algebra", kExact, add_then_sub},
    {"sub_then_add", "add", "algebra", kExact, sub_then_add},
    {"mul_self", "mul", "algebra powers", kExact, mul_self},
    {"pow_whole", "pow", "algebra powers", Precision::rounding, pow_whole},
    {"pow_half", "pow", "algebra powers", Precision::stabilising, pow_half},
    {"cast_same", "cast", "useless", kExact, cast_same},
    {"cast_cast", "cast", "useless", kExact, cast_cast},
    {"gradient_mark", "disconnected_grad zero_grad grad_clip grad_scale custom_gradient remat",
     "useless", kExact, gradient_mark},
    {"round_whole", "round floor ceil trunc", "useless", kExact, round_whole},
    {"where_constant", "where", "useless", kExact, where_constant},
    {"where_same", "where", "useless", kExact, where_same},
    {"where_not", "where", "logic", kExact, where_not},
    {"same_operands", "maximum minimum logical_and logical_or bitwise_and bitwise_or", "useless",
     kExact, same_operands},
    {"maximum_zero", "maximum", "algebra", kExact, maximum_zero},
    {"relu_relu", "relu", "useless", kExact, relu_relu},
    {"not_not", "logical_not bitwise_not", "logic", kExact, not_not},
    {"logic_constant", "logical_and logical_or bitwise_and bitwise_or", "logic", kExact,
     logic_constant},
    {"compare_self", "eq ne lt le gt ge", "logic", kExact, compare_self},
};

}  // namespace

RuleTable arithmetic_rules() { return {"canonicalize", kRules}; }

}  // namespace croton
