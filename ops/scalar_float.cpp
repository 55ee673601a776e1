// signbit, copysign, hypot, nextafter, cbrt.
#include <cmath>

#include "compiler/kernel/math.h"
#include "croton/math.h"
#include "ops/evaluate.h"
#include "ops/registry.h"
#include "ops/scalar.h"
#include "ops/special_reference.h"

namespace croton {

using namespace scalar;

namespace {

using V = const Variable&;  // in the rules below: gradient of the result, operand, result

/// Whether a float's sign is negative, that of -0 too. That of NaN is whatever a device makes it,
/// so it does not count.
Expr sign_bit(Builder& b, Expr x) {
  const DType bits = x.dtype() == DType::float32 ? DType::int32 : DType::int64;
  return (b.bitcast(x, bits) < b.integer(bits, 0)) & (x == x);
}

bool real_sign(double x) { return std::signbit(x) && !std::isnan(x); }

OpDef signbit_op() {
  return {
      .name = "signbit",
      .doc = "Whether x is negative, -0 included; false for NaN.",
      .infer = rule<1, Accept::any, Result::boolean>,
      .scalar =
          [](Builder& b, Args x, const Node&) {
            const DType dtype = x[0].dtype();
            if (is_float(dtype)) return sign_bit(b, x[0]);
            return is_signed(dtype) ? x[0] < zero(x[0]) : b.integer(DType::boolean, 0);
          },
      .scalar_reference = {
          .real = [](const double* x) -> double { return real_sign(x[0]); },
          .integer = [](const std::int64_t* x) -> std::int64_t { return x[0] < 0; },
          .natural = [](const std::uint64_t*) -> std::uint64_t { return 0; },
          .boolean = [](const bool*) { return false; }},
      .examples = {example(1, -5, 5)},
  };
}

OpDef copysign_op() {
  return {
      .name = "copysign",
      .doc = "|a| with the sign of b, where NaN is positive.",
      .cost = 3,
      .infer = rule<2, Accept::floating>,
      .scalar =
          [](Builder& b, Args x, const Node&) {
            const Expr size = b.unary(kernel::Unary::abs, x[0]);
            return b.select(sign_bit(b, x[1]), -size, size);
          },
      .grad =
          [](const GradArgs& args) {
            return gradients(
                args,
                [&](const Variable& g) { return g * (sign(args.in(0)) * copysign(1, args.in(1))); },
                [&](const Variable&) { return zeros_like(args.in(1), args.node.loc); });
          },
      .scalar_reference = {.real =
                               [](const double* x) {
                                 return std::copysign(x[0], real_sign(x[1]) ? -1.0 : 1.0);
                               }},
      .examples = {example(2, -5, 5)},
  };
}

/// The cosine or the sine of the angle of the point (a, b), which lies in the middle where both are
/// infinite; at the origin, where there is no slope, 0.
Variable hypot_slope(const GradArgs& args, int k) {
  const Variable& x = args.in(k);
  const Variable& other = args.in(1 - k);
  // The length of finite operands may overflow.
  const Variable large = isinf(args.out());
  const Loc& loc = args.node.loc;
  const Variable scale = where(large, scalar_like(x, 0.25, loc), scalar_like(x, 1, loc));
  const Variable length = where(large, hypot(x * scale, other * scale), args.out());
  const Variable part = x * scale / where(eq(length, 0), 1, length);
  const Variable middle = scalar_like(x, std::sqrt(0.5), loc);
  return where(isinf(x), sign(x) * where(isinf(other), middle, 1), part);
}

OpDef hypot_op() {
  return {
      .name = "hypot",
      .doc = "sqrt(a^2 + b^2), without overflow.",
      .commutative = true,
      .cost = 20,
      .infer = rule<2, Accept::floating>,
      .scalar = [](Builder&, Args x, const Node&) { return kernel::hypot(x[0], x[1]); },
      .grad =
          [](const GradArgs& args) {
            return gradients(
                args, [&](const Variable& g) { return g * hypot_slope(args, 0); },
                [&](const Variable& g) { return g * hypot_slope(args, 1); });
          },
      .scalar_reference = {.real = [](const double* x) { return std::hypot(x[0], x[1]); }},
      .examples = {example(2, -5, 5)},
  };
}

/// The bits of a as an integer, one up or down. Those of float16 and bfloat16 in their own 16.
Expr next_after(Builder& b, Args x, const Node& node) {
  const DType dtype = node.inputs[0].dtype();
  const DType bits = size_of(dtype) == 2   ? DType::int16
                     : size_of(dtype) == 4 ? DType::int32
                                           : DType::int64;
  const Expr a = x[0];
  const Expr own = b.bitcast(b.cast(a, dtype), bits);
  const Expr one = b.integer(bits, 1);
  const Expr away = (a < x[1]) == (zero(a) < a);
  const Expr sign = b.integer(bits, std::int64_t{-1} << (8 * size_of(dtype) - 1));
  const Expr least = b.select(x[1] < zero(a), one | sign, one);
  const Expr moved = b.select(a == zero(a), least, b.select(away, own + one, own - one));
  const Expr y = b.cast(b.bitcast(moved, dtype), a.dtype());
  return b.select(a == x[1], x[1], b.select((a == a) & (x[1] == x[1]), y, a + x[1]));
}

std::vector<Array> next_after_reference(const Node& node, std::span<const Array> inputs) {
  const DType dtype = node.outputs[0].dtype;
  const Shape shape = broadcast_shape(inputs);
  const auto numbers = [&](const Array& x) {
    return x.astype(DType::float64).broadcast_to(shape).to_vector<double>();
  };
  const std::vector<double> a = numbers(inputs[0]);
  const std::vector<double> c = numbers(inputs[1]);
  std::vector<double> result;
  for (std::size_t i = 0; i < a.size(); ++i) {
    result.push_back(reference::next_after(dtype, a[i], c[i]));
  }
  return {Array::from<double>(result, shape).astype(dtype)};
}

OpDef nextafter_op() {
  return {
      .name = "nextafter",
      .doc = "The number next to a on the way to b, in their dtype.",
      .cost = 12,
      .infer = rule<2, Accept::floating>,
      .scalar = next_after,
      .grad =
          [](const GradArgs& args) {
            return gradients(
                args, [](const Variable& g) { return g; },
                [&](const Variable&) { return zeros_like(args.in(1), args.node.loc); });
          },
      .scalar_reference = {.real = [](const double* x) { return std::nextafter(x[0], x[1]); }},
      .reference = next_after_reference,
      .examples = {example({{-5, 5}, {6, 7}})},
  };
}

Variable grad_cbrt(V g, V, V y) { return g / (3 * square(y)); }

}  // namespace

void register_scalar_float_ops(OpRegistry& registry) {
  registry.add(signbit_op());
  registry.add(copysign_op());
  registry.add(hypot_op());
  registry.add(nextafter_op());
  registry.add(float_function<grad_cbrt>(
      "cbrt", "The cube root.", 40,
      [](Builder&, Args x, const Node&) { return kernel::cbrt(x[0]); },
      [](const double* x) { return std::cbrt(x[0]); }, {example(1, 0.2, 9), example(1, -9, -0.2)}));
}

Variable signbit(const Operand& x) { return make("signbit", Promotion::common, x); }
Variable copysign(const Operand& a, const Operand& b) {
  return make("copysign", Promotion::floating, a, b);
}
Variable hypot(const Operand& a, const Operand& b) {
  return make("hypot", Promotion::floating, a, b);
}
Variable nextafter(const Operand& a, const Operand& b) {
  return make("nextafter", Promotion::floating, a, b);
}
Variable cbrt(const Operand& x) { return make("cbrt", Promotion::floating, x); }

}  // namespace croton
